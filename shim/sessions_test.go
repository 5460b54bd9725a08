//go:build linux

package shim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
)

// An agent that dies within milliseconds: its code, and nothing in the ledger.
func TestSessionsThatDieAtOnce(t *testing.T) {
	dir, store := newDirStore(t)
	for i := range 10 {
		d := newDesk(t, deskOpt{env: []string{stateEnv + "=" + dir}}, self(t), sessionArg, self(t), agentArg, "exit", "3")
		if c := d.code(); c != 3 {
			t.Errorf("round %d: code %d", i, c)
		}
		_ = d.all()
	}
	l, err := store.Read()
	if err != nil || len(l.Sessions) != 0 {
		t.Errorf("sessions left: %v, %v", l.Sessions, err)
	}
}

// Without a terminal: the agent's processes are stopped on the record and go on.
func TestSessionOnPipes(t *testing.T) {
	dir, store := newDirStore(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	d := newDesk(t, deskOpt{files: [3]*os.File{r, nil, nil}, env: []string{stateEnv + "=" + dir}}, self(t), sessionArg, "/bin/sh", "-c", "cat; :")
	tree := func() []int {
		var out []int
		for _, pid := range kids(d.pid) {
			out = append(append(out, pid), kids(pid)...)
		}
		return out
	}
	eventually(t, "sh and cat", func() bool { return len(tree()) == 2 })
	if _, err := w.WriteString("one\n"); err != nil {
		t.Fatal(err)
	}
	d.expect("one")
	holdLimiter(t, store, 5*time.Minute)
	eventually(t, "both are stopped", func() bool {
		pids := tree()
		return len(pids) == 2 && state(pids[0]) == 'T' && state(pids[1]) == 'T'
	})
	if n := recorded(t, store); n != 2 {
		t.Errorf("%d processes on the record", n)
	}
	setLimiter(t, store, lockfile.Limiter{ID: testLimiter})
	if _, err := w.WriteString("two\n"); err != nil {
		t.Fatal(err)
	}
	d.expect("two")
	eventually(t, "the record is cleared", func() bool { return recorded(t, store) == 0 })
	_ = w.Close()
	if c := d.code(); c != 0 {
		t.Errorf("code %d", c)
	}
}

// recorded counts what sessions have stopped, by the ledger.
func recorded(t *testing.T, store lockfile.Store) (n int) {
	t.Helper()
	l, err := store.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range l.Sessions {
		n += len(s.Stopped)
	}
	return n
}

// kill -9 of a shim without a terminal leaves nothing stopped either: the next
// qshim continues what the record names.
func TestKilledShimOnPipes(t *testing.T) {
	dir, store := newDirStore(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	d := newDesk(t, deskOpt{files: [3]*os.File{r, nil, nil}, env: []string{stateEnv + "=" + dir}}, self(t), sessionArg, "/bin/sh", "-c", "cat; :")
	eventually(t, "cat", func() bool { return len(descendants(d.pid)) == 2 })
	family := descendants(d.pid)
	holdLimiter(t, store, 5*time.Minute)
	eventually(t, "both are stopped", func() bool { return state(family[0]) == 'T' && state(family[1]) == 'T' })
	if err := unix.Kill(d.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.code()
	if _, err := store.Recover(ContinueOrphan); err != nil {
		t.Error(err)
	}
	_ = w.Close() // cat reads the end, if it is not gone
	waitGone(t, family)
}

// The state directory is removed under a suspended session: it is continued at
// its own deadline, and said at the end.
func TestStateRemovedWhileSuspended(t *testing.T) {
	p := newPauseDesk(t, "alt", 100, 12)
	p.hold(4 * time.Second)
	p.row("keys=0")
	if err := os.Rename(p.state, p.state+" removed"); err != nil { // in one step, unlike RemoveAll
		t.Fatal(err)
	}
	p.shows("the picture", p.want(1))
	p.send("n")
	p.shows("the second picture", p.want(2))
	p.send("q")
	if c := p.code(); c != 0 {
		t.Errorf("code %d", c)
	}
}

// A launch wait is an ordinary job: Ctrl-Z stops it, and meanwhile nobody waits
// for it; fg brings the line back.
func TestLaunchWaitIsAJob(t *testing.T) {
	p := launchDesk(t, true)
	p.expect("waits: held")
	if p.session().UserStopped {
		t.Error("stopped before anybody asked")
	}
	p.send("\x1a")
	p.expect(prompt)
	if !p.session().UserStopped {
		t.Error("the ledger does not know that the user stopped it")
	}
	p.hold(4 * time.Minute) // takes the lock
	p.send("fg\n")
	p.expect("waits: held")
	eventually(t, "the ledger knows that it is back", func() bool { return !p.session().UserStopped })
	p.send("\r")
	p.expect("READY")
	p.send("q")
	p.expect(prompt)
	p.send("exit\n")
	p.code()
}

func launchDesk(t *testing.T, shell bool) *pauseDesk {
	t.Helper()
	dir, store := newDirStore(t)
	p := &pauseDesk{store: store}
	holdLimiter(t, store, 5*time.Minute)
	argv := append([]string{self(t), sessionArg}, agent(t, "cat")...)
	opt := deskOpt{env: []string{stateEnv + "=" + dir, faultEnv + "=launch", "PS1=" + prompt, "TERM=dumb", "HISTFILE=/dev/null"}}
	if !shell {
		p.desk = newDesk(t, opt, argv...)
		return p
	}
	p.desk = newDesk(t, opt, "/bin/bash", "--norc", "--noprofile", "-i")
	p.desk.expect(prompt)
	p.send(strings.Join(argv, " ") + "\n")
	return p
}

// Where no shell is above, Ctrl-Z does nothing: nobody could continue us.
func TestLaunchWaitWithoutAShell(t *testing.T) {
	p := launchDesk(t, false)
	p.expect("waits: held")
	p.send("\x1a")
	p.send("\r")
	p.expect("READY")
	p.send("q")
	if c := p.code(); c != 0 {
		t.Errorf("code %d", c)
	}
	for sent, want := range map[string]int{"\x03": 130, "": 143} {
		p := launchDesk(t, false)
		p.expect("waits: held")
		if sent != "" {
			p.send(sent)
		} else if err := unix.Kill(p.pid, unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if c := p.code(); c != want {
			t.Errorf("%q: code %d, want %d", sent, c, want)
		}
	}
}

// The real tmux as the user's terminal: after a pause capture-pane gives the
// same text and colours as without qshim.
func TestPauseInTmux(t *testing.T) {
	path, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed")
	}
	for _, scr := range []string{"alt", "main"} {
		t.Run(scr, func(t *testing.T) {
			dir, store := newDirStore(t)
			sock := filepath.Join(filepath.Dir(newCtlServer(t).path), "tmux")
			tmux := func(a ...string) string {
				cmd := exec.Command(path, append([]string{"-S", sock, "-f", "/dev/null"}, a...)...)
				cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", stateEnv+"="+dir, "TMUX=")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("tmux %q: %v %s", a, err, out)
				}
				return string(out)
			}
			draw := []string{self(t), drawArg, scr, "80", "23", filepath.Join(t.TempDir(), "log")}
			tmux(append([]string{"new-session", "-d", "-x", "80", "-y", "24", "-s", "x"}, draw...)...)
			t.Cleanup(func() { _ = exec.Command(path, "-S", sock, "kill-server").Run() }) // it ends with its last window
			tmux(append([]string{"new-window", "-t", "x:1", self(t), sessionArg}, draw...)...)
			show := func(window int) string { return tmux("capture-pane", "-e", "-p", "-t", "x:"+strconv.Itoa(window)) }
			drawn := func(n int) { // the last thing that a picture writes
				eventually(t, fmt.Sprintf("picture %d", n), func() bool {
					a, b := show(0), show(1)
					return a == b && (scr == "alt" || strings.Contains(a, fmt.Sprintf("> prompt %d", n))) && strings.Contains(a, "宽")
				})
			}
			drawn(1)
			before := show(1)
			holdLimiter(t, store, 5*time.Minute)
			eventually(t, "the row", func() bool { return strings.Contains(show(1), "PAUSED") })
			tmux("send-keys", "-t", "x:1", "abc")
			eventually(t, "the keys are swallowed", func() bool { return strings.Contains(show(1), "dropped=3") })
			setLimiter(t, store, lockfile.Limiter{ID: testLimiter})
			eventually(t, "the picture as before", func() bool { return show(1) == before })
			for w := range 2 {
				tmux("send-keys", "-t", "x:"+strconv.Itoa(w), "n")
			}
			eventually(t, "another picture", func() bool { return show(0) != before })
			drawn(2)
			for w := range 2 {
				tmux("send-keys", "-t", "x:"+strconv.Itoa(w), "q")
			}
			eventually(t, "both have ended", func() bool {
				l, err := store.Read()
				return err == nil && len(l.Sessions) == 0 && exec.Command(path, "-S", sock, "ls").Run() != nil
			})
		})
	}
}

// An idle session asks for no wake-up at all.
func TestIdleSessionDoesNotTick(t *testing.T) {
	p := newPauseDesk(t, "alt", 80, 12)
	switches := func() (n int) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.pid))
		for _, f := range files {
			b, _ := os.ReadFile(f)
			_, v, _ := bytes.Cut(b, []byte("\nvoluntary_ctxt_switches:\t"))
			k, _ := strconv.Atoi(string(bytes.SplitN(v, []byte("\n"), 2)[0]))
			n += k
		}
		return n
	}
	// Go's runtime, the watcher's settling and the page's lull end by themselves;
	// then two seconds pass in which nothing happens.
	window := 2 * time.Second
	for try := 1; ; try++ {
		before := switches()
		<-time.After(window) // what is measured is time in which nothing happens
		n := switches() - before
		if n <= 2 {
			break
		}
		if try == 5 {
			t.Errorf("an idle session woke up %d times in %v", n, window)
			break
		}
	}
	p.send("q")
	p.code()
}

// The notification program gets the sentence as one argument, and no shell
// reads it.
func TestNotifyCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bell")
	p := newPauseDesk(t, "alt", 80, 12, bellEnv+"="+file)
	p.paused()
	p.open()
	p.shows("the picture", p.want(1))
	eventually(t, "the notices", func() bool {
		b, _ := os.ReadFile(file)
		return strings.Count(string(b), "|") == 2
	})
	b, _ := os.ReadFile(file)
	if got := string(b); !strings.Contains(got, " -e notice  suspended|") || !strings.Contains(got, " -e notice  continued|") {
		t.Errorf("the program got %q", got)
	}
	p.send("q")
	p.code()
}
