package detect_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// TestKinds reads messages that were written for the kind, not taken from a
// recording: a rule that fits only its own samples fails here.
func TestKinds(t *testing.T) {
	data, err := os.ReadFile("testdata/kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(string(data), "\n") {
		head, body, ok := strings.Cut(l, " ||")
		f := strings.Fields(head)
		if !ok || len(f) != 3 {
			continue
		}
		mode := detect.TUI
		if f[1] == "headless" {
			mode = detect.Headless
		}
		rows := strings.Split(body, "|")
		if strings.HasPrefix(body, "Claude AI") {
			rows = []string{body} // the bar is part of it
		}
		got := "none"
		if x := profile(t, f[0]).ExplainRows(rows, detect.ExplainOptions{Mode: mode, Now: start, Zone: time.UTC}); len(x) > 0 {
			got = string(x[0].Class)
		}
		if got != f[2] {
			t.Errorf("%s: %s, want %s", l, got, f[2])
		}
	}
}

// TestParseErrors: a mistake in a profile is named by file, line and column,
// with what to do.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[detect]\n[[detect.row]]\nname = \"a\"\nspeaker = \"agent\"\nstart = '('\n":                                                                             "x.toml:5:1: start: ",
		"[detect]\n[[detect.row]]\nname = \"a\"\nspeaker = \"dog\"\nstart = 'a'\n":                                                                               "x.toml:4:1: speaker: \"dog\" is no speaker: write agent",
		"[detect]\n[[detect.row]]\nname = \"a\"\nspeaker = \"agent\"\nstart = 'a'\n[[detect.rule]]\nname = \"r\"\nmatch = 'x'\nsource = \"s\"\nrows = [\"b\"]\n": "x.toml:10:1: rows: \"b\" is no [[detect.row]]",
		"[detect]\n[[detect.row]]\nname = \"a\"\nspeaker = \"agent\"\nstart = 'a'\n[[detect.rule]]\nname = \"r\"\n  class = \"windo\"\n":                         "x.toml:6:1: match: missing",
		"[detect]\nnonsense = 1\n":    "x.toml:2:1: unknown key \"nonsense\": remove it",
		"[detect]\nname = = 1\n":      "x.toml:2:",
		"[detect.activity]\nhint=3\n": "x.toml:2:",
	} {
		_, err := detect.ParseProfile("x.toml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q\n  error %v\n  want  %s…", text, err, want)
		}
	}
	if _, err := detect.ParseProfile("x.toml", []byte("name = \"x\"\n[other]\nwhatever = 1\n")); err != nil {
		t.Errorf("blind to the rest: %v", err)
	}
}
