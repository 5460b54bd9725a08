package account

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestPlainTOML(t *testing.T) {
	for text, want := range map[string]bool{
		"": true,
		"model = \"m\"\n[projects.\"/a.b.c\"]\ntrust_level = 'trusted'\n": true,
		"a = \"" + strings.Repeat(".", 100) + "\"":                        true,
		"a = '" + strings.Repeat("{", 100) + "'":                          true,
		"# " + strings.Repeat("a.", 100) + "\nb = 1":                      true,
		"a = \"\"\"\n" + strings.Repeat("x.", 100) + "\n\"\"\"\nb = 1.5":  true,
		"a = [" + strings.Repeat("1.5, ", 100) + "]":                      true,
		"a = \"\\\"" + strings.Repeat(".", 100) + "\"":                    true,
		strings.Repeat("a.", 5000) + "b = 1":                              false,
		"[" + strings.Repeat("\"a\" . ", 100) + "b]":                      false,
		strings.Repeat("a={", 100):                                        false,
		"a = 1\n" + strings.Repeat("b={c.d={", 50):                        false,
		"a = \"\"\"b\"\"\"\n" + strings.Repeat("a.", 100) + "b = 1":       false,
		"a = \"\"\"\\\"\"\"\"\n" + strings.Repeat("a.", 100) + "b = 1":    false,
		"a = 'b'\n" + strings.Repeat("a.", 100):                           false,
		"a = '" + strings.Repeat("b", maxTOML) + "'":                      false,
	} {
		if got := plainTOML([]byte(text)); got != want {
			t.Errorf("%.60q: %v", text, got)
		}
	}
}

// No text that passes makes a key deeper than the bounds allow.
func FuzzPlainTOML(f *testing.F) {
	for _, s := range []string{"a.b.c = 1", "a = {b = {c.d = '.'}}", "[[a.b]]\n#.\n", "a = \"\"\"\n.\"\"\"", "'a'.\"b\".c=1", "a='''x'''", "\"\\\"\".a=1", strings.Repeat("a.", 40) + "b=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !plainTOML([]byte(s)) || len(s) > 4096 {
			return
		}
		md, err := toml.Decode(s, &map[string]any{})
		if err != nil {
			return
		}
		for _, k := range md.Keys() {
			if len(k) > 2*(maxDots+1)*(maxTables+1) {
				t.Fatalf("a key of %d parts in %q", len(k), s)
			}
		}
	})
}
