package agents

import (
	"errors"
	"strings"
	"testing"
)

const minimal = "name = \"x\"\ntitle = \"X\"\nprovider = \"p\"\nidentity = \"none\"\n"

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		name, data string
		line, col  int
		word       string // in the message
	}{
		{"syntax", minimal + "binaries = [\"a\"\n[log]\n", 6, 0, ""},
		{"unknown key", minimal + "binarys = [\"a\"]\n", 5, 1, "binarys"},
		{"unknown key in a table", minimal + "[log]\nkind = \"gemini\"\n  knid = \"\"\n", 7, 3, "log.knid"},
		{"unknown table", minimal + "[lgo]\n", 5, 2, "lgo"},
		{"unknown key in a list of tables", minimal + "[[adjust]]\nname = \"a\"\nwhy = \"b\"\nargz = []\n", 8, 1, "argz"},
		{"unknown key in an inline table", minimal + "[model]\nfamilies = [{ match = [\"a\"], nmae = \"b\" }]\n", 6, 30, "nmae"},
		{"unknown key in an inline table over several lines", minimal + "[model]\nfamilies = [\n # nmae\n { match = [\"a\"],\n  nmae = \"b\" }]\n", 9, 3, "nmae"},
		{"wrong type", minimal + "[resume]\npause_ms = \"soon\"\n", 6, 1, "pause_ms"},
		{"wrong name", strings.Replace(minimal, `"x"`, `"y"`, 1), 1, 1, "x.toml"},
		{"no title", "name = \"x\"\nprovider = \"p\"\nidentity = \"none\"\n", 1, 1, "title"},
		{"bad provider", strings.Replace(minimal, `"p"`, `"P/Q"`, 1), 3, 1, "provider"},
		{"bad identity", strings.Replace(minimal, `"none"`, `"someone"`, 1), 4, 1, "claude, codex, gemini, keys, none"},
		{"bad log kind", minimal + "[log]\nkind = \"logs\"\n", 6, 1, "codex-rollout"},
		{"bad signal", minimal + "[quit]\nsignal = \"SIGKILL\"\n", 6, 1, "SIGTERM"},
		{"option without dash", minimal + "[options]\nvalue = [\"model\"]\n", 6, 1, "model"},
		{"bad stream", minimal + "[headless]\npiped = [\"stderr\"]\n", 6, 1, "stderr"},
		{"adjustment without a reason", minimal + "[[adjust]]\nname = \"a\"\n", 6, 1, "why"},
		{"family without match", minimal + "[model]\nfamilies = [{ name = \"b\" }]\n", 6, 1, "match"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x", []byte(c.data))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if e.Line != c.line || c.col != 0 && e.Col != c.col || !strings.Contains(e.Error(), c.word) {
				t.Errorf("got %v, want line %d column %d and %q", err, c.line, c.col, c.word)
			}
		})
	}
}

// TestParseLeavesDetectAlone: what package detect reads may even be broken here.
func TestParseLeavesDetectAlone(t *testing.T) {
	for _, tail := range []string{"[detect]\nanything = [\n", "[[detect.rule]]\n= broken", "  [ detect ]\nx"} {
		p, err := Parse("x", []byte(minimal+tail))
		if err != nil {
			t.Errorf("%q: %v", tail, err)
		} else if !strings.HasSuffix(string(p.Raw()), tail) {
			t.Errorf("Raw lacks %q", tail)
		}
	}
	if _, err := Parse("x", []byte(minimal+"[detector]\nx = 1\n")); err == nil {
		t.Error("[detector] passes for [detect]")
	}
}

func FuzzParse(f *testing.F) {
	for _, n := range Names() {
		b, _ := Builtin(n)
		f.Add(b)
	}
	f.Add([]byte(minimal + "[log]\nknid = 1"))
	f.Add([]byte("\"\" = 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("x", data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		p.Classify([]string{"-a", "b", "--", "c"})
	})
}
