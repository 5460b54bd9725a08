package cmdline

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Call is what words ask for.
type Call struct {
	Command *Command
	Args    []string
	Help    bool // its help is asked for, and nothing else
}

// Kind is what is wrong with a word.
type Kind string

// What can be wrong.
const (
	UnknownFlag Kind = "unknown flag"
	NoValue     Kind = "no value"           // the flag needs one and the words are at their end
	BadValue    Kind = "bad value"          // Err says why
	BadSyntax   Kind = "bad syntax"         // --=x
	TooMany     Kind = "too many arguments" // Word is the first of them
)

// Mistake is a word that does not fit.
type Mistake struct {
	Kind    Kind
	Command *Command // that was being read
	Word    string   // as it was typed, a flag without its value
	Letter  rune     // of an unknown flag in a group like -xvf, else 0
	Value   string   // the bad value
	Err     error    // of Flag.Set
	Count   int      // of arguments, where they are too many

	flag *Flag // of NoValue
}

// Error is for programmers: who talks to people has words of its own.
func (m *Mistake) Error() string { return fmt.Sprintf("%s: %s: %q", m.Command.Path(), m.Kind, m.Word) }

// Unwrap is what Flag.Set said.
func (m *Mistake) Unwrap() error { return m.Err }

// Parse reads words, without the program's name, and sets the flags that stand
// in them, up to the first mistake. An error is a *Mistake.
func (c *Command) Parse(words []string) (Call, error) {
	r := newReader(c)
	if err := r.read(words); err != nil {
		return r.call, err
	}
	cmd, n := r.call.Command, len(r.call.Args)
	if max := cmd.MaxArgs; !r.call.Help && max != AnyArgs && n > max {
		return r.call, &Mistake{Kind: TooMany, Command: cmd, Word: r.call.Args[max], Count: n}
	}
	return r.call, nil
}

// reader goes through words once.
type reader struct {
	call Call
	open bool // flags may stand here
	help *Flag
	used []*Flag
}

func newReader(c *Command) *reader {
	r := &reader{call: Call{Command: c}, open: true}
	r.help = Bool(&r.call.Help, "help", "")
	r.help.Short = 'h'
	return r
}

func (r *reader) read(words []string) error {
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		var err error
		switch {
		case !r.open || w == "-" || !strings.HasPrefix(w, "-"):
			r.word(w)
		case w == "--":
			r.open = false
		case strings.HasPrefix(w, "--"):
			words, err = r.long(w, words)
		default:
			words, err = r.short(w, words)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// word takes a command's name or an argument.
func (r *reader) word(w string) {
	c := &r.call
	if r.open && len(c.Args) == 0 {
		if sub := c.Command.Find(w); sub != nil {
			c.Command = sub
			return
		}
	}
	c.Args = append(c.Args, w)
	if c.Command.Verbatim {
		r.open = false
	}
}

// long takes --name, --name=value, or --name and the value behind it.
func (r *reader) long(w string, rest []string) ([]string, error) {
	name, value, given := strings.Cut(w[len("--"):], "=")
	if name == "" || name[0] == '-' {
		return rest, &Mistake{Kind: BadSyntax, Command: r.call.Command, Word: w}
	}
	w = "--" + name
	f := r.flag(func(f *Flag) bool { return f.Name == name })
	if f == nil {
		return rest, &Mistake{Kind: UnknownFlag, Command: r.call.Command, Word: w}
	}
	return r.take(f, w, value, given, rest)
}

// short takes a group of letters: switches, and last one that may have a value,
// in the word or behind it.
func (r *reader) short(w string, rest []string) ([]string, error) {
	for group := w[len("-"):]; group != ""; {
		letter, size := utf8.DecodeRuneInString(group)
		group = group[size:]
		f := r.flag(func(f *Flag) bool { return f.Short == letter })
		if f == nil || letter == 0 {
			return rest, &Mistake{Kind: UnknownFlag, Command: r.call.Command, Word: w, Letter: letter}
		}
		value, given := strings.CutPrefix(group, "=")
		given = given || group != "" && f.Kind != ""
		if given || group == "" {
			return r.take(f, "-"+string(letter), value, given, rest)
		}
		if _, err := r.take(f, "-"+string(letter), "", false, nil); err != nil {
			return rest, err
		}
	}
	return rest, nil
}

// take sets a flag that was typed as w.
func (r *reader) take(f *Flag, w, value string, given bool, rest []string) ([]string, error) {
	switch {
	case given:
	case f.Kind == "":
		value = "true"
	case len(rest) == 0:
		return rest, &Mistake{Kind: NoValue, Command: r.call.Command, Word: w, flag: f}
	default:
		value, rest = rest[0], rest[1:]
	}
	r.used = append(r.used, f)
	if err := f.Set(value); err != nil {
		return rest, &Mistake{Kind: BadValue, Command: r.call.Command, Word: w, Value: value, Err: err}
	}
	return rest, nil
}

// flag is the nearest one that fits: the command's own, those above it, help.
func (r *reader) flag(fits func(*Flag) bool) *Flag {
	for c := r.call.Command; c != nil; c = c.parent {
		if i := slices.IndexFunc(c.Flags, fits); i >= 0 {
			return c.Flags[i]
		}
	}
	if fits(r.help) {
		return r.help
	}
	return nil
}
