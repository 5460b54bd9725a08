package config

//go:generate go test -run TestDefaultsGenerated . -update

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"qshim/policies"
)

// scope is one complete set of values: the unscoped one, a provider's, a limiter's.
type scope struct {
	set      Settings
	con      policies.Constants
	settings map[string]reflect.Value // key -> field of set; nil: not asked for yet
	rules    map[string]reflect.Value // key -> field of con, likewise: 150 of them
	origin   map[string]Origin        // of what is not as in default.toml
}

// field is the settable field of a key.
func (s *scope) field(key string) (reflect.Value, bool) {
	fields := s.keys(strings.Contains(key, "."))
	f, ok := fields[key]
	return f, ok
}

// keys lists the fields of the constants, or those of the settings.
func (s *scope) keys(rules bool) map[string]reflect.Value {
	fields, of := &s.settings, reflect.ValueOf(&s.set)
	if rules {
		fields, of = &s.rules, reflect.ValueOf(&s.con)
	}
	if *fields == nil {
		*fields = map[string]reflect.Value{}
		collect(of.Elem(), "", *fields)
	}
	return *fields
}

// all lists every key.
func (s *scope) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, rules := range []bool{false, true} {
			for key := range s.keys(rules) {
				if !yield(key) {
					return
				}
			}
		}
	}
}

// from is where a value comes from.
func (s *scope) from(key string) Origin {
	if o, ok := s.origin[key]; ok {
		return o
	}
	return defaultOrigin(strings.Split(key, "."))
}

// defaultOrigin is where a value stands in default.toml.
func defaultOrigin(path []string) Origin {
	o := Origin{Layer: Default, Name: defaultName}
	o.Line, o.Col = locate(defaultPlaces(), path)
	return o
}

var defaultPlaces = sync.OnceValue(func() map[string]position { return positions(policies.DefaultTOML) })

const defaultName = "default.toml"

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

// newBuilder stands on default.toml, as defaults_gen.go has it: to read it costs
// each start ten times what the rest of this package does.
func newBuilder() *builder {
	set, con := defaults()
	return &builder{base: &scope{set: set, con: con, origin: map[string]Origin{}}, special: map[string]*scope{}, aliases: map[string]alias{}}
}

func (b *builder) errorf(o Origin, format string, args ...any) {
	b.errs = append(b.errs, &Error{Origin: o, Text: fmt.Sprintf(format, args...)})
}

// file reads the user's file into leaves, behind what default.toml has for single
// providers.
func (b *builder) file(name string, data []byte) {
	if len(data) == 0 {
		return // most users have none: no decoder is woken
	}
	b.leaves = append(b.leaves, defaultLeaves()...)
	b.decode(name, data, File)
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
	for _, key := range settingKeys {
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

// text takes a value from outside a file, where everything is a string.
func (b *builder) text(key, text string, o Origin) {
	f, ok := b.base.field(key)
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
	b.specials()
	for _, s := range append([]*scope{b.base}, slices.Collect(maps.Values(b.special))...) {
		b.each(b.over, func(leaf) bool { return true }, s)
		s.con.Launch.MaxWait = s.set.MaxWait
		b.validate(s)
	}
	b.checkAliases()
	b.errs = unique(b.errs)
}

// specials makes the providers' and limiters' scopes.
func (b *builder) specials() {
	if len(b.leaves) == 0 {
		for name, con := range defaultSpecial(b.base.con) {
			s := b.base.over()
			s.con = con
			b.special[name] = s
		}
		return
	}
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
}

// each sets the leaves that match in a scope.
func (b *builder) each(leaves []leaf, match func(leaf) bool, s *scope) {
	for _, l := range leaves {
		if !match(l) {
			continue
		}
		f, _ := s.field(l.key) // what is no field has been refused
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
	for _, l := range defaultLeaves() { // where nothing was laid over them, they were taken as made
		if s := b.special[l.scope]; s != nil && len(b.leaves) == 0 {
			s.origin[l.key] = l.origin
		}
	}
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
	for key := range s.all() {
		if base != nil && s.origin[key] == base.origin[key] {
			continue
		}
		f, _ := s.field(key)
		out[key] = Value{Scope: name, Key: key, Text: format(f), Origin: s.from(key)}
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
