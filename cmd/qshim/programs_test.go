package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qshim/detect/screen"
)

// step is what a user does, and what tells that the program has drawn it.
type step struct {
	keys []string // as tmux send-keys names them; resize=COLSxROWS changes the window
	want string   // a regular expression on the screen
	live bool     // what is shown changes by itself: only want counts
}

// program is one that people know, and a walk through it.
type program struct {
	name, need string
	argv       string // read by sh
	steps      []step
	skip       int // rows at the top that change by themselves: htop's meters
}

func programs() []program {
	return []program{
		{name: "vim", need: "vim", argv: "vim -u NONE -N -n -c 'set ruler nonumber shortmess=I' text", steps: []step{
			{want: "line 1 宽 🙂"},
			{keys: []string{"G", "o", "typed 宽字 é", "Escape"}, want: "typed 宽字 é"},
			{keys: []string{"C-v", "k", "k", "$"}, want: "VISUAL BLOCK"},
			{keys: []string{"Escape", ":set hlsearch", "Enter", "/line", "Enter"}, want: `/line`},
			{keys: []string{"resize=61x17"}, want: `/line|line \d+`},
			{keys: []string{":split", "Enter"}, want: `(?s)text.*text`},
			{keys: []string{":qa!", "Enter"}, want: `PROMPT\d?#`},
		}},
		{name: "less", need: "less", argv: "less -S text", steps: []step{
			{want: "line 1 "},
			{keys: []string{"Space"}, want: `line 4\d`},
			{keys: []string{"/line 77", "Enter"}, want: "line 77"},
			{keys: []string{"Right"}, want: `(?m)^[^l\n]`},
			{keys: []string{"h"}, want: `(?i)summary of less commands`},
			{keys: []string{"q", "g"}, want: "line 1 "},
			{keys: []string{"q"}, want: `PROMPT\d?#`},
		}},
		{name: "htop", need: "htop", argv: "htop", steps: []step{
			{want: "PID +USER", live: true},
			{keys: []string{"F1"}, want: "(?i)press any key to return"},
			{keys: []string{"Space", "F2"}, want: `(?i)categories`},
			{keys: []string{"Down", "Down"}, want: `(?i)colors`},
			{keys: []string{"F10", "q"}, want: `PROMPT\d?#`},
		}, skip: 6},
		{name: "fzf", need: "fzf", argv: "fzf --no-mouse --layout=reverse < text", steps: []step{
			{want: `100/100`},
			{keys: []string{"9 宽"}, want: `19/100`},
			{keys: []string{"Down", "Down"}, want: `(?m)^> line 91`},
			{keys: []string{"Enter"}, want: `(?m)^line 91 宽`},
		}},
		{name: "tmux", need: "tmux", argv: "env TMUX= tmux -S \"$SOCK\" -f inner.conf new-session", steps: []step{
			{want: `(?m)^inner#`},
			{keys: []string{"C-b", "%"}, want: `│ *inner#`},
			{keys: []string{"exec cat", "Enter", "hello 宽", "Enter"}, want: `(?s)hello 宽.*hello 宽`},
			{keys: []string{"C-b", "o", "echo left", "Enter"}, want: `(?m)^left`},
			{keys: []string{"resize=90x21"}, want: `(?m)^left`},
			{keys: []string{"exit", "Enter"}, want: `(?s)^inner#exec cat.*hello 宽\s+yw`},
			{keys: []string{"C-d"}, want: `PROMPT\d?#`},
		}},
		// What ssh and telnet are to a terminal: every key goes out as it is, and
		// nothing is echoed.
		{name: "raw", need: "stty", argv: `sh -c 'stty raw -echo; echo ready; od -An -tx1 -v -w1 -N14 | tr "\n" "."; stty sane; echo; echo done'`, steps: []step{
			{want: "ready"},
			{keys: []string{"C-c", "C-z", "C-d", "C-s", "C-q", "C-\\", "Enter", "Up", "é", "M-x"}, want: `done`},
		}},
	}
}

// pair is a tmux server with one pane for the program and one for the program
// under qshim.
type pair struct {
	t    *testing.T
	dir  string // home, and where the programs run
	tmux func(args ...string) (string, error)
	skip int
}

func newPair(t *testing.T) *pair {
	t.Helper()
	dir := t.TempDir()
	if err := linkQshim(filepath.Join(dir, "links")); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for n := range 100 {
		fmt.Fprintf(&text, "line %d 宽 🙂 %s\n", n+1, strings.Repeat("wide ", 30))
	}
	put(t, dir, "text", text.String(), 0o600)
	// Keys that come as fast as a test sends them are no paste; no clock and no name changes by itself.
	put(t, dir, "inner.conf", "set -g assume-paste-time 0\nset -g window-status-current-format w\nset -g status-right x\nset -g status-left y\nset -g default-command \"PS1=inner# sh\"\n", 0o600)
	short, err := os.MkdirTemp("", "q") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(short, "s")
	env := []string{"HOME=" + dir, "TERM=xterm-256color", "LC_ALL=C.UTF-8", "PS1=PROMPT# ", "GORACE=" + fastRace,
		"PATH=" + filepath.Join(dir, "links") + ":" + os.Getenv("PATH")}
	p := &pair{t: t, dir: dir, tmux: func(args ...string) (string, error) {
		cmd := exec.Command("tmux", append([]string{"-S", sock, "-f", "/dev/null"}, args...)...)
		cmd.Env, cmd.Dir = env, dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}}
	for n, name := range []string{"direct", "qshim"} {
		inner := filepath.Join(short, name)
		what := []string{"new-session", "-d", "-s", "x", "-x", "110", "-y", "40"}
		if n > 0 {
			what = []string{"new-window", "-t", "x"}
		}
		p.must(append(what, "-n", name, "-e", "SOCK="+inner, "env -u TMUX -u TMUX_PANE PS1='PROMPT# ' sh")...)
	}
	t.Cleanup(func() {
		for _, name := range []string{"direct", "qshim"} { // a nested server of a test that failed
			_ = exec.Command("tmux", "-S", filepath.Join(short, name), "kill-server").Run()
		}
		_, _ = p.tmux("kill-server") // it may have ended with its last window
		_ = os.RemoveAll(short)      // a directory of sockets in the system's own temporary one
	})
	return p
}

func (p *pair) must(args ...string) string {
	p.t.Helper()
	out, err := p.tmux(args...)
	if err != nil {
		p.t.Fatalf("tmux %q: %v %s", args, err, out)
	}
	return out
}

// screens are what the two panes show, colours and all, and their cursors.
func (p *pair) screens() (direct, qshim string) {
	p.t.Helper()
	show := func(name string) string {
		text := p.must("capture-pane", "-e", "-p", "-t", "x:"+name)
		return spelled(text, p.skip) + p.must("display", "-p", "-t", "x:"+name, "#{cursor_x},#{cursor_y} #{cursor_flag} #{alternate_on} #{mouse_any_flag} #{keypad_flag} #{pane_width}x#{pane_height}")
	}
	return show("direct"), show("qshim")
}

// spelled spells a capture out cell by cell: tmux puts a colour change before or
// behind an untouched blank as it was drawn, which nobody sees.
func spelled(capture string, skip int) string {
	lines := strings.Split(strings.TrimSuffix(capture, "\n"), "\n")
	scr := screen.New(200, len(lines))
	_, _ = scr.Write([]byte(strings.Join(lines, "\r\n"))) // never fails
	var out strings.Builder
	for y := skip; y < len(lines); y++ {
		var pen screen.Style
		for x := range 200 {
			c := scr.Cell(x, y)
			if c.Style != pen && c.Width > 0 {
				pen = c.Style
				fmt.Fprintf(&out, "⟦%v⟧", pen)
			}
			out.WriteString(c.Text)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// do sends a step to both.
func (p *pair) do(s step) {
	p.t.Helper()
	for _, name := range []string{"direct", "qshim"} {
		for _, k := range s.keys {
			if size, ok := strings.CutPrefix(k, "resize="); ok {
				cols, rows, _ := strings.Cut(size, "x")
				p.must("resize-window", "-t", "x:"+name, "-x", cols, "-y", rows)
				continue
			}
			p.must("send-keys", "-t", "x:"+name, k)
		}
	}
}

var colour = regexp.MustCompile(`⟦[^⟧]*⟧`)

// equal waits until both show what the step wants, and the same.
func (p *pair) equal(s step) {
	p.t.Helper()
	want := regexp.MustCompile(s.want)
	matches := func(re *regexp.Regexp, text string) bool { return re.MatchString(colour.ReplaceAllString(text, "")) }
	var a, b string
	deadline := time.Now().Add(patience)
	for {
		a, b = p.screens()
		if (a == b || s.live && matches(want, b)) && matches(want, a) {
			return
		}
		if time.Now().After(deadline) {
			break
		}
		<-time.After(30 * time.Millisecond) // tmux has no event for "the screen has changed"
	}
	p.t.Fatalf("after %q, wanting %q, the screen is\n%s\n--- directly, + under qshim\n%s", s.keys, s.want, a, cmp.Diff(strings.Split(a, "\n"), strings.Split(b, "\n")))
}

// Programs that people know show the same, cell by cell, as without qshim.
func TestProgramsLookTheSame(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	for _, prog := range programs() {
		t.Run(prog.name, func(t *testing.T) {
			if _, err := exec.LookPath(prog.need); err != nil {
				t.Skip(prog.need + " is not installed")
			}
			p := newPair(t)
			p.equal(step{want: `(?m)^PROMPT#`})
			p.do(step{keys: []string{"clear", "Enter"}})
			p.equal(step{want: `^PROMPT#`})
			// The line that starts it is not part of what is compared.
			for name, prefix := range map[string]string{"direct": "", "qshim": "qshim "} {
				p.must("send-keys", "-t", "x:"+name, "x() { clear; "+prefixed(prog.argv, prefix)+"; }; clear", "Enter")
			}
			p.equal(step{want: `^PROMPT#`})
			p.do(step{keys: []string{"x", "Enter"}})
			for _, s := range prog.steps {
				p.skip = prog.skip
				if strings.Contains(s.want, "PROMPT") {
					p.skip = 0
				}
				if len(s.keys) > 0 && s.want != "" {
					p.do(s)
				}
				p.equal(s)
			}
		})
	}
}

// prefixed puts the prefix before the program's name; an env before it stays the shell's.
func prefixed(argv, prefix string) string {
	if rest, ok := strings.CutPrefix(argv, "env TMUX= "); ok {
		return "TMUX= " + prefix + rest
	}
	return prefix + argv
}
