package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
	"qshim/policies/config"
)

var day = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const (
	acct = "anthropic/0123456789ab"
	mach = "anthropic@source"
)

// world drives sessions as their shims would: every change and every wake makes
// each session decide; who may claim steps; nobody touches another's session.
type world struct {
	t       failer
	p       policies.Policy
	l       lockfile.Ledger
	now     time.Time
	rand    func() float64
	wake    map[string]time.Time
	last    map[string]policies.Decision
	log     []string
	let     []string // sessions let go, in order
	onEvent func(lockfile.Event)
	steps   int
}

// failer is what a test and a property have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newWorld(t failer) *world {
	return &world{
		t: t, p: config.Defaults().Policy, now: day, rand: func() float64 { return 0.5 },
		l:    lockfile.Ledger{Limiters: map[string]lockfile.Limiter{}, Sessions: map[string]lockfile.Session{}},
		wake: map[string]time.Time{}, last: map[string]policies.Decision{},
	}
}

func (w *world) in(self string) policies.Input {
	return policies.Input{Now: w.now, Self: self, Rand: w.rand}
}

func (w *world) add(s lockfile.Session) {
	if s.Limiters == nil {
		s.Limiters = []string{acct, mach}
	}
	if s.Born.IsZero() {
		s.Born = w.now
	}
	if s.Priority == "" {
		s.Priority = lockfile.Interactive
	}
	s.Alive, s.Since = true, w.now
	w.l.Sessions[s.ID] = s
	for _, id := range s.Limiters {
		if _, ok := w.l.Limiters[id]; !ok {
			w.l.Limiters[id] = lockfile.Limiter{Schema: 1, ID: id}
		}
	}
}

// apply takes the ledger that session self has written, and holds it to what a
// session may write.
func (w *world) apply(self string, l lockfile.Ledger, events []lockfile.Event) {
	w.t.Helper()
	for id, s := range l.Sessions {
		if old := w.l.Sessions[id]; id != self && !reflect.DeepEqual(old, s) {
			w.t.Fatalf("%s wrote the session of %s\nwas %+v\nis  %+v", self, id, old, s)
		}
	}
	for id, lim := range l.Limiters {
		if len(lim.Holds) > 6 {
			w.t.Fatalf("%s has %d holds", id, len(lim.Holds))
		}
	}
	w.l = l
	for _, e := range events {
		w.say("%-11s %-3s %s %s %s", e.Event, e.Session, e.Limiter, e.Class, e.Reason)
		if (e.Event == "continue" || e.Event == "launch" || e.Event == "resume" && e.Reason == "begin") && e.Reason != string(policies.Parked) {
			w.let = append(w.let, e.Session)
		}
		if w.onEvent != nil {
			w.onEvent(e)
		}
	}
}

func (w *world) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%8.1fs ", w.now.Sub(day).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) find(self string, f finding.Finding) {
	if f.Confidence == "" {
		f.Confidence = finding.Strong
	}
	f.At = w.now
	l, ev := w.p.Finding(w.l, w.in(self), f)
	w.apply(self, l, ev)
}

func (w *world) act(self string, a policies.Activity) {
	l, ev := w.p.Activity(w.l, w.in(self), a)
	w.apply(self, l, ev)
}

func (w *world) step(self string) policies.Decision {
	w.steps++
	l, d, ev := w.p.Step(w.l, w.in(self))
	w.apply(self, l, ev)
	return d
}

// settle lets every living session decide until nothing more happens at this
// instant.
func (w *world) settle() {
	for round := 0; ; round++ {
		if round > 50 {
			w.fail("does not settle")
		}
		before := w.steps
		for _, id := range slices.Sorted(maps.Keys(w.l.Sessions)) {
			w.decide(id)
		}
		if w.steps == before {
			return
		}
	}
}

func (w *world) decide(id string) {
	s := w.l.Sessions[id]
	if !s.Alive || s.UserStopped {
		delete(w.wake, id)
		return
	}
	d := w.p.Decide(w.l, id, w.now)
	w.alone(id, d)
	if d.Claim && (d.Action != policies.Suspend || s.State != lockfile.Running || !d.QuietUntil.After(w.now)) {
		w.step(id)
		d = w.p.Decide(w.l, id, w.now)
	}
	w.last[id], w.wake[id] = d, d.Wake
	held := d.Action != policies.Run
	if held && (d.Wake.IsZero() || d.Wake.After(w.now.Add(30*time.Second))) {
		w.fail("%s is held and wakes at %v only", id, d.Wake)
	}
}

// alone: a session that must stop by its own record and its limiters must by all
// that Decide sees.
func (w *world) alone(id string, d policies.Decision) {
	own := lockfile.Ledger{Limiters: w.l.Limiters, Sessions: map[string]lockfile.Session{id: w.l.Sessions[id]}}
	in := policies.Input{Now: w.now, Self: id}
	got, must := w.p.MustStop(own, in)
	if must && d.Action != policies.Suspend {
		w.fail("%s must stop by itself, %+v, and not among its siblings, %+v", id, got, d)
	}
	next, _, events, ok := w.p.Stop(own, in)
	if ok != must || ok && (next.Sessions[id].State != lockfile.Suspended || len(events) != 1) {
		w.fail("%s: stop by itself %v, %v: %+v", id, must, ok, next.Sessions[id])
	}
}

// next is the earliest wake of anybody.
func (w *world) next() time.Time {
	var t time.Time
	for _, at := range w.wake {
		if at.After(w.now) && (t.IsZero() || at.Before(t)) {
			t = at
		}
	}
	return t
}

// run lets time pass, waking who wants to be woken.
func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for {
		w.settle()
		t := w.next()
		if t.IsZero() || t.After(end) {
			break
		}
		w.now = t
	}
	w.now = end
	w.settle()
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	state, _ := json.MarshalIndent(w.l, "", " ")
	if len(state) > 20000 {
		state = state[:20000]
	}
	w.t.Fatalf("at %s: %s\n%s\n%s", w.now.Sub(day), fmt.Sprintf(format, args...), strings.Join(w.log[max(0, len(w.log)-60):], "\n"), state)
}
