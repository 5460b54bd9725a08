package config

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"qshim/policies"
	"qshim/policies/internal/literal"
)

var update = flag.Bool("update", false, "write defaults_gen.go anew")

// defaults_gen.go is what the TOML decoder makes of default.toml.
func TestDefaultsGenerated(t *testing.T) {
	b := &builder{base: &scope{origin: map[string]Origin{}}, special: map[string]*scope{}, aliases: map[string]alias{}}
	b.decode(defaultName, policies.DefaultTOML, Default)
	b.finish() // checks every value too: each has an origin here
	if len(b.errs) > 0 {
		t.Fatal(b.errs)
	}
	for key := range b.base.all() {
		if b.base.origin[key].Line == 0 {
			t.Errorf("default.toml does not set %s", key)
		}
	}
	if err := literal.File("defaults_gen.go", render(b), *update); err != nil {
		t.Error(err)
	}
}

func render(b *builder) string {
	var out strings.Builder
	p := func(text string, args ...any) { fmt.Fprintf(&out, text, args...) }
	p("package config\n\nimport \"qshim/policies\"\n\n")
	p("func defaults() (Settings, policies.Constants) {\nreturn %s, %s\n}\n\n", literal.Of(b.base.set, "config"), literal.Of(b.base.con, "config"))
	p("// settingKeys have an environment variable and may have a flag.\nvar settingKeys = []string{\n")
	for _, key := range slices.Sorted(maps.Keys(b.base.keys(false))) {
		p("%q,\n", key)
	}
	p("}\n\n")
	p("// defaultSpecial is what single providers have otherwise than con, which all have.\nfunc defaultSpecial(con policies.Constants) map[string]policies.Constants {\nall := map[string]policies.Constants{}\n")
	for _, name := range slices.Sorted(maps.Keys(b.special)) {
		p("{\nc := con\n%sall[%q] = c\n}\n", literal.Differences("c", b.base.con, b.special[name].con, "config"), name)
	}
	p("return all\n}\n\n// defaultLeaves is the same, line by line.\nfunc defaultLeaves() []leaf {\nreturn []leaf{\n")
	for _, l := range b.leaves {
		if l.scope != "" {
			p("{scope: %q, key: %q, value: %#v, origin: Origin{Layer: Default, Name: defaultName, Line: %d, Col: %d}},\n", l.scope, l.key, l.value, l.origin.Line, l.origin.Col)
		}
	}
	p("}\n}\n")
	return out.String()
}

// A configuration is the same whether the defaults below it were compiled in or
// are read now, mistakes and places included.
func TestDefaultsBelow(t *testing.T) {
	env := func(k string) (string, bool) { return "2h", k == "QSHIM_MAX_WAIT" }
	for _, in := range []Input{
		{}, {Env: env}, {Flags: map[string]string{"title": "off", "mode": "govern"}}, {Env: env, Name: "c.toml", Data: []byte("max_wait = \"1h\"\nprobe.step = \"9s\"\n")},
		{Name: "c.toml", Data: []byte("[providers.google]\nrate.base = \"7s\"\n[limiters.\"google/x\"]\ndaily.zone = \"UTC\"\n[agents.codex]\nresume = \"never\"\n")},
		{Name: "c.toml", Data: []byte("[rate]\ncap = \"1s\"\n")}, {Name: "c.toml", Data: []byte("[rate]\nbase = \"9m\"\nstretch = 7\n")},
		{Name: "c.toml", Data: []byte("[providers.google.daily]\nzone = \"Mars\"\n")},
	} {
		read := &builder{base: &scope{origin: map[string]Origin{}}, special: map[string]*scope{}, aliases: map[string]alias{}}
		read.decode(defaultName, policies.DefaultTOML, Default)
		if len(in.Data) > 0 {
			read.decode(in.Name, in.Data, File)
		}
		read.env(in.Env)
		read.flags(in.Flags)
		read.finish()
		c, err := Load(in)
		if err != nil || len(read.errs) > 0 {
			if want := errors.Join(read.errs...); fmt.Sprint(err) != fmt.Sprint(want) {
				t.Errorf("%s:\n%v\nwant\n%v", in.Data, err, want)
			}
			continue
		}
		want := read.config()
		if d := cmp.Diff(want.Settings, c.Settings) + cmp.Diff(want.Policy, c.Policy) + cmp.Diff(want.Values(), c.Values()); d != "" {
			t.Errorf("%s: %s", in.Data, d)
		}
	}
}
