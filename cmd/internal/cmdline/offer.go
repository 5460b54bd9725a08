package cmdline

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Requests are the first words by which the scripts below, and those that
// earlier versions printed, ask what could stand at the cursor: with and without
// what the words mean.
const (
	Request      = "__complete"
	RequestPlain = "__completeNoDesc"
)

// The scripts that define completion in a shell. Each may be evaluated twice.
var (
	//go:embed complete.bash
	Bash string
	//go:embed complete.zsh
	Zsh string
	//go:embed complete.fish
	Fish string
)

// Files is whether a shell offers files, as the scripts are told.
type Files int

// What the scripts know. The numbers are those of cobra, which scripts of
// earlier versions know too.
const (
	AnyFiles  Files = 0 // where no word is offered
	NoWay     Files = 1 // nothing fits: there is a mistake before the cursor
	NoFiles   Files = 4
	OnlyFiles Files = 8 // the words are the ends of their names
)

// Word is one that could stand at the cursor.
type Word struct{ Text, About string }

// Offer is what could stand at the cursor.
type Offer struct {
	Words []Word
	Files Files
}

// Offer is what could stand in place of the last of words, of which there is at
// least one. The flags before it are set.
func (c *Command) Offer(words []string) Offer {
	last := len(words) - 1
	r, at := newReader(c), words[last]
	err := r.read(words[:last])
	if m := (*Mistake)(nil); errors.As(err, &m) && m.Kind == NoValue {
		return m.flag.values("", at)
	} else if err != nil {
		return Offer{Files: NoWay}
	}
	if r.open && strings.HasPrefix(at, "-") {
		return r.flags(at)
	}
	return r.arguments().startingWith(at)
}

// flags offers flags, or the values of one.
func (r *reader) flags(at string) Offer {
	if name, value, given := strings.Cut(at, "="); given {
		if f := r.flag(func(f *Flag) bool { return "--"+f.Name == name }); f != nil {
			return f.values(name+"=", value)
		}
		return Offer{Files: NoWay}
	}
	o := Offer{Files: NoFiles}
	cmd := r.call.Command
	all := slices.Concat(cmd.Flags, cmd.Inherited(), []*Flag{r.help})
	slices.SortFunc(all, func(a, b *Flag) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range all {
		if slices.Contains(r.used, f) {
			continue
		}
		o.Words = append(o.Words, Word{"--" + f.Name, f.Help})
		if f.Short != 0 {
			o.Words = append(o.Words, Word{"-" + string(f.Short), f.Help})
		}
	}
	return o.startingWith(at)
}

// arguments offers the commands below and what the command itself says.
func (r *reader) arguments() (o Offer) {
	c, args := r.call.Command, r.call.Args
	o.Files = NoFiles
	switch {
	case c.Complete != nil:
		o = c.Complete(args)
	case len(c.commands) == 0 && (c.MaxArgs == AnyArgs || len(args) < c.MaxArgs):
		o.Files = AnyFiles
	}
	if !r.open || len(args) > 0 {
		return o
	}
	var subs []Word
	for _, sub := range c.commands {
		subs = append(subs, Word{sub.Name(), sub.Short})
	}
	o.Words = append(subs, o.Words...)
	return o
}

// values offers those of a flag. What stands before the value is part of the
// word.
func (f *Flag) values(before, at string) Offer {
	if f.Complete == nil {
		return Offer{Files: AnyFiles}
	}
	o := f.Complete().startingWith(at)
	for i := range o.Words {
		o.Words[i].Text = before + o.Words[i].Text
	}
	return o
}

func (o Offer) startingWith(at string) Offer {
	if o.Files != OnlyFiles { // there the shell knows best
		o.Words = slices.DeleteFunc(slices.Clone(o.Words), func(w Word) bool { return !strings.HasPrefix(w.Text, at) })
	}
	return o
}

// Print writes an offer as the scripts read it: a word a line, a tab and what it
// means, and last a colon and whether files are offered. A word that would not
// fit into a line is left out.
func (o Offer) Print(to io.Writer, plain bool) error {
	w := bufio.NewWriter(to)
	for _, word := range o.Words {
		if strings.IndexFunc(word.Text, unfit) >= 0 {
			continue
		}
		_, _ = w.WriteString(word.Text) // Flush tells
		if about := strings.Join(strings.FieldsFunc(word.About, unfit), " "); about != "" && !plain {
			_, _ = w.WriteString("\t" + about)
		}
		_ = w.WriteByte('\n')
	}
	_, _ = fmt.Fprintf(w, ":%d\n", o.Files)
	return w.Flush()
}

// unfit is what moves a terminal or ends a line.
func unfit(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }
