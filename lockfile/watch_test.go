package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func hinted(t *testing.T, hints <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-hints:
	case <-time.After(20 * time.Second):
		t.Fatalf("no hint after %s", what)
	}
}

// TestWatchFallback: without inotify the files are looked at.
func TestWatchFallback(t *testing.T) {
	for _, none := range []bool{false, true} {
		place := filepath.Join(t.TempDir(), "state")
		a := openWith(t, place, Options{noWatch: none, tick: time.Millisecond})
		b := open(t, place)
		ctx, cancel := context.WithCancel(t.Context())
		hints, err := a.Watch(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if (a.Fallback() != nil) != none {
			t.Errorf("fallback: %v", a.Fallback())
		}
		for range 5 {
			mustUpdate(t, b, step)
			hinted(t, hints, "an update")
		}
		if err := os.RemoveAll(place); err != nil {
			t.Fatal(err)
		}
		hinted(t, hints, "the directory's removal")
		mustUpdate(t, b, step)
		for whole(t, a, mustRead(t, a), false) != 1 {
			hinted(t, hints, "an update in the new directory")
		}
		mustUpdate(t, b, step)
		for whole(t, a, mustRead(t, a), false) != 2 {
			hinted(t, hints, "a second one")
		}
		cancel()
		for range hints { // until it is closed
		}
	}
}

// TestLookEvery: who is at work, or stopped, looks more often.
func TestLookEvery(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	l, err := d.Lease(Session{ID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for state, want := range map[State]time.Duration{Waiting: time.Second, Running: busyTick, Idle: time.Second, Suspended: busyTick} {
		if err := l.Record(func(s *Session) { s.State = state }); err != nil {
			t.Fatal(err)
		}
		if got := d.lookEvery(); got != want {
			t.Errorf("%s: looks every %v", state, got)
		}
	}
}

// TestWatchIgnoresSessions: 200 turns a second must not wake 200 shims.
func TestWatchIgnoresSessions(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	d := open(t, place)
	l, err := d.Lease(Session{ID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hints, err := d.Watch(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := l.Record(func(s *Session) { s.ChildPID = i }); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.Append(Event{Event: "x"}), l.Close()); err != nil {
		t.Fatal(err)
	}
	// A limiter's change is told after all that; the first hint must be its.
	select {
	case <-hints:
		t.Error("a session's change was told")
	default:
	}
	mustUpdate(t, d, step)
	hinted(t, hints, "a limiter's change")
	cancel()
	for range hints { // until it is closed
	}
}

func TestClosed(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Read: %v", err)
	}
	if _, err := d.Update(t.Context(), step); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Update: %v", err)
	}
	if _, err := d.Watch(t.Context(), nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Watch: %v", err)
	}
}

// TestGlanceOfWhatWasHeard: a glance from within the watch sees what it was called
// for, a limiter that is new and one that goes included; and what it has dealt with
// is no hint.
func TestGlanceOfWhatWasHeard(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	a, b := open(t, place), open(t, place)
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan Ledger, 100)
	hints, err := a.Watch(ctx, func() bool {
		l, err := a.Glance()
		if err != nil {
			t.Error(err)
		}
		seen <- l
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Glance(); err != nil { // from now on it goes by what it hears
		t.Fatal(err)
	}
	until := func(what string, ok func(Ledger) bool) {
		t.Helper()
		for late := time.After(20 * time.Second); ; {
			select {
			case l := <-seen:
				if ok(l) {
					return
				}
			case <-late:
				t.Fatalf("not seen: %s", what)
			}
		}
	}
	change := func(fn func(Ledger)) {
		t.Helper()
		mustUpdate(t, b, func(l Ledger) (Ledger, []Event) { fn(l); return l, []Event{{Event: "x"}} })
	}
	for i := range 5 {
		name := string(rune('0' + i))
		change(func(l Ledger) { l.Limiters["new"] = Limiter{Label: name} })
		until("label "+name, func(l Ledger) bool { return l.Limiters["new"].Label == name })
	}
	change(func(l Ledger) { l.Limiters["other"] = Limiter{} })
	until("both", func(l Ledger) bool { return len(l.Limiters) == 2 })
	change(func(l Ledger) { delete(l.Limiters, "new") })
	until("one", func(l Ledger) bool { return len(l.Limiters) == 1 })
	select {
	case <-hints:
		t.Error("a hint of what was dealt with")
	default:
	}
	cancel()
	for range hints { // until it is closed
	}
}
