package cmdline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// said is what a line set.
type said struct {
	state, first string
	now, follow  bool
	cols         int
}

// table is a small program: a launcher with commands of its own.
func table(s *said) *Command {
	s.cols = 80
	follow := Bool(&s.follow, "follow", "wait")
	follow.Short = 'f'
	first := String(&s.first, "first", "who")
	first.Short = 'x'
	first.Complete = func() Offer {
		return Offer{Words: []Word{{"ab", "one"}, {"cd", ""}}, Files: NoFiles}
	}
	run := func(context.Context, []string) error { return nil }
	config := (&Command{Use: "config", Short: "values", MaxArgs: AnyArgs, Run: run}).Add(&Command{Use: "show [KEY]", MaxArgs: 1, Run: run})
	return (&Command{
		Use: "prog [flags] AGENT", Verbatim: true, MaxArgs: AnyArgs, Run: run,
		Flags: []*Flag{String(&s.state, "state", "dir"), Bool(&s.now, "now", "at once")},
		Complete: func(args []string) Offer {
			if len(args) > 0 {
				return Offer{}
			}
			return Offer{Words: []Word{{"claude", "agent"}}}
		},
	}).Add(
		&Command{Use: "log", Short: "what was", Flags: []*Flag{follow, Int(&s.cols, "cols", "columns"), first}, Run: run},
		config,
	)
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", "prog [] {  false false 80}"},
		{"claude", "prog [claude] {  false false 80}"},
		{"--now claude --now -- log", "prog [claude --now -- log] {  true false 80}"},
		{"--now=false --state s claude", "prog [claude] {s  false false 80}"},
		{"--state --now claude", "prog [claude] {--now  false false 80}"},
		{"-- log", "prog [log] {  false false 80}"},
		{"--now -- -x", "prog [-x] {  true false 80}"},
		{"- -h", "prog [- -h] {  false false 80}"},
		{"--state s log --now --cols 3", "prog log [] {s  true false 3}"},
		{"log -fx=y --cols=7", "prog log [] { y false true 7}"},
		{"log -xy -f", "prog log [] { y false true 80}"},
		{"log -x -f", "prog log [] { -f false false 80}"},
		{"log -f=0 --", "prog log [] {  false false 80}"},
		{"config --state=s show", "prog config show [] {s  false false 80}"},
		{"config key show --now", "prog config [key show] {  true false 80}"},
		{"config show -- --now", "prog config show [--now] {  false false 80}"},
		{"log extra --help", "prog log [extra] {  false false 80} help"},
		{"--help claude", "prog [claude] {  false false 80} help"},
		{"claude --help", "prog [claude --help] {  false false 80}"},
		{"log -fh", "prog log [] {  false true 80} help"},

		{"--bogus log", `prog: unknown flag: "--bogus"`},
		{"--bogus=x", `prog: unknown flag: "--bogus"`},
		{"log --state", `prog log: no value: "--state"`},
		{"log -x", `prog log: no value: "-x"`},
		{"log -fz", `prog log: unknown flag: "-fz"`},
		{"log --first=1 --cols many", `prog log: bad value: "--cols"`},
		{"log -f=maybe", `prog log: bad value: "-f"`},
		{"--now=", `prog: bad value: "--now"`},
		{"---", `prog: bad syntax: "---"`},
		{"--=x", `prog: bad syntax: "--=x"`},
		{"log --help --bogus", `prog log: unknown flag: "--bogus"`},
		{"log extra", `prog log: too many arguments: "extra"`},
		{"config show a b", `prog config show: too many arguments: "b"`},
		{"--follow log", `prog: unknown flag: "--follow"`},
		{"config --now --follow", `prog config: unknown flag: "--follow"`},
	} {
		var s said
		call, err := table(&s).Parse(strings.Fields(c.line))
		got := fmt.Sprint(call.Command.Path(), " ", call.Args, " ", s)
		if call.Help {
			got += " help"
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.line, got, c.want)
		}
	}
}

func TestOffer(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", "config\tvalues\nlog\twhat was\nclaude\tagent\n:0\n"},
		{"l", "log\twhat was\n:0\n"},
		{"--now|c", "config\tvalues\nclaude\tagent\n:0\n"},
		{"--|", "claude\tagent\n:0\n"},
		{"--|c", "claude\tagent\n:0\n"},
		{"claude|", ":0\n"},
		{"claude|--s", ":0\n"},
		{"log|", ":4\n"},
		{"log|-", "--cols\tcolumns\n--first\twho\n-x\twho\n--follow\twait\n-f\twait\n--help\n-h\n--now\tat once\n--state\tdir\n:4\n"},
		{"log|-f|--f", "--first\twho\n:4\n"},
		{"log|--first|", "ab\tone\ncd\n:4\n"},
		{"log|-x|c", "cd\n:4\n"},
		{"log|--first=a", "--first=ab\tone\n:4\n"},
		{"log|--bogus=a", ":1\n"},
		{"log|--bogus|", ":1\n"},
		{"--state|x", ":0\n"},
		{"--state=x", ":0\n"},
		{"config|", "show\n:4\n"},
		{"config|show|", ":0\n"},
		{"config|show|k|", ":4\n"},
	} {
		var s said
		var b strings.Builder
		words := strings.Split(c.line, "|")
		if err := table(&s).Offer(words).Print(&b, false); err != nil || b.String() != c.want {
			t.Errorf("%q: %q, want %q (%v)", c.line, b.String(), c.want, err)
		}
	}
}

// A command's own flag stands for one of the same name above it.
func TestInherited(t *testing.T) {
	var own, above bool
	c := &Command{Use: "sub", Flags: []*Flag{Bool(&own, "now", "own")}, Run: func(context.Context, []string) error { return nil }}
	root := (&Command{Use: "prog", Flags: []*Flag{Bool(&above, "now", "above"), Bool(&above, "all", "")}}).Add(c)
	if _, err := root.Parse([]string{"sub", "--now"}); err != nil || !own || above {
		t.Errorf("own %t, above %t, %v", own, above, err)
	}
	if flags := c.Inherited(); len(flags) != 1 || flags[0].Name != "all" {
		t.Errorf("inherits %d, the first %q", len(flags), flags[0].Name)
	}
}

// What comes from elsewhere, a label, cannot break a line or move a terminal.
func TestPrint(t *testing.T) {
	o := Offer{Words: []Word{{"a", "x\ny\tz\x1b[2J"}, {"b\nc", ""}, {"d", "e"}}, Files: NoFiles}
	for plain, want := range map[bool]string{false: "a\tx y z [2J\nd\te\n:4\n", true: "a\nd\n:4\n"} {
		var b strings.Builder
		if err := o.Print(&b, plain); err != nil || b.String() != want {
			t.Errorf("%q, want %q (%v)", b.String(), want, err)
		}
	}
}

// Whatever is typed, an agent's words stay as they are, a line that says the
// same in another form is read the same, and only what begins so is offered.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "--now\nclaude\n--now", "--\nlog", "log\n-fx=y", "log\n-xy\n--cols=3", "config\nshow\nk", "--state\n\nx", "log\n-f=", "-h", "---", "--=", "log\n-\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, "\n")
		var s said
		call, err := table(&s).Parse(words)
		if m := (*Mistake)(nil); err != nil && (!errors.As(err, &m) || m.Command == nil || m.Kind == "") {
			t.Fatalf("%q: %#v", words, err)
		}
		if err == nil && call.Command.Verbatim && !slices.Equal(call.Args, words[len(words)-len(call.Args):]) {
			t.Fatalf("%q: %q is not what stands at the end", words, call.Args)
		}
		if err == nil {
			again(t, call, s)
		}
		last := words[len(words)-1]
		for _, w := range table(new(said)).Offer(words).Words {
			if !strings.HasPrefix(w.Text, last) {
				t.Fatalf("%q: offers %q", words, w.Text)
			}
		}
	})
}

// again writes a call in another form and reads it.
func again(t *testing.T, call Call, s said) {
	t.Helper()
	words := strings.Fields(call.Command.Path())[1:]
	words = append(words, "--state="+s.state, fmt.Sprintf("--now=%t", s.now), fmt.Sprintf("--help=%t", call.Help))
	if call.Command.Name() == "log" {
		words = append(words, "--first", s.first, fmt.Sprintf("-f=%t", s.follow), "--cols", fmt.Sprint(s.cols))
	}
	words = append(append(words, "--"), call.Args...)
	var s2 said
	call2, err := table(&s2).Parse(words)
	if err != nil || call2.Command.Path() != call.Command.Path() || !slices.Equal(call2.Args, call.Args) || call2.Help != call.Help || s2 != s {
		t.Fatalf("%q: %+v %+v (%v), before %+v %+v", words, call2.Args, s2, err, call.Args, s)
	}
}
