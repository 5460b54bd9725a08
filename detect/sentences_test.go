package detect

import (
	"os"
	"strings"
	"testing"
	"time"

	"qshim/detect/finding"
)

// sentence is a line of testdata/sentences.txt.
type sentence struct{ class, measure, text string }

func sentences(tb testing.TB) (out []sentence) {
	tb.Helper()
	data, err := os.ReadFile("testdata/sentences.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for _, l := range strings.Split(string(data), "\n") {
		head, text, ok := strings.Cut(l, " | ")
		if f := strings.Fields(head); ok && !strings.HasPrefix(l, "#") {
			out = append(out, sentence{f[0], strings.Join(f[1:], ""), text})
		}
	}
	return out
}

// TestSentences: what a provider says means the same whoever shows it, and a
// row with it is never passed over as one without any word of a limit.
func TestSentences(t *testing.T) {
	now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
	for _, s := range sentences(t) {
		r := reading{text: s.text, now: now, zone: time.UTC}
		f, ok := r.finding()
		got := string(f.Class)
		if !ok {
			got = "none"
		}
		what := "/" + string(f.Measure)
		if f.Scope != finding.Account {
			what += "@" + string(f.Scope)
		}
		if got != s.class || s.measure != "" && !strings.HasPrefix(what, s.measure) && !strings.HasSuffix(what, s.measure) {
			t.Errorf("%s %s, want %s %s: %s", got, what, s.class, s.measure, s.text)
		}
		if ok && !isHot(s.text, hotWords) {
			t.Errorf("no row that would be looked at: %s", s.text)
		}
	}
}

// TestSentencesInRows puts each sentence into the rows in which the agents show
// a provider's answer.
func TestSentencesInRows(t *testing.T) {
	OneGoroutine(t)
	for _, form := range []struct {
		agent string
		mode  Mode
		rows  string // %s is the sentence
	}{
		{"codex", TUI, "› hi\n\n■ %s\n\n› Ask Codex to do anything\n  model · /tmp"},
		{"codex", TUI, "› hi\n\n■ unexpected status 418 Whatever: %s, url: http://x/v1/responses"},
		{"codex", TUI, "■ stream disconnected before completion: %s"},
		{"codex", Headless, "ERROR: unexpected status 418 Whatever: %s, url: http://x/v1/responses"},
		{"codex", Headless, `{"type":"turn.failed","error":{"message":"%s"}}`},
		{"codex", Headless, `{"type":"error","message":"%s"}`},
		{"gemini", TUI, "✕ [API Error: %s]"},
		{"claude", TUI, "❯ hi\n  ⎿  API Error: %s"},
		{"claude", TUI, "❯ hi\n\n● API Error: %s"},
		{"claude", Headless, `{"type":"result","subtype":"success","is_error":true,"api_error_status":418,"result":"API Error: %s"}`},
		{"generic", TUI, "Error: %s"},
		{"generic", Headless, "Error: %s"},
	} {
		data, err := os.ReadFile("../policies/agents/" + form.agent + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParseProfile(form.agent, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sentences(t) {
			text := s.text
			if strings.HasPrefix(form.rows, "{") {
				text = strings.ReplaceAll(text, `"`, `\"`)
			}
			if form.agent == "generic" && strings.Contains(text, "failed with status code") {
				continue // a tool's HTTP library says it as well
			}
			got := "none"
			for _, e := range p.ExplainRows(strings.Split(strings.Replace(form.rows, "%s", text, 1), "\n"), ExplainOptions{Mode: form.mode, Now: exampleNow}) {
				got = string(e.Class)
			}
			if got != s.class {
				t.Errorf("%s, want %s: %s", got, s.class, strings.Replace(form.rows, "%s", text, 1))
			}
		}
	}
}
