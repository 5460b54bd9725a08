//go:build linux

package shim

import (
	"errors"
	"testing"

	"qshim/lockfile"
)

func TestLate(t *testing.T) {
	_, dir := newDirStore(t)
	fails, tries := errors.New("no space"), 0
	l := NewLate(dir, func() (lockfile.Lease, error) {
		if tries++; tries == 1 {
			return nil, fails
		}
		return dir.Lease(lockfile.Session{ID: "late", PID: 1, State: lockfile.Waiting})
	})
	if !l.pending() || (*Late)(nil).pending() {
		t.Error("who is pending is the other way round")
	}
	if _, err := l.Read(); !errors.Is(err, fails) || !l.pending() {
		t.Errorf("the first try: %v", err)
	}
	uses := []func() error{
		func() error { _, err := l.Glance(); return err },
		func() error { _, err := l.Read(); return err },
		func() error { _, err := l.Update(t.Context(), leave); return err },
		func() error { _, err := l.UpdateOwn(t.Context(), leave); return err },
		func() error { return l.Record("late", func(*lockfile.Session) {}) },
		l.Announce,
	}
	for i, use := range uses {
		if err := use(); err != nil {
			t.Errorf("use %d: %v", i, err)
		}
	}
	if led, err := dir.Read(); err != nil || !led.Sessions["late"].Alive || tries != 2 || l.pending() {
		t.Errorf("after the second try: %+v, %v, %d tries", led.Sessions, err, tries)
	}
	if err := l.End(); err != nil {
		t.Error(err)
	}
	if led, err := dir.Read(); err != nil || len(led.Sessions) != 0 {
		t.Errorf("after its end: %+v, %v", led.Sessions, err)
	}

	never := NewLate(dir, func() (lockfile.Lease, error) { t.Error("announced"); return nil, fails })
	if err := never.End(); err != nil {
		t.Error(err)
	}
	for i, use := range []func() error{never.Announce, func() error { _, err := never.Read(); return err }} {
		if err := use(); !errors.Is(err, errLateOver) {
			t.Errorf("use %d after the end: %v", i, err)
		}
	}
}

func leave(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) { return l, nil }
