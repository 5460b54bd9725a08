package detect

import (
	"os"
	"testing"
	"time"
)

// The three agents' idle composers are seen to be empty, in the rows that they
// paint (Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0); with something
// in it they are not.
func TestComposerEmpty(t *testing.T) {
	for _, c := range []struct {
		agent, rows string
		empty       bool
	}{
		{"claude", "────────────────────\r\n❯ \r\n────────────────────", true},
		{"claude", "────────────────────\r\n❯ Resend your message to try again\r\n────────────────────", true},
		{"claude", "────────────────────\r\n❯ half\r\n────────────────────", false},
		{"codex", "› Ask Codex to do anything\r\n\r\n  gpt-5 default · /tmp", true},
		{"codex", "› half\r\n\r\n  gpt-5 default · /tmp", false},
		{"gemini", "▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄\r\n >   Type your message or @path/to/file\r\n▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀", true},
		{"gemini", "▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄\r\n > half\r\n▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀", false},
	} {
		data, err := os.ReadFile("../policies/agents/" + c.agent + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParseProfile(c.agent, data)
		if err != nil {
			t.Fatal(err)
		}
		w := p.Watch(Options{Cols: 60, Rows: 8})
		now := time.Unix(1_800_000_000, 0)
		w.Output(now, []byte("\x1b[2J\x1b[H"+c.rows))
		if got := w.Peek(now.Add(time.Second)).ComposerEmpty; got != c.empty {
			t.Errorf("%s %q: empty %v", c.agent, c.rows, got)
		}
	}
}
