// Package cmdline is qshim's command line: a table of commands and flags, how
// words are read against it, and what could stand at its end, for the shells.
//
// Flags are written as GNU's are: --name value, --name=value, -n, and "--" ends
// them. A command takes its own and those of the commands above it, before and
// behind its arguments. Only where words are another program's (Verbatim) do
// flags end at the first word that is none, and from there on not a byte is
// looked at.
//
// Why none of the libraries: pflag, and so cobra, imports net, which links libc
// wherever a C compiler is and makes each start of an agent dearer by more than
// a millisecond; urfave/cli takes a last word of the agent's for its own
// (--generate-shell-completion), runs `status` for `-- status`, reads -now as
// --now, and says what is wrong only in text.
//
// The package has no words for people: mistakes are values, help is drawn by who
// has the words.
package cmdline

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
)

// AnyArgs as a command's MaxArgs: its Run checks them.
const AnyArgs = -1

// Command is one command, or the program itself.
type Command struct {
	Use   string // its name, and behind that what it takes, as help shows it
	Short string // in one line
	Long  string // the head of its help; Short where it is empty

	Flags    []*Flag // also taken by the commands below it
	MaxArgs  int     // how many arguments it takes at most, or AnyArgs
	Verbatim bool    // behind the first argument there are no flags
	Run      func(ctx context.Context, args []string) error

	// Complete offers what may stand behind args; where it is nil, a command
	// that takes arguments is offered files.
	Complete func(args []string) Offer

	commands []*Command // by name
	parent   *Command
}

// Name is the word that the command is called by.
func (c *Command) Name() string {
	name, _, _ := strings.Cut(c.Use, " ")
	return name
}

// Path is the command as it is typed: "qshim config show".
func (c *Command) Path() string {
	if c.parent == nil {
		return c.Name()
	}
	return c.parent.Path() + " " + c.Name()
}

// Parent is the command above, nil of the program itself.
func (c *Command) Parent() *Command { return c.parent }

// Commands are those below it, by name.
func (c *Command) Commands() []*Command { return c.commands }

// Add puts commands below c and returns c.
func (c *Command) Add(subs ...*Command) *Command {
	for _, sub := range subs {
		sub.parent = c
		c.commands = append(c.commands, sub)
	}
	slices.SortFunc(c.commands, func(a, b *Command) int { return cmp.Compare(a.Name(), b.Name()) })
	return c
}

// Find is the command that names lead to from c, nil where there is none.
func (c *Command) Find(names ...string) *Command {
	for _, name := range names {
		i := slices.IndexFunc(c.commands, func(sub *Command) bool { return sub.Name() == name })
		if i < 0 {
			return nil
		}
		c = c.commands[i]
	}
	return c
}

// Inherited are the flags of the commands above, but those whose name a nearer
// command has given to one of its own.
func (c *Command) Inherited() (flags []*Flag) {
	near := slices.Clone(c.Flags)
	for c = c.parent; c != nil; c = c.parent {
		for _, f := range c.Flags {
			if !slices.ContainsFunc(near, func(n *Flag) bool { return n.Name == f.Name }) {
				flags, near = append(flags, f), append(near, f)
			}
		}
	}
	return flags
}

// Flag is one flag.
type Flag struct {
	Name    string
	Short   rune   // 0: none
	Help    string // what it does, in one line
	Kind    string // what help calls its value; empty: a switch, that may be left without
	Default string // as help shows it; empty: none worth showing
	// Set takes the value as it was typed, "true" of a switch without one.
	Set func(string) error
	// Complete offers values; where it is nil the flag is offered files.
	Complete func() Offer
}

// String is a flag for a text. What stands at p is the default.
func String(p *string, name, help string) *Flag {
	f := &Flag{Name: name, Help: help, Kind: "string", Set: func(s string) error { *p = s; return nil }}
	if *p != "" {
		f.Default = strconv.Quote(*p)
	}
	return f
}

// Int is a flag for a whole number. What stands at p is the default.
func Int(p *int, name, help string) *Flag {
	return &Flag{Name: name, Help: help, Kind: "int", Default: strconv.Itoa(*p), Set: func(s string) (err error) {
		*p, err = strconv.Atoi(s)
		return err
	}}
}

// Bool is a switch.
func Bool(p *bool, name, help string) *Flag {
	return &Flag{Name: name, Help: help, Set: func(s string) (err error) {
		*p, err = strconv.ParseBool(s)
		return err
	}}
}
