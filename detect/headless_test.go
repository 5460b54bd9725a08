package detect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
)

// TestHeadlessMessages runs every labelled headless excerpt as a call of its
// agent: on a pipe, on the other, and on a terminal. Failed with a limit it is
// one finding that acts; ended well, its text was an answer.
func TestHeadlessMessages(t *testing.T) {
	detect.OneGoroutine(t)
	misses := known(t, "testdata/known-misses.txt")
	profiles := map[string]*detect.Profile{}
	for _, m := range messages(t) {
		if m.Mode != "headless" || misses[m.ID] != "" {
			continue
		}
		p := profiles[m.Agent]
		if p == nil {
			p = profile(t, m.Agent)
			profiles[m.Agent] = p
		}
		now, err := time.Parse(time.RFC3339, m.Now)
		if err != nil {
			t.Fatal(m.ID, err)
		}
		zone, err := time.LoadLocation(m.TZ)
		if err != nil {
			t.Fatal(m.ID, err)
		}
		for _, on := range []string{"stdout", "stderr", "terminal"} {
			if first := strings.TrimSpace(m.Lines[0]); first[0] == '"' || first[0] == '{' && on == "stderr" && m.Agent != "gemini" {
				continue // a piece of a record, or on the pipe that has none
			}
			run := func(code int) []finding.Finding {
				w := p.Watch(detect.Options{Mode: detect.Headless, Cols: 120, Rows: 40, Zone: zone, Started: now.Add(-time.Hour)})
				return headless(w, now, on, m.Lines, code)
			}
			if bad := wrongRun(m, run(1)); bad != "" {
				t.Errorf("%s %s on %s: %s\n  %s", m.ID, m.Agent, on, bad, strings.Join(m.Lines, "\n  "))
			}
			for _, f := range run(0) {
				if f.Confidence == finding.Strong && f.Class != finding.Retrying && f.Class != finding.Warning && f.Rule != "attempt-last" {
					t.Errorf("%s %s on %s ended well: %s by %s", m.ID, m.Agent, on, f.Class, f.Rule)
				}
			}
		}
	}
}

// headless is one call that prints lines and ends.
func headless(w *detect.Watcher, now time.Time, on string, lines []string, code int) (all []finding.Finding) {
	take := func(r detect.Report) {
		for i, f := range r.Findings {
			for len(all) < int(r.Events[i]) {
				all = append(all, finding.Finding{})
			}
			all[r.Events[i]-1] = f // a better reading of the same event
		}
	}
	for _, l := range lines {
		switch on {
		case "terminal":
			take(w.Output(now, []byte(l+"\r\n")))
		case "stdout":
			take(w.Stream(now, detect.Stdout, []byte(l+"\n")))
		case "stderr":
			take(w.Stream(now, detect.Stderr, []byte(l+"\n")))
		}
	}
	r := w.Tick(now.Add(100 * time.Millisecond))
	take(r)
	take(w.Exit(now.Add(150*time.Millisecond), code))
	return all
}

func wrongRun(m message, got []finding.Finding) string {
	var acting []finding.Finding
	for _, f := range got {
		if f.Confidence.Rank() >= finding.Strong.Rank() && f.Class != finding.Warning {
			acting = append(acting, f)
		}
	}
	if m.Class == "none" || m.Class == "warning" {
		if len(acting) > 0 {
			return fmt.Sprintf("FALSE ALARM %s by %s", acting[0].Class, acting[0].Rule)
		}
		return ""
	}
	if len(acting) != 1 {
		return fmt.Sprintf("%d findings of %v, want one %s", len(acting), got, m.Class)
	}
	if c := string(acting[0].Class); c != m.Class && !anyString(m.ClassAlt, c) {
		return fmt.Sprintf("class %s by %s, want %s", c, acting[0].Rule, m.Class)
	}
	return ""
}

// TestHeadlessCalls: whole calls as they print, one finding each or none.
func TestHeadlessCalls(t *testing.T) {
	const limit = "ERROR: You’ve hit your usage limit. Try again at 5:47 PM."
	exec := func(rows ...string) []string {
		return append([]string{"OpenAI Codex v0.171.0", "--------", "workdir: /tmp/proj", "model: gpt-5", "--------", "user", "fix it", ""}, rows...)
	}
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprintf("test %d passed", i)
	}
	for _, c := range []struct {
		name, agent, on string
		rows            []string
		code            int
		want            string // class/confidence of what acts
	}{
		{"codex twice", "codex", "stderr", exec(limit, limit), 1, "window/strong"},
		{"codex after its retries", "codex", "stderr", exec("ERROR: Reconnecting... 1/5", "ERROR: Reconnecting... 2/5", "ERROR: exceeded retry limit, last status: 429 Too Many Requests", "ERROR: exceeded retry limit, last status: 429 Too Many Requests"), 1, "retrying/strong rate/strong"},
		{"codex, a tool printed one", "codex", "stderr", exec("exec", "bash -lc 'cat log' in /tmp/proj succeeded in 12ms:", limit, "codex", "Done."), 0, ""},
		{"codex, another error ended it", "codex", "stderr", exec("exec", "bash -lc 'cat log' in /tmp/proj succeeded in 12ms:", limit, "ERROR: stream disconnected before completion: error sending request for url"), 1, ""},
		{"codex, another limit ended it", "codex", "stderr", exec("exec", "bash -lc 'cat log' in /tmp/proj succeeded in 12ms:", limit, "ERROR: exceeded retry limit, last status: 429 Too Many Requests", "ERROR: exceeded retry limit, last status: 429 Too Many Requests"), 1, "rate/strong"},
		{"codex, a bad key ended it", "codex", "stderr", exec("exec", "bash -lc 'cat log' in /tmp/proj succeeded in 12ms:", limit, "ERROR: unexpected status 401 Unauthorized: Incorrect API key provided: sk-1"), 1, "auth/strong"},
		{"codex, interrupted", "codex", "stderr", exec("exec", "bash -lc 'tail -f log' in /tmp/proj", limit), 130, ""},
		{"codex on a terminal", "codex", "terminal", exec("\x1b]0;proj\a\x1b[?25l\x1b[1m\x1b[31mERROR:\x1b[0m\x1b[0m You’ve hit your usage limit. Try again at 5:47 PM."), 1, "window/strong"},
		{"codex's records on a terminal", "codex", "terminal", []string{"\x1b[?25l\x1b]0;proj\a" + `{"type":"thread.started"}`, `{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan and billing details."}}`}, 1, "credit/certain"},
		{"claude", "claude", "stdout", []string{"You've hit your 5-hour limit · resets 6:54pm (UTC)"}, 1, "window/strong"},
		{"claude's spend cap", "claude", "terminal", []string{"API Error: Request rejected (429) · You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}, 1, "spend/strong"},
		{"opencode recites a retry", "opencode", "stdout", []string{"> build · gpt-5", "", "Rate limit reached for gpt-5 on requests per min (RPM): Limit 3, Used 3. [retrying in 20s attempt #1]"}, 0, ""},
		{"claude recites", "claude", "stdout", []string{"You've hit your 5-hour limit · resets 6:54pm (UTC)"}, 0, ""},
		{"claude, turns", "claude", "stdout", []string{"Error: Reached max turns (10)"}, 1, ""},
		{"gemini's own code", "gemini", "stderr", []string{`Error when talking to Gemini API Full report available at: /tmp/gemini-client-error.json TerminalQuotaError: You have exhausted your daily quota on this model.`, `    at classifyGoogleError (file:///chunk.js:1:1) {`, `  cause: {`, `    code: 429,`, `    message: 'Please retry in 34.07s.'`, `  }`, `}`, `An unexpected critical error occurred:[object Object]`}, 1, "daily/strong"},
		{"gemini as JSON", "gemini", "stderr", []string{"{", `  "session_id": "1",`, `  "error": {`, `    "type": "Error",`, `    "message": "You have exhausted your daily quota on this model.",`, `    "code": 429`, "  }", "}"}, 173, "daily/certain"},
		{"qwen ends with 0", "qwen", "stdout", []string{`[{"type":"system","subtype":"init","model":"gpt-5"},{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"[API Error: 429 Rate limit reached for gpt-5 on requests per min (RPM)]"}]}},{"type":"result","subtype":"success","is_error":false,"result":"[API Error: 429 Rate limit reached for gpt-5 on requests per min (RPM)]","usage":{"input_tokens":0,"output_tokens":0}}]`}, 0, "rate/certain"},
		{"qwen's model recites", "qwen", "stdout", []string{`[{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"[API Error: 429 Rate limit reached]"}]}},{"type":"result","subtype":"success","is_error":false,"result":"[API Error: 429 Rate limit reached]","usage":{"input_tokens":900,"output_tokens":12}}]`}, 0, ""},
		{"qwen", "qwen", "stderr", []string{"[API Error: 429 Free allocated quota exceeded.]"}, 1, "daily/strong"},
		{"opencode run", "opencode", "stderr", []string{"> build · gpt-5", "", "\x1b[91m\x1b[1mError: \x1b[0mRate limit reached for gpt-5 in organization org-1 on requests per min (RPM): Limit 3, Used 3, Requested 1."}, 1, "rate/strong"},
		{"opencode's records", "opencode", "stdout", []string{`{"type":"text","part":{"text":"Error: 429 Too Many Requests"}}`, `{"type":"error","error":{"name":"APIError","data":{"message":"Rate limit reached for gpt-5 on requests per min (RPM)","statusCode":429}}}`}, 1, "rate/certain"},
		{"opencode's model recites", "opencode", "stdout", []string{`{"type":"text","part":{"type":"text","text":"Error: Rate limit reached for gpt-5 on requests per min (RPM)"}}`, `{"type":"step_finish","part":{"reason":"stop"}}`}, 0, ""},
		{"pi's records", "pi", "stdout", []string{`{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"529 overloaded_error: Overloaded"}`, `{"type":"message_end","message":{"role":"assistant","stopReason":"stop","content":[]}}`}, 0, "retrying/certain"},
		{"unknown agent", "generic", "stderr", []string{"Error: 429 Too Many Requests"}, 1, "rate/strong"},
		{"unknown agent redraws its row", "generic", "terminal", []string{"⠋ working\r\x1b[K⠙ working\r\x1b[KError: 429 Too Many Requests"}, 1, "rate/strong"},
		{"unknown agent, long ago", "generic", "stdout", append([]string{"Error: 429 Too Many Requests"}, many...), 1, ""},
		{"unknown agent, killed", "generic", "stderr", []string{"Error: 429 Too Many Requests"}, 143, ""},
		{"unknown agent ends well", "generic", "stderr", []string{"Error: 429 Too Many Requests"}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := profile(t, c.agent).Watch(detect.Options{Mode: detect.Headless, Cols: 120, Rows: 40, Zone: time.UTC, Started: start})
			var got []string
			for _, f := range headless(w, start.Add(time.Minute), c.on, c.rows, c.code) {
				got = append(got, fmt.Sprintf("%s/%s", f.Class, f.Confidence))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("found %q, want %q", s, c.want)
			}
		})
	}
}

// TestGenericOnTerminal: a program without a profile that draws its lines on a
// terminal and fails soon after its error is believed as on a pipe.
func TestGenericOnTerminal(t *testing.T) {
	for _, c := range []struct {
		code  int
		after time.Duration
		want  string
	}{
		{1, 3 * time.Second, "rate/weak rate/strong"},
		{1, 10 * time.Millisecond, "rate/strong"},
		{0, 3 * time.Second, "rate/weak"},
		{130, 3 * time.Second, "rate/weak"},
		{1, time.Hour, "rate/weak"}, // what ended it came later
	} {
		l := watch(t, "generic", detect.Options{})
		l.out("thinking about it\r\n\r\nError: 429 Too Many Requests\r\n")
		l.wait(c.after)
		l.take(l.w.Exit(l.now, c.code))
		l.want(fmt.Sprintf("exit %d after %v", c.code, c.after), c.want)
	}
}

// TestRefusedIsNoSuccess: a call that ends with 0 after a refusal in its
// records opens nothing.
func TestRefusedIsNoSuccess(t *testing.T) {
	const init, answer = `{"type":"system","subtype":"init","model":"gpt-5"}`, `{"type":"result","subtype":"success","is_error":false,"result":"x","usage":{"output_tokens":5}}`
	const refusal = `{"type":"result","subtype":"success","is_error":false,"result":"[API Error: 429 Rate limit reached for gpt-5 on requests per min (RPM)]","usage":{"output_tokens":0}}`
	for _, c := range []struct {
		lines []string
		want  bool
	}{{[]string{init, refusal}, false}, {[]string{init, answer}, true}, {[]string{init, refusal, answer}, true}, {[]string{init}, true}} {
		w := profile(t, "qwen").Watch(detect.Options{Mode: detect.Headless, Started: start})
		success := w.Stream(start, detect.Stdout, []byte(strings.Join(c.lines, "\n")+"\n")).Success
		if got := w.Exit(start, 0).Success; (got || success && c.lines[len(c.lines)-1] == answer) != c.want {
			t.Errorf("%q: success %v at the end", c.lines, got)
		}
	}
}

// TestRecordsAmongText: with 2>&1 a line of stderr can come first; where the
// launch asked for records they are read all the same, elsewhere a line of JSON
// in a text answer is text.
func TestRecordsAmongText(t *testing.T) {
	out := []byte("Reading additional input from stdin...\n" + `{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan and billing details."}}` + "\n")
	for records, want := range map[bool]int{true: 1, false: 0} {
		w := profile(t, "codex").Watch(detect.Options{Mode: detect.Headless, Started: start, Records: records})
		if got := w.Stream(start, detect.Stdout, out).Findings; len(got) != want {
			t.Errorf("records %v: %v", records, got)
		}
	}
}

// Google states a retry delay beside a daily quota too: the quota does not end
// by then.
func TestADayEndsInNoMinute(t *testing.T) {
	w := profile(t, "gemini").Watch(detect.Options{Mode: detect.Headless, Cols: 120, Rows: 40, Zone: time.UTC, Started: start})
	rows := []string{`Error when talking to Gemini API Full report available at: /tmp/e.json TerminalQuotaError: You have exhausted your daily quota on this model.`,
		`    at classifyGoogleError (file:///chunk.js:1:1) {`, `  cause: {`, `    message: 'Please retry in 34.07s.'`, `    details: [ { "retryDelay": "34.074824224s" } ]`, `  }`, `  retryDelayMs: 34074.8`, `}`}
	found := headless(w, start.Add(time.Minute), "stderr", rows, 1)
	if len(found) == 0 {
		t.Fatal("nothing was found")
	}
	for _, f := range found {
		if f.Class != finding.Daily || !f.Reset.IsZero() || f.RetryAfter != 0 {
			t.Errorf("%+v", f)
		}
	}
}
