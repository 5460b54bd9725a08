package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"qshim/policies"
)

// scope is one complete set of values: the unscoped one, a provider's, a limiter's.
type scope struct {
	set    Settings
	con    policies.Constants
	fields map[string]reflect.Value // key -> settable field of set or con
	origin map[string]Origin
}

func newScope() *scope {
	s := &scope{origin: map[string]Origin{}}
	s.bind()
	return s
}

// bind lists the fields by key.
func (s *scope) bind() {
	s.fields = map[string]reflect.Value{}
	collect(reflect.ValueOf(&s.set).Elem(), "", s.fields)
	collect(reflect.ValueOf(&s.con).Elem(), "", s.fields)
}

func collect(v reflect.Value, prefix string, out map[string]reflect.Value) {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("toml")
		switch f := v.Field(i); {
		case tag == "-":
		case v.Type().Field(i).Anonymous:
			collect(f, prefix, out)
		case f.Kind() == reflect.Struct:
			collect(f, prefix+tag+".", out)
		default:
			out[prefix+tag] = f
		}
	}
}

// over copies a scope, as the ground for a more special one.
func (s *scope) over() *scope {
	n := &scope{set: s.set, con: s.con, origin: maps.Clone(s.origin)}
	n.set.NotifyCommand = slices.Clone(s.set.NotifyCommand)
	n.bind()
	return n
}

// leaf is one value of a file, with where it belongs and where it stands.
type leaf struct {
	scope  string
	key    string
	value  any
	origin Origin
}

type builder struct {
	base    *scope
	special map[string]*scope
	leaves  []leaf // of all files, in order of precedence
	aliases map[string]alias
	over    []leaf // environment and flags: beat special scopes too
	errs    []error
}

func newBuilder() *builder {
	return &builder{base: newScope(), special: map[string]*scope{}, aliases: map[string]alias{}}
}

func (b *builder) errorf(o Origin, format string, args ...any) {
	b.errs = append(b.errs, &Error{Origin: o, Text: fmt.Sprintf(format, args...)})
}

// file reads one TOML file into leaves.
func (b *builder) file(name string, data []byte, isDefault bool) {
	switch {
	case len(data) == 0:
		return // most users have none: no decoder is woken
	case !isDefault:
		b.decode(name, data, File)
		return
	}
	if leaves, ok := plain(data, Origin{Layer: Default, Name: name}); ok {
		b.leaves = append(b.leaves, leaves...)
	} else {
		b.decode(name, data, Default)
	}
}

func (b *builder) decode(name string, data []byte, layer Layer) {
	tree, err := parse(name, data)
	if err != nil {
		b.errs = append(b.errs, err)
		return
	}
	w := walker{b: b, where: positions(data), origin: Origin{Layer: layer, Name: name}}
	w.table(nil, tree, "")
}

func (b *builder) env(lookup func(string) (string, bool)) {
	if lookup == nil {
		return
	}
	for _, key := range b.settings() {
		if text, ok := lookup(EnvName(key)); ok && text != "" {
			b.text(key, text, Origin{Layer: Env, Name: EnvName(key)})
		}
	}
}

func (b *builder) flags(flags map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		b.text(key, flags[key], Origin{Layer: Flag, Name: "--" + strings.ReplaceAll(key, "_", "-")})
	}
}

// settings lists the keys that have an environment variable and may have a flag.
func (b *builder) settings() []string {
	fields := map[string]reflect.Value{}
	collect(reflect.ValueOf(&b.base.set).Elem(), "", fields)
	return slices.Sorted(maps.Keys(fields))
}

// text takes a value from outside a file, where everything is a string.
func (b *builder) text(key, text string, o Origin) {
	f, ok := b.base.fields[key]
	if !ok || strings.Contains(key, ".") {
		b.errorf(o, "there is no such setting")
		return
	}
	value, err := fromText(f, text)
	if err != nil {
		b.errorf(o, "%s; %s", err, wants(key, f, false))
		return
	}
	b.over = append(b.over, leaf{key: key, value: value, origin: o})
}

// finish applies everything, weakest first: the base, then providers and
// limiters on top of it, then environment and flags on top of all.
func (b *builder) finish() {
	b.each(b.leaves, func(l leaf) bool { return l.scope == "" }, b.base)
	names := map[string]bool{}
	for _, l := range b.leaves {
		if l.scope != "" {
			names[l.scope] = true
		}
	}
	// Providers first: a limiter stands on its provider's values.
	for _, name := range slices.SortedFunc(maps.Keys(names), byKind) {
		ground := b.base
		if id := strings.TrimPrefix(name, limiterPrefix); id != name {
			if p, ok := b.special[providerPrefix+policies.Provider(id)]; ok {
				ground = p
			}
		}
		b.special[name] = ground.over()
		b.each(b.leaves, func(l leaf) bool { return l.scope == name }, b.special[name])
	}
	for _, s := range append([]*scope{b.base}, slices.Collect(maps.Values(b.special))...) {
		b.each(b.over, func(leaf) bool { return true }, s)
		s.con.Launch.MaxWait = s.set.MaxWait
		b.validate(s)
	}
	b.checkAliases()
	b.errs = unique(b.errs)
}

// each sets the leaves that match in a scope.
func (b *builder) each(leaves []leaf, match func(leaf) bool, s *scope) {
	for _, l := range leaves {
		if !match(l) {
			continue
		}
		f := s.fields[l.key]
		if err := set(f, l.value); err != nil {
			b.errorf(l.origin, "%s: %s; %s", l.key, err, wants(l.key, f, true))
			continue
		}
		s.origin[l.key] = l.origin
	}
}

const (
	providerPrefix = "p:"
	limiterPrefix  = "l:"
	agentPrefix    = "a:"
)

// byKind puts providers before limiters.
func byKind(a, b string) int {
	if d := strings.Compare(b[:2], a[:2]); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

func (b *builder) config() *Config {
	b.leaves, b.over = nil, nil // all applied
	c := &Config{
		Settings: b.base.set,
		Policy:   policies.Policy{C: b.base.con, Special: map[string]policies.Constants{}},
		values:   sync.OnceValue(b.values),
		scopes:   map[string]Settings{},
		Aliases:  b.aliasMap(),
		agents:   map[string]Settings{},
	}
	for prefixed, s := range b.special {
		name := prefixed[2:]
		if strings.HasPrefix(prefixed, agentPrefix) {
			c.agents[name] = s.set
			continue
		}
		c.Policy.Special[name] = s.con
		c.scopes[name] = s.set
	}
	return c
}

// values lists all scopes' values.
func (b *builder) values() map[string]map[string]Value {
	all := map[string]map[string]Value{"": values("", b.base, nil)}
	b.aliasValues(all[""])
	for prefixed, s := range b.special {
		name := prefixed[2:]
		if strings.HasPrefix(prefixed, agentPrefix) {
			name = agentScope(name)
		}
		all[name] = values(name, s, b.base)
	}
	return all
}

// values lists a scope's values; those that stand as in base are left out.
func values(name string, s, base *scope) map[string]Value {
	out := map[string]Value{}
	for key, f := range s.fields {
		o := s.origin[key]
		if base != nil && o == base.origin[key] {
			continue
		}
		out[key] = Value{Scope: name, Key: key, Text: format(f), Origin: o}
	}
	return out
}

func unique(errs []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(errs, func(e error) bool {
		dup := seen[e.Error()]
		seen[e.Error()] = true
		return dup
	})
}
