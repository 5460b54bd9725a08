package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"qshim/detect/finding"
)

// The environment of a child that dies at a step.
const (
	dieEnv   = "QSHIM_LOCKFILE_DIE_AT"
	placeEnv = "QSHIM_LOCKFILE_PLACE"
)

func TestMain(m *testing.M) {
	if at := os.Getenv(dieEnv); at != "" {
		n, err := strconv.Atoi(at)
		if err == nil {
			_, err = scenario(os.Getenv(placeEnv), func(i int, _ string) error {
				if i == n {
					return syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
				return nil
			})
		}
		fmt.Fprintln(os.Stderr, "survived:", err)
		os.Exit(3)
	}
	goleak.VerifyTestMain(m)
}

// scenario is a session's life with every kind of write, in which hook is
// called before each step. It returns the steps' names.
func scenario(place string, hook func(i int, name string) error) (steps []string, err error) {
	o := Options{maxEvents: 400, step: func(name string) error {
		steps = append(steps, name)
		return hook(len(steps)-1, name)
	}}
	d, err := Open(place, o)
	if err != nil {
		return nil, err
	}
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	l, err := d.Lease(Session{ID: "victim", PID: os.Getpid(), Stopped: []Stopped{{PID: 1, Start: 2}}})
	note(err)
	if err == nil {
		note(l.Record(func(s *Session) { s.State = Running }))
		note(l.Record(func(s *Session) { s.State = Idle }))
	}
	for range 3 {
		_, err = d.Update(context.Background(), step)
		note(err)
	}
	_, err = d.Update(context.Background(), func(l Ledger) (Ledger, []Event) {
		m := l.Limiters["c"]
		m.Label += "x"
		l.Limiters["c"] = m
		return l, nil
	})
	note(err)
	note(d.Append(Event{Event: "surface"}))
	_, err = d.Salt()
	note(err)
	note(d.WriteCache("v", 1))
	if l != nil {
		note(l.Close())
	}
	note(d.Close())
	return steps, errors.Join(errs...)
}

// step changes two limiters, the session and the log together: all or nothing.
func step(l Ledger) (Ledger, []Event) {
	for _, id := range []string{"a", "b"} {
		m := l.Limiters[id]
		if m.Holds == nil {
			m.Holds = []Hold{{Class: finding.Rate}}
		}
		m.Holds[0].Attempts++
		l.Limiters[id] = m
	}
	if s, ok := l.Sessions["victim"]; ok && s.Alive {
		s.ChildPID = l.Limiters["a"].Holds[0].Attempts
		l.Sessions["victim"] = s
	}
	return l, []Event{{Event: "hold", Reason: strings.Repeat("r", 100)}}
}

// whole checks that every update is there with all its parts or with none, and
// returns how many are.
func whole(t *testing.T, d *Dir, l Ledger, withEvents bool) int {
	t.Helper()
	n := func(id string) int {
		if h := l.Limiters[id].Holds; len(h) > 0 {
			return h[0].Attempts
		}
		return 0
	}
	if n("a") != n("b") {
		t.Errorf("half an update: a %d, b %d", n("a"), n("b"))
	}
	if s, ok := l.Sessions["victim"]; ok && n("a") > 0 && s.ChildPID != n("a") {
		t.Errorf("half an update: limiters %d, session %d", n("a"), s.ChildPID)
	}
	if withEvents {
		holds := 0
		for e, err := range d.Events(t.Context(), zero, false) {
			if err != nil {
				t.Error(err)
			}
			if e.Event == "hold" {
				holds++
			}
		}
		if holds != n("a") {
			t.Errorf("%d updates, %d events", n("a"), holds)
		}
	}
	return n("a")
}

func dieAt(t *testing.T, n int, place string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), dieEnv+"="+strconv.Itoa(n), placeEnv+"="+place)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("child was not killed: %v %s", err, out)
	}
}

// open opens a store that must give no notice but those expected.
func open(t *testing.T, place string, expect ...NoticeKind) *Dir {
	t.Helper()
	return openWith(t, place, Options{}, expect...)
}

func openWith(t *testing.T, place string, o Options, expect ...NoticeKind) *Dir {
	t.Helper()
	var got []NoticeKind
	o.Notice = func(n Notice) {
		t.Logf("notice: %s %s %s: %v", n.Kind, filepath.Base(n.Path), filepath.Base(n.As), n.Err)
		got = append(got, n.Kind)
	}
	d, err := Open(place, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(expect) {
			t.Errorf("notices %v, want %v", got, expect)
		}
	})
	return d
}

func mustUpdate(t *testing.T, d *Dir, fn func(Ledger) (Ledger, []Event)) Ledger {
	t.Helper()
	l, err := d.Update(t.Context(), fn)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustRead(t *testing.T, d *Dir) Ledger {
	t.Helper()
	l, err := d.Read()
	if err != nil {
		t.Fatal(err)
	}
	return l
}
