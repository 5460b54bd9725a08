package shim

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"qshim/lockfile"
)

// leads says in the ledger that the agent leads a group of its own.
func (b *govBench) leads() {
	b.edit(func(l lockfile.Ledger) {
		s := l.Sessions[me]
		s.ChildPID, s.ChildStart, s.ChildLeads = 4711, 1, true // as fakeHands stops
		l.Sessions[me] = s
	})
}

// An agent whose group the ledger knows is stopped at once, and recorded and logged
// a moment later as of the stop.
func TestStopFirst(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.leads()
		b.hit(rateHit(20 * time.Second))
		at := time.Now()
		b.decide(b.ctx)
		b.did("STOP", "notice suspended")
		if d := b.logAt.Sub(at); d < asideLeast || d > asideMost {
			t.Errorf("recorded in %v", d)
		}
		time.Sleep(time.Until(b.logAt))
		b.logNow(b.ctx)
		b.did("record")
		s := b.store.session(me)
		if s.State != lockfile.Suspended || !s.Since.Equal(at) || len(s.Stopped) != 1 || b.store.count("suspend") != 1 {
			t.Errorf("%+v, logged %d times", s, b.store.count("suspend"))
		}
		b.logNow(b.ctx)
		b.did()
		b.open()
		b.again(b.ctx)
		b.did("CONT", "clear", "notice continued")
	})
}

// Whatever decides next records it before it looks.
func TestStopFirstThenADecision(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.leads()
		b.hit(rateHit(20 * time.Second))
		b.decide(b.ctx)
		b.did("STOP", "notice suspended")
		b.again(b.ctx)
		b.did("record")
		if s := b.store.session(me); s.State != lockfile.Suspended {
			t.Errorf("%+v", s)
		}
	})
}

// What goes on before it was recorded leaves no record.
func TestStopFirstGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.leads()
		b.hit(rateHit(20 * time.Second))
		b.decide(b.ctx)
		b.did("STOP", "notice suspended")
		if err := b.hands.Continue(); err != nil {
			t.Fatal(err)
		}
		b.logNow(b.ctx)
		b.did("CONT")
		if s := b.store.session(me); s.State != lockfile.Running || s.Stopped != nil {
			t.Errorf("%+v", s)
		}
	})
}

// A record that fails leaves nobody stopped.
func TestStopFirstNoRecord(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.leads()
		b.hit(rateHit(5 * time.Minute))
		full := errors.New("no space left on device")
		b.decide(b.ctx)
		b.did("STOP", "notice suspended")
		b.store.fail(nil, full)
		b.logNow(b.ctx)
		b.did("CONT", "notice continued", fmt.Sprintf("warn %v", full))
		if got := time.Until(b.wake); got <= 0 || got > retry {
			t.Errorf("tries again in %v", got)
		}
	})
}

// A ledger that knows another agent, or none, is told before the stop.
func TestStopFirstOnlyWhomTheLedgerKnows(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.leads()
		b.edit(func(l lockfile.Ledger) {
			s := l.Sessions[me]
			s.ChildStart++
			l.Sessions[me] = s
		})
		b.hit(rateHit(20 * time.Second))
		b.decide(b.ctx)
		b.did(stopped4...)
	})
}

// A stop that is only played through stops and writes nothing.
func TestRehearse(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		before := b.store.updates
		b.rehearse()
		b.did()
		if b.hands.Held() || b.store.updates != before || len(b.store.l.Limiters) != 0 {
			t.Errorf("held %v, %d updates, %+v", b.hands.Held(), b.store.updates-before, b.store.l.Limiters)
		}
		b.store.fail(errors.New("read"), nil)
		b.rehearse()
		b.did()
	})
}
