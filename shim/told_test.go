//go:build linux

package shim

import (
	"testing"
	"time"

	"qshim/lockfile"
	"qshim/policies"
	"qshim/policies/config"
)

// A turn that takes a sibling's slot reaches the siblings through the files,
// though it changes no limit; one that moves nobody writes no limiter.
func TestMovedSlotReachesSiblings(t *testing.T) {
	dir, store := newDirStore(t)
	sibling, err := lockfile.Open(dir, lockfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sibling.Close() })
	p, now := config.Defaults().Policy, time.Now()
	lease := func(d *lockfile.Dir, age time.Duration) string {
		l, err := d.Lease(lockfile.Session{Agent: "claude", Limiters: []string{testLimiter}, State: lockfile.Idle, Born: now.Add(-age)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l.ID()
	}
	old, young := lease(store, time.Hour), lease(sibling, time.Minute)
	if _, err := store.Update(t.Context(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		l.Limiters[testLimiter] = lockfile.Limiter{ID: testLimiter, Cap: &lockfile.Cap{K: 1, Cut: now}, Used: now}
		return l, nil
	}); err != nil {
		t.Fatal(err)
	}
	begin := func(d *lockfile.Dir, id string) {
		t.Helper()
		if _, err := d.Update(t.Context(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			return p.Activity(l, policies.Input{Now: now.Add(time.Second), Self: id}, policies.Activity{Busy: true, TurnBegan: true})
		}); err != nil {
			t.Fatal(err)
		}
	}
	written := func() time.Time {
		l, err := sibling.Read()
		if err != nil {
			t.Fatal(err)
		}
		return l.Limiters[testLimiter].Updated
	}
	before := written()
	begin(sibling, young)
	if !written().Equal(before) {
		t.Error("a turn that moves nobody was written into the limiter")
	}
	hint, err := sibling.Watch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	begin(store, old)
	select {
	case <-hint:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody heard")
	}
	l, err := sibling.Read()
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Decide(l, young, now.Add(time.Second)); d.Action != policies.Suspend || d.Reason.Code != policies.Capped {
		t.Errorf("the younger one: %+v", d)
	}
}
