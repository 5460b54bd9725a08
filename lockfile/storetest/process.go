package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// The environment of a child: what it is to do, and where.
const (
	roleEnv  = "QSHIM_STORETEST_ROLE"
	placeEnv = "QSHIM_STORETEST_PLACE"
)

// child does what a child of the suite is for; false in the suite itself.
func child(t *testing.T, open Open) bool {
	role := os.Getenv(roleEnv)
	if role == "" {
		return false
	}
	st := open(t, os.Getenv(placeEnv))
	var err error
	switch role {
	case "count":
		for i := range 25 {
			if _, err = st.Update(context.Background(), pair(fmt.Sprint(i))); err != nil {
				break
			}
		}
	case "count for ever":
		fmt.Println("ready")
		for err == nil {
			_, err = st.Update(context.Background(), pair("x"))
		}
	case "session":
		err = session(st)
	default:
		err = fmt.Errorf("role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0) // not through the parent's cleanups
	return true
}

// pair changes two limiters and logs one event: all or nothing.
func pair(reason string) func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
	return func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		l, _ = count(limiterA)(l)
		l, _ = count(limiterB)(l)
		return l, []lockfile.Event{{Event: "hold", Reason: reason}}
	}
}

// session leases one that has stopped a process and claimed a probe, and stays.
func session(st lockfile.Store) error {
	l, err := st.Lease(lockfile.Session{Agent: "gemini", PID: os.Getpid(), Stopped: []lockfile.Stopped{{PID: 4242, Start: 7, Group: true}}})
	if err != nil {
		return err
	}
	_, err = st.Update(context.Background(), func(led lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		m := led.Limiters[limiterA]
		m.Holds = []lockfile.Hold{{Class: finding.Rate, By: l.ID()}}
		m.Probe = &lockfile.Probe{Session: l.ID(), Class: finding.Rate}
		led.Limiters[limiterA] = m
		return led, nil
	})
	if err != nil {
		return err
	}
	fmt.Println(l.ID())
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent lets go
	return err
}

type process struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	stop func() error
}

// start runs the test binary again in a role. It ends with the test.
func (s suite) start(t *testing.T, role, place string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+s.test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), roleEnv+"="+role, placeEnv+"="+place)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, out: bufio.NewReader(out)}
	p.stop = sync.OnceValue(func() error {
		_ = in.Close() // its cue to end
		_, _ = io.Copy(io.Discard, p.out)
		return cmd.Wait()
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if it has ended, which is as good
		_ = p.stop()           // its outcome was checked where it mattered
	})
	return p
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("child said %q: %v", line, err)
	}
	return line[:len(line)-1]
}

// kill is kill -9, and waits until it has happened.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.stop() // "signal: killed"
}

func (s suite) processes(t *testing.T) {
	place := t.TempDir()
	st := s.store(t, place)
	const n = 4
	var ps []*process
	for range n {
		ps = append(ps, s.start(t, "count", place))
	}
	for _, p := range ps {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	}
	l := read(t, st)
	if a, b := counted(l, limiterA), counted(l, limiterB); a != n*25 || b != n*25 {
		t.Errorf("%d and %d of %d updates are there", a, b, n*25)
	}
	if got := len(all(t, st, time.Time{})); got != n*25 {
		t.Errorf("%d of %d events are there", got, n*25)
	}
}

func (s suite) killedWriters(t *testing.T) {
	place := t.TempDir()
	st := s.store(t, place)
	for round := range 10 {
		var ps []*process
		for range 2 {
			p := s.start(t, "count for ever", place)
			p.line(t)
			ps = append(ps, p)
		}
		// Let them get going, then kill them wherever they are.
		for want := counted(read(t, st), limiterA) + 3 + round; counted(read(t, st), limiterA) < want; {
			if t.Context().Err() != nil {
				t.Fatal("no progress")
			}
		}
		for _, p := range ps {
			p.kill(t)
		}
		l := read(t, st)
		if a, b := counted(l, limiterA), counted(l, limiterB); a != b {
			t.Fatalf("round %d: half an update: %d and %d", round, a, b)
		}
		l = update(t, st, pair("after"))
		a, b, ev := counted(l, limiterA), counted(l, limiterB), len(all(t, st, time.Time{}))
		if a != b || a != ev {
			t.Fatalf("round %d: %d and %d updates, %d events", round, a, b, ev)
		}
	}
}

func (s suite) killedSession(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	p := s.start(t, "session", place)
	id := p.line(t)
	for _, st := range []lockfile.Store{a, b} {
		if x := read(t, st).Sessions[id]; !x.Alive || x.PID != p.cmd.Process.Pid {
			t.Fatalf("session of another process: %+v", x)
		}
	}
	p.kill(t)
	l := read(t, a)
	if x := l.Sessions[id]; x.ID != id || x.Alive {
		t.Fatalf("session of a killed process: %+v", x)
	}
	var continued []lockfile.Stopped
	dead, err := a.Recover(func(p lockfile.Stopped) error { continued = append(continued, p); return nil })
	if err != nil || len(dead) != 1 || dead[0].ID != id {
		t.Errorf("Recover: %v, %v", dead, err)
	}
	if len(continued) != 1 || continued[0] != (lockfile.Stopped{PID: 4242, Start: 7, Group: true}) {
		t.Errorf("continued %v", continued)
	}
	l = read(t, b)
	if len(l.Sessions) != 0 || l.Limiters[limiterA].Probe != nil || len(l.Limiters[limiterA].Holds) != 1 {
		t.Errorf("after Recover: %+v", l)
	}
	if dead, err := b.Recover(func(lockfile.Stopped) error { return errors.New("called") }); err != nil || len(dead) > 0 {
		t.Errorf("a second Recover: %v, %v", dead, err)
	}
}

func (s suite) recoverFails(t *testing.T) {
	place := t.TempDir()
	st := s.store(t, place)
	p := s.start(t, "session", place)
	id := p.line(t)
	p.kill(t)
	denied := errors.New("not permitted")
	dead, err := st.Recover(func(lockfile.Stopped) error { return denied })
	if !errors.Is(err, denied) || len(dead) != 1 {
		t.Errorf("Recover: %v, %v", dead, err)
	}
	l := read(t, st)
	if x := l.Sessions[id]; len(x.Stopped) != 1 {
		t.Errorf("what is still stopped was forgotten: %s %+v", strconv.Quote(id), l.Sessions)
	}
	if l.Limiters[limiterA].Probe != nil {
		t.Error("the probe of a dead session was not freed")
	}
	if dead, err = st.Recover(func(lockfile.Stopped) error { return nil }); err != nil || len(dead) != 1 {
		t.Errorf("second try: %v, %v", dead, err)
	}
	if n := len(read(t, st).Sessions); n != 0 {
		t.Errorf("%d sessions left", n)
	}
}

func (s suite) hintFromProcess(t *testing.T) {
	place := t.TempDir()
	st := s.store(t, place)
	ctx, cancel := context.WithCancel(t.Context())
	hints, err := st.Watch(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		for range hints { // until it is closed
		}
	}()
	p := s.start(t, "count", place)
	for counted(read(t, st), limiterB) < 25 {
		await(t, hints)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
