package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// planted puts something in the place of a file and reports whether the store
// could set it aside: then it must still be there under the new name.
func aside(t *testing.T, dir, name string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name+badInfix) {
			return filepath.Join(dir, e.Name())
		}
	}
	t.Errorf("%s was not set aside", name)
	return ""
}

// TestBadFiles is everything that can stand where a limiter's file should.
func TestBadFiles(t *testing.T) {
	big := strings.Repeat(" ", MaxFile+1)
	for _, c := range []struct {
		name  string
		plant func(t *testing.T, path string)
	}{
		{"empty", func(t *testing.T, p string) { write(t, p, "", 0o600) }},
		{"truncated", func(t *testing.T, p string) { write(t, p, `{"schema":1,"id":"a/b","hol`, 0o600) }},
		{"garbage", func(t *testing.T, p string) { write(t, p, "\x00\xff garbage", 0o600) }},
		{"no schema", func(t *testing.T, p string) { write(t, p, `{"id":"a/b"}`, 0o600) }},
		{"another's content", func(t *testing.T, p string) { write(t, p, `{"schema":1,"id":"x"}`, 0o600) }},
		{"wrong type", func(t *testing.T, p string) { write(t, p, `{"schema":1,"id":"a/b","holds":7}`, 0o600) }},
		{"too large", func(t *testing.T, p string) { write(t, p, `{"schema":1,"id":"a/b"}`+big, 0o600) }},
		{"1 GB", func(t *testing.T, p string) {
			write(t, p, "", 0o600)
			if err := os.Truncate(p, 1<<30); err != nil {
				t.Fatal(err)
			}
		}},
		{"writable by others", func(t *testing.T, p string) { write(t, p, `{"schema":1,"id":"a/b"}`, 0o666) }},
		{"link", func(t *testing.T, p string) {
			target := filepath.Join(t.TempDir(), "target")
			write(t, target, `{"schema":1,"id":"a/b","label":"through a link"}`, 0o600)
			if err := os.Symlink(target, p); err != nil {
				t.Fatal(err)
			}
		}},
		{"FIFO", func(t *testing.T, p string) {
			if err := syscall.Mkfifo(p, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"directory", func(t *testing.T, p string) {
			if err := os.MkdirAll(filepath.Join(p, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "state")
			d := open(t, place, SetAside)
			mustUpdate(t, d, step)
			dir := filepath.Join(place, limiterRoom)
			c.plant(t, filepath.Join(dir, "a%2Fb.json"))
			problems := Check(place, Options{})
			if len(problems) == 0 {
				t.Error("Check sees nothing wrong")
			}
			l := mustRead(t, d)
			if len(l.Limiters) != 2 {
				t.Errorf("limiters: %+v", l.Limiters)
			}
			bad := aside(t, dir, "a%2Fb.json")
			if n := whole(t, d, mustUpdate(t, d, step), true); n != 2 {
				t.Errorf("%d updates", n)
			}
			if _, err := os.Lstat(bad); err != nil {
				t.Errorf("what was set aside is gone: %v", err)
			}
		})
	}
}

// TestNewerSchema: a file of a newer qshim means to step aside, wherever it is.
func TestNewerSchema(t *testing.T) {
	newer := `{"schema":2,"id":"n","writes":"00000000000000000009","salt":"","log":""}` + "\n"
	for _, name := range []string{"limiters/n.json", "lock", "intent", "events.jsonl", "salt"} {
		t.Run(name, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "state")
			d := open(t, place)
			mustUpdate(t, d, func(l Ledger) (Ledger, []Event) { return l, nil })
			write(t, filepath.Join(place, name), newer, 0o600)
			var err error
			if name == "salt" {
				_, err = d.Salt()
			} else {
				_, err = d.Update(t.Context(), step)
			}
			if !errors.Is(err, ErrSchema) {
				t.Errorf("got %v", err)
			}
			if got, err := os.ReadFile(filepath.Join(place, name)); err != nil || string(got) != newer {
				t.Errorf("it was touched: %q, %v", got, err)
			}
			if l, err := d.Read(); err == nil && len(l.Limiters) > 0 || err != nil && !errors.Is(err, ErrSchema) {
				t.Errorf("Read: %v, %v", l, err)
			}
			if name == "lock" {
				if _, err := Open(place, Options{}); !errors.Is(err, ErrSchema) {
					t.Errorf("Open: %v", err)
				}
			}
			if name == "events.jsonl" {
				for _, err := range d.Events(t.Context(), zero, false) {
					if !errors.Is(err, ErrSchema) {
						t.Errorf("Events: %v", err)
					}
				}
			}
		})
	}
}

// TestNewerSession: a living session of a newer qshim means to step aside, one
// that died is left for a newer qshim and in nobody's way.
func TestNewerSession(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	d, other := open(t, place), open(t, place)
	l, err := other.Lease(Session{ID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(place, sessionRoom, "s1.json")
	write(t, file, `{"schema":2,"id":"s1","what":[]}`, 0o600)
	if _, err := d.Read(); !errors.Is(err, ErrSchema) {
		t.Errorf("alive: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, file, `{"schema":2,"id":"s1","what":[]}`, 0o600)
	if led, err := d.Read(); err != nil || len(led.Sessions) != 0 {
		t.Errorf("dead: %v, %v", led, err)
	}
	if _, err := d.Recover(func(Stopped) error { return nil }); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the newer session was dropped: %v", err)
	}
}

// TestUnsafeDirectory: what others could change is not used.
func TestUnsafeDirectory(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, place string)
	}{
		{"world writable", func(t *testing.T, p string) { mkdir(t, p, 0o777) }},
		{"group writable", func(t *testing.T, p string) { mkdir(t, p, 0o770) }},
		{"a link", func(t *testing.T, p string) {
			if err := os.Symlink(t.TempDir(), p); err != nil {
				t.Fatal(err)
			}
		}},
		{"a file", func(t *testing.T, p string) { write(t, p, "", 0o600) }},
		{"limiters is a link", func(t *testing.T, p string) {
			mkdir(t, p, 0o700)
			if err := os.Symlink(t.TempDir(), filepath.Join(p, limiterRoom)); err != nil {
				t.Fatal(err)
			}
		}},
		{"sessions writable", func(t *testing.T, p string) {
			mkdir(t, p, 0o700)
			mkdir(t, filepath.Join(p, sessionRoom), 0o777)
		}},
		{"another's", func(t *testing.T, p string) {
			mkdir(t, p, 0o700)
			if err := os.Chown(p, 65534, 65534); err != nil {
				t.Skip("only root can give a directory away: ", err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "state")
			c.make(t, place)
			d, err := Open(place, Options{})
			if !errors.Is(err, ErrUnsafe) {
				t.Fatalf("Open: %v, %v", d, err)
			}
			found := false
			for _, p := range Check(place, Options{}) {
				found = found || p.Kind == UnsafeDir
			}
			if !found {
				t.Error("Check finds it safe")
			}
		})
	}
}

func mkdir(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

// TestRemovedWhileRunning: the session announces itself again, and siblings
// that opened either directory meet.
func TestRemovedWhileRunning(t *testing.T) {
	for _, how := range []string{"removed", "moved away", "sessions removed", "session removed", "lock removed"} {
		t.Run(how, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "state")
			expect := []NoticeKind{Mended}
			if how == "lock removed" {
				expect = nil
			}
			d, sibling := open(t, place, expect...), open(t, place)
			l, err := d.Lease(Session{ID: "s1", Agent: "claude"})
			if err != nil {
				t.Fatal(err)
			}
			switch how {
			case "removed":
				err = os.RemoveAll(place)
			case "moved away":
				err = os.Rename(place, place+".old")
			case "sessions removed":
				err = os.RemoveAll(filepath.Join(place, sessionRoom))
			case "session removed":
				err = os.Remove(filepath.Join(place, sessionRoom, "s1.json"))
			case "lock removed":
				err = os.Remove(filepath.Join(place, lockName))
			}
			if err != nil {
				t.Fatal(err)
			}
			if how != "lock removed" {
				if err := l.Record(func(s *Session) { s.State = Running }); !errors.Is(err, ErrNoSession) {
					t.Errorf("Record: %v", err)
				}
			}
			mustUpdate(t, d, step)
			led := mustRead(t, sibling)
			if s := led.Sessions["s1"]; !s.Alive || s.Agent != "claude" {
				t.Errorf("a sibling sees %+v", led.Sessions)
			}
			if n := whole(t, sibling, mustUpdate(t, sibling, step), true); n != 2 {
				t.Errorf("%d of 2 updates", n)
			}
			if err := l.Record(func(s *Session) { s.State = Running }); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if led := mustRead(t, sibling); len(led.Sessions) != 0 {
				t.Errorf("after Close: %+v", led.Sessions)
			}
		})
	}
}

// TestLockRemovedWhileWaiting: a lock on a file that is gone excludes nobody,
// so who waited for it must not take it for the lock.
func TestLockRemovedWhileWaiting(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	a, c := open(t, place), open(t, place)
	waiting := make(chan struct{})
	b := openWith(t, place, Options{step: func(name string) error {
		if name == "wait for lock" {
			select {
			case <-waiting: // the second time it waits for c, as it should
			default:
				close(waiting)
			}
		}
		return nil
	}})
	bIn, cIn, cOut := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	mustUpdate(t, a, func(l Ledger) (Ledger, []Event) {
		wg.Go(func() {
			_, err := b.Update(context.Background(), func(l Ledger) (Ledger, []Event) { close(bIn); return step(l) })
			if err != nil {
				t.Error(err)
			}
		})
		<-waiting // it has the file open that goes now
		if err := os.Remove(filepath.Join(place, lockName)); err != nil {
			t.Error(err)
		}
		wg.Go(func() {
			_, err := c.Update(context.Background(), func(l Ledger) (Ledger, []Event) { close(cIn); <-cOut; return step(l) })
			if err != nil {
				t.Error(err)
			}
		})
		<-cIn
		return l, nil
	})
	select {
	case <-bIn:
		t.Error("two hold the lock")
	case <-time.After(50 * time.Millisecond): // long enough to be wrong in
	}
	close(cOut)
	wg.Wait()
	if n := whole(t, a, mustUpdate(t, a, step), true); n != 3 {
		t.Errorf("%d of 3 updates", n)
	}
}

// TestClockSteps: the clock stamps and nothing else.
func TestClockSteps(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	d := openWith(t, place, Options{Now: func() time.Time { return now }})
	for i, by := range []time.Duration{0, time.Hour, -2 * time.Hour, 366 * 24 * time.Hour, -732 * 24 * time.Hour} {
		now = now.Add(by)
		l := mustUpdate(t, d, step)
		if !l.Limiters["a"].Updated.Equal(now) {
			t.Errorf("stamped %v at %v", l.Limiters["a"].Updated, now)
		}
		if n := whole(t, d, mustRead(t, d), true); n != i+1 {
			t.Errorf("%d of %d updates", n, i+1)
		}
	}
}

// TestCheck: a healthy directory has no problem, and repairs repair.
func TestCheck(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	if p := Check(place, Options{}); len(p) != 0 {
		t.Errorf("a directory that is not there: %v", p)
	}
	d := open(t, place)
	l, err := d.Lease(Session{ID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, d, step)
	if _, err := d.Salt(); err != nil {
		t.Fatal(err)
	}
	if p := Check(place, Options{}); len(p) != 0 {
		t.Errorf("healthy: %v", p)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(place, limiterRoom, "bad.json"), "{", 0o600)
	write(t, filepath.Join(place, limiterRoom, "a.json.bad-1"), "{", 0o600)
	write(t, filepath.Join(place, sessionRoom, "dead.json"), `{"schema":1,"id":"dead"}`, 0o600)
	write(t, filepath.Join(place, tempPrefix+"3"), "", 0o600)
	write(t, filepath.Join(place, "salt"), "{", 0o644)
	mkdir(t, place, 0o755)
	got := map[ProblemKind]int{}
	for _, p := range Check(place, Options{}) {
		got[p.Kind]++
		if p.Repair != nil {
			if err := p.Repair(); err != nil {
				t.Errorf("%s: %v", p.Kind, err)
			}
		}
	}
	if got[BadFile] != 2 { // the limiter and the salt
		t.Errorf("%s: found %d", BadFile, got[BadFile])
	}
	for _, kind := range []ProblemKind{AsideFile, DeadSession, Leftover, UnsafeFile, ReadableDir} {
		if got[kind] != 1 {
			t.Errorf("%s: found %d", kind, got[kind])
		}
	}
	for _, p := range Check(place, Options{}) {
		if p.Kind == BadFile || p.Kind == UnsafeFile || p.Kind == ReadableDir {
			t.Errorf("not repaired: %v", p)
		}
	}
}
