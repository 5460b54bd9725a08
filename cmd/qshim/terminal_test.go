package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"qshim/detect/finding"
	"qshim/detect/screen"
	"qshim/lockfile"
)

// desk is a user's terminal: private home, fake agents, and one program on it.
type desk struct {
	t       *testing.T
	dir     string // bin/, home/
	env     []string
	cmd     *exec.Cmd
	master  *os.File
	done    chan struct{} // closed when the program has ended and its output is read
	mu      sync.Mutex
	changed *sync.Cond
	screen  *screen.Screen
	raw     []byte
}

const (
	deskCols = 150
	deskRows = 20
)

// newDesk lays out agents: name -> shell script.
func newDesk(t *testing.T, agents map[string]string, env ...string) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir(), screen: screen.New(deskCols, deskRows), done: make(chan struct{})}
	d.changed = sync.NewCond(&d.mu)
	if err := linkQshim(filepath.Join(d.dir, "links")); err != nil {
		t.Fatal(err)
	}
	for name, text := range agents {
		put(t, filepath.Join(d.dir, "bin"), name, "#!/bin/sh\n"+text, 0o755)
	}
	d.env = append([]string{
		"HOME=" + d.dir, "TZ=UTC", "GORACE=" + fastRace, "TERM=xterm-256color", "DESK=" + d.dir, "PS1=PROMPT# ", "HISTFILE=/dev/null",
		"PATH=" + filepath.Join(d.dir, "links") + ":" + filepath.Join(d.dir, "bin") + ":" + os.Getenv("PATH"),
	}, env...)
	t.Cleanup(d.end)
	return d
}

func (d *desk) state() string { return filepath.Join(d.dir, ".local/state/qshim") }

// hold seeds a hold, as a sibling that was refused just now would.
func (d *desk) hold(limiter string, h lockfile.Hold) {
	d.t.Helper()
	seedHold(d.t, d.state(), limiter, h)
}

func seedHold(t *testing.T, state, limiter string, h lockfile.Hold) {
	t.Helper()
	h.Since, h.First, h.By, h.Why = time.Now(), time.Now(), "sibling", "429 Too Many Requests"
	changeState(t, state, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		lim := l.Limiters[limiter]
		lim.ID, lim.Holds = limiter, []lockfile.Hold{h}
		l.Limiters[limiter] = lim
		return l, nil
	})
}

func changeState(t *testing.T, state string, f func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) {
	t.Helper()
	store, err := lockfile.Open(state, lockfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Update(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

// run starts a program on the terminal.
func (d *desk) run(argv ...string) {
	d.t.Helper()
	d.cmd = exec.Command(argv[0], argv[1:]...)
	d.cmd.Dir, d.cmd.Env = d.dir, d.env
	if argv[0] == "qshim" {
		d.cmd.Path, d.cmd.Err = filepath.Join(d.dir, "links/qshim"), nil
	}
	var err error
	if d.master, err = pty.StartWithSize(d.cmd, &pty.Winsize{Cols: deskCols, Rows: deskRows}); err != nil {
		d.t.Fatal(err)
	}
	go func() {
		defer close(d.done)
		b := make([]byte, 4096)
		for {
			n, err := d.master.Read(b)
			d.mu.Lock()
			_, _ = d.screen.Write(b[:n]) // never fails
			d.raw = append(d.raw, b[:n]...)
			x, y := d.screen.Cursor()
			d.changed.Broadcast()
			d.mu.Unlock()
			if bytes.Contains(b[:n], []byte("\x1b[6n")) { // a terminal says where its cursor is
				_, _ = fmt.Fprintf(d.master, "\x1b[%d;%dR", y+1, x+1) // closed: nobody asks any more
			}
			if err != nil {
				break
			}
		}
		_ = d.cmd.Wait() // code tells
		d.mu.Lock()
		d.changed.Broadcast()
		d.mu.Unlock()
	}()
}

// wait waits for something on the screen.
func (d *desk) wait(what string, ok func() bool) {
	d.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() { d.mu.Lock(); late = true; d.changed.Broadcast(); d.mu.Unlock() })
	defer timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for !ok() {
		if late {
			d.t.Fatalf("waited in vain for %s; the screen:\n%s\nraw: %q", what, d.rows(), d.raw)
		}
		d.changed.Wait()
	}
}

// rows is what the user sees; the caller holds mu.
func (d *desk) rows() string {
	var out []string
	for y := range deskRows {
		if row := d.screen.Row(y); row != "" {
			out = append(out, row)
		}
	}
	return strings.Join(out, "\n")
}

// shows waits until a row matches, and returns it.
func (d *desk) shows(pattern string) (row string) {
	d.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	d.wait(pattern, func() bool { row = re.FindString(d.rows()); return row != "" })
	return row
}

// prompt waits for the shell's.
func (d *desk) prompt() {
	d.t.Helper()
	d.wait("the prompt", func() bool { return bytes.HasSuffix(d.raw, []byte("PROMPT# ")) })
}

// seen reports whether a row matches now.
func (d *desk) seen(pattern string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return regexp.MustCompile("(?m)" + pattern).MatchString(d.rows())
}

func (d *desk) output() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.raw)
}

func (d *desk) send(keys string) {
	d.t.Helper()
	if _, err := d.master.WriteString(keys); err != nil {
		d.t.Fatal(err)
	}
}

// code waits for the end and returns the exit code.
func (d *desk) code() int {
	d.t.Helper()
	select {
	case <-d.done:
	case <-time.After(patience):
		d.t.Fatalf("does not end; the screen:\n%s", d.output())
	}
	if ws := d.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return d.cmd.ProcessState.ExitCode()
}

// end leaves nothing behind.
func (d *desk) end() {
	if d.cmd == nil || d.cmd.Process == nil {
		return
	}
	select {
	case <-d.done:
	default:
		_ = d.cmd.Process.Kill() // it may just have ended
	}
	left := endMarked("DESK=" + d.dir)
	<-d.done
	_ = d.master.Close() // nothing to lose
	if len(left) > 0 && !d.t.Failed() {
		d.t.Error("processes left behind: ", left)
	}
	if files, _ := filepath.Glob(filepath.Join(d.state(), "sessions", "*")); len(files) > 0 && !d.t.Failed() {
		d.t.Error("session files left: ", files)
	}
}

// agent is a fake claude that says when it starts and echoes one line.
const echoAgent = "echo \"started $*\"\nread line\necho \"got <$line>\"\n"

var (
	claudeAccount = "anthropic/default"
	minutes       = lockfile.Hold{Class: finding.Rate, UntilSource: finding.Relative}
)

func lasting(h lockfile.Hold, d time.Duration) lockfile.Hold {
	h.Until = time.Now().Add(d)
	return h
}

func TestCountdown(t *testing.T) {
	d := newDesk(t, map[string]string{"claude": echoAgent}, "QSHIM_MAX_WAIT=1s")
	d.hold(claudeAccount, lasting(minutes, 10*time.Minute))
	d.run("qshim", "claude", "hello")
	const line = `^qshim: Claude Code waits to launch: rate limit on Claude Code, account unknown, \d+m \d\ds left · Enter launches now, Ctrl-C gives up$`
	first := d.shows(line)
	d.wait("the next second", func() bool {
		row := regexp.MustCompile("(?m)" + line).FindString(d.rows())
		return row != "" && row != first
	})
	d.send("x")
	// Enter launches; what is typed behind it is the agent's, whole.
	d.send("\rtyped ahead\n")
	d.shows(`^started hello$`)
	d.shows(`^got <typed ahead>$`)
	if code := d.code(); code != 0 {
		t.Errorf("code %d", code)
	}
	if d.seen("waits to launch") {
		t.Error("the line is still there")
	}
}

func TestCountdownEnds(t *testing.T) {
	for name, end := range map[string]func(*desk){
		"by itself": func(*desk) {},
		"released": func(d *desk) {
			d.hold(claudeAccount, lasting(minutes, time.Hour))
			out, err := d.command("qshim", "release", claudeAccount).CombinedOutput()
			if err != nil {
				d.t.Fatalf("%v: %s", err, out)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, map[string]string{"claude": echoAgent})
			d.hold(claudeAccount, lasting(minutes, 1500*time.Millisecond))
			d.run("qshim", "claude", "hello")
			d.shows(`waits to launch`)
			end(d)
			d.shows(`^started hello$`)
			d.send("line\n")
			d.shows(`^got <line>$`)
			if code := d.code(); code != 0 {
				t.Errorf("code %d", code)
			}
		})
	}
}

// command is a program beside the terminal.
func (d *desk) command(argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	if argv[0] == "qshim" {
		c.Path, c.Err = filepath.Join(d.dir, "links/qshim"), nil
	}
	c.Dir, c.Env = d.dir, d.env
	return c
}

func TestCountdownGivenUp(t *testing.T) {
	d := newDesk(t, map[string]string{"claude": echoAgent})
	d.hold(claudeAccount, lasting(minutes, 10*time.Minute))
	d.run("bash", "--norc", "--noprofile", "-i")
	d.shows(`^PROMPT#`)
	d.send("stty -a | grep -o -e '-\\?icanon' -e '-\\?echo '; for i in 1 2; do qshim claude hello; echo next; done\n")
	d.shows(`waits to launch`)
	d.send("\x03") // ends the loop too
	d.prompt()
	d.send("echo code $?; stty -a | grep -o -e '-\\?icanon' -e '-\\?echo '\n")
	d.shows(`^code 130$`)
	d.prompt()
	d.send("exit\n")
	d.code()
	if d.seen(`^started`) || d.seen(`^next`) || d.seen(`waits to launch: `) || strings.Contains(d.output(), "-icanon\r") {
		t.Error(d.output())
	}
}

// Ctrl-Z and fg work in a launch that waits, under a real shell.
func TestCountdownSuspended(t *testing.T) {
	d := newDesk(t, map[string]string{"claude": echoAgent})
	d.hold(claudeAccount, lasting(minutes, 10*time.Minute))
	d.run("bash", "--norc", "--noprofile", "-i")
	d.shows(`^PROMPT#`)
	d.send("qshim claude hello\n")
	d.shows(`waits to launch`)
	for range 2 {
		d.send("\x1a")
		d.shows(`Stopped .*qshim claude hello`)
		d.send("clear; echo shell is here\n")
		d.shows(`^shell is here`)
		d.send("fg\n")
		d.shows(`waits to launch`)
	}
	d.send("\r")
	d.shows(`^started hello$`)
	d.send("line\n")
	d.shows(`^got <line>$`)
	d.prompt()
	d.send("exit\n")
	d.code()
}

// An interactive launch without a prompt sends nothing by itself: in a window or
// daily hold it opens at once, with one line.
func TestOpensWithNote(t *testing.T) {
	for _, class := range []finding.Class{finding.Window, finding.Daily} {
		t.Run(string(class), func(t *testing.T) {
			d := newDesk(t, map[string]string{"claude": echoAgent})
			d.hold(claudeAccount, lasting(lockfile.Hold{Class: class, UntilSource: finding.Epoch}, 3*time.Hour))
			d.run("qshim", "claude")
			d.shows(`^started $|^started$`)
			row := d.shows(`^qshim: .*`)
			want := fmt.Sprintf("qshim: %s on Claude Code, account unknown, until ", className(class, ""))
			if !strings.HasPrefix(row, want) || !strings.HasSuffix(row, ": the first request may be refused") {
				t.Error(row)
			}
			if n := strings.Count(d.output(), "qshim: "); n != 1 {
				t.Errorf("%d lines", n)
			}
			d.send("line\n")
			d.shows(`^got <line>$`)
			d.code()
		})
	}
}

// Waiting does not bring credits back: a person is asked.
func TestCreditAsks(t *testing.T) {
	const question = `^qshim: credits are gone on Claude Code, account unknown\. Waiting does not help\. Launch Claude Code anyway\? \[y/N\]`
	for keys, code := range map[string]int{"n": 130, "\r": 130, "\x03": 130, "\x1b": 130} {
		t.Run(fmt.Sprintf("%q", keys), func(t *testing.T) {
			d := newDesk(t, map[string]string{"claude": echoAgent})
			d.hold(claudeAccount, lockfile.Hold{Class: finding.Credit, Blocked: true})
			d.run("qshim", "claude", "hello")
			d.shows(question)
			d.send(keys)
			if got := d.code(); got != code || d.seen(`^started`) {
				t.Errorf("code %d\n%s", got, d.output())
			}
		})
	}
	d := newDesk(t, map[string]string{"claude": echoAgent})
	d.hold(claudeAccount, lockfile.Hold{Class: finding.Credit, Blocked: true})
	d.run("qshim", "claude", "hello")
	d.shows(question)
	d.send("yline\n")
	d.shows(`^started hello$`)
	d.shows(`^got <line>$`)
	if got := d.code(); got != 0 {
		t.Errorf("code %d", got)
	}
}

// The terminal goes away while a launch waits: so does the launch.
func TestCountdownHangup(t *testing.T) {
	d := newDesk(t, map[string]string{"claude": echoAgent})
	d.hold(claudeAccount, lasting(minutes, 10*time.Minute))
	d.run("qshim", "claude", "hello")
	d.shows(`waits to launch`)
	if err := d.master.Close(); err != nil {
		t.Fatal(err)
	}
	if got := d.code(); got != 129 {
		t.Errorf("code %d", got)
	}
}

// Colour only on a terminal that wants it.
func TestColour(t *testing.T) {
	for _, c := range []struct {
		env    string
		colour bool
	}{{"COLORTERM=", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		for _, args := range [][]string{{"status"}, {"log"}, {"doctor"}} {
			t.Run(c.env+" "+args[0], func(t *testing.T) {
				d := newDesk(t, map[string]string{"claude": "exit 0"}, c.env)
				d.hold(claudeAccount, lasting(minutes, 10*time.Minute))
				if out, err := d.command("qshim", "--now", "claude", "-p", "hi").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				d.run(append([]string{"qshim"}, args...)...)
				if code := d.code(); code != 0 {
					t.Errorf("code %d", code)
				}
				if got := bytes.Contains([]byte(d.output()), []byte("\x1b")); got != c.colour {
					t.Errorf("escapes: %v\n%q", got, d.output())
				}
			})
		}
	}
}

// A dumb terminal cannot paint one line over itself: it gets whole lines.
func TestDumbCountdown(t *testing.T) {
	d := newDesk(t, map[string]string{"claude": echoAgent}, "TERM=dumb")
	d.hold(claudeAccount, lasting(minutes, 10*time.Minute))
	d.run("qshim", "claude", "hello")
	d.shows(`waits to launch: .* Enter launches now, Ctrl-C gives up$`)
	d.send("\rline\n")
	d.shows(`^got <line>$`)
	d.code()
	if strings.Contains(d.output(), "\x1b") {
		t.Errorf("%q", d.output())
	}
}

// A busy session on a terminal is suspended with one row that says why; its
// keys are qshim's then, and r lets it run anyway.
func TestSuspendedOnTerminal(t *testing.T) {
	d := newDesk(t, map[string]string{"claude": "printf '\\033]0;\u25d0 work\\007'\necho working\nread line\necho \"got <$line>\"\n"})
	d.run("qshim", "claude", "work")
	d.shows(`^working$`)
	d.hold(claudeAccount, lasting(minutes, 10*time.Minute))
	d.shows(`qshim: suspended · rate limit on Claude Code, account unknown · \d+m \d\ds left · r run anyway · q quit`)
	d.send("lost\r")
	d.shows(`5 keys not sent`)
	settled := time.Now().Add(1100 * time.Millisecond)
	d.wait("the keys to act", func() bool { return time.Now().After(settled) }) // the row counts down each second
	d.send("r")
	d.wait("the row to go", func() bool { return !strings.Contains(d.rows(), "suspended") })
	d.send("kept\r")
	d.shows(`^got <kept>$`)
	if code := d.code(); code != 0 {
		t.Errorf("code %d", code)
	}
}
