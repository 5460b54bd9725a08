package config

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"qshim/policies"
)

// decoded is what the TOML decoder makes of a default file.
func decoded(data []byte) ([]leaf, []error) {
	b := newBuilder()
	b.decode("default.toml", data, Default)
	return b.leaves, b.errs
}

func sorted(leaves []leaf) []leaf {
	slices.SortFunc(leaves, func(a, b leaf) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.key, b.key))
	})
	return leaves
}

var leafDiff = gocmp.AllowUnexported(leaf{})

// The defaults are read by plain, and as the decoder would read them, places included.
func TestPlainDefaults(t *testing.T) {
	got, ok := plain(policies.DefaultTOML, Origin{Layer: Default, Name: "default.toml"})
	if !ok {
		t.Fatal("default.toml has something in it that plain cannot read: each start would cost 3 ms more")
	}
	want, errs := decoded(policies.DefaultTOML)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if d := gocmp.Diff(sorted(want), sorted(got), leafDiff); d != "" {
		t.Error(d)
	}
}

// What plain reads at all, it reads as the decoder does, or the decoder finds
// it wrong (a key twice).
func FuzzPlain(f *testing.F) {
	f.Add(policies.DefaultTOML)
	for _, s := range []string{"[rate]\nbase = \"3s\" # x\n", "title = true\n", "[rate]\nprobes = -8\nstretch = 0.5",
		"notify_command = [] # \n[providers.google.daily]\nzone = \"UTC\"", "title = truely\n", "[rate]\nstretch = .5\nprobes = 00\n", "[providers]\n[providers.x]\nmode = \"\"\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := plain(data, Origin{Layer: Default, Name: "default.toml"})
		if !ok {
			return
		}
		want, errs := decoded(data)
		if len(errs) > 0 {
			return
		}
		if d := gocmp.Diff(sorted(want), sorted(got), leafDiff); d != "" {
			t.Error(d)
		}
	})
}
