//go:build linux

package shim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		mode, arg string
		want      int
	}{{"exit", "0", 0}, {"exit", "7", 7}, {"exit", "255", 255}, {"kill", "15", 143}, {"kill", "9", 137}, {"kill", "1", 129}} {
		t.Run(c.mode+c.arg, func(t *testing.T) {
			if got := newDesk(t, deskOpt{}, wrapped(t, c.mode, c.arg)...).code(); got != c.want {
				t.Errorf("code %d, want %d", got, c.want)
			}
		})
	}
}

func TestCommandThatCannotRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		if err := os.WriteFile(dir+"/"+name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	for _, c := range []struct {
		name, path string
		want       int
	}{
		{"bad interpreter", write("bad", "#!/nonexistent/sh\n", 0o755), 126},
		{"script without interpreter", write("plain", "exit 9\n", 0o755), 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := newDesk(t, deskOpt{}, self(t), wrapArg, c.path).code(); got != c.want {
				t.Errorf("code %d, want %d", got, c.want)
			}
		})
	}
}

func TestSignalsReachTheAgent(t *testing.T) {
	for sig, name := range map[unix.Signal]string{unix.SIGTERM: "terminated", unix.SIGHUP: "hangup", unix.SIGINT: "interrupt", unix.SIGQUIT: "quit"} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, deskOpt{}, wrapped(t, "signals")...)
			d.expect("READY")
			if err := unix.Kill(d.pid, sig); err != nil {
				t.Fatal(err)
			}
			d.expect("GOT<" + name + ">")
			if got := d.code(); got != 5 {
				t.Errorf("code %d, want 5", got)
			}
		})
	}
}

func TestCtrlCInCookedMode(t *testing.T) {
	d := newDesk(t, deskOpt{}, wrapped(t, "signals")...)
	d.expect("READY")
	d.send("\x03")
	d.expect("GOT<interrupt>")
	if got := d.code(); got != 5 {
		t.Errorf("code %d, want 5", got)
	}
}

// Whatever ends qshim ends the agent, and the pair where there is one.
func TestNoOrphans(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGKILL} {
		for _, shell := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v shell=%v", sig, shell), func(t *testing.T) {
				argv := wrapped(t, "lines")
				if shell {
					argv = monitored(argv)
				}
				d := newDesk(t, deskOpt{}, argv...)
				d.expect("READY")
				qshim := d.pid
				if shell {
					qshim = kids(d.pid)[0]
				}
				family := descendants(qshim)
				if shell {
					family = pairOf(t, qshim)
				}
				if err := unix.Kill(qshim, sig); err != nil {
					t.Fatal(err)
				}
				d.code()
				waitGone(t, family)
			})
		}
	}
}

func TestClosedTerminalEndsAll(t *testing.T) {
	for _, mode := range []string{"lines", "cat"} {
		d := newDesk(t, deskOpt{}, monitored(wrapped(t, mode))...)
		d.expect("READY")
		family := append(descendants(d.pid), d.pid)
		if err := d.master.Close(); err != nil {
			t.Fatal(err)
		}
		d.code()
		waitGone(t, family[:len(family)-1])
	}
}

func TestWindowSize(t *testing.T) {
	d := newDesk(t, deskOpt{cols: 111, rows: 37}, wrapped(t, "sizes")...)
	d.expect("SIZE<111x37>")
	d.send("x")
	d.expect("KEY<x>")
	d.resize(81, 25)
	d.expect("WINCH<81x25>")
	d.resize(201, 61)
	d.expect("WINCH<201x61>")
	d.send("q")
	d.code()
}

func TestEndOfFileKey(t *testing.T) {
	d := newDesk(t, deskOpt{}, wrapped(t, "eof")...)
	d.expect("READY")
	d.send("abc\n\x04")
	d.expect("EOF<abc\r\n>")
	d.code()
}

// A large paste arrives whole, also while the agent writes and does not read.
func TestPaste(t *testing.T) {
	for _, flood := range []int{0, 1 << 20} {
		t.Run(strconv.Itoa(flood), func(t *testing.T) {
			const n = 256 << 10
			data := make([]byte, n)
			r := rand.New(rand.NewPCG(1, 2))
			h := fnv.New64a()
			for i := range data {
				data[i] = byte(' ' + r.IntN(95))
			}
			_, _ = h.Write(data)
			d := newDesk(t, deskOpt{}, wrapped(t, "sum", strconv.Itoa(n), strconv.Itoa(flood))...)
			d.expect("READY")
			go func() { _, _ = d.master.Write(data) }()
			d.expect(fmt.Sprintf("SUM<%d:%x:<nil>>", n, h.Sum64()))
			d.code()
		})
	}
}

func TestLastWordsAreKept(t *testing.T) {
	for range 5 {
		d := newDesk(t, deskOpt{}, wrapped(t, "flood", "1048576")...)
		if got := d.all(); len(got) != 1<<20+len("END-OF-FLOOD") {
			t.Fatalf("%d bytes came", len(got))
		}
	}
}

// A terminal that reads nothing until the agent has long ended still gets all.
func TestSlowTerminal(t *testing.T) {
	d := newDesk(t, deskOpt{lazy: true, ctl: true}, wrapped(t, "flood", "262144")...)
	d.ctl.expect("pid")
	d.ctl.expect("output")
	d.startReading()
	if got := d.all(); !strings.HasSuffix(got, "xEND-OF-FLOOD<BYE 0>") || len(got) != 262144+12+7 {
		t.Errorf("%d bytes came", len(got))
	}
}

func TestGrandchildHoldsTheTerminal(t *testing.T) {
	d := newDesk(t, deskOpt{}, wrapped(t, "grandchild")...)
	d.expect("PID<")
	d.code() // it must end although the grandchild lives
}

func TestEveryByte(t *testing.T) {
	var all strings.Builder
	for i := range 256 {
		all.WriteByte(byte(i))
	}
	want := "READY[" + strings.Repeat(all.String(), 64) + "]DONE"
	d := newDesk(t, deskOpt{}, wrapped(t, "bytes", "64")...)
	if got := d.all(); got != want {
		t.Errorf("%d bytes came, want %d", len(got), len(want))
	}
}

// What the agent can see of its place is what it sees without qshim.
func TestFactsAsWithout(t *testing.T) {
	old := unix.Umask(0o27)
	defer unix.Umask(old)
	dir := t.TempDir()
	o := deskOpt{cols: 400, rows: 50, dir: dir}
	args := []string{"ttys", "a b", "", "$HOME", "'q'", `"d"`, "*", `a\b`, "--", "--help"}
	want := newDesk(t, o, agent(t, args...)...).all()
	if got := newDesk(t, o, wrapped(t, args...)...).all(); got != want {
		t.Errorf("with qshim\n%s\nwithout\n%s", got, want)
	}
	// Under a shell the pair is there; the agent must not see it either.
	want = newDesk(t, o, monitored(agent(t, args...))...).all()
	want = strings.ReplaceAll(want, "leads=false", "leads=true") // its own terminal's session is its own
	if got := newDesk(t, o, monitored(wrapped(t, args...))...).all(); got != want {
		t.Errorf("with qshim under a shell\n%s\nwithout\n%s", got, want)
	}
}

// What a user opens for the agent (3<file) is open in it, also where qshim needs
// descriptors of its own to start the pair.
func TestOpenFilesReachTheAgent(t *testing.T) {
	read := []string{"/bin/sh", "-c", `for fd in 3 4 5 6 7; do { readlink /proc/$$/fd/$fd || echo none; } 2>/dev/null; done; cat <&4`}
	dir := t.TempDir()
	for name, redirect := range map[string]string{"none": "4</dev/null 4<&-", "3": "3<a", "4": "4<b", "3 and 4": "3<a 4<b", "3 to 6": "3<a 4<b 5<c 6<d", "4 and 5": "4<b 5<c", "3 and 6": "3<a 6<d"} {
		t.Run(name, func(t *testing.T) {
			for _, f := range []string{"a", "b", "c", "d"} {
				if err := os.WriteFile(dir+"/"+f, []byte("text of "+f+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			under := func(words []string) string {
				shell := []string{"/bin/bash", "--norc", "--noprofile", "-mc", `"$@" 3<&- 4<&- 5<&- 6<&- 7<&- ` + redirect + `; exit $?`, "bash"}
				return newDesk(t, deskOpt{cols: 400, dir: dir}, append(shell, words...)...).all()
			}
			want := under(read)
			if got := under(append([]string{self(t), wrapArg}, read...)); got != want {
				t.Errorf("with qshim\n%s\nwithout\n%s", got, want)
			}
		})
	}
}

func TestNohupStaysInForce(t *testing.T) {
	sh := []string{"/bin/sh", "-c", `trap "" HUP; exec "$@"`, "sh"}
	want := newDesk(t, deskOpt{cols: 400}, append(sh, agent(t, "ttys")...)...).all()
	if got := newDesk(t, deskOpt{cols: 400}, append(sh, wrapped(t, "ttys")...)...).all(); got != want {
		t.Errorf("with qshim\n%s\nwithout\n%s", got, want)
	}
}

func TestTerminalAsItWas(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(d *desk)
	}{
		{"agent leaves raw mode on", func(d *desk) { d.send("q") }},
		{"SIGTERM to qshim", func(d *desk) { _ = unix.Kill(d.pid, unix.SIGTERM) }},
		{"SIGKILL of the agent", func(d *desk) { _ = unix.Kill(kids(d.pid)[0], unix.SIGKILL) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, deskOpt{}, wrapped(t, "cat")...)
			d.expect("READY")
			c.end(d)
			d.code()
			if got := d.termios(); got != d.ref {
				t.Errorf("terminal left %+v, was %+v", got, d.ref)
			}
		})
	}
}

// The agent's terminal begins as the user's is: erase key, UTF-8 and all.
func TestAgentTerminalLooksLikeTheUsers(t *testing.T) {
	script := `stty erase X -ixon; stty -g; exec "$@"`
	d := newDesk(t, deskOpt{}, append([]string{"/bin/sh", "-c", script, "sh", self(t), wrapArg}, "/bin/sh", "-c", "stty -g")...)
	lines := strings.Fields(d.all())
	if len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("user's and agent's settings: %q", lines)
	}
}

func TestOutsideStopAndContinue(t *testing.T) {
	d := newDesk(t, deskOpt{ctl: true}, wrapped(t, "sizes")...)
	d.expect("SIZE")
	agent := kids(d.pid)[0]
	if err := unix.Kill(agent, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	d.ctl.expect("agentstop")
	d.resize(77, 22)
	d.ctl.expect("resized 77x22")
	if s := state(d.pid); s == 'T' {
		t.Error("qshim stopped itself where nobody continues it")
	}
	if err := unix.Kill(agent, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	d.expect("WINCH<77x22>")
	d.send("q")
	d.code()
}

// 10,000 random strings through both directions, split at random.
func TestRandomBytesBothWays(t *testing.T) {
	d := newDesk(t, deskOpt{}, self(t), wrapArg, "/bin/sh", "-c", "stty raw -echo; echo READY; exec cat")
	d.expect("READY")
	r := rand.New(rand.NewPCG(3, 4))
	n := 10000
	if testing.Short() {
		n = 500
	}
	var all []byte
	pieces := make([][]byte, n)
	for i := range pieces {
		p := make([]byte, 1+r.IntN(60))
		for j := range p {
			p[j] = byte(r.IntN(256))
		}
		pieces[i] = p
		all = append(all, p...)
	}
	go func() {
		for _, p := range pieces {
			if _, err := d.master.Write(p); err != nil {
				return
			}
		}
	}()
	d.wait("all bytes", func() bool { return len(d.out) >= len(all)+1 })
	if got := strings.TrimPrefix(d.output(), "\n"); got != string(all) {
		t.Errorf("bytes changed")
	}
}

// monitored puts a shell with job control above argv, so that a pair is made.
func monitored(argv []string) []string {
	return append([]string{"/bin/bash", "--norc", "--noprofile", "-mc", `"$@"; exit $?`, "bash"}, argv...)
}

// pairOf waits for agent, H and Z. Z is born a little after the agent, and the
// only sign of it is the process table.
func pairOf(t *testing.T, qshim int) []int {
	t.Helper()
	var family []int
	eventually(t, "agent, H and Z", func() bool { family = descendants(qshim); return len(family) == 3 })
	return family
}

func waitGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // gone, and collected
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(patience.Milliseconds()))
		for err == unix.EINTR { // Go's own signals
			n, err = unix.Poll(fds, int(patience.Milliseconds()))
		}
		_ = unix.Close(fd)
		if n != 1 {
			t.Errorf("process %d lives on in state %c", pid, state(pid))
		}
	}
}
