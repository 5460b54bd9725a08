package detect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
)

// stack is what stands below an error in Gemini's debug log, joined to it by
// shim/agentlog. Its paths can hold any word.
const stack = `     at throwErrorIfNotOK (file:///home/u/limit: 0/rate-limit/per-day/node_modules/@google/gemini-cli/bundle/chunk.js:267833:24)     at async retryWithBackoff (file:///home/u/chunk.js:308039:23) {   status: 429 }`

// debugRecord is one record of the debug log as it arrives (0.61.0).
func debugRecord(level, text string) []byte {
	return fmt.Appendf(nil, "[2026-11-29T16:45:03.506Z] [%s] %s%s", level, text, stack)
}

func backoff(status int, body string) []byte {
	return debugRecord("WARN", fmt.Sprintf("Attempt 1 failed with status %d. Retrying with backoff... _ApiError: %s", status, body))
}

// TestGeminiDebugLog: the reason stands inside the server's answer, the delays
// beside it may lie, and what no waiting heals is no throttle.
func TestGeminiDebugLog(t *testing.T) {
	const (
		perDay  = `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"20"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.07s"}],"message":"You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 20, model: gemini-2.5-pro\nPlease retry in 34.074824224s.","status":"RESOURCE_EXHAUSTED"}}`
		prepaid = `{"error":{"code":429,"message":"Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing.","status":"RESOURCE_EXHAUSTED"}}`
		capped  = `{"error":{"code":429,"message":"Your project has exceeded its monthly spending cap. Please go to AI Studio at https://ai.studio/spend to manage your project spend cap.","status":"RESOURCE_EXHAUSTED"}}`
		noTier  = `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-3.1-pro\nPlease retry in 25.465784708s.","status":"RESOURCE_EXHAUSTED"}}`
		billing = `{"error":{"code":403,"details":[{"reason":"BILLING_DISABLED"}],"message":"This API method requires billing to be enabled. Please enable billing on project #123456789 by visiting https://console.developers.google.com/billing/enable?project=123456789 then retry.","status":"PERMISSION_DENIED"}}`
	)
	for _, c := range []struct {
		name   string
		record []byte
		want   string // class/cause/confidence
		row    string // what people read
	}{
		{"prepaid", backoff(429, prepaid), "credit//strong", "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing. (429)"},
		{"spending cap", backoff(429, capped), "spend//strong", "Your project has exceeded its monthly spending cap. Please go to AI Studio at https://ai.studio/spend to manage your project spend cap. (429)"},
		{"no free tier", backoff(429, noTier), "credit//strong", "* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-3.1-pro"},
		{"day", backoff(429, perDay), "retrying/daily/strong", "Please retry in 34.074824224s. (429)"},
		{"plain", backoff(429, `{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}`), "retrying/rate/strong", "Resource has been exhausted (e.g. check quota). (429)"},
		{"no reason", backoff(429, ""), "retrying/rate/strong", "Attempt 1 failed with status 429. Retrying with backoff... _ApiError:"},
		{"overloaded", backoff(503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`), "retrying/overload/strong", "The model is overloaded. Please try again later. (503)"},
		{"no tier, client's delay", debugRecord("WARN", "Attempt 1 failed: You exceeded your current quota. * Quota exceeded for metric: x, limit: 0, model: gemini-3.1-pro Please retry in 25s.. Retrying after 25998ms..."), "credit//strong", ""},
		{"billing", debugRecord("ERROR", "Error when talking to Gemini API Full report available at: /tmp/gemini-client-error.json _ApiError: "+billing), "auth//strong", "This API method requires billing to be enabled. Please enable billing on project #123456789 by visiting https://console.developers.google.com/billing/enable?project=123456789 then retry. (403)"},
		{"day's end", debugRecord("ERROR", "Error when talking to Gemini API Full report available at: /tmp/gemini-client-error.json TerminalQuotaError: You have exhausted your daily quota on this model."), "daily//strong", "TerminalQuotaError: You have exhausted your daily quota on this model."},
		{"line cut", debugRecord("ERROR", "Error when talking to Gemini API Full report available at: /tmp/x.json _ApiError: exception TypeError: fetch failed sending request"), "", ""},
		{"other", debugRecord("DEBUG", "[Routing] Selected model: gemini-2.5-pro"), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := watch(t, "gemini", detect.Options{HasLog: true})
			l.turn("\x1b]0;✦  Working… (proj)\a")
			l.take(l.w.Log(l.now, c.record))
			l.wait(100 * time.Millisecond)
			if c.want == "" {
				l.want("nothing", "")
				return
			}
			if len(l.all) != 1 {
				t.Fatalf("%+v", l.all)
			}
			f := l.all[0]
			if got := fmt.Sprintf("%s/%s/%s", f.Class, f.Cause, f.Confidence); got != c.want {
				t.Errorf("%s by %s, want %s", got, f.Rule, c.want)
			}
			if !f.Reset.IsZero() || f.RetryAfter != 0 {
				t.Errorf("ends at %v, next try after %v; nothing of it is true", f.Reset, f.RetryAfter)
			}
			if c.row != "" && !strings.Contains(strings.Join(f.Rows, "\n"), c.row) {
				t.Errorf("rows %q, want %q in them", f.Rows, c.row)
			}
			if strings.Contains(strings.Join(f.Rows, "\n"), "chunk.js") {
				t.Errorf("the stack is no evidence: %q", f.Rows)
			}
		})
	}
}

// TestEveryTryCounts: Gemini's counter begins anew after its last try, so the
// same words are another try, also when several come at once.
func TestEveryTryCounts(t *testing.T) {
	const body = `{"error":{"code":429,"message":"No capacity","details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"}]}}`
	l := watch(t, "gemini", detect.Options{HasLog: true})
	l.turn("\x1b]0;✦  Working… (proj)\a")
	for range 30 {
		l.take(l.w.Log(l.now, backoff(429, body)))
		l.wait(100 * time.Millisecond)
	}
	for range 100 { // far more than are kept
		l.take(l.w.Log(l.now, backoff(429, body)))
		l.take(l.w.Log(l.now, debugRecord("DEBUG", "[Routing] Selected model: gemini-2.5-pro")))
	}
	l.wait(100 * time.Millisecond)
	if len(l.all) != 130 {
		t.Errorf("%d findings of 130 tries", len(l.all))
	}
	for _, id := range l.ids {
		if id != l.ids[0] {
			t.Fatal("tries of one turn are one event")
		}
	}
}

// TestLogIsNoScreen: what the log says does not hang on bytes of the terminal,
// nor on the agent's end.
func TestLogIsNoScreen(t *testing.T) {
	l := watch(t, "gemini", detect.Options{HasLog: true})
	l.turn("\x1b]0;✦  Working… (proj)\a")
	l.w.Resync()
	l.take(l.w.Log(l.now, backoff(429, `{"error":{"code":429,"message":"Your prepayment credits are depleted."}}`)))
	l.wait(time.Second)
	l.want("after lost bytes", "credit/strong")
}

// TestDelayThatLies: a delay that does not end the block is not passed on where
// it would be taken for its end.
func TestDelayThatLies(t *testing.T) {
	rows := []string{
		" > hi", "",
		"✕ [API Error: You exceeded your current quota, please check your plan and billing details.",
		"  * Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model:",
		"  gemini-3.1-pro", "  Please retry in 25.465784708s.]", "", " >   Type your message or @path/to/file",
	}
	l := watch(t, "gemini", detect.Options{Cols: 120})
	l.turn("\x1b]0;✦  Working… (proj)\a")
	l.out("\x1b]0;◇  Ready (proj)\a")
	l.paint(rows...)
	l.wait(2 * time.Second)
	if len(l.all) != 1 || l.all[0].Class != finding.Credit || l.all[0].RetryAfter != 0 || !l.all[0].Reset.IsZero() {
		t.Errorf("%+v", l.all)
	}
}

// TestRecordEvidence: people read what the record says, not its JSON.
func TestRecordEvidence(t *testing.T) {
	for _, c := range []struct{ agent, from, record, row, code string }{
		{"claude", "log", `{"type":"assistant","isApiErrorMessage":true,"error":"rate_limit","apiErrorStatus":429,"message":{"model":"<synthetic>","content":[{"type":"text","text":"You've hit your 5-hour limit · resets 6:54pm (UTC)"}]}}`,
			"You've hit your 5-hour limit · resets 6:54pm (UTC) (429)", "429"},
		{"claude", "stdout", `{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: Request rejected (429) · Too Many Requests"}`,
			"API Error: Request rejected (429) · Too Many Requests", "429"},
		{"claude", "stdout", `{"type":"system","subtype":"api_retry","attempt":3,"max_retries":10,"retry_delay_ms":2289,"error_status":429,"error":"rate_limit"}`,
			"rate_limit (429)", "429"},
		{"claude", "stdout", `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795978800,"rateLimitType":"five_hour"}}`,
			`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795978800,"rateLimitType":"five_hour"}}`, ""},
		{"codex", "log", `{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"You’ve hit your usage limit. Try again at 5:40 PM.","codex_error_info":"usage_limit_exceeded"}}}`,
			"You’ve hit your usage limit. Try again at 5:40 PM. (usage_limit_exceeded)", "usage_limit_exceeded"},
		{"codex", "log", `{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests","codex_error_info":{"response_too_many_failed_attempts":{"http_status_code":429}}}}}`,
			"exceeded retry limit, last status: 429 Too Many Requests (response_too_many_failed_attempts)", "response_too_many_failed_attempts"},
		{"gemini", "log", `{"id":"1","type":"error","content":"[API Error: You have exhausted your daily quota on this model.]\nPlease wait and \u001b[2Jtry again later."}`,
			"[API Error: You have exhausted your daily quota on this model.]\nPlease wait and \\x1b[2Jtry again later.", ""},
		{"generic", "stdout", `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","code":["a"]}}`,
			"The usage limit has been reached", ""},
	} {
		l := watch(t, c.agent, detect.Options{Mode: detect.Headless})
		if c.from == "log" {
			l.take(l.w.Log(l.now, []byte(c.record)))
		} else {
			l.take(l.w.Stream(l.now, detect.Stdout, []byte(c.record+"\n")))
		}
		if len(l.all) != 1 {
			t.Errorf("%s: %+v", c.record, l.all)
			continue
		}
		f := l.all[0]
		if got := strings.Join(f.Rows, "\n"); got != c.row || c.code != "" && f.ErrorCode != c.code {
			t.Errorf("%s: rows %q, code %q; want %q, %q", f.Rule, got, f.ErrorCode, c.row, c.code)
		}
	}
}

// TestNextTryCountsAnew: a log says everything once, so the same words are
// another try, and its wait begins with it.
func TestNextTryCountsAnew(t *testing.T) {
	for agent, line := range map[string]string{
		"opencode": `timestamp=2026-11-29T16:45:00.000Z level=ERROR run=a1 message="stream error" small=false error.error="AI_APICallError: Rate limit reached for gpt-5. Please try again in 3.000s."`,
		"qwen":     `2026-11-29T16:45:00.000Z [ERROR] [OPENAI_ERROR] OpenAI API Error: 429 Rate limit reached for gpt-5. Please try again in 3s.`,
		"gemini":   `[2026-11-29T16:45:00.000Z] [WARN] Attempt %d failed: You have exhausted your capacity on this model. Your quota will reset after 3s.. Retrying after 3412ms...`,
	} {
		l := watch(t, agent, detect.Options{Mode: detect.Headless, HasLog: true})
		for n := range 3 {
			at := l.now
			text := line
			if strings.Contains(text, "%d") {
				text = fmt.Sprintf(text, n+1)
			}
			l.take(l.w.Log(l.now, []byte(text)))
			l.wait(5 * time.Second)
			if len(l.all) != 1 || l.all[0].Class != finding.Retrying || !l.all[0].Reset.Equal(at.Add(3*time.Second)) {
				t.Errorf("%s, try %d at %v: %+v", agent, n+1, at, l.all)
			}
			l.got()
		}
	}
}
