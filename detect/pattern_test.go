package detect

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestOpening: a row that the table of first runes rules out fits nothing.
func TestOpening(t *testing.T) {
	data, err := os.ReadFile("../testdata/messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.FieldsFunc(string(data), func(r rune) bool { return r == '"' || r == '\n' })
	asked, spared := 0, 0
	for _, name := range []string{"claude", "codex", "gemini", "generic"} {
		file, err := os.ReadFile("../policies/agents/" + name + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParseProfile(name+".toml", file)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			r := firstRune(row)
			for _, d := range p.rules().rows {
				asked++
				if !d.opens.has(r) {
					spared++
					if d.start.MatchString(row) {
						t.Errorf("%s: start of %s fits %q, but its opening has no %q", name, d.name, row, r)
					}
				}
				if d.more != nil && !d.goes.has(r) && d.more.MatchString(row) {
					t.Errorf("%s: more of %s fits %q, but its opening has no %q", name, d.name, row, r)
				}
			}
		}
	}
	if spared*2 < asked {
		t.Errorf("only %d of %d matches are spared", spared, asked)
	}
}

func TestOpeningOf(t *testing.T) {
	for src, want := range map[string]string{
		`^[●⏺] x`: "●⏺", `^ {2}└`: "└", `^(?:a|  b)`: "ab", `^\s*$`: "any", `x`: "any", `^a|b`: "any",
		`^[^a]`: "any", `^(?i)a`: "any", `^.`: "any", `^ ?> \S`: ">",
	} {
		o := openingOf(src)
		if o.any != (want == "any") {
			t.Errorf("%s: any = %v", src, o.any)
			continue
		}
		for _, r := range want {
			if want != "any" && !o.has(r) {
				t.Errorf("%s cannot begin with %q", src, r)
			}
		}
		if want != "any" && o.has('a') && !strings.ContainsRune(want, 'a') {
			t.Errorf("%s can begin with a", src)
		}
	}
}

// TestOwnPatterns: one that does not compile would match nothing, silently.
func TestOwnPatterns(t *testing.T) {
	if len(ownPatterns) < 10 {
		t.Fatalf("only %d", len(ownPatterns))
	}
	for _, p := range ownPatterns {
		if _, err := regexp.Compile(p.src); err != nil {
			t.Error(err)
		}
	}
}
