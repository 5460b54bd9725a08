package detect_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qshim/detect"
)

// TestUsage plays testdata/usage/AGENT-*.txt, records of the real agents as
// the fake provider's answers made them and as the agents' pages have them: a
// line "> SOURCE" says where the next records come from, a line "= TEXT" what
// is known then.
func TestUsage(t *testing.T) {
	files, err := filepath.Glob("testdata/usage/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no records", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) { playUsage(t, file, name) })
	}
}

func playUsage(t *testing.T, file, name string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	agent, _, _ := strings.Cut(name, "-")
	hasLog := !strings.HasSuffix(name, "-nolog")
	w := rulesOf(t, agent).Watch(detect.Options{Mode: detect.Headless, HasLog: hasLog})
	now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
	source, news := "", false
	var known detect.Usage
	for i, l := range strings.Split(string(data), "\n") {
		var r detect.Report
		switch {
		case l == "" || strings.HasPrefix(l, "#"):
			continue
		case strings.HasPrefix(l, "> "):
			source = l[2:]
			continue
		case strings.HasPrefix(l, "= "):
			if got := describe(known, news); got != l[2:] {
				t.Errorf("line %d:\ngot  %s\nwant %s", i+1, got, l[2:])
			}
			news = false
			continue
		case source == "log":
			r = w.Log(now, []byte(l))
		default:
			r = w.Stream(now, detect.Stdout, []byte(l+"\n"))
		}
		known, news = r.Usage, news || r.UsageNew
	}
}

func describe(u detect.Usage, news bool) string {
	var b strings.Builder
	if !news {
		b.WriteString("old ")
	}
	b.WriteString("context " + strconv.FormatInt(u.Context, 10) + " spent " + strconv.FormatInt(u.Spent, 10))
	for _, s := range u.Shares {
		b.WriteString(" " + s.Window.String() + " " + strconv.FormatFloat(s.Used, 'g', 4, 64) + "%")
		if !s.Ends.IsZero() {
			b.WriteString(" until " + s.Ends.UTC().Format("02T15:04:05"))
		}
	}
	return b.String()
}

// What an agent writes may be anything.
func FuzzUsage(f *testing.F) {
	files, _ := filepath.Glob("testdata/usage/*.txt")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, l := range strings.Split(string(data), "\n") {
			if strings.HasPrefix(l, "{") {
				f.Add([]byte(l), uint8(len(l)%3))
			}
		}
	}
	var rules []*detect.Profile
	for _, name := range []string{"claude", "codex", "gemini"} {
		rules = append(rules, rulesOf(f, name))
	}
	f.Fuzz(func(t *testing.T, l []byte, which uint8) {
		w := rules[int(which)%len(rules)].Watch(detect.Options{Mode: detect.Headless})
		now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
		first := w.Log(now, l)
		again := w.Log(now, l)
		for _, u := range []detect.Usage{first.Usage, again.Usage} {
			if u.Context < 0 || u.Spent < 0 || len(u.Shares) > 4 {
				t.Fatalf("%+v", u)
			}
			for _, s := range u.Shares {
				if !(s.Used >= 0 && s.Used <= 1000) || s.Window <= 0 {
					t.Fatalf("%+v", s)
				}
			}
		}
		if diff := cmp.Diff(first.Usage.Shares, again.Usage.Shares); diff != "" {
			t.Fatal(diff)
		}
	})
}

func rulesOf(t testing.TB, name string) *detect.Profile {
	t.Helper()
	file := filepath.Join("../policies/agents", name+".toml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := detect.ParseProfile(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
