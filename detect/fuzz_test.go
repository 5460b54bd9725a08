package detect_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
)

// FuzzParseProfile: a user's file may hold anything; an error names file and line.
func FuzzParseProfile(f *testing.F) {
	for _, a := range []string{"claude", "codex", "gemini", "generic"} {
		data, err := os.ReadFile("../policies/agents/" + a + ".toml")
		if err != nil {
			f.Fatal(err)
		}
		// A piece of each: whole files leave the fuzzer no time to try anything.
		if i := bytes.Index(data, []byte("[[detect.rule]]")); i > 0 {
			f.Add(data[max(0, i-600):min(len(data), i+900)])
		}
	}
	f.Add([]byte("[detect]\n[[detect.rule]]\nname = \"x\"\nmatch = '('\n"))
	f.Add([]byte("[detect.activity]\ntitle_busy = 3\n"))
	f.Add([]byte("[detect]\nreplace = true\n[[detect.row]]\nname = \"own\"\nspeaker = \"user\"\nstart = 'a'\n"))
	f.Add([]byte("[[detect.rule]]\nname = \"limit\"\nrows = [\"own\"]\nmatch = 'l'\nexamples = [\n# x\n'a', \"\\\"b\", \"\"\"c\"\"\"]\nnot = ['! l']\n"))
	base := detect.Source{Name: "base.toml", Data: []byte("name = \"base\"\n[detect.activity]\ntitle_busy = 'x'\n[[detect.row]]\nname = \"own\"\nspeaker = \"agent\"\nstart = '^! '\n[[detect.rule]]\nname = \"limit\"\nclass = \"rate\"\nsource = \"made up\"\nrows = [\"own\"]\nmatch = 'limit'\nexamples = [\"! limit\"]\n")}
	f.Fuzz(func(t *testing.T, data []byte) {
		if over, err := detect.ParseOver(base, detect.Source{Name: "x.toml", Data: data}); err == nil {
			for _, e := range over.CheckExamples() {
				if e.Line < 1 || e.Col < 1 || e.File == "" {
					t.Errorf("an example without a place: %v", e)
				}
			}
		} else if !strings.HasPrefix(err.Error(), "x.toml:") && !strings.HasPrefix(err.Error(), "base.toml:") {
			t.Errorf("error without a place: %v", err)
		}
		p, err := detect.ParseProfile("x.toml", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x.toml:") {
				t.Errorf("error without a place: %v", err)
			}
			return
		}
		p.ExplainRows([]string{"● API Error: 429", "  ⎿  x", ""}, detect.ExplainOptions{Mode: detect.Both, Now: start})
	})
}

// FuzzRows: the engine on any rows, in every mode, live and explained.
func FuzzRows(f *testing.F) {
	for i, m := range messages(f) {
		if i%6 == 0 {
			f.Add(strings.Join(m.Lines, "\n"))
		}
	}
	profiles := []*detect.Profile{profile(f, "claude"), profile(f, "codex"), profile(f, "gemini"), profile(f, "generic")}
	f.Fuzz(func(t *testing.T, text string) {
		rows := strings.Split(text, "\n")
		for _, p := range profiles {
			if got := p.ExplainRows(rows, detect.ExplainOptions{Mode: detect.Both, Now: start}); len(got) > 1 {
				t.Errorf("%d findings of one instant", len(got))
			}
			w := p.Watch(detect.Options{Cols: 60, Rows: 12, Started: start})
			w.Key(start, true)
			w.Output(start, []byte(strings.Join(rows, "\r\n")))
			for i := range 5 {
				r := w.Tick(start.Add(time.Duration(i) * time.Second))
				for _, x := range r.Findings {
					checkFinding(t, x)
				}
			}
		}
	})
}

func checkFinding(t *testing.T, x finding.Finding) {
	t.Helper()
	if x.Class == "" || x.Rule == "" || x.Confidence == "" || x.Class == "none" {
		t.Errorf("unfinished finding %+v", x)
	}
	if x.Reset.IsZero() != (x.ResetSource == "") {
		t.Errorf("reset %v from %q", x.Reset, x.ResetSource)
	}
	for _, r := range x.Rows {
		if strings.IndexFunc(r, func(c rune) bool { return c < ' ' || c == 0x7f }) >= 0 {
			t.Errorf("control byte in evidence %q", r)
		}
	}
}

// FuzzStream: pipes and logs of any bytes, cut anywhere.
func FuzzStream(f *testing.F) {
	for _, m := range messages(f) {
		if m.Mode == "headless" {
			f.Add([]byte(strings.Join(m.Lines, "\n")), 7)
		}
	}
	f.Add([]byte("{\n\"error\":{\"message\":[]}}\n}\n"), 1)
	f.Add([]byte(`{"timestamp":1e300,"type":"event_msg","payload":{"type":"token_count","rate_limits":{"primary":{"used_percent":1e9,"resets_at":-1}}}}`), 3)
	profiles := []*detect.Profile{profile(f, "claude"), profile(f, "codex"), profile(f, "gemini"), profile(f, "generic")}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		for _, p := range profiles {
			w := p.Watch(detect.Options{Mode: detect.Headless, Started: start})
			n := max(1, min(cut, 64))
			for i := 0; i < len(data); i += n {
				b := data[i:min(i+n, len(data))]
				for _, x := range w.Stream(start, detect.Stream(i&1), b).Findings {
					checkFinding(t, x)
				}
			}
			for _, l := range bytes.Split(data, []byte("\n")) {
				for _, x := range w.Log(start, l).Findings {
					checkFinding(t, x)
				}
			}
			w.Exit(start, 1)
		}
	})
}

// FuzzCast: a recording may be damaged.
func FuzzCast(f *testing.F) {
	f.Add([]byte("{\"version\": 2, \"width\": 80, \"height\": 24, \"timestamp\": 1795972044}\n[0.1, \"o\", \"hi\"]\n[0.2, \"r\", \"60x20\"]\n[0.3, \"i\", \"\\r\"]\n"))
	f.Add([]byte("{\"version\": 3, \"term\": {\"cols\": 80, \"rows\": 24}}\n[0.1, \"o\", \"hi\"]\n# comment\n[1e300, \"o\", \"\"]\n"))
	f.Add([]byte("{\"version\": 2, \"width\": -1, \"height\": 999999}\n[0, \"r\", \"999999x999999\"]\n"))
	p := profile(f, "codex")
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := detect.ReadCast(bytes.NewReader(data))
		if err != nil || len(c.Events) > 200 {
			return
		}
		p.ExplainCast(c, detect.ExplainOptions{Mode: detect.Both, Now: start})
	})
}
