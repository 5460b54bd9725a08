package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	gofmt "go/format"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"qshim/policies"
)

var update = flag.Bool("update", false, "write defaults_gen.go anew")

const generated = "defaults_gen.go"

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
	want, err := gofmt.Source(render(b))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(generated, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(generated); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what default.toml says (%v): run go generate ./policies/...", generated, err)
	}
}

// render writes the Go file. The names of types are as in this package.
func render(b *builder) []byte {
	var out bytes.Buffer
	p := func(text string, args ...any) { fmt.Fprintf(&out, text, args...) }
	p("// Code generated from policies/default.toml by go generate ./policies/...; DO NOT EDIT.\n\npackage config\n\nimport \"qshim/policies\"\n\n")
	p("func defaults() (Settings, policies.Constants) {\nreturn %s, %s\n}\n\n", literal(b.base.set), literal(b.base.con))
	p("// defaultSpecial is what single providers have otherwise.\nfunc defaultSpecial() map[string]policies.Constants {\nreturn map[string]policies.Constants{\n")
	for _, name := range slices.Sorted(maps.Keys(b.special)) {
		p("%q: %s,\n", name, literal(b.special[name].con))
	}
	p("}\n}\n\n// defaultLeaves is the same, line by line.\nfunc defaultLeaves() []leaf {\nreturn []leaf{\n")
	for _, l := range b.leaves {
		if l.scope != "" {
			p("{scope: %q, key: %q, value: %#v, origin: Origin{Layer: Default, Name: defaultName, Line: %d, Col: %d}},\n", l.scope, l.key, l.value, l.origin.Line, l.origin.Col)
		}
	}
	p("}\n}\n")
	return out.Bytes()
}

// literal writes a struct of structs and plain values, a field a line.
func literal(x any) string {
	v := reflect.ValueOf(x)
	if v.Kind() != reflect.Struct {
		return fmt.Sprintf("%#v", x)
	}
	name := v.Type().String()
	if name == "config.Settings" {
		name = "Settings"
	}
	s := name + "{\n"
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			s += v.Type().Field(i).Name + ": " + literal(v.Field(i).Interface()) + ",\n"
		}
	}
	return s + "}"
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
