package policies

import (
	"maps"
	"slices"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// Hold closes a limiter because a person said so, until an instant. Who is busy
// is suspended and launches wait, whatever their class or priority; a success
// does not open it, and when it ends nobody has to try first: those who waited
// go on one after another. A second one replaces the first. text says why, for
// people; source how the end was said.
func (p Policy) Hold(l lockfile.Ledger, in Input, limiter string, until time.Time, source finding.ResetSource, text string) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	lim := e.limiter(limiter)
	h := lockfile.Hold{Class: finding.Person, Since: in.Now, First: in.Now, Until: until, UntilSource: source, Stated: until, Rule: "person", Why: why([]string{text})}
	setHold(&lim, h)
	lim.Release = nil
	e.put(lim)
	ev := e.event("hold", limiter, finding.Person)
	ev.Until, ev.Reason = until, "person"
	if text != "" {
		ev.Rows = []string{h.Why}
	}
	return e.done()
}

// personsOver: a hold that a person set has ended. It needs no probe.
func (v view) personsOver(h lockfile.Hold) bool { return !h.Until.After(v.now) || v.steppedBack(h) }

// firstMost bounds how many a person may put first on one limiter: its file is
// read by everybody, and a queue that is all exceptions has no order.
const firstMost = 4

// First puts a session that waits in front of every queue that it stands in,
// until it goes on. It writes limiters only, since a session's record is its
// own shim's; it reports on which limiters the session waits.
func (p Policy) First(l lockfile.Ledger, in Input, session string) (lockfile.Ledger, []lockfile.Event, []string) {
	e := p.edit(l, in)
	var ids []string
	for _, id := range limitersOf(e.l, e.l.Sessions[session]) {
		if e.view().line(id).place(session) < 0 {
			continue
		}
		lim := e.l.Limiters[id]
		first := []string{session}
		for _, x := range lim.First {
			if s, ok := e.l.Sessions[x]; ok && s.Alive && x != session && len(first) < firstMost {
				first = append(first, x)
			}
		}
		lim.First = first
		e.put(lim)
		ids = append(ids, id)
		ev := e.event("queue", id, "")
		ev.Session, ev.Agent, ev.Reason = session, e.l.Sessions[session].Agent, "person"
	}
	out, events := e.done()
	return out, events, ids
}

// taken takes the caller out of what a person said: its turn has come.
func (e *edit) taken() {
	for _, id := range limitersOf(e.l, e.s) {
		lim := e.l.Limiters[id]
		if i := slices.Index(lim.First, e.s.ID); i >= 0 {
			lim.First = slices.Delete(lim.First, i, i+1)
			e.s.Ahead = true
			e.put(lim)
		}
	}
}

// Release opens a limiter because a person said so; who waited goes on one by
// one all the same. It is an error of nobody if nothing held it.
func (p Policy) Release(l lockfile.Ledger, in Input, limiter string) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	lim, ok := e.l.Limiters[limiter]
	if !ok {
		return e.done()
	}
	lim.Probe = nil
	if e.open(&lim, func(lockfile.Hold) bool { return true }) {
		e.events[len(e.events)-1].Reason = "person"
	}
	e.put(lim)
	return e.done()
}

// RunAnyway lets the caller's session, and what is nested in it, run in spite
// of every hold that stands now, until these end. Use it for --now, for Enter
// in the countdown, for r in the pause row, and for a SIGCONT from outside.
func (p Policy) RunAnyway(l lockfile.Ledger, in Input) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	if !e.known {
		return e.done()
	}
	said := map[string]time.Time{}
	ids := append(limitersOf(e.l, e.s), e.s.Limiters...)
	for _, id := range ids {
		said[id] = in.Now
	}
	e.s.RunAnyway = said
	e.event("release", "", "").Reason = string(Anyway)
	return e.done()
}

// ContinueAll lets everything that is stopped run in spite of the holds that
// stand now, until these end. It writes limiters only: each session hears of it
// there, continues at once, and keeps it in its own record. To let them go on
// one after another: Release.
func (p Policy) ContinueAll(l lockfile.Ledger, in Input) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	for _, id := range slices.Sorted(maps.Keys(e.l.Limiters)) {
		if len(e.view().line(id)) == 0 {
			continue
		}
		lim := e.l.Limiters[id]
		lim.Anyway = in.Now
		e.put(lim)
		if len(lim.Holds) > 0 {
			e.event("release", id, "").Reason = string(Anyway)
		}
	}
	return e.done()
}

// keepAnyway takes into the session's own record that it runs because a person
// continued everything: the limiters forget who was stopped then.
func (e *edit) keepAnyway() {
	said := maps.Clone(e.s.RunAnyway)
	for _, id := range limitersOf(e.l, e.s) {
		if all := e.l.Limiters[id].Anyway; continued(e.s, all) {
			if said == nil {
				said = map[string]time.Time{}
			}
			said[id] = later(said[id], all)
		}
	}
	e.s.RunAnyway = said
}

// LimiterState is what status shows of a limiter.
type LimiterState string

// The states of a limiter.
const (
	LimiterOpen    LimiterState = "open"
	LimiterHeld    LimiterState = "held"
	LimiterProbing LimiterState = "probing" // a session goes first, or is about to
	LimiterBlocked LimiterState = "blocked" // only a person or a success opens it
)

// State says how a limiter stands now. A hold that ran out while nobody waits
// leaves it open.
func (p Policy) State(l lockfile.Ledger, id string, now time.Time) LimiterState {
	v := view{p: p, l: l, now: now}
	lim := l.Limiters[id]
	lim.Holds = slices.DeleteFunc(slices.Clone(lim.Holds), func(h lockfile.Hold) bool { return h.Class == finding.Person && v.personsOver(h) })
	force := slices.ContainsFunc(lim.Holds, func(h lockfile.Hold) bool { return h.Until.After(now) })
	switch {
	case slices.ContainsFunc(lim.Holds, func(h lockfile.Hold) bool { return h.Blocked }):
		return LimiterBlocked
	case len(lim.Holds) > 0 && v.probeLives(lim):
		return LimiterProbing
	case force:
		return LimiterHeld
	case len(lim.Holds) > 0 && len(v.line(id)) > 0:
		return LimiterProbing
	}
	return LimiterOpen
}

// Queue lists the sessions that are stopped on a limiter, in the order in which
// they will be let go.
func (p Policy) Queue(l lockfile.Ledger, id string, now time.Time) []string {
	var out []string
	for _, x := range (view{p: p, l: l, now: now}).line(id) {
		out = append(out, x.id)
	}
	return out
}
