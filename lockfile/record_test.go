package lockfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestRecordBeforeLock: a record between an update's reading and its lock is
// not undone by the update.
func TestRecordBeforeLock(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	var l Lease
	d := openWith(t, place, Options{step: func(name string) error {
		if name == "take lock" {
			return l.Record(func(s *Session) { s.Cwd = "recorded" })
		}
		return nil
	}})
	var err error
	if l, err = d.Lease(Session{ID: "victim"}); err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, d, step)
	if s := mustRead(t, open(t, place)).Sessions["victim"]; s.Cwd != "recorded" || s.ChildPID != 1 {
		t.Errorf("%+v", s)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestRecordAfterHalfAnUpdate: a change that only stands in the intent is
// completed before a record, not after it.
func TestRecordAfterHalfAnUpdate(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	for _, at := range []string{"place limiters/b.json", "place sessions/victim.json", "clear intent"} {
		fail := false
		d := openWith(t, place, Options{step: func(name string) error {
			if fail && name == at {
				return syscall.ENOSPC
			}
			return nil
		}})
		l, err := d.Lease(Session{ID: "victim"})
		if err != nil {
			t.Fatal(err)
		}
		mustUpdate(t, d, step)
		fail = true
		if _, err := d.Update(t.Context(), step); err == nil {
			t.Fatal("the step did not come")
		}
		fail = false
		if err := l.Record(func(s *Session) { s.Cwd = "recorded" }); err != nil {
			t.Fatal(err)
		}
		sibling := open(t, place)
		led := mustUpdate(t, sibling, func(l Ledger) (Ledger, []Event) { return l, nil })
		whole(t, sibling, led, true)
		if s := led.Sessions["victim"]; s.Cwd != "recorded" {
			t.Errorf("failed at %s: the record is gone: %+v", at, s)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestIntentIsCleared: a change that is done is not done again over later ones.
func TestIntentIsCleared(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	d := open(t, place)
	mustUpdate(t, d, step)
	if data, err := os.ReadFile(filepath.Join(place, intentName)); err != nil || data[0] != undecided {
		t.Errorf("%.20q, %v", data, err)
	}
}

// TestSameStat: a file that was fresh when it was read is read again, though
// inode, size and time are the same.
func TestSameStat(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	d := open(t, place)
	mustUpdate(t, d, step)
	file := filepath.Join(place, limiterRoom, "a.json")
	stamp := time.Now().Add(time.Hour) // so that it stays fresh
	for i := range 3 {
		write(t, file, fmt.Sprintf(`{"schema":1,"id":"a","label":"%d"}`, i), 0o600)
		if err := os.Chtimes(file, stamp, stamp); err != nil {
			t.Fatal(err)
		}
		if got := mustRead(t, d).Limiters["a"].Label; got != fmt.Sprint(i) {
			t.Errorf("read %q, written %d", got, i)
		}
	}
}

// TestReadWhileReused: the file that a reader has opened may be written before
// he reads it, when it has rested and is the session's again. He notices.
func TestReadWhileReused(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	d := open(t, place)
	l, err := d.Lease(Session{ID: "s1", ChildPID: 9}) // the same size all along
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.enter()
	if err != nil {
		t.Fatal(err)
	}
	defer d.leave(r)
	fd, st, err := openSmall(r.sessions, "s1.json", MaxFile)
	if err != nil {
		t.Fatal(err)
	}
	defer closeFD(fd)
	record := func(pid int) {
		if err := l.Record(func(s *Session) { s.ChildPID = pid }); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; ; i++ {
		record(i)                     // the second time, the spare is the file that is open,
		<-time.After(grainOf(st) * 2) // and has rested
		now, err := statFD(fd)
		if err != nil {
			t.Fatal(err)
		}
		if named, err := statAt(r.sessions, "s1.json"); err != nil || named.ino != st.ino || now.mtime == st.mtime {
			if i < 5 {
				continue
			}
			t.Skip("this file system exchanges no files")
		}
		break
	}
	if _, err := readWhole(fd, st.size); err != nil {
		t.Error(err)
	}
	if err := stillIt(r.sessions, "s1.json", st); !errors.Is(err, errChanged) {
		t.Errorf("the file was written and is the session's again, and a reader does not notice: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestTornReads: session files are written in place when it is their turn, and
// still nobody ever reads half of one.
func TestTornReads(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	d := open(t, place)
	l, err := d.Lease(Session{ID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		r := open(t, place)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				led, err := r.Read()
				if err != nil {
					t.Error(err)
				}
				s, ok := led.Sessions["s1"]
				if !ok || len(s.Cwd) != s.ChildPID%3000 || len(s.Cwd) > 0 && (s.Cwd[0] != s.Cwd[len(s.Cwd)-1] || int(s.Cwd[0]-'a') != s.ChildPID%26) {
					t.Errorf("half a session: %v, %d, %.20q", ok, s.ChildPID, s.Cwd)
					return
				}
			}
		})
	}
	end := time.Now().Add(time.Second)
	for i := 0; time.Now().Before(end); i++ {
		text := make([]byte, i%3000)
		for k := range text {
			text[k] = byte('a' + i%26)
		}
		if err := l.Record(func(s *Session) { s.ChildPID, s.Cwd = i, string(text) }); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
