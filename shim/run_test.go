//go:build linux

package shim

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qshim/detect/finding"
	"qshim/detect/screen"
	"qshim/lockfile"
)

// pauseDesk is a user's terminal with one session on it, and its model.
type pauseDesk struct {
	*desk
	store  *lockfile.Dir
	state  string // its directory
	screen string
	cols   int
	rows   int
	sizes  []sizeAt // changes of the terminal's size
	first  string   // what stood on the terminal before
	log    string
}

type sizeAt struct{ at, cols, rows int }

// shellLines is what a shell left on the terminal before the session began.
const shellLines = "$ ls\r\none two three\r\n$ agent\r\n"

// newPauseDesk starts a session that has drawn its first picture. shell: it is
// run from an interactive bash, whose output then stands before it.
func newPauseDesk(t *testing.T, scr string, cols, rows int, env ...string) *pauseDesk {
	t.Helper()
	dir, store := newDirStore(t)
	p := &pauseDesk{store: store, state: dir, screen: scr, cols: cols, rows: rows, first: shellLines, log: filepath.Join(t.TempDir(), "log")}
	p.desk = newDesk(t, deskOpt{cols: cols, rows: rows, env: append(env, stateEnv+"="+dir)}, p.command(t)...)
	p.shows("the first picture", p.want(1))
	return p
}

func (p *pauseDesk) command(t *testing.T) []string {
	return []string{self(t), sessionArg, self(t), drawArg, p.screen, strconv.Itoa(p.cols), strconv.Itoa(p.rows), p.log}
}

// model is the terminal as it is now. It must be called within wait.
func (p *pauseDesk) model() *screen.Screen {
	s := screen.New(p.cols, p.rows)
	_, _ = s.Write([]byte(p.first))
	at := 0
	for _, z := range p.sizes {
		_, _ = s.Write(p.out[at:z.at])
		s.Resize(z.cols, z.rows)
		at = z.at
	}
	_, _ = s.Write(p.out[at:])
	return s
}

// want is the terminal as it must be after n pictures without any pause.
func (p *pauseDesk) want(n int) *screen.Screen {
	s := screen.New(p.cols, p.rows)
	_, _ = s.Write([]byte(p.first))
	for i := range n {
		_, _ = s.Write([]byte(picture(p.screen, i+1, p.cols, p.rows)))
	}
	return s
}

// shows waits until the terminal is, cell by cell, what it must be.
func (p *pauseDesk) shows(what string, want *screen.Screen) {
	p.t.Helper()
	var diff string
	timer := time.AfterFunc(patience-time.Second, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Logf("%s differs:\n%s", what, diff)
	})
	defer timer.Stop()
	p.wait(what, func() bool {
		diff = difference(want, p.model())
		return diff == ""
	})
}

// difference compares everything that a user or an agent can tell apart.
func difference(want, got *screen.Screen) string {
	type state struct {
		Rows  []string
		Cells [][]screen.Cell
		X, Y  int
		Wrap  bool
		Pen   screen.Style
		Modes string
		Title string
	}
	look := func(s *screen.Screen) (st state) {
		cols, rows := s.Size()
		for y := range rows {
			var cells []screen.Cell
			for x := range cols {
				cells = append(cells, s.Cell(x, y))
			}
			st.Rows, st.Cells = append(st.Rows, s.Row(y)), append(st.Cells, cells)
		}
		st.X, st.Y = s.Cursor()
		st.Wrap, st.Pen, st.Title = s.PendingWrap(), s.Pen(), s.Title()
		st.Modes = fmt.Sprintf("%q", s.Modes().On())
		return st
	}
	a, b := look(want), look(got)
	if d := cmp.Diff(a.Rows, b.Rows); d != "" {
		return d // easier to read
	}
	return cmp.Diff(a, b)
}

// hold closes the limiter for a while, as a sibling would.
func (p *pauseDesk) hold(d time.Duration) { holdLimiter(p.t, p.store, d) }

func holdLimiter(t *testing.T, store lockfile.Store, d time.Duration) {
	t.Helper()
	now := time.Now()
	setLimiter(t, store, lockfile.Limiter{ID: testLimiter, Holds: []lockfile.Hold{{
		Class: finding.Rate, Since: now, First: now, Until: now.Add(d), Stated: now.Add(d), UntilSource: finding.Relative, By: "x"}}})
}

func setLimiter(t *testing.T, store lockfile.Store, lim lockfile.Limiter) {
	t.Helper()
	_, err := store.Update(context.Background(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		l.Limiters[testLimiter] = lim
		return l, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// open lets the session go on.
func (p *pauseDesk) open() { setLimiter(p.t, p.store, lockfile.Limiter{ID: testLimiter}) }

// session is the one session in the ledger.
func (p *pauseDesk) session() (s lockfile.Session) {
	p.t.Helper()
	l, err := p.store.Read()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s = range l.Sessions {
	}
	return s
}

// row waits for a pause row with the words, and returns it.
func (p *pauseDesk) row(words string) (text string) {
	p.t.Helper()
	p.wait("row "+words, func() bool {
		s := p.model()
		_, rows := s.Size()
		text = s.Row(rows - 1)
		return strings.HasPrefix(text, "⏸停 PAUSED") && strings.Contains(text, words)
	})
	return text
}

// answers plays a terminal that is asked where its cursor is: the n-th time.
func (p *pauseDesk) answers(n int) {
	p.t.Helper()
	var x, y int
	p.wait("the question", func() bool {
		x, y = p.model().Cursor()
		return bytes.Count(p.out, askCursor) >= n
	})
	p.send(fmt.Sprintf("\x1b[%d;%dR", y+1, x+1))
}

// paused suspends the session and waits for the row.
func (p *pauseDesk) paused() {
	p.t.Helper()
	p.hold(5 * time.Minute)
	if p.screen == "main" {
		p.answers(1)
	}
	p.row("keys=0")
	if s := state(p.session().ChildPID); s != 'T' {
		p.t.Fatalf("agent in state %c while the row stands", s)
	}
}

// got is every byte that reached the agent.
func (p *pauseDesk) got() string {
	b, _ := os.ReadFile(p.log)
	return strings.ReplaceAll(strings.ReplaceAll(string(b), "CONT\n", ""), "\n", "")
}

// continues is how often the agent was continued.
func (p *pauseDesk) continues() int {
	b, _ := os.ReadFile(p.log)
	return bytes.Count(b, []byte("CONT\n"))
}

// second waits until the countdown has counted a whole second.
func (p *pauseDesk) second() {
	p.t.Helper()
	seen := map[string]bool{}
	p.wait("two seconds of countdown", func() bool {
		s := p.model()
		_, rows := s.Size()
		f := strings.Fields(s.Row(rows - 1))
		seen[f[len(f)-1]] = true
		return len(seen) >= 3
	})
}

func TestPauseRow(t *testing.T) {
	for _, scr := range []string{"alt", "main"} {
		for _, cols := range []int{40, 80, 120, 300} {
			t.Run(fmt.Sprintf("%s/%d", scr, cols), func(t *testing.T) {
				p := newPauseDesk(t, scr, cols, 12)
				p.paused()
				p.lookPaused()
				p.send("hello\x03")
				p.row("dropped=5")
				if cols == 80 {
					p.second() // it is painted again and again
				}
				p.open()
				p.shows("the picture after the pause", p.want(1))
				p.send("n")
				p.shows("the second picture", p.want(2))
				if got := p.got(); got != "'n'" {
					t.Errorf("the agent got %s", got)
				}
				p.send("q")
				if c := p.code(); c != 0 {
					t.Errorf("code %d", c)
				}
			})
		}
	}
}

// lookPaused checks the terminal during a pause: modes off, title, notification,
// and everything but the row as it was.
func (p *pauseDesk) lookPaused() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	s, want := p.model(), p.want(1)
	m := s.Modes()
	for _, num := range []int{1000, 1006, 1004, 2004} {
		if m.Has(num) {
			p.t.Errorf("mode %d is on during the pause", num)
		}
	}
	if k := len(m.Kitty[0].Stack) + len(m.Kitty[1].Stack); k != 0 || m.Keypad || len(m.ModKeys) > 0 {
		p.t.Errorf("keyboard modes during the pause: %+v", m)
	}
	if s.Title() != "suspended title" {
		p.t.Errorf("title %q", s.Title())
	}
	if !bytes.Contains(p.out, []byte("\x1b]9;-e notice  suspended\x07")) {
		p.t.Error("no notification")
	}
	for y := range p.rows - 1 {
		for x := range p.cols {
			if s.Cell(x, y) != want.Cell(x, y) {
				p.t.Fatalf("cell %d,%d: %+v, want %+v", x, y, s.Cell(x, y), want.Cell(x, y))
			}
		}
	}
	x, y := s.Cursor()
	if wx, wy := want.Cursor(); x != wx || y != wy {
		p.t.Errorf("cursor at %d,%d, want %d,%d", x, y, wx, wy)
	}
}

// A terminal that never says where its cursor is: no row, but title and
// notification.
func TestPauseWithoutAnAnswer(t *testing.T) {
	p := newPauseDesk(t, "main", 80, 12)
	p.hold(5 * time.Minute)
	p.wait("title and question", func() bool {
		return p.model().Title() == "suspended title" && bytes.Contains(p.out, askCursor)
	})
	p.send("xyz")
	p.wait("another title, of the next second", func() bool { return bytes.Count(p.out, []byte("suspended title")) >= 3 })
	p.mu.Lock()
	if n := bytes.Count(p.out, askCursor); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if bytes.Contains(p.out, []byte("PAUSED")) {
		t.Error("a row at an unknown place")
	}
	p.mu.Unlock()
	p.open()
	p.shows("the picture after the pause", p.want(1))
	p.send("nq")
	p.code()
	if got := p.got(); got != "'n'" {
		t.Errorf("the agent got %s", got)
	}
}

// The stop cuts a sequence, a character or a synchronised update in two: the
// agent finishes it, and then the row is painted.
func TestPauseInTheMiddle(t *testing.T) {
	for key, h := range halves {
		t.Run(string(key), func(t *testing.T) {
			p := newPauseDesk(t, "alt", 80, 12)
			want := p.want(1)
			_, _ = want.Write([]byte(h[0]))
			p.send(string(key))
			p.wait("the first half", func() bool { return bytes.HasSuffix(p.out, []byte(h[0])) })
			p.hold(5 * time.Minute)
			p.row("keys=0")
			if s := state(p.session().ChildPID); s != 'T' {
				t.Errorf("agent in state %c", s)
			}
			p.mu.Lock()
			if i, j := bytes.Index(p.out, []byte(h[0]+h[1])), bytes.Index(p.out, []byte("PAUSED")); i < 0 || j < i {
				t.Errorf("row at %d, the whole at %d", j, i)
			}
			p.mu.Unlock()
			_, _ = want.Write([]byte(h[1]))
			p.open()
			p.shows("the whole", want)
			p.send("q")
			p.code()
		})
	}
}

func TestResizeWhilePaused(t *testing.T) {
	for _, scr := range []string{"alt", "main"} {
		for _, size := range [][2]int{{100, 20}, {60, 8}, {80, 20}, {80, 9}} {
			t.Run(fmt.Sprintf("%s/%dx%d", scr, size[0], size[1]), func(t *testing.T) {
				p := newPauseDesk(t, scr, 80, 12)
				p.paused()
				want := p.want(1)
				want.Resize(size[0], size[1])
				p.mu.Lock()
				p.sizes = append(p.sizes, sizeAt{len(p.out), size[0], size[1]})
				p.mu.Unlock()
				p.resize(size[0], size[1])
				if scr == "main" {
					p.answers(2)
				}
				p.row("keys=0")
				p.open()
				p.shows("the picture after the pause", want)
				p.send("q")
				p.code()
			})
		}
	}
}

// The keys of the row (DESIGN 4.9).
func TestPauseKeysOnATerminal(t *testing.T) {
	for name, c := range map[string]struct {
		keys func(p *pauseDesk)
		code int // -1: it runs
	}{
		"r": {func(p *pauseDesk) { p.second(); p.send("r") }, -1},
		"q y": {func(p *pauseDesk) {
			p.second()
			p.send("q")
			p.row("keys=1")
			p.send("y")
		}, 143},
		"Ctrl-C Ctrl-C":            {func(p *pauseDesk) { p.send("\x03"); p.send("\x03") }, 143},
		"Ctrl-C twice in one read": {func(p *pauseDesk) { p.send("\x03\x03") }, 143},
		"q in the kitty keyboard's form": {func(p *pauseDesk) {
			p.second()
			p.send("\x1b[113u")
			p.row("keys=1")
			p.send("\x1b[121u")
		}, 143},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPauseDesk(t, "alt", 80, 12)
			p.paused()
			c.keys(p)
			if c.code >= 0 {
				if got := p.code(); got != c.code {
					t.Errorf("code %d, want %d", got, c.code)
				}
				p.wait("the end of output", func() bool { return p.eof })
				s := p.model()
				if on := s.Modes().On(); len(on) > 0 || s.Alt() {
					t.Errorf("left on: %q", on)
				}
				if s.Row(2) != "$ agent" {
					t.Errorf("the shell's rows are gone: %q", s.Row(2))
				}
				return
			}
			p.shows("the picture", p.want(1))
			p.send("n")
			p.shows("the second picture", p.want(2))
			p.hold(2 * time.Minute) // a fresh one counts again
			p.row("keys=0")
			p.open()
			p.shows("the second picture", p.want(2))
			p.send("q")
			p.code()
		})
	}
}

// A paste is no order, whatever it begins with.
func TestPasteWhilePaused(t *testing.T) {
	p := newPauseDesk(t, "alt", 80, 12)
	p.paused()
	p.second()
	p.send("run the tests")
	p.row("dropped=13")
	if s := state(p.session().ChildPID); s != 'T' {
		t.Fatalf("agent in state %c", s)
	}
	p.open()
	p.shows("the picture", p.want(1))
	p.send("q")
	p.code()
	if got := p.got(); got != "" {
		t.Errorf("the agent got %s", got)
	}
}

// SIGCONT from outside is run anyway.
func TestOutsideContinueOfASession(t *testing.T) {
	p := newPauseDesk(t, "alt", 80, 12)
	p.paused()
	if err := ContinueOrphan(p.session().Stopped[0]); err != nil {
		t.Fatal(err)
	}
	p.shows("the picture", p.want(1))
	eventually(t, "the ledger says running", func() bool {
		s := p.session()
		return s.State == lockfile.Running && s.Stopped == nil && len(s.RunAnyway) > 0
	})
	p.send("nq")
	p.code()
}

// Ctrl-Z while held: the prompt comes back on a clean screen, the agent stays
// stopped, and fg brings picture and row.
func TestShellDuringAPause(t *testing.T) {
	for _, scr := range []string{"alt", "main"} {
		t.Run(scr, func(t *testing.T) {
			dir, store := newDirStore(t)
			p := &pauseDesk{store: store, screen: scr, cols: 80, rows: 12, log: filepath.Join(t.TempDir(), "log")}
			p.desk = newDesk(t, deskOpt{cols: p.cols, rows: p.rows, env: []string{stateEnv + "=" + dir, "PS1=" + prompt, "TERM=dumb", "HISTFILE=/dev/null"}},
				"/bin/bash", "--norc", "--noprofile", "-i")
			p.expectKeep(prompt, 1)
			p.send("clear; " + strings.Join(p.command(t), " ") + "\n")
			p.wait("the picture", func() bool { return bytes.Contains(p.out, []byte(picture(scr, 1, p.cols, p.rows))) })
			p.paused()
			agent := p.session().ChildPID
			p.send("\x1a")
			p.expectKeep(prompt, 2)
			p.mu.Lock()
			s := p.model()
			if on := s.Modes().On(); len(on) > 0 || s.Alt() {
				t.Errorf("the shell finds %q on", on)
			}
			p.mu.Unlock()
			if c := state(agent); c != 'T' {
				t.Errorf("agent in state %c at the prompt", c)
			}
			if !p.session().UserStopped {
				t.Error("the ledger does not know that the user stopped it")
			}
			p.send("fg\n")
			if scr == "main" {
				p.answers(2)
			}
			p.row("keys=0")
			if c := state(agent); c != 'T' {
				t.Errorf("agent in state %c after fg", c)
			}
			p.pictureStands()
			if n := p.continues(); n != 0 {
				t.Errorf("the agent was continued %d times while it was held", n)
			}
			p.open()
			p.wait("no row", func() bool {
				return !strings.Contains(p.model().Row(p.rows-1), "PAUSED") && p.model().Title() == "agent's title"
			})
			p.send("n")
			p.wait("the second picture", func() bool { return bytes.Contains(p.out, []byte(picture(scr, 2, p.cols, p.rows))) })
			p.send("q")
			p.expectKeep(prompt, 3)
			p.send("exit\n")
			p.code()
			if got := p.got(); got != "'n'" {
				t.Errorf("the agent got %s", got)
			}
		})
	}
}

// expectKeep waits for the n-th s without forgetting the output.
func (p *pauseDesk) expectKeep(s string, n int) {
	p.t.Helper()
	p.wait(fmt.Sprintf("%q number %d", s, n), func() bool { return bytes.Count(p.out, []byte(s)) >= n })
}

// pictureStands: what the agent drew stands above the row, and its modes are off.
func (p *pauseDesk) pictureStands() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.model()
	if p.screen == "alt" {
		want := p.want(1)
		for y := range p.rows - 1 {
			if s.Row(y) != want.Row(y) {
				p.t.Errorf("row %d is %q, want %q", y, s.Row(y), want.Row(y))
			}
		}
		return
	}
	x, y := s.Cursor()
	if got := s.Row(y); got != "> prompt 1" || x != len(got) {
		p.t.Errorf("cursor at %d in %q", x, got)
	}
	above, _ := s.Scrolled()
	for _, l := range above {
		if strings.HasPrefix(l.String(), prompt+"fg") {
			return
		}
	}
	p.t.Error("what the shell showed meanwhile was painted over")
}

// A panic of ours: reported, the agent continued, bytes still flow both ways.
func TestPanicLeavesTheAgentAlone(t *testing.T) {
	p := newPauseDesk(t, "alt", 80, 12, faultEnv+"=panic")
	p.paused()
	p.hold(4 * time.Minute) // the next look at the ledger is the last
	eventually(t, "the ledger says that it is governed no more", func() bool {
		s := p.session()
		return s.Observe && s.Stopped == nil && s.State == lockfile.Running
	})
	eventually(t, "a crash report", func() bool {
		b, _ := os.ReadFile(filepath.Join(p.state, "crash"))
		return bytes.Contains(b, []byte("a bug of ours")) && bytes.Contains(b, []byte("panicStore"))
	})
	p.shows("the picture", p.want(1))
	p.send("n")
	p.shows("the second picture", p.want(2))
	if c := state(p.session().ChildPID); c == 'T' {
		t.Errorf("agent in state %c", c)
	}
	p.send("q")
	if c := p.code(); c != 0 {
		t.Errorf("code %d", c)
	}
}

func TestObservedSessionIsNotTouched(t *testing.T) {
	p := newPauseDesk(t, "alt", 80, 12, faultEnv+"=observe")
	p.hold(time.Minute)
	p.send("n")
	p.shows("the second picture", p.want(2))
	p.send("q")
	p.code()
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Contains(p.out, []byte("PAUSED")) || bytes.Contains(p.out, []byte("\x1b]9;")) {
		t.Error("something was shown")
	}
}
