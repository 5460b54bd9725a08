package detect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
)

// banners are the own sentences of all agents, word for word.
var banners = []string{
	"You've hit your 5-hour limit · resets 6:45pm (UTC)",
	"You've hit your weekly limit · resets Dec 4 at 7pm (America/New_York)",
	"You've hit your Opus limit · resets 6:46pm (UTC)",
	"You've hit your monthly spend limit · raise it at https://claude.ai/settings/usage",
	"Claude AI usage limit reached|1795978800",
	"5-hour limit reached ∙ resets 9pm",
	"Credit balance too low · Add funds: https://platform.claude.com/settings/billing",
	"Invalid API key · Please run /login",
	"API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.",
	"API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.",
	"Usage limit reached · limit resets 6:45pm",
	"Usage limit reached · set to continue automatically at 6:45pm",
	"429 Too Many Requests · retrying in 6s · attempt 5/10",
	"API error · retrying in 1s · attempt 2/10",
	"You've used 91% of your 5-hour limit · resets 6:45pm (UTC)",
	"You’ve hit your usage limit. Try again at 5:47 PM.",
	"exceeded retry limit, last status: 429 Too Many Requests, request id: req_1",
	"rate limit exceeded: Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000. Please try again in 2.5s.",
	"Selected model is at capacity. Please try a different model.",
	"Quota exceeded. Check your plan and billing details.",
	"Heads up, you have less than 5% of your weekly limit left. Run /status for a breakdown.",
	"Reconnecting... 2/5 (4s • esc to interrupt)",
	"Approaching rate limits",
	"[API Error: You have exhausted your daily quota on this model.]",
	"[API Error: {\"error\":{\"code\":429,\"message\":\"Resource has been exhausted (e.g. check quota).\"}}]",
	"Usage limit reached for gemini-2.5-pro.",
	"Access resets at 3:05 PM PST.",
	"We are currently experiencing high demand.",
	"Attempt 1 failed: You have exhausted your capacity on this model. Retrying after 6173ms...",
	"{\"type\":\"error\",\"message\":\"You've hit your usage limit. Try again at 5:47 PM.\"}",
	"{\"type\":\"result\",\"is_error\":true,\"subtype\":\"success\",\"result\":\"You've hit your 5-hour limit\"}",
}

// frame is how an agent draws somebody else's words; %s is the banner.
type frame struct{ name, rows string }

// frames are the speakers that are not the client. glyphs are the client's own
// marks, which a clever text can carry too.
var frames = map[string]struct {
	busy, idle string // the agent's own signs around the turn
	glyphs     []string
	frames     []frame
}{
	"claude": {
		"\x1b]0;◐ Claude Code\a", "\x1b]0;✳ Claude Code\a",
		[]string{"", "⎿  ", "● ", "✻ ", "  ⎿  ", "⚠ "},
		[]frame{
			{"prose", "❯ go on\n\n● The client prints:\n\n  %s\n\n  and waits for the next prompt.\n\n✻ Cooked for 3s · done 4:51 PM"},
			{"prose, scrolled", "  it prints this row\n\n  %s\n\n  and nothing else.\n\n✻ Cooked for 3s · done 4:51 PM"},
			{"first line", "❯ go on\n\n● %s\n\n✻ Cooked for 3s · done 4:51 PM"},
			{"list", "● Three of them:\n\n  - %s\n  - another\n\n✻ Cooked for 3s · done 4:51 PM"},
			{"quote", "● The log:\n\n  ▎ %s\n\n✻ Cooked for 3s · done 4:51 PM"},
			{"table", "● Table:\n\n  ┌──────┐\n  │ %s │\n  └──────┘\n\n✻ Cooked for 3s · done 4:51 PM"},
			{"tool", "● Bash(cat app.log)\n  ⎿  %s\n\n● Nothing is limited.\n\n✻ Cooked for 3s · done 4:51 PM"},
			{"tool, last", "❯ go on\n\n● Bash(cat app.log)\n  ⎿  %s"},
			{"tool, second row", "● Bash(cat app.log)\n  ⎿  started\n     %s\n     %[1]s"},
			{"failed tool", "● Bash(./fail.sh)\n  ⎿  Error: Exit code 1\n     %s"},
			{"diff", "● Update(limit.txt)\n  ⎿  Added 1 line\n      41      old\n      42 +    %s"},
			{"file", "● Write(limit.txt)\n  ⎿  Wrote 2 lines to limit.txt\n       1  %s"},
			{"prompt", "❯ %s\n\n● Looking into it.\n\n✻ Cooked for 3s · done 4:51 PM"},
			{"pasted prompt", "❯ why do I see this:\n  %s\n\n● Looking into it.\n\n✻ Cooked for 3s · done 4:51 PM"},
			{"bang", "! cat app.log\n  ⎿  %s\n     %[1]s"},
			{"stale", "❯ say hi\n  ⎿  %s\n\n❯ continue\n\n● All done.\n\n✻ Cooked for 3s · done 4:51 PM"},
		},
	},
	"codex": {
		"\x1b]7501;state=working:app=codex\x1b\\", "\x1b]7501;state=done:app=codex\x1b\\",
		[]string{"", "■ ", "⚠ ", "  └ ", "› "},
		[]frame{
			{"prose", "› go on\n\n• The CLI prints:\n\n  %s\n\n  and returns to the composer.\n\n  Worked for <1s • 16:51"},
			{"first line", "› go on\n\n• %s\n\n  Worked for <1s • 16:51"},
			{"code block", "• For example:\n\n    %s\n\n› Ask Codex to do anything"},
			{"tool", "• Ran cat app.log\n  └ %s\n    %[1]s"},
			{"diff", "• Added limit.txt (+1 -0)\n    1 +%s"},
			{"prompt", "› %s\n\n• Looking into it.\n\n› Ask Codex to do anything"},
			{"pasted prompt", "› why do I see\n  %s\n\n• Looking into it.\n\n› Ask Codex to do anything"},
			{"box", "╭──────╮\n│ %s │\n╰──────╯"},
		},
	},
	"gemini": {
		"\x1b]0;✦  Working… (proj)\a", "\x1b]0;◇  Ready (proj)\a",
		[]string{"", "✕ ", "│ ", "ℹ "},
		[]frame{
			{"prose", " > go on\n\n✦ The CLI prints:\n  %s\n  and stops."},
			{"first line", " > go on\n\n✦ %s"},
			{"code block", "✦ For example:\n\n   1 %s\n   2 %[1]s\n"},
			{"tool box", "╭──────────────╮\n│ ✓  Shell Command cat app.log │\n│              │\n│ %s │\n│ %[1]s │\n╰──────────────╯"},
			{"prompt", " > %s\n\n✦ Looking into it."},
			{"stale", "✕ %s\n\n > continue\n\n✦ All done."},
		},
	},
}

// TestRecitals recites every banner in the frame of everybody but the client:
// as plain rows and on a screen, at several widths. No finding may come of it.
func TestRecitals(t *testing.T) {
	for agent, set := range frames {
		p := profile(t, agent)
		n := 0
		for _, f := range set.frames {
			for _, b := range banners {
				for _, g := range set.glyphs {
					// Every one as plain rows, every fifth on a screen, the
					// widths in turn: all of them take minutes under -race.
					cols := 0
					if n%5 == 0 {
						cols = []int{120, 60, 80}[n/5%3]
					}
					if recited(t, p, agent, f, g+b, set.busy, set.idle, cols) {
						t.FailNow()
					}
					n++
				}
			}
		}
		t.Logf("%s: %d recitals", agent, n)
	}
}

func recited(t *testing.T, p *detect.Profile, agent string, f frame, text, busy, idle string, cols int) bool {
	rows := strings.Split(fmt.Sprintf(f.rows, text), "\n")
	if got := p.ExplainRows(rows, detect.ExplainOptions{Mode: detect.TUI, Now: start, Zone: time.UTC}); len(got) > 0 {
		t.Errorf("%s, %s: %s by %s in\n%s", agent, f.name, got[0].Class, got[0].Rule, strings.Join(rows, "\n"))
		return true
	}
	if cols > 0 {
		l := &live{t: t, now: start.Add(5 * time.Second), w: p.Watch(detect.Options{Cols: cols, Rows: 40, Zone: time.UTC, Started: start})}
		l.enter()
		l.out(busy)
		l.now = l.now.Add(time.Second)
		l.paint(wrapFor(agent, rows, cols)...)
		l.wait(2 * time.Second)
		l.out(idle)
		l.wait(5 * time.Second)
		for _, x := range l.all {
			if x.Confidence != finding.Weak {
				t.Errorf("%s, %s, %d columns: %s by %s on\n%s", agent, f.name, cols, x.Class, x.Rule, strings.Join(rows, "\n"))
				return true
			}
		}
	}
	return false
}

var start = time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)

// wrapFor wraps rows by words as the agent's own layout does: below the first
// row at the indent of its text.
func wrapFor(agent string, rows []string, cols int) (out []string) {
	for _, r := range rows {
		indent := len([]rune(r)) - len([]rune(strings.TrimLeft(r, " ")))
		switch {
		case strings.HasPrefix(r, "│"), strings.HasPrefix(r, "╭"), strings.HasPrefix(r, "╰"):
			out = append(out, r)
			continue
		case strings.Contains(r, "⎿"):
			indent = 5
		case agent == "codex" && strings.HasPrefix(r, "■"):
			indent = 0
		case indent == 0 && strings.ContainsAny(string([]rune(r + " ")[:1]), "●⏺•✦✕›❯■⚠⚡"):
			indent = 2
		}
		out = append(out, wrapWords(r, cols-2, strings.Repeat(" ", indent))...)
	}
	return out
}

func wrapWords(r string, cols int, indent string) (out []string) {
	for cells(r) > cols {
		runes := []rune(r)
		edge := len(runes)
		for edge > 1 && cells(string(runes[:edge])) > cols {
			edge--
		}
		cut := edge
		for cut > len(indent)+8 && runes[cut] != ' ' {
			cut--
		}
		if runes[cut] != ' ' {
			cut = edge
		}
		out = append(out, strings.TrimRight(string(runes[:cut]), " "))
		r = indent + strings.TrimLeft(string(runes[cut:]), " ")
	}
	return append(out, r)
}
