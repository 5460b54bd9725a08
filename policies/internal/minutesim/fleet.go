package minutesim

import (
	"fmt"
	"reflect"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
)

// fleet is one shim an agent over one ledger: what package shim's governor does,
// without processes and files.
type fleet struct {
	r       *run
	p       policies.Policy
	l       lockfile.Ledger
	ids     []string
	members map[string]*agent
	wake    map[string]*planned
	news    bool // the siblings look soon
	sight   policies.Outlook
	seen    time.Duration // when sight was taken; -1: the ledger has changed since
	looks   int
	busiest int
}

var epoch = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const (
	account = "anthropic/0123456789ab"
	machine = "anthropic@source"
)

func newFleet(r *run, p policies.Policy) *fleet {
	return &fleet{r: r, p: p, seen: -1, members: map[string]*agent{}, wake: map[string]*planned{}, l: lockfile.Ledger{
		Limiters: map[string]lockfile.Limiter{
			account: {Schema: lockfile.Schema, ID: account}, machine: {Schema: lockfile.Schema, ID: machine},
		},
		Sessions: map[string]lockfile.Session{},
	}}
}

func name(a *agent) string { return fmt.Sprintf("s%02d", a.id) }

func (f *fleet) in(id string) policies.Input {
	return policies.Input{Now: f.time(), Self: id, Rand: f.r.rng.Float64}
}

func (f *fleet) time() time.Time { return epoch.Add(f.r.now) }

func (f *fleet) wants(a *agent) {
	id, now := name(a), f.time()
	priority := lockfile.Interactive
	if f.r.w.Background && a.id%2 == 1 {
		priority = lockfile.Background
	}
	f.seen = -1
	headless := f.r.w.Runs > 0 || f.r.w.Headless
	if headless {
		priority = lockfile.Background
	}
	f.l.Sessions[id] = lockfile.Session{ID: id, Agent: "claude", Limiters: []string{account, machine}, Prompt: true, Headless: headless,
		Priority: priority, State: lockfile.Waiting, Since: now, Born: now, Alive: true}
	f.ids, f.members[id] = append(f.ids, id), a
	f.look(id)
}

func (f *fleet) shows(a *agent, m message) {
	id := name(a)
	x := finding.Finding{At: epoch.Add(m.at), Class: finding.Retrying, Cause: finding.Rate, Attempt: m.tries, Confidence: finding.Strong, Rule: "sim"}
	if f.r.w.Untold {
		x.Cause = finding.Unknown
	}
	if m.next > 0 {
		x.RetryAfter = m.next - m.at
	}
	if m.final {
		x.Class, x.Cause = finding.Rate, ""
	}
	f.update(id, func(l lockfile.Ledger) lockfile.Ledger {
		l, _ = f.p.Finding(l, f.in(id), x)
		if m.final {
			l, _ = f.p.Activity(l, f.in(id), policies.Activity{TurnEnded: true, Idle: true})
		}
		return l
	})
}

func (f *fleet) answers(a *agent) {
	if f.r.w.Signs {
		f.activity(a, policies.Activity{AnswerBegun: true, RetryEnded: true})
	}
}

func (f *fleet) pressedOn(a *agent) {
	x := policies.Activity{Busy: true, TurnBegan: true}
	if f.r.w.Typed {
		x.Typed = f.time()
	}
	f.activity(a, x)
}

func (f *fleet) activity(a *agent, x policies.Activity) {
	id := name(a)
	f.update(id, func(l lockfile.Ledger) lockfile.Ledger {
		l, _ = f.p.Activity(l, f.in(id), x)
		return l
	})
}

func (f *fleet) ended(a *agent) {
	id := name(a)
	f.update(id, func(l lockfile.Ledger) lockfile.Ledger {
		l, _ = f.p.Activity(l, f.in(id), policies.Activity{Success: true, TurnEnded: true, Exit: true})
		delete(l.Sessions, id)
		return l
	})
	f.wake[id].forget()
	delete(f.members, id)
	for i, x := range f.ids {
		if x == id {
			f.ids = append(f.ids[:i:i], f.ids[i+1:]...)
			break
		}
	}
}

// update is a change under the lock. The siblings hear of it where it changed a
// limiter: sessions' files are not watched.
func (f *fleet) update(id string, change func(lockfile.Ledger) lockfile.Ledger) {
	before := f.l.Limiters
	f.l = change(f.l)
	f.seen = -1
	if !f.news && !reflect.DeepEqual(before, f.l.Limiters) {
		f.news = true
		f.r.after(f.r.w.Lag, func() {
			f.news = false
			for _, x := range append([]string(nil), f.ids...) {
				f.look(x)
			}
		})
	}
	if _, there := f.l.Sessions[id]; there {
		f.look(id)
	}
}

// look is a shim's decision, and what follows from it.
func (f *fleet) look(id string) {
	a := f.members[id]
	if a == nil {
		return
	}
	f.looks++
	d := f.decide(id)
	if d.Claim {
		before := f.l.Sessions[id].State
		f.update("", func(l lockfile.Ledger) lockfile.Ledger {
			l, _, _ = f.p.Step(l, f.in(id))
			return l
		})
		f.carryOut(id, a, before)
		d = f.decide(id)
	}
	f.wake[id].forget()
	if !d.Wake.IsZero() {
		f.wake[id] = f.r.at(d.Wake.Sub(epoch), func() { f.look(id) })
	}
}

func (f *fleet) decide(id string) policies.Decision {
	if f.seen != f.r.now {
		f.sight, f.seen = f.p.Outlook(f.l, f.time()), f.r.now
	}
	return f.sight.Decide(id)
}

func (f *fleet) carryOut(id string, a *agent, before lockfile.State) {
	switch state := f.l.Sessions[id].State; {
	case before == lockfile.Waiting && state != lockfile.Waiting:
		if !f.l.Sessions[id].Headless {
			f.activityOnly(id, policies.Activity{Busy: true, TurnBegan: true})
		}
		a.launch()
	case before != lockfile.Suspended && state == lockfile.Suspended:
		a.stop()
	case before == lockfile.Suspended && state != lockfile.Suspended:
		a.cont()
	}
	if f.r.now > time.Minute {
		n := 0
		for _, x := range f.members {
			if x.phase != unborn && x.phase != failed && !x.stopped {
				n++
			}
		}
		f.busiest = max(f.busiest, n)
	}
}

// activityOnly reports without looking again: the caller is about to.
func (f *fleet) activityOnly(id string, x policies.Activity) {
	f.update("", func(l lockfile.Ledger) lockfile.Ledger {
		l, _ = f.p.Activity(l, f.in(id), x)
		return l
	})
}
