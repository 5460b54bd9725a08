// Package storetest is the suite that every lockfile.Store must pass. It uses
// nothing but the interface, and other processes: it starts the test binary
// again, so Run must be reachable from a test of its own name.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// Open opens the store whose state is at place, an existing private directory
// of the test. Stores opened with one place share their state, in whatever
// process they are. The suite closes what it opens.
type Open func(tb testing.TB, place string) lockfile.Store

// Run runs the suite.
func Run(t *testing.T, open Open) {
	if child(t, open) {
		return
	}
	s := suite{open: open, test: t.Name()}
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"empty", s.empty},
		{"update is seen by siblings", s.seen},
		{"nothing changed, nothing written", s.unchanged},
		{"what fn and callers do to their copies", s.copies},
		{"what an update may not do", s.forbidden},
		{"panic in fn", s.panics},
		{"own sessions only", s.own},
		{"lease", s.lease},
		{"record", s.record},
		{"goroutines lose nothing", s.goroutines},
		{"processes lose nothing", s.processes},
		{"killed writers leave a whole ledger", s.killedWriters},
		{"killed session", s.killedSession},
		{"recovery that fails is tried again", s.recoverFails},
		{"200 sessions", s.twoHundred},
		{"hint", s.hint},
		{"hint from another process", s.hintFromProcess},
		{"events", s.events},
		{"events are followed", s.followed},
		{"event lines never interleave", s.interleave},
		{"busy", s.busy},
		{"still", s.still},
	} {
		t.Run(c.name, c.run)
	}
}

type suite struct {
	open Open
	test string // the name of the test that called Run
}

// store opens a store that ends with the test.
func (s suite) store(t *testing.T, place string) lockfile.Store {
	t.Helper()
	st := s.open(t, place)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func update(t *testing.T, st lockfile.Store, fn func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) lockfile.Ledger {
	t.Helper()
	l, err := st.Update(t.Context(), fn)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func read(t *testing.T, st lockfile.Store) lockfile.Ledger {
	t.Helper()
	l, err := st.Read()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func leaseOf(t *testing.T, st lockfile.Store, s lockfile.Session) lockfile.Lease {
	t.Helper()
	l, err := st.Lease(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// count adds one to a number that the ledger keeps for the limiter.
func count(id string) func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
	return func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		m := l.Limiters[id]
		if len(m.Holds) == 0 {
			m.Holds = []lockfile.Hold{{Class: finding.Rate}}
		}
		m.Holds[0].Attempts++
		l.Limiters[id] = m
		return l, nil
	}
}

func counted(l lockfile.Ledger, id string) int {
	if h := l.Limiters[id].Holds; len(h) > 0 {
		return h[0].Attempts
	}
	return 0
}

const (
	limiterA = "anthropic/3f9a00112233/proj.x#opus"
	limiterB = "anthropic@source"
)

func (s suite) empty(t *testing.T) {
	st := s.store(t, t.TempDir())
	l := read(t, st)
	if len(l.Limiters) != 0 || len(l.Sessions) != 0 {
		t.Errorf("a new store holds %v", l)
	}
	if l.Limiters == nil || l.Sessions == nil {
		t.Error("nil maps: a caller that writes to them panics")
	}
	dead, err := st.Recover(func(lockfile.Stopped) error { return errors.New("called") })
	if err != nil || len(dead) != 0 {
		t.Errorf("Recover of nothing: %v, %v", dead, err)
	}
}

func (s suite) seen(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("x", 7200))
	want := lockfile.Limiter{Label: "Claude Max", LastHit: at, Holds: []lockfile.Hold{{Class: finding.Window, Until: at,
		By: "s1", Why: "limit \x1b[31m reached \u009b <&> ü"}},
		Probe: &lockfile.Probe{Session: "s1", Since: at, Class: finding.Window}}
	got := update(t, a, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		l.Limiters[limiterA], l.Limiters[limiterB] = want, lockfile.Limiter{}
		return l, nil
	})
	if diff := cmp.Diff(got, read(t, b)); diff != "" {
		t.Errorf("Update returned other than what a sibling reads:\n%s", diff)
	}
	m := got.Limiters[limiterA]
	if m.ID != limiterA || m.Schema != lockfile.Schema || m.Updated.IsZero() || !m.LastHit.Equal(at) || m.Holds[0].Why != want.Holds[0].Why {
		t.Errorf("stored %+v", m)
	}
	update(t, b, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		delete(l.Limiters, limiterA)
		return l, nil
	})
	if l := read(t, a); len(l.Limiters) != 1 {
		t.Errorf("after a removal: %v", l.Limiters)
	}
}

func (s suite) unchanged(t *testing.T) {
	place := t.TempDir()
	st := s.store(t, place)
	leaseOf(t, st, lockfile.Session{ID: "s1"})
	first := update(t, st, count(limiterA))
	same := func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		m := l.Limiters[limiterA]
		m.Updated = m.Updated.Add(time.Hour) // not the caller's to set
		l.Limiters[limiterA] = m
		return l, nil
	}
	second := update(t, st, same)
	if diff := cmp.Diff(first.Limiters, second.Limiters); diff != "" {
		t.Errorf("an update that changes nothing changed:\n%s", diff)
	}
	third := update(t, st, func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) { return lockfile.Ledger{}, nil })
	if diff := cmp.Diff(first, third); diff != "" {
		t.Errorf("nil maps mean no change, but:\n%s", diff)
	}
}

func (s suite) copies(t *testing.T) {
	st := s.store(t, t.TempDir())
	leaseOf(t, st, lockfile.Session{ID: "s1", Limiters: []string{limiterA}, Stopped: []lockfile.Stopped{{PID: 1}}})
	update(t, st, count(limiterA))
	update(t, st, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		l.Limiters[limiterA].Holds[0].Attempts = 99 // in place, then not returned
		l.Sessions["s1"].Stopped[0].PID = 99
		return lockfile.Ledger{}, nil
	})
	l := read(t, st)
	if counted(l, limiterA) != 1 || l.Sessions["s1"].Stopped[0].PID != 1 {
		t.Errorf("a ledger that was not returned was stored: %+v", l)
	}
	l.Limiters[limiterA].Holds[0].Attempts = 99
	l.Sessions["s1"].Stopped[0].PID = 99
	if l := read(t, st); counted(l, limiterA) != 1 || l.Sessions["s1"].Stopped[0].PID != 1 {
		t.Errorf("a snapshot shares memory with the store: %+v", l)
	}
}

func (s suite) forbidden(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	leaseOf(t, a, lockfile.Session{ID: "s1", Agent: "claude"})
	before := update(t, a, count(limiterA))
	_, err := b.Update(t.Context(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		l.Sessions["ghost"] = lockfile.Session{}
		l, _ = count(limiterA)(l)
		return l, []lockfile.Event{{Event: "hold"}}
	})
	if !errors.Is(err, lockfile.ErrNoSession) {
		t.Errorf("a session without a lease: %v", err)
	}
	got := update(t, b, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		x := l.Sessions["s1"]
		x.Agent, x.Alive = "codex", false
		l.Sessions["s1"] = x
		return l, nil
	})
	if diff := cmp.Diff(before, got); diff != "" {
		t.Errorf("a change to a sibling's session was returned as stored:\n%s", diff)
	}
	for _, st := range []lockfile.Store{a, b} {
		update(t, st, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			delete(l.Sessions, "s1")
			return l, nil
		})
	}
	_, err = b.Update(t.Context(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		m := l.Limiters[limiterA]
		m.Label = string(make([]byte, lockfile.MaxFile))
		l.Limiters[limiterA], l.Limiters[limiterB] = m, m
		return l, nil
	})
	if !errors.Is(err, lockfile.ErrTooLarge) {
		t.Errorf("a huge limiter: %v", err)
	}
	_, err = b.Update(t.Context(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		l.Limiters[""] = lockfile.Limiter{}
		return l, nil
	})
	if !errors.Is(err, lockfile.ErrName) {
		t.Errorf("a limiter without a name: %v", err)
	}
	if diff := cmp.Diff(before, read(t, b)); diff != "" {
		t.Errorf("something forbidden was stored:\n%s", diff)
	}
	for range b.Events(t.Context(), time.Time{}, false) {
		t.Error("an update that failed left an event")
	}
}

func (s suite) panics(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = a.Update(t.Context(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) { panic("bug") })
	}()
	update(t, b, count(limiterA))
	if got := counted(update(t, a, count(limiterA)), limiterA); got != 2 {
		t.Errorf("count after a panic: %d", got)
	}
}

func (s suite) own(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	leaseOf(t, a, lockfile.Session{ID: "s1"})
	leaseOf(t, b, lockfile.Session{ID: "s2"})
	l, err := a.UpdateOwn(t.Context(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		if len(l.Sessions) != 1 || !l.Sessions["s1"].Alive {
			t.Errorf("UpdateOwn shows %v", l.Sessions)
		}
		x := l.Sessions["s1"]
		x.State = lockfile.Running
		l.Sessions["s1"] = x
		return count(limiterA)(l)
	})
	if err != nil || len(l.Sessions) != 1 {
		t.Fatalf("%v, %v", l.Sessions, err)
	}
	all := read(t, b)
	if len(all.Sessions) != 2 || all.Sessions["s1"].State != lockfile.Running || counted(all, limiterA) != 1 {
		t.Errorf("after UpdateOwn a sibling reads %+v", all)
	}
	g, err := b.Glance()
	if err != nil || len(g.Sessions) != 1 || g.Sessions["s2"].ID == "" || counted(g, limiterA) != 1 {
		t.Errorf("Glance: %+v, %v", g, err)
	}
}

func (s suite) lease(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	for id, x := range read(t, b).Sessions {
		t.Errorf("session %s before any lease: %+v", id, x)
	}
	l, err := a.Lease(lockfile.Session{Agent: "claude", Alive: false})
	if err != nil {
		t.Fatal(err)
	}
	if l.ID() == "" {
		t.Error("no id was made")
	}
	for range 3 { // a probe must not disturb what it looks at
		for _, st := range []lockfile.Store{a, b} {
			if x := read(t, st).Sessions[l.ID()]; !x.Alive || x.Agent != "claude" {
				t.Errorf("leased session: %+v", x)
			}
		}
	}
	if _, err := b.Lease(lockfile.Session{ID: l.ID()}); err == nil {
		t.Error("the same id was leased twice")
	}
	if dead, err := b.Recover(func(lockfile.Stopped) error { return errors.New("called") }); err != nil || len(dead) > 0 {
		t.Errorf("Recover took a living session: %v, %v", dead, err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := len(read(t, b).Sessions); n != 0 {
		t.Errorf("%d sessions after Close", n)
	}
	if err := l.Record(func(x *lockfile.Session) { x.State = lockfile.Idle }); !errors.Is(err, lockfile.ErrNoSession) {
		t.Errorf("Record on a closed lease: %v", err)
	}
	if n := len(read(t, b).Sessions); n != 0 {
		t.Errorf("%d sessions after Record", n)
	}
}

func (s suite) record(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	l := leaseOf(t, a, lockfile.Session{ID: "s1", Cwd: "/some/where/long"})
	for i := range 100 {
		if err := l.Record(func(x *lockfile.Session) {
			x.ChildPID, x.ID = i, "other" // the id is not the caller's to change
			x.Cwd = fmt.Sprint(make([]int, i%7))
		}); err != nil {
			t.Fatal(err)
		}
		for _, st := range []lockfile.Store{a, b} {
			if got := read(t, st).Sessions["s1"]; got.ChildPID != i || got.Cwd != fmt.Sprint(make([]int, i%7)) || !got.Alive {
				t.Fatalf("after record %d: %+v", i, got)
			}
		}
	}
	// The store that holds the lease knows the session by its id.
	if err := a.Record("s1", func(x *lockfile.Session) { x.ChildPID = 500 }); err != nil {
		t.Error(err)
	}
	if got := read(t, b).Sessions["s1"].ChildPID; got != 500 {
		t.Errorf("recorded by id: %d", got)
	}
	for what, err := range map[string]error{
		"another store's": b.Record("s1", func(x *lockfile.Session) { x.ChildPID = 501 }),
		"unknown":         a.Record("s2", func(*lockfile.Session) {}),
	} {
		if !errors.Is(err, lockfile.ErrNoSession) {
			t.Errorf("Record of a session that is %s: %v", what, err)
		}
	}
	// An update that began before a record must not undo it.
	inside, done := make(chan struct{}), make(chan error, 1)
	go func() {
		<-inside
		done <- l.Record(func(x *lockfile.Session) { x.ChildPID = 1000 })
	}()
	update(t, a, func(old lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		close(inside)
		x := old.Sessions["s1"]
		x.State = lockfile.Suspended
		old.Sessions["s1"] = x
		return old, nil
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if x := read(t, b).Sessions["s1"]; x.ChildPID != 1000 || x.State != lockfile.Suspended {
		t.Errorf("record and update: %+v", x)
	}
}

func (s suite) goroutines(t *testing.T) {
	place := t.TempDir()
	stores := []lockfile.Store{s.store(t, place), s.store(t, place), s.store(t, place)}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for range 10 {
				if _, err := stores[i%3].Update(context.Background(), count(limiterA)); err != nil {
					t.Error(err)
				}
				if _, err := stores[i%3].Read(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := counted(read(t, stores[0]), limiterA); got != 120 {
		t.Errorf("%d of 120 updates are there", got)
	}
}

func (s suite) twoHundred(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	for i := range 200 {
		leaseOf(t, a, lockfile.Session{ID: fmt.Sprintf("s%d", i), Agent: "codex"})
	}
	l := read(t, b)
	alive := 0
	for _, x := range l.Sessions {
		if x.Alive {
			alive++
		}
	}
	if len(l.Sessions) != 200 || alive != 200 {
		t.Errorf("%d sessions, %d alive", len(l.Sessions), alive)
	}
}

func (s suite) hint(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hints, err := b.Watch(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		update(t, a, count(limiterA))
		for counted(read(t, b), limiterA) <= i {
			await(t, hints)
		}
	}
	for range 50 {
		update(t, a, count(limiterA))
	}
	if n := len(hints); n > 1 {
		t.Errorf("%d hints wait: they should melt into one", n)
	}
	cancel()
	for range hints { // until it is closed
	}
}

func await(t *testing.T, hints <-chan struct{}) {
	t.Helper()
	select {
	case _, ok := <-hints:
		if !ok {
			t.Fatal("the watch ended by itself")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no hint")
	}
}

func (s suite) busy(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	l := leaseOf(t, b, lockfile.Session{ID: "s1"})
	update(t, a, func(old lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		begin := time.Now()
		_, err := b.Update(context.Background(), count(limiterA))
		if took := time.Since(begin); !errors.Is(err, lockfile.ErrBusy) || took < lockfile.LockWait {
			t.Errorf("locked out: %v after %v", err, took)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := b.Update(ctx, count(limiterA)); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if _, err := b.Read(); err != nil {
			t.Errorf("a read waits for the lock: %v", err)
		}
		if err := l.Record(func(x *lockfile.Session) { x.State = lockfile.Idle }); err != nil {
			t.Errorf("a record waits for the lock: %v", err)
		}
		return old, nil
	})
	if got := counted(update(t, b, count(limiterA)), limiterA); got != 1 {
		t.Errorf("after the lock was free again: %d", got)
	}
}

func (s suite) still(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	resume := a.Still()
	done := make(chan error, 1)
	go func() {
		_, err := a.Update(context.Background(), count(limiterA))
		done <- err
	}()
	update(t, b, count(limiterA)) // a does not hold the lock
	select {
	case err := <-done:
		t.Errorf("an operation went through while still: %v", err)
	default:
	}
	resume()
	resume() // once more does no harm
	if err := <-done; err != nil {
		t.Error(err)
	}
}
