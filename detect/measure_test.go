package detect_test

import (
	"testing"
	"time"

	"qshim/detect"
)

// TestMeasureAndScope: what ran out and of whom, as far as the text says.
func TestMeasureAndScope(t *testing.T) {
	for _, c := range []struct{ agent, row, measure, scope string }{
		{"codex", "■ exceeded retry limit, last status: 429 Too Many Requests, request id: req_1", "", "account"},
		{"codex", "■ rate limit exceeded: Rate limit reached for gpt-5 in organization org-abc on requests per min (RPM): Limit 3. Please try again in 20s.", "requests", "account"},
		{"codex", "■ Selected model is at capacity. Please try a different model.", "", "model"},
		{"claude", "● API Error: Request rejected (429) · This request would exceed the rate limit for your organization (00000000) of 40,000 input tokens per minute.", "input_tokens", "account"},
		{"gemini", "✕ [API Error: You have exhausted your daily quota on this model.]", "requests", "model"},
		{"gemini", `{"session_id":"1","error":{"type":"Error","message":"You have exhausted your daily quota on this model.","code":429}}`, "requests", "model"},
		{"gemini", "✕ [API Error: Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.]", "", "project"},
		{"generic", "Free usage exceeded, subscribe to Go", "usage", "account"},
	} {
		found := profile(t, c.agent).ExplainRows([]string{c.row}, detect.ExplainOptions{Mode: detect.Both, Now: start, Zone: time.UTC})
		if len(found) != 1 || string(found[0].Measure) != c.measure || string(found[0].Scope) != c.scope {
			t.Errorf("%s: %+v, want %q of the %s", c.row, found, c.measure, c.scope)
		}
	}
}
