package detect_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
)

// An hour of ordinary work of somebody who works on a rate limiter: what the
// model says, what tools print, diffs and prompts, all about limits, each in
// the agent's own frames. Nothing of it may be found.

// talk is what is said and printed; %d is a figure, %s a service.
var talk = map[string][]string{
	"speech": {
		"The API answered 429 Too Many Requests, so the client backs off and tries again in %d seconds.",
		"You've hit your usage limit is what the banner says; I kept the wording.",
		"Rate limit reached for %s. The retry loop waits for the reset and then sends the rest of the queue.",
		"Here is the plan:", "- read the Retry-After header", "- wait, then retry after %d ms", "- give up after 5 attempts: rate limit exceeded",
		"Your credit balance is too low would be shown when the account runs out of credits.",
		"1. Quota exceeded for quota metric 'Requests' is a per-minute limit.",
		"The session limit resets at %d:45pm, the weekly limit on Monday.",
		"When the service is overloaded (529) we should not count it against the cap.",
		"All %d tests pass. The usage limit test now checks the reset time too.",
		"Error handling: 401 is auth, 402 is billing, 403 may be a quota, 429 is a rate limit, 503 is overload.",
		"API Error: 529 Overloaded is what the user sees in that case.",
		"exceeded retry limit, last status: 429 Too Many Requests",
		"```", "if err.Code == 429 { return ErrRateLimit }", "```",
		"| code | meaning |", "| 429 | rate limit reached, try again in %ds |",
		"Limit reached means that the window is used up; resets 3pm (UTC).",
		"■ You've hit your usage limit. Try again at %d:15 PM.",
		"⎿  You've hit your 5-hour limit · resets 6:45pm (UTC)",
		"✕ [API Error: You have exhausted your daily quota on this model.]",
	},
	"tool": {
		"HTTP/2 429", "retry-after: %d", "x-ratelimit-remaining: 0", "x-ratelimit-reset: 17959788%02d",
		`{"message":"API rate limit exceeded for user ID %d.","documentation_url":"https://docs.github.com/rest/rate-limit"}`,
		"npm ERR! code E429", "npm ERR! 429 Too Many Requests - GET https://registry.example/lodash", "npm ERR! Rate limit exceeded, try again in %d minutes",
		"curl: (22) The requested URL returned error: 429", "toomanyrequests: You have reached your pull rate limit.",
		"--- FAIL: TestRateLimit (0.0%ds)", "    limit_test.go:%d: got 429, want 200", "ok  	%s/ratelimit	0.1%ds",
		"2026-11-29T16:45:%02dZ ERROR 429 Too Many Requests service=%s", "2026-11-29T16:45:%02dZ WARN rate limit exceeded, retrying in 5s (attempt 2/5)",
		"You've hit your 5-hour limit · resets 6:45pm (UTC)", "You’ve hit your usage limit. Try again at 5:47 PM.",
		"[API Error: You have exhausted your daily quota on this model.]", "Error: 429 Resource exhausted",
		`{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit."}}`,
		"Error: Slack API: ratelimited, retry_after=%d", "ThrottlingException: Rate exceeded", "usage: limiter [-burst %d]",
		"Attempt %d failed: quota exceeded. Retrying after 500ms...", "Usage limit reached for gemini-2.5-pro.", "Access resets at 3:05 PM PST.",
		"  ⎿  You've hit your weekly limit", "■ Quota exceeded. Check your plan and billing details.", "Credit balance is too low",
		"API Error: 529 Overloaded", "Insufficient Balance", "fatal: unable to access: 503 Service Unavailable", "Reconnecting... 2/5",
	},
	"code": {
		"func (l *Limiter) Wait(ctx context.Context) error {", "	if resp.StatusCode == http.StatusTooManyRequests {", "		return fmt.Errorf(\"rate limit exceeded, retry in %d s\")",
		"const message = \"You've hit your usage limit. Try again at 5:47 PM.\"", "// 429: the quota is used up, resets at midnight Pacific",
		"throw new Error('Rate limit reached for %s');", "expect(screen).toContain(\"You've hit your 5-hour limit\")", "retries: %d, // rate limit",
		"<p>Usage limit reached. Resets in %d minutes.</p>", "raise RateLimitError(\"429 Too Many Requests\")",
	},
	"prompt": {
		"why do I get 429 Too Many Requests from %s", "explain: You've hit your usage limit. Try again at 5:47 PM.", "add a test for the rate limit of %d per minute",
		"the log says: API Error: 529 Overloaded", "make the limiter wait until the reset", "what does Credit balance is too low mean",
	},
}

// traffic draws one agent's turns.
type traffic struct {
	rnd   *rand.Rand
	agent string
	cols  int
}

func (g *traffic) say(kind string) string {
	list := talk[kind]
	s := list[g.rnd.IntN(len(list))]
	for strings.Contains(s, "%") && !strings.Contains(s, "100%") {
		at := strings.IndexByte(s, '%')
		end := at + 1 + strings.IndexAny(s[at+1:], "ds")
		verb := s[at : end+1]
		if verb[len(verb)-1] == 's' {
			s = s[:at] + []string{"github", "stripe", "npm", "the gateway"}[g.rnd.IntN(4)] + s[end+1:]
			continue
		}
		s = s[:at] + fmt.Sprintf(verb, g.rnd.IntN(60)) + s[end+1:]
	}
	return s
}

func (g *traffic) lines(kind string, most int) []string {
	out := make([]string, 1+g.rnd.IntN(most))
	for i := range out {
		out[i] = g.say(kind)
	}
	return out
}

// block is rows with the first one's mark and the others' indent.
func (g *traffic) block(first, rest string, lines []string) (rows []string) {
	for i, l := range lines {
		lead := rest
		if i == 0 {
			lead = first
		}
		indent := strings.Repeat(" ", len([]rune(lead)))
		rows = append(rows, wrapWords(lead+strings.ReplaceAll(l, "\t", "    "), g.cols-2, indent)...)
	}
	return append(rows, "")
}

// turn is what stands on the screen of one turn, from the prompt to the end.
func (g *traffic) turn() (rows []string) {
	add := func(first, rest string, lines []string) { rows = append(rows, g.block(first, rest, lines)...) }
	switch g.agent {
	case "claude":
		add("❯ ", "  ", []string{g.say("prompt")})
	case "codex":
		add("› ", "  ", []string{g.say("prompt")})
	case "gemini":
		add(" > ", "   ", []string{g.say("prompt")})
	default:
		add("> ", "  ", []string{g.say("prompt")})
	}
	for range 1 + g.rnd.IntN(4) {
		g.step(&rows, add)
	}
	return rows
}

func (g *traffic) step(rows *[]string, add func(string, string, []string)) {
	what := g.rnd.IntN(3)
	switch g.agent {
	case "claude":
		switch what {
		case 0:
			add("● ", "  ", append([]string{"I looked into it."}, g.lines("speech", 6)...))
		case 1:
			*rows = append(*rows, "● "+[]string{"Bash(curl -i https://api.example)", "Read(retry.go)", "Fetch(https://docs.example/limits)", "Search(pattern: \"rate limit\")"}[g.rnd.IntN(4)])
			add("  ⎿  ", "     ", g.lines("tool", 6))
		default:
			*rows = append(*rows, "● Update(limit.go)", "  ⎿  Added 2 lines, removed 1 line")
			add("      41 +  ", "      42 -  ", g.lines("code", 5))
		}
	case "codex":
		switch what {
		case 0:
			add("• ", "  ", append([]string{"I looked into it."}, g.lines("speech", 6)...))
		case 1:
			*rows = append(*rows, "• Ran curl -i https://api.example")
			add("  └ ", "    ", g.lines("tool", 6))
		default:
			*rows = append(*rows, "• Edited limit.go (+2 -1)")
			add("    41 +", "    42 -", g.lines("code", 5))
		}
	case "gemini":
		switch what {
		case 0:
			add("✦ ", "  ", append([]string{"I looked into it."}, g.lines("speech", 6)...))
		default:
			*rows = append(*rows, g.box(g.lines("tool", 6))...)
		}
	default:
		switch what {
		case 0:
			add("● ", "  ", append([]string{"I looked into it."}, g.lines("speech", 6)...))
		default:
			*rows = append(*rows, "● Shell(curl -i https://api.example)")
			add("  └ ", "    ", g.lines("tool", 6))
		}
	}
}

func (g *traffic) box(lines []string) (rows []string) {
	w := g.cols - 2
	rows = append(rows, "╭"+strings.Repeat("─", w-2)+"╮")
	pad := func(s string) {
		for _, r := range wrapWords(s, w-4, "") {
			rows = append(rows, "│ "+r+strings.Repeat(" ", max(0, w-4-len([]rune(r))))+" │")
		}
	}
	pad("✓  Shell curl -i https://api.example [current working directory /tmp]")
	pad("")
	for _, l := range lines {
		pad(l)
	}
	return append(rows, "╰"+strings.Repeat("─", w-2)+"╯", "")
}

// frame is what stands below the last turn.
func (g *traffic) foot(busy bool) []string {
	line := strings.Repeat("─", g.cols-1)
	switch g.agent {
	case "claude":
		if busy {
			return []string{"✻ Brewing… (3s · ↓ 18 tokens)", "", line, "❯ ", line, "  ⏵⏵ auto mode on (shift+tab to cycle)"}
		}
		return []string{"✻ Brewed for 3s · done 4:51 PM", "", line, "❯ ", line, "  ⏵⏵ auto mode on (shift+tab to cycle)"}
	case "codex":
		if busy {
			return []string{"• Working (4s • esc to interrupt)", "", "› Ask Codex to do anything", "  gpt-6 high · /tmp/proj"}
		}
		return []string{"  Worked for 3s • 16:51", "", "› Ask Codex to do anything", "  gpt-6 high · /tmp/proj"}
	case "gemini":
		if busy {
			return []string{" ⠹ Thinking... (esc to cancel, 4s)", " >   Type your message or @path/to/file"}
		}
		return []string{" >   Type your message or @path/to/file"}
	}
	return []string{"> "}
}

// signs are what the agent sends when a turn begins and when it ends well.
var signsOf = map[string][2]string{
	"claude":  {"\x1b]0;◐ Claude Code\a", "\x1b]0;✳ Claude Code\a"},
	"codex":   {"\x1b]7501;state=working:app=codex\x1b\\", "\x1b]7501;state=done:app=codex\x1b\\"},
	"gemini":  {"\x1b]0;✦  Working… (proj)\a", "\x1b]0;◇  Ready (proj)\a"},
	"generic": {"", ""},
}

// TestOrdinaryTraffic: some minutes of it, at a width that changes; an hour
// with QSHIM_LONG=1.
func TestOrdinaryTraffic(t *testing.T) {
	detect.OneGoroutine(t)
	turns := 16
	if os.Getenv("QSHIM_LONG") != "" {
		turns = 400 // of 9 s each
	}
	for _, agent := range []string{"claude", "codex", "gemini", "generic"} {
		g := &traffic{rnd: rand.New(rand.NewPCG(8, uint64(len(agent)))), agent: agent, cols: 100}
		l := watch(t, agent, detect.Options{Cols: g.cols, Rows: 40})
		weak, strong, unrecognised := 0, 0, 0
		var page []string
		l.seen = func(r detect.Report) {
			unrecognised += len(r.Unrecognised)
			for _, f := range r.Findings {
				if f.Confidence == finding.Weak && agent == "generic" {
					weak++ // a row alone is weak there: it touches nobody
					continue
				}
				if strong++; strong < 6 {
					t.Errorf("%s at %d columns: %s by %s (%s)\n%s\n---\n%s", agent, g.cols, f.Class, f.Rule, f.Confidence, strings.Join(f.Rows, "\n"), strings.Join(page, "\n"))
				}
			}
		}
		from := l.now
		for i := range turns {
			if i%7 == 6 {
				g.cols = []int{40, 60, 80, 120, 200}[g.rnd.IntN(5)]
				l.take(l.w.Resize(l.now, g.cols, 40))
				page = nil
			}
			l.enter()
			l.out(signsOf[agent][0])
			turn := g.turn()
			for shown := 1; shown <= len(turn); shown += 1 + g.rnd.IntN(6) {
				page = tail(append(append([]string{}, page...), turn[:shown]...), g.foot(true), 40)
				l.paint(page...)
				l.wait(time.Duration(100+g.rnd.IntN(900)) * time.Millisecond)
			}
			done := tail(append(append([]string{}, page[:0]...), turn...), g.foot(false), 40)
			if g.rnd.IntN(2) == 0 {
				l.out(signsOf[agent][1])
			}
			page = done
			l.paint(page...)
			l.out(signsOf[agent][1])
			l.wait(3 * time.Second)
			page = turn
		}
		t.Logf("%-8s %3d turns, %v: %d findings, %d weak, %d unrecognised", agent, turns, l.now.Sub(from).Round(time.Second), strong, weak, unrecognised)
		if unrecognised > 0 && agent != "generic" {
			t.Errorf("%s: %d unrecognised in turns that ended well", agent, unrecognised)
		}
	}
}

// tail is the last rows of a page that is taller than the screen, with what
// stands below them.
func tail(rows, foot []string, most int) []string {
	all := append(append([]string{}, rows...), foot...)
	if len(all) > most {
		all = all[len(all)-most:]
	}
	return all
}
