package fakeprovider

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// codeAssistDomain is where Gemini CLI looks for a Google login's limits.
const codeAssistDomain = "cloudcode-pa.googleapis.com"

// codeAssist serves the endpoints of a Google login (POST /v1internal:METHOD).
// Its generate calls wrap the Gemini API's requests and responses.
func (s *Server) codeAssist(w http.ResponseWriter, r *http.Request) {
	_, method, _ := strings.Cut(r.URL.Path, "/v1internal:")
	var body struct {
		Model   string     `json:"model"`
		Request geminiBody `json:"request"`
	}
	size, ok := readBody(w, r, &body)
	if !ok {
		return
	}
	switch method {
	case "loadCodeAssist":
		tier := map[string]any{"id": "standard-tier", "name": "Gemini Code Assist", "isDefault": true, "userDefinedCloudaicompanionProject": false}
		writeJSON(w, http.StatusOK, map[string]any{"currentTier": tier, "allowedTiers": []any{tier}, "cloudaicompanionProject": "fake-project"})
	case "onboardUser":
		writeJSON(w, http.StatusOK, map[string]any{"name": "operations/fake", "done": true, "response": map[string]any{"cloudaicompanionProject": map[string]string{"id": "fake-project", "name": "fake-project"}}})
	case "retrieveUserQuota":
		writeJSON(w, http.StatusOK, map[string]any{"buckets": []any{}})
	case "countTokens":
		writeJSON(w, http.StatusOK, map[string]int{"totalTokens": size/4 + 1})
	case "generateContent", "streamGenerateContent":
		a := ask{provider: CodeAssist, account: Account(credential(r)), path: r.URL.Path, model: body.Model, text: body.Request.lastUser(), size: size}
		s.geminiGenerate(w, r, a, body.Request, method, func(v any) any {
			return map[string]any{"response": v, "traceId": "fake"}
		})
	default:
		writeJSON(w, http.StatusOK, map[string]any{}) // experiments, admin controls, metrics: nothing to say
	}
}

// codeAssistRefusal is a Google login's refusal, as public reports show it.
func codeAssistRefusal(v verdict, a ask) geminiError {
	info := func(reason string, delay time.Duration) []any {
		meta := map[string]string{"uiMessage": "true", "model": a.model}
		if delay <= 0 {
			return []any{errorInfo(reason, codeAssistDomain, meta)}
		}
		meta["quotaResetDelay"] = delay.String()
		meta["quotaResetTimeStamp"] = v.now.Add(delay).UTC().Format(time.RFC3339)
		return []any{errorInfo(reason, codeAssistDomain, meta), retryInfo(delay)}
	}
	e := geminiError{code: http.StatusTooManyRequests, status: "RESOURCE_EXHAUSTED"}
	switch v.scenario.Kind {
	case Window, Daily:
		// This wording makes Gemini CLI 0.61.0 sleep in silence; another one
		// (Scenario.Message) brings up its dialog.
		d := until(v, 2*time.Hour)
		e.message = fmt.Sprintf("You have exhausted your capacity on this model. Your quota will reset after %s.", ceilSecond(d))
		e.details = info("QUOTA_EXHAUSTED", d)
	case Credit, Spend:
		e.message, e.details = "You do not have enough AI credits to continue.", info("INSUFFICIENT_G1_CREDITS_BALANCE", 0)
	case Overload:
		e.message, e.details = "No capacity available for model "+a.model+" on the server", info("MODEL_CAPACITY_EXHAUSTED", 0)
	case Auth:
		return geminiRefusal(v, a)
	default:
		e.message, e.details = "You have exhausted your capacity on this model.", info("RATE_LIMIT_EXCEEDED", v.retryAfter)
		if v.scenario.Form == "capacity" {
			e.details = info("MODEL_CAPACITY_EXHAUSTED", v.retryAfter)
		}
	}
	return e
}
