package detect

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPrefilter: the words that a profile's rules add to those of the
// providers' sentences are few, so that ordinary rows stay cheap. That they
// suffice is what the rules' own examples show.
func TestPrefilter(t *testing.T) {
	files, err := filepath.Glob("../policies/agents/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal("no profiles", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, b, err := parse(filepath.Base(f), data)
		if err != nil {
			t.Fatal(err)
		}
		if more := b.hot[len(hotWords):]; len(more) > 15 {
			t.Errorf("%s adds %q: anchor its rules on a word of hotWords", filepath.Base(f), more)
		}
	}
}

// TestSpinnerIsNotRead: a spinner that turns does not make the page be read; a
// word in the composer, a row of another kind and a hot word do.
func TestSpinnerIsNotRead(t *testing.T) {
	data, err := os.ReadFile("../policies/agents/claude.toml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseProfile("claude.toml", data)
	if err != nil {
		t.Fatal(err)
	}
	now := exampleNow
	w := p.Watch(Options{Cols: 80, Rows: 20})
	w.Key(now, true)
	rule := "──────────────────────────────────────────"
	w.Output(now, []byte("\x1b]0;◐ Claude Code\a\x1b[2J\x1b[H❯ hi\r\n\r\n● A limit of 5.\r\n\r\n✻ Brewing… (3s)\r\n"+rule+"\r\n❯ \r\n"+rule))
	now = now.Add(time.Second)
	w.Tick(now)
	for _, c := range []struct {
		what, out string
		read      bool
	}{
		{"the spinner", "\x1b[5;1H✶\x1b[5;13H4", false},
		{"its word", "\x1b[5;1H✻ Mulling… (5s)\x1b[K", false},
		{"more speech", "\x1b[3;20Hand more", true}, // the row is hot
		{"the composer", "\x1b[7;3Hgo", true},
		{"a new row", "\x1b[4;1H  more", true},
		{"the same once more", "\x1b[4;1H  more", false},
	} {
		now = now.Add(time.Second)
		before := w.looked
		w.Output(now, []byte(c.out))
		if got := w.looked != before; got != c.read {
			t.Errorf("%s: page read %v", c.what, got)
		}
	}
}
