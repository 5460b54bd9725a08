//go:build linux

package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"qshim/cmd/internal/cmdline"
	"qshim/lockfile"
)

// A command that is over at once tells nobody of itself where nothing could
// hold it up: nothing is written. On a busy machine one may be older than the
// tenth of a second from which on it counts.
func TestOverAtOnce(t *testing.T) {
	for range 50 {
		d := newDesk(t, map[string]string{"claude": "exit 3\n"})
		d.knows(lockfile.Limiter{ID: claudeAccount, Label: "Claude Code", Used: time.Now()})
		d.run("qshim", "claude")
		if code := d.code(); code != 3 {
			t.Fatalf("code %d", code)
		}
		if len(d.events()) == 0 {
			return
		}
	}
	t.Error("each of 50 was told of")
}

// knows puts a limiter into the state.
func (d *desk) knows(lim lockfile.Limiter) {
	d.t.Helper()
	changeState(d.t, d.state(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		l.Limiters[lim.ID] = lim
		return l, nil
	})
}

// One that stays is announced, with its launch and its agent.
func TestAnnounced(t *testing.T) {
	for name, known := range map[string]lockfile.Limiter{
		"nothing known":    {ID: claudeAccount, Label: "Claude Code"},
		"something is":     {ID: claudeAccount, LastHit: time.Now()},
		"another is known": {ID: "openai/x", LastHit: time.Now()},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, map[string]string{"claude": echoAgent})
			d.knows(known)
			d.run("qshim", "claude")
			d.shows(`^started`)
			d.untilEvent("launch")
			if s := d.onlySession(); !s.Alive || s.State == lockfile.Waiting || s.Limiters[0] != claudeAccount || s.PID != d.cmd.Process.Pid {
				t.Errorf("%+v", s)
			}
			d.send("line\n")
			d.shows(`^got <line>$`)
			if code := d.code(); code != 0 {
				t.Errorf("code %d", code)
			}
			d.untilEvent("exit")
		})
	}
}

func (d *desk) open() *lockfile.Dir {
	d.t.Helper()
	store, err := lockfile.Open(d.state(), lockfile.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	return store
}

func (d *desk) events() (out []lockfile.Event) {
	d.t.Helper()
	store := d.open()
	defer store.Close()
	for e, err := range store.Events(d.t.Context(), time.Time{}, false) {
		if err != nil {
			d.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// untilEvent waits for an event of a kind.
func (d *desk) untilEvent(kind string) {
	d.t.Helper()
	store := d.open()
	defer store.Close()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	for e, err := range store.Events(ctx, time.Time{}, true) {
		if err == nil && e.Event == kind {
			return
		}
	}
	d.t.Fatalf("no %s; the screen:\n%s", kind, d.output())
}

func (d *desk) onlySession() (s lockfile.Session) {
	d.t.Helper()
	store := d.open()
	defer store.Close()
	l, err := store.Read()
	if err != nil || len(l.Sessions) != 1 {
		d.t.Fatalf("%+v, %v", l.Sessions, err)
	}
	for _, s = range l.Sessions {
	}
	return s
}

// A word that is not in the list would be taken for an agent's.
func TestOwnWords(t *testing.T) {
	want := []string{cmdline.Request, cmdline.RequestPlain}
	for _, c := range newApp().root().Commands() {
		want = append(want, c.Name())
	}
	slices.Sort(want)
	got := slices.Sorted(slices.Values(ownWords))
	if !slices.Equal(got, want) {
		t.Errorf("ownWords has\n%q, the commands are\n%q", got, want)
	}
}
