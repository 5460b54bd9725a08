//go:build linux

package shim

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
)

// Several real sessions on one limiter: real shims on real terminals, with an
// agent that paints Claude Code's rows.

type herd struct {
	t     *testing.T
	dir   string
	store *lockfile.Dir
	desks []*desk
}

func newHerd(t *testing.T, n int) *herd {
	t.Helper()
	h := &herd{t: t}
	h.dir, h.store = newDirStore(t)
	for i := range n {
		d := newDesk(t, deskOpt{env: []string{stateEnv + "=" + h.dir, agentEnv + "=claude"}}, self(t), sessionArg,
			self(t), drawArg, "claude", "100", "30", filepath.Join(t.TempDir(), "log"+strconv.Itoa(i)))
		d.wait("the first screen", func() bool { return bytes.Contains(d.out, []byte("Working…")) })
		h.desks = append(h.desks, d)
	}
	eventually(t, "every session is in the ledger", func() bool {
		for _, d := range h.desks {
			if h.of(d).ChildPID == 0 {
				return false
			}
		}
		return true
	})
	return h
}

func (h *herd) ledger() lockfile.Ledger {
	h.t.Helper()
	l, err := h.store.Read()
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

// of is a desk's session.
func (h *herd) of(d *desk) lockfile.Session {
	h.t.Helper()
	for _, s := range h.ledger().Sessions {
		if s.PID == d.pid {
			return s
		}
	}
	return lockfile.Session{}
}

// stopped counts the desks whose agent is in state T.
func (h *herd) stopped(desks ...*desk) (n int) {
	for _, d := range desks {
		if s := h.of(d); s.ChildPID != 0 && state(s.ChildPID) == 'T' {
			n++
		}
	}
	return n
}

// events lists who did what since an instant.
func (h *herd) events(kind string) (out []lockfile.Event) {
	h.t.Helper()
	for e, err := range h.store.Events(h.t.Context(), time.Time{}, false) {
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Event == kind {
			out = append(out, e)
		}
	}
	return out
}

// prober waits until one of the desks goes first.
func (h *herd) prober(not string) *desk {
	h.t.Helper()
	var who *desk
	eventually(h.t, "a probe", func() bool {
		pr := h.ledger().Limiters[testLimiter].Probe
		if pr == nil || pr.Session == not {
			return false
		}
		for _, d := range h.desks {
			if h.of(d).ID == pr.Session {
				who = d
			}
		}
		return who != nil
	})
	return who
}

func without1(desks []*desk, not *desk) (out []*desk) {
	for _, d := range desks {
		if d != not {
			out = append(out, d)
		}
	}
	return out
}

// One hits a limit: the busy siblings are stopped, one goes first, and when
// nothing came of it the others go on one after another.
func TestSiblingsWaitTogether(t *testing.T) {
	h := newHerd(t, 4)
	first, rest := h.desks[0], h.desks[1:]
	began := time.Now()
	first.send("f")
	eventually(t, "the siblings are stopped", func() bool { return h.stopped(rest...) == len(rest) })
	t.Logf("row -> %d siblings in state T: %v", len(rest), time.Since(began))
	if h.stopped(first) != 0 {
		t.Error("the one that hit the limit was stopped too")
	}
	for _, e := range h.events("suspend") {
		if e.Limiter != testLimiter || e.Class != "rate" {
			t.Errorf("suspended for %+v", e)
		}
	}
	p := h.prober("")
	eventually(t, "the probe runs", func() bool { return h.stopped(p) == 0 })
	if n := h.stopped(without1(rest, p)...); n != len(rest)-1 {
		t.Errorf("%d of %d wait while one goes first", n, len(rest)-1)
	}
	eventually(t, "all go on", func() bool { return h.stopped(rest...) == 0 && len(h.events("continue")) == len(rest) })
	all := h.events("continue")
	for i := 2; i < len(all); i++ { // 1 s ± 50 %
		if gap := all[i].At.Sub(all[i-1].At); gap < 400*time.Millisecond {
			t.Errorf("%v between two continues", gap)
		}
	}
	eventually(t, "the records are cleared", func() bool {
		for _, s := range h.ledger().Sessions {
			if len(s.Stopped) > 0 {
				return false
			}
		}
		return true
	})
	h.end()
}

// end ends every agent in the ordinary way; nothing stays in the ledger.
func (h *herd) end() {
	h.t.Helper()
	for _, d := range h.desks {
		if d.exited {
			continue
		}
		d.send("q")
		if c := d.code(); c != 0 {
			h.t.Errorf("code %d", c)
		}
	}
	if n := len(h.ledger().Sessions); n != 0 {
		h.t.Errorf("%d sessions left in the ledger", n)
	}
}

// The client retries by itself: hands off, it is the probe.
func TestRetrierIsLeftAlone(t *testing.T) {
	h := newHerd(t, 3)
	first, rest := h.desks[0], h.desks[1:]
	first.send("r")
	eventually(t, "the siblings are stopped", func() bool { return h.stopped(rest...) == len(rest) })
	if h.stopped(first) != 0 {
		t.Error("a client in its own retry was stopped")
	}
	first.send("b") // its own retry got through
	first.send("d")
	for len(rest) > 0 { // one at a time, as the number that the hit left allows
		var next *desk
		eventually(t, "the next one goes on", func() bool {
			i := slices.IndexFunc(rest, func(d *desk) bool { return h.stopped(d) == 0 })
			if i >= 0 {
				next = rest[i]
			}
			return i >= 0
		})
		next.send("d")
		rest = without1(rest, next)
	}
	h.end()
}

// kill -9 of a shim whose agent is suspended, and of the one that holds the
// probe: nothing stays stopped, the others go on.
func TestKilledShims(t *testing.T) {
	h := newHerd(t, 4)
	first, rest := h.desks[0], h.desks[1:]
	first.send("f")
	eventually(t, "the siblings are stopped", func() bool { return h.stopped(rest...) == len(rest) })
	p := h.prober("")
	eventually(t, "the probe runs", func() bool { return h.stopped(p) == 0 })
	prober, waiting := h.of(p), without1(rest, p)
	victim := waiting[0]
	family := append(descendants(victim.pid), descendants(p.pid)...)
	if err := unix.Kill(victim.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(p.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	victim.code()
	p.code()
	waitGone(t, family)
	q := h.prober(prober.ID)
	eventually(t, "the next one goes first", func() bool { return h.stopped(q) == 0 })
	if q != waiting[1] {
		t.Error("who probes is not the one that was left")
	}
	eventually(t, "the limiter is open", func() bool {
		lim := h.ledger().Limiters[testLimiter]
		return lim.Probe == nil && len(lim.Holds) == 0
	})
	if n := h.stopped(h.desks...); n != 0 {
		t.Errorf("%d agents are stopped", n)
	}
	if _, err := h.store.Recover(ContinueOrphan); err != nil {
		t.Error(err)
	}
	h.end()
}

// Above the number that may be busy the younger one stands still, whenever the
// older one begins a turn.
func TestOlderTurnStopsYounger(t *testing.T) {
	h := newHerd(t, 2)
	older, younger := h.desks[0], h.desks[1]
	if _, err := h.store.Update(t.Context(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		lim := l.Limiters[testLimiter]
		lim.ID, lim.Cap = testLimiter, &lockfile.Cap{K: 1, Cut: time.Now()}
		l.Limiters[testLimiter] = lim
		return l, nil
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		began := time.Now()
		eventually(t, "the younger one is stopped", func() bool { return h.stopped(younger) == 1 })
		t.Logf("older busy -> younger in state T: %v", time.Since(began))
		older.send("d")
		began = time.Now()
		eventually(t, "the younger one goes on", func() bool { return h.stopped(younger) == 0 })
		t.Logf("older idle -> younger goes on: %v", time.Since(began))
		older.send("b")
	}
	older.send("d")
	eventually(t, "the younger one goes on", func() bool { return h.stopped(younger) == 0 })
	h.end()
}
