package agents

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// File is one of the user's own profile files.
type File struct {
	Name string // the profile's name: the file's without .toml
	Path string // for errors
	Data []byte
}

// Set is the profiles there are: the built-in ones and the user's.
//
// A user's file with the name of a built-in profile extends that one: a key that
// it gives counts in place of the built-in one's, adjustments of the same name
// too, and new ones are added. With `replace = true` at its top nothing of the
// built-in one stays. A file with any other name is an agent of its own.
type Set struct {
	user  []*Profile // merged, in the order of their names
	index Index
}

// NewSet reads the user's files. Each mistake in them is an *Error, with its
// place; the set that is returned holds the files without one.
func NewSet(files []File) (Set, []error) {
	var s Set
	var errs []error
	for _, f := range files {
		p, err := merged(f)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.user = append(s.user, p)
	}
	for _, p := range s.user {
		s.index = append(s.index, p.Entry())
	}
	for _, e := range Builtins() {
		if s.find(e.Name) == nil {
			s.index = append(s.index, e)
		}
	}
	return s, errs
}

// Names lists the profiles, in order.
func (s Set) Names() []string {
	names := Names()
	for _, p := range s.user {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Index tells which profile a command belongs to; the user's come first.
func (s Set) Index() Index {
	if s.index == nil {
		return Builtins()
	}
	return s.index
}

// Load returns a profile for use.
func (s Set) Load(name string) (*Profile, error) {
	if p := s.find(name); p != nil {
		return p, nil
	}
	p, err := Load(name)
	if u := (*UnknownError)(nil); errors.As(err, &u) {
		u.Names = s.Names()
	}
	return p, err
}

func (s Set) find(name string) *Profile {
	for _, p := range s.user {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// merged is a user's file over the built-in profile of its name, if there is one.
func merged(f File) (*Profile, error) {
	if !isName(f.Name) {
		return nil, &Error{File: f.Path, Msg: "a profile's file is named in lower-case letters, digits, dots, dashes and underscores, at most 32"}
	}
	p, md, err := decode(f.Path, f.Name, f.Data)
	if err != nil {
		return nil, err
	}
	if data, builtin := Builtin(f.Name); builtin && !p.Replace {
		base, _, err := decode(f.Name+".toml", f.Name, data)
		if err != nil {
			return nil, err // a test catches it
		}
		lay(reflect.ValueOf(base).Elem(), reflect.ValueOf(p).Elem(), md, nil)
		base.Raw = func() []byte { return data }
		p = base
	} else {
		p.standAlone(md)
		p.Raw = nil
	}
	p.User = &f
	return p, p.check(f.Path, f.Name, f.Data)
}

// standAlone fills in what a new agent need not say: it is called by its name,
// and its account is told by nothing.
func (p *Profile) standAlone(md toml.MetaData) {
	for key, fill := range map[string]func(){
		"title": func() { p.Title = p.Name }, "provider": func() { p.Provider = slug(p.Name) },
		"identity": func() { p.Identity = "none" }, "binaries": func() { p.Binaries = []string{p.Name} },
	} {
		if !md.IsDefined(key) {
			fill()
		}
	}
}

// lay puts the keys that a file defines over what dst holds.
func lay(dst, src reflect.Value, md toml.MetaData, path []string) {
	for i := range dst.NumField() {
		tag := dst.Type().Field(i).Tag.Get("toml")
		here := append(slices.Clone(path), tag)
		d, s := dst.Field(i), src.Field(i)
		switch {
		case tag == "-" || tag == "" || !md.IsDefined(here...):
		case d.Kind() == reflect.Struct:
			lay(d, s, md, here)
		case d.Kind() == reflect.Map:
			layMap(d, s)
		case d.Type() == reflect.TypeFor[[]Adjustment]():
			d.Set(reflect.ValueOf(layAdjust(d.Interface().([]Adjustment), s.Interface().([]Adjustment))))
		default:
			d.Set(s)
		}
	}
}

func layMap(dst, src reflect.Value) {
	if dst.IsNil() {
		dst.Set(reflect.MakeMap(dst.Type()))
	}
	for _, k := range src.MapKeys() {
		dst.SetMapIndex(k, src.MapIndex(k))
	}
}

// layAdjust: an adjustment of the same name replaces the built-in one.
func layAdjust(base, mine []Adjustment) []Adjustment {
	out := slices.Clone(base)
	for _, a := range mine {
		if i := slices.IndexFunc(out, func(b Adjustment) bool { return b.Name == a.Name }); i >= 0 {
			out[i] = a
			continue
		}
		out = append(out, a)
	}
	return out
}

// Detects reports whether a file says anything about how the agent speaks.
func Detects(data []byte) bool { return len(launchPart(data)) < len(bytes.TrimRight(data, " \t\r\n")) }

// BadExample is one of the profile's [examples] that does not hold.
type BadExample struct {
	Key, Text string // "headless", "-p hello"
	Why       string
}

// CheckExamples runs the argument lines in [examples] through the profile.
func (p *Profile) CheckExamples() (bad []BadExample) {
	none := func(string) string { return "" }
	// Whatever an adjustment needs of the binary, it has here.
	all := Known{}
	for _, a := range p.Adjust {
		all.Help += a.Needs + "\n"
	}
	added := func(c Call, args []string) bool { return len(p.Adjustments(args, c, none, all).Names) > 0 }
	for _, kind := range []struct {
		key   string
		lines []string
		want  string
		ok    func(Call, []string) bool
	}{
		{"nonsession", p.Examples.NonSession, "a call that never reaches the model", func(c Call, _ []string) bool { return !c.Session }},
		{"session", p.Examples.Session, "a session", func(c Call, _ []string) bool { return c.Session }},
		{"headless", p.Examples.Headless, "headless with a prompt", func(c Call, _ []string) bool { return c.Headless && c.Prompt && c.Session }},
		{"prompt", p.Examples.Prompt, "with a prompt", func(c Call, _ []string) bool { return c.Prompt }},
		{"noprompt", p.Examples.NoPrompt, "without a prompt", func(c Call, _ []string) bool { return !c.Prompt && !c.Headless }},
		{"adjusted", p.Examples.Adjusted, "adjusted", added},
		{"unadjusted", p.Examples.Unadjusted, "unadjusted", func(c Call, a []string) bool { return !added(c, a) }},
	} {
		for _, line := range kind.lines {
			args := strings.Fields(line)
			if !kind.ok(p.Classify(args), args) {
				bad = append(bad, BadExample{kind.key, line, "is not " + kind.want})
			}
		}
	}
	return bad
}

// Place is where an example stands in the profile's text, from 1.
func (e BadExample) Place(data []byte) (line, col int) {
	head := launchPart(data)
	line, col = locate(head, toml.Key{"examples", e.Key})
	lines := strings.Split(string(head), "\n")
	for n := line - 1; n < len(lines); n++ {
		for _, quote := range []string{`"`, `'`} {
			if i := strings.Index(lines[n], quote+e.Text+quote); i >= 0 {
				return n + 1, i + 1
			}
		}
	}
	return line, col
}
