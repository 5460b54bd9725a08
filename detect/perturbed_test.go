package detect_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// changes are what differs between two people who meet the same message: each
// leaves its meaning. A rule that fits only the line it was written for fails
// here.
var changes = []struct {
	name string
	re   *regexp.Regexp
	to   string
	time bool   // the stated time is another one
	only string // the agent that draws it so
}{
	{"another request", regexp.MustCompile(`\b(?:req|request)_\w{6,}`), "req_zz9", false, ""},
	{"another organisation", regexp.MustCompile(`\borg-\w{3,}`), "org-Zz81xQ", false, ""},
	{"another id", regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "12345678-aaaa-bbbb-cccc-0123456789ab", false, ""},
	{"another GPT", regexp.MustCompile(`\bgpt-[\d.]+(?:-\w+)*`), "gpt-7.1-nova", false, ""},
	{"another Gemini", regexp.MustCompile(`\bgemini-[\d.]+-(?:pro|flash)(?:-\w+)*`), "gemini-4.5-pro", false, ""},
	{"another Claude", regexp.MustCompile(`\bclaude-(?:opus|sonnet|haiku)-[\d-]+`), "claude-opus-7-2", false, ""},
	{"another family", regexp.MustCompile(`\bOpus\b`), "Sonnet", false, ""},
	{"another attempt", regexp.MustCompile(`\b(?:attempt )\d+([/ ])`), "attempt 4$1", false, ""},
	{"the other apostrophe", regexp.MustCompile(`(\w)'(ve|re|s|t|ll)\b`), "$1’$2", false, ""},
	{"the plain apostrophe", regexp.MustCompile(`(\w)’(ve|re|s|t|ll)\b`), "$1'$2", false, ""},
	{"the other dot", regexp.MustCompile(` · `), " ∙ ", false, "claude"},
	{"the other bullet", regexp.MustCompile(`^● `), "⏺ ", false, "claude"},
	{"a hard blank", regexp.MustCompile(`⎿  `), "⎿ \u00a0", false, "claude"},
	{"a hard blank behind the prompt", regexp.MustCompile(`^❯ `), "❯\u00a0", false, "claude"},
	{"more credit", regexp.MustCompile(`\$[1-9]\d*(?:\.\d\d)?`), "$$1234.50", false, ""},
	{"another limit", regexp.MustCompile(`\bLimit \d+, Used \d+, Requested \d+`), "Limit 7500, Used 7499, Requested 81", false, ""},
	{"another address", regexp.MustCompile(`https?://[\w.-]+/`), "https://host.example/", false, ""},
	{"another minute", regexp.MustCompile(`\b(\d{1,2}):\d\d ?([ap]m|[AP]M)\b`), "$1:07$2", true, ""},
}

// TestPerturbed reads every labelled excerpt with one thing changed that does
// not change what it means.
func TestPerturbed(t *testing.T) {
	detect.OneGoroutine(t)
	misses := known(t, "testdata/known-misses.txt")
	profiles := map[string]*detect.Profile{}
	n, bad := 0, 0
	all := messages(t)
	for _, v := range variants(t) {
		all = append(all, v.message)
	}
	for _, m := range all {
		p := profiles[m.Agent]
		if p == nil {
			p = profile(t, m.Agent)
			profiles[m.Agent] = p
		}
		if misses[m.ID] != "" {
			continue
		}
		mode := detect.TUI
		if m.Mode == "headless" {
			mode = detect.Headless
		}
		was := summary(read(t, p, m, mode))
		for _, c := range changes {
			if c.only != "" && c.only != m.Agent {
				continue
			}
			x := m
			x.Lines = make([]string, len(m.Lines))
			for i, l := range m.Lines {
				x.Lines[i] = c.re.ReplaceAllString(l, c.to)
			}
			if strings.Join(x.Lines, "\n") == strings.Join(m.Lines, "\n") {
				continue
			}
			n++
			got := summary(read(t, p, x, mode))
			if c.time { // only its class is the same
				got, was := strings.SplitN(got, " ", 2)[0], strings.SplitN(was, " ", 2)[0]
				if got == was {
					continue
				}
			}
			if got != was {
				if bad++; bad < 30 {
					t.Errorf("%s with %s: %s, was %s\n  %s", m.ID, c.name, got, was, strings.Join(x.Lines, "\n  "))
				}
			}
		}
	}
	t.Logf("%d changed messages", n)
}

// TestBodies: an error body means the same with its keys in another order, with
// or without blanks, in lines of its own, and escaped inside another.
func TestBodies(t *testing.T) {
	detect.OneGoroutine(t)
	for _, c := range []struct{ typ, msg, class string }{
		{"rate_limit_error", "This request would exceed your account's rate limit. Please try again later.", "rate"},
		{"overloaded_error", "Overloaded", "overload"},
		{"insufficient_quota", "You exceeded your current quota, please check your plan and billing details.", "credit"},
		{"usage_limit_reached", "The usage limit has been reached", "window"},
		{"rate_limit_exceeded", "Rate limit reached for gpt-5 on tokens per day (TPD): Limit 1, Used 1. Please try again in 6m0s.", "daily"},
		{"invalid_request_error", "Your credit balance is too low to access the Anthropic API.", "credit"},
		{"rate_limit_error", "The engine is currently overloaded, please try again later", "overload"},
		{"authentication_error", "invalid x-api-key", "auth"},
	} {
		for _, body := range []string{
			fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, c.typ, c.msg),
			fmt.Sprintf(`{"error":{"message":%q,"type":%q},"type":"error"}`, c.msg, c.typ),
			fmt.Sprintf(`{ "error" : { "message" : %q , "param" : null , "code" : %q } , "request_id" : "req_1" }`, c.msg, c.typ),
			fmt.Sprintf(`{"request_id":"x","error":{"code":%q,"type":%q,"message":%q}}`, c.typ, c.typ, c.msg),
		} {
			for _, form := range []struct{ agent, rows string }{
				{"claude", "❯ hi\n  ⎿  API Error: 429 %s"},
				{"claude", "❯ hi\n\n● API Error: 418 %s"},
				{"codex", "■ unexpected status 418 Whatever: %s, url: http://x"},
				{"gemini", "✕ [API Error: %s]"},
				{"generic", "Error: 429 %s"},
				{"generic", "%s"},
			} {
				if c.class == "auth" && strings.Contains(form.rows, "429") {
					continue // a bad key is never answered so
				}
				got := "none"
				for _, e := range profile(t, form.agent).ExplainRows(strings.Split(fmt.Sprintf(form.rows, body), "\n"), detect.ExplainOptions{Mode: detect.Both, Now: start, Zone: time.UTC}) {
					got = string(e.Class)
				}
				if got != c.class {
					t.Errorf("%s, want %s: %s", got, c.class, fmt.Sprintf(form.rows, body))
				}
			}
		}
	}
}
