package policies

import (
	"maps"
	"slices"
	"time"

	"qshim/lockfile"
)

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
