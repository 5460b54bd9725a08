package agents

import "strings"

// item is one argument or option with its value, as the agent's parser sees it.
type item struct {
	flag  string // "--model", "-m"; empty for a positional
	value string // the option's value, or the positional itself
	has   bool   // the option has a value
}

// scanned is a command line taken apart.
type scanned struct {
	items []item
	pos   []string // positionals in order, those after "--" included
	// dashed is how many positionals stood before "--": no subcommand after it.
	dashed int
}

// arity says how an option takes values.
type arity int

const (
	boolean arity = iota
	one
	optional
	variadic
)

func (o *Options) arity(flag string) arity {
	switch {
	case has(o.Value, flag):
		return one
	case has(o.Optional, flag):
		return optional
	case has(o.Variadic, flag):
		return variadic
	}
	return boolean
}

// scan splits args the way the three parsers in use (commander, clap, yargs)
// agree on: --name=value and -nVALUE carry their value, "--" ends the options,
// and an option not listed takes none.
func (o *Options) scan(args []string) scanned {
	s := scanned{dashed: -1}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			s.dashed = len(s.pos)
			s.pos = append(s.pos, args[i+1:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			s.pos = append(s.pos, a)
			s.items = append(s.items, item{value: a})
			continue
		}
		i += o.option(&s, a, args[i+1:])
	}
	if s.dashed < 0 {
		s.dashed = len(s.pos)
	}
	return s
}

// option takes one option and returns how many of rest it used as values.
func (o *Options) option(s *scanned, a string, rest []string) int {
	if name, v, ok := strings.Cut(a, "="); ok && strings.HasPrefix(a, "--") {
		s.items = append(s.items, item{name, v, true})
		return 0
	}
	if !strings.HasPrefix(a, "--") && len(a) > 2 {
		return o.cluster(s, a, rest)
	}
	used := o.values(a, rest)
	it := item{flag: a}
	if used > 0 {
		it.value, it.has = rest[0], true
	}
	s.items = append(s.items, it)
	return used
}

// values counts the arguments that an option takes from what follows it.
func (o *Options) values(flag string, rest []string) int {
	if len(rest) == 0 {
		return 0
	}
	plain := func(a string) bool { return a == "-" || !strings.HasPrefix(a, "-") }
	switch o.arity(flag) {
	case one:
		return 1
	case optional:
		if plain(rest[0]) {
			return 1
		}
	case variadic:
		n := 1
		if !plain(rest[0]) {
			return 0
		}
		for n < len(rest) && plain(rest[n]) {
			n++
		}
		return n
	}
	return 0
}

// cluster takes "-mVALUE" and "-abc": flags up to the first that takes a value.
func (o *Options) cluster(s *scanned, a string, rest []string) int {
	for i := 1; i < len(a); i++ {
		flag := "-" + a[i:i+1]
		tail := a[i+1:]
		if o.arity(flag) == boolean {
			s.items = append(s.items, item{flag: flag})
			continue
		}
		if tail != "" {
			s.items = append(s.items, item{flag, strings.TrimPrefix(tail, "="), true})
			return 0
		}
		return o.option(s, flag, rest)
	}
	return 0
}

// any reports whether one of flags was given as an option.
func (s *scanned) any(flags []string) bool {
	for _, it := range s.items {
		if it.flag != "" && has(flags, it.flag) {
			return true
		}
	}
	return false
}

// last returns the value of the last of the options given.
func (s *scanned) last(flags []string) (string, bool) {
	for i := len(s.items) - 1; i >= 0; i-- {
		if it := s.items[i]; it.flag != "" && it.has && has(flags, it.flag) {
			return it.value, true
		}
	}
	return "", false
}

// words are the positionals that can be subcommands, joined by blanks.
func (s *scanned) words() []string { return s.pos[:s.dashed] }

func has(list []string, w string) bool {
	for _, l := range list {
		if l == w {
			return true
		}
	}
	return false
}

// Values returns the values of an option in order, however they are written.
func (p *Profile) Values(args []string, options ...string) []string {
	s := p.Options.scan(args)
	var out []string
	for _, it := range s.items {
		if it.flag != "" && it.has && has(options, it.flag) {
			out = append(out, it.value)
		}
	}
	return out
}

// Given reports whether an option was given, with or without a value.
func (p *Profile) Given(args []string, options ...string) bool {
	s := p.Options.scan(args)
	return s.any(options)
}
