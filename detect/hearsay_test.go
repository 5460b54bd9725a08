package detect_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// hearsay is how agents draw words that are not theirs: what their model says,
// what a tool printed, a diff, the user's prompt, and an error that is over;
// %s is a banner. Claude, Codex and Gemini have frames of their own
// (adversarial_test.go).
var hearsay = map[string][]frame{
	"copilot": {
		{"prose", "❯ go on\n\n● It prints this:\n\n  %s\n\n  and stops.\n\n❯ "},
		{"first line", "❯ go on\n\n● %s\n\n❯ "},
		{"prose beside a scrollbar", " ❯ go on                                        ┃\n ● It prints:                                   ┃\n   %s ┃\n"},
		{"tool", "● Check the log\n  $ cat app.log\n  └ %s\n    %[1]s\n"},
		{"tool in a frame", "● Check the log\n  $ cat app.log\n  │ %s\n  └ 2 lines…\n"},
		{"prompt", "❯ %s\n\n● Looking into it.\n"},
		{"pasted prompt", "❯ why do I see\n  %s\n\n● Looking into it.\n"},
		{"diff", "● Edit limit.txt (+1)\n  12 - x\n  12 + %s\n"},
		{"stale", "%s\n\n❯ continue\n\n● All done.\n\n❯ "},
	},
	"opencode": {
		{"prose", "  ┃\n  ┃  go on\n  ┃\n\n  It prints this:\n\n  %s\n\n  and stops.\n\n  ▣  Build · big-pickle · 6.2s"},
		{"first line", "  ┃\n  ┃  go on\n  ┃\n\n  %s\n\n  ▣  Build · big-pickle · 6.2s"},
		{"tool", "  $ cat app.log\n  %s\n  %[1]s\n\n  Nothing is limited.\n\n  ▣  Build · big-pickle · 6.2s"},
		{"tool's block", "  ┃  # Reads the log\n  ┃\n  ┃  $ cat app.log\n  ┃\n  ┃  %s\n"},
		{"prompt", "  ┃\n  ┃  %s\n  ┃\n\n  Looking.\n\n  ▣  Build · big-pickle · 6.2s"},
		{"diff", "  ┃  ← Edit limit.txt\n  ┃\n  ┃   12 - x\n  ┃   12 + %s\n"},
	},
	"qwen": {
		{"prose", " > go on\n\n✦ The CLI prints:\n  %s\n  and stops."},
		{"first line", " > go on\n\n✦ %s"},
		{"tool box", "╭──────────────╮\n│ ✓  Shell cat app.log │\n│              │\n│ %s │\n│ %[1]s │\n╰──────────────╯"},
		{"prompt", " > %s\n\n✦ Looking into it."},
		{"stale", "%s\n\n > continue\n\n✦ All done."},
	},
	"aider": {
		{"fence", "> go on\n\nIt prints:\n\n```\n%s\n```\n\nand stops.\n"},
		{"fence with a language", "> go on\n\nIt prints:\n\n```text\n%s\n%[1]s\n```\n\nand stops.\n"},
		{"history", "> %s\n> %[1]s\n"},
		{"run", "> /run cat app.log\n%s\n\n%[1]s\nAdd 0.1k tokens of command output to the chat? (Y)es/(N)o [Yes]: "},
		{"prompt", "> why %s\n\nIt is the provider.\n\n> "},
		{"edit", "limit.txt\n<<<<<<< SEARCH\nold\n=======\n%s\n>>>>>>> REPLACE\n"},
		{"diff", "+%s\n-%[1]s\n"},
	},
	"goose": {
		{"prose", "( O)> go on\nIt prints this:\n\n    %s\n\nand stops.\n\n( O)> "},
		{"inline", "It prints \"%s\" and stops.\n"},
		{"prompt", "( O)> %s\nLooking into it.\n"},
		{"tool", "─── shell | developer ──────────────\ncommand: cat app.log\n%s\n"},
		{"stale", "%s\n\n( O)> continue\nAll done.\n\n( O)> "},
		{"stale, the newer prompt", "%s\n\n🪿 continue\nAll done.\n\n🪿 "},
	},
	"kimi": {
		{"prose", "• It prints this:\n\n  %s\n\n  and stops.\n"},
		{"first line", "• %s\n"},
		{"tool", "• Used Bash (cat app.log)\n  %s\n  %[1]s\n"},
		{"prompt", "✨ %s\n• Looking into it.\n"},
		{"prompt with a name", "user@proj✨ %s\n• Looking into it.\n"},
		{"diff", "• Used Edit (limit.txt)\n  12 - x\n  12 + %s\n"},
		{"stale", "%s\n\n✨ continue\n• All done.\n"},
	},
	"crush": {
		{"prose", "  │ go on\n\n  It prints this:\n\n    %s\n\n  and stops.\n\n  ◇ GLM 4.6 via Z.ai 12s\n"},
		{"first line", "  │ go on\n\n  %s\n\n  ◇ GLM 4.6 via Z.ai 1m12s\n"},
		{"tool", "  ✓ Bash cat app.log\n\n    %s\n    %[1]s\n"},
		{"prompt", "  │ %s\n\n  Looking into it.\n\n  ◇ GLM 4.6 via Z.ai 12s\n"},
		{"diff", "  ✓ Edit limit.txt\n     31 -  x\n     31 +  %s\n"},
		{"stale", "   %s\n\n  │ continue\n\n  All done.\n\n  ◇ GLM 4.6 via Z.ai 12s\n"},
	},
	"pi": {
		{"prose", " It prints this:\n\n   %s\n\n and stops.\n"},
		{"inline", " It prints \"%s\" and stops.\n"},
		{"tool", " $ cat app.log\n\n %s\n %[1]s\n\n Took 0.1s\n"},
		{"diff", " edit limit.txt\n\n -12 x\n +12 %s\n"},
	},
	"antigravity": {
		{"prose", "> go on\n\n  It prints this:\n\n    %s\n\n  and stops.\n\n> "},
		{"tool", "● Bash(cat app.log)\n  %s\n  %[1]s\n"},
		{"prompt", "> %s\n\n  Looking into it.\n\n> "},
		{"stale", "%s\n\n> continue\n\n  All done.\n\n> "},
	},
	"generic": {
		{"prose", "● It prints this:\n\n  %s\n\n  and stops.\n"},
		{"prose without a mark", "  It prints this:\n\n  %s\n\n  and stops.\n"},
		{"first line", "● %s\n"},
		{"shell", "$ cat app.log\n%s\n%[1]s\n"},
		{"quote", "> %s\n"},
		{"box", "│ %s │\n"},
		{"diff", "+ %s\n- %[1]s\n"},
		{"prompt", "❯ %s\n\n● Looking into it.\n"},
	},
}

// undecidable: the very row is the client's own there, glyph and all; only a
// second sign tells, which plain rows do not hold.
func undecidable(agent, frame, banner string) bool {
	switch agent + ", " + frame {
	case "copilot, first line":
		return strings.HasPrefix(banner, "Response was interrupted") || strings.HasPrefix(banner, "Request failed due to")
	case "aider, fence": // a closing fence may be an opening one
		return strings.Contains(banner, "litellm.") || strings.HasPrefix(banner, "The API provider")
	}
	return false
}

// allBanners are the limits' own first rows of all labelled messages, with
// their mark and without it.
func allBanners(tb testing.TB) (out []string) {
	seen := map[string]bool{}
	add := func(m message) {
		for _, l := range m.Lines {
			l = strings.TrimSpace(l)
			if m.Class == "none" || len(l) < 12 || strings.ContainsAny(l[:1], "{>(") || strings.HasPrefix(l, "❯") || strings.HasPrefix(l, "›") {
				continue
			}
			for _, b := range []string{l, strings.TrimLeft(l, " ⎿●■✕✗✘×│⚠•✻·\u00a0⏺▌")} {
				if !seen[b] {
					seen[b] = true
					out = append(out, b)
				}
			}
			return
		}
	}
	for _, m := range messages(tb) {
		add(m)
	}
	for _, m := range variants(tb) {
		add(m.message)
	}
	return out
}

// TestTalk: a row that begins as a limit's sentence does and goes on as only
// somebody does who talks about it, where nothing but the words tells: no mark
// before what the model says, or a pipe.
func TestTalk(t *testing.T) {
	detect.OneGoroutine(t)
	data, err := os.ReadFile("testdata/talk.txt")
	if err != nil {
		t.Fatal(err)
	}
	indents := map[string]string{"goose": "", "aider": "", "pi": " ", "crush": "  ", "opencode": "  ", "antigravity": "  ", "generic": "", "kimi": "• ", "copilot": "● "}
	for agent, indent := range indents {
		p := profile(t, agent)
		for said := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
			if strings.HasPrefix(said, "# ") {
				continue
			}
			for mode, rows := range map[detect.Mode][]string{
				detect.TUI:      {indent + "I looked at it.", "", indent + said, "", indent + "The tests pass now."},
				detect.Headless: {"I looked at it.", "", said},
			} {
				if got := p.ExplainRows(rows, detect.ExplainOptions{Mode: mode, Now: start, Zone: time.UTC}); len(got) > 0 {
					t.Errorf("%s: %s by %s in %q", agent, got[0].Class, got[0].Rule, rows)
				}
			}
		}
	}
}

// TestHearsay: whatever limit an agent quotes of whomever, none is its own.
// QSHIM_LONG=1 tries every banner in every frame, else one in nine.
func TestHearsay(t *testing.T) {
	detect.OneGoroutine(t)
	step, n := 9, 0
	if os.Getenv("QSHIM_LONG") != "" {
		step = 1
	}
	list := allBanners(t)
	for agent, frames := range hearsay {
		p := profile(t, agent)
		for k, f := range frames {
			for i := k % step; i < len(list); i += step {
				b := list[i]
				if undecidable(agent, f.name, b) {
					continue
				}
				n++
				rows := strings.Split(strings.ReplaceAll(f.rows, "%[1]s", "%s"), "\n")
				for j, r := range rows {
					rows[j] = strings.Replace(r, "%s", b, 1)
				}
				if got := p.ExplainRows(rows, detect.ExplainOptions{Mode: detect.TUI, Now: start, Zone: time.UTC}); len(got) > 0 {
					t.Errorf("%s, %s: %s by %s in\n%s", agent, f.name, got[0].Class, got[0].Rule, strings.Join(rows, "\n"))
				}
			}
		}
	}
	t.Logf("%d of %d banners' recitals", n, len(list))
}
