package shim

import (
	"time"

	"qshim/detect"
	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/shim/internal/proc"
)

// What a limit needs at once is made before it is needed: where 100 sessions meet
// theirs in one instant, on two processors, each has to wait for what the others
// make first.
//
//	memory given back (lean) -> cold
//	cold, the agent at work  -> patterns compiled, once, and memory given back again
//	                         -> a stop played through, so that its pages are there
//
// An agent that is not at work costs none of it.

// warmUp does that where it is due. It runs with the desk.
func (r *runner) warmUp() {
	if r.gov.activity != detect.Busy || !r.cold.Swap(false) {
		return
	}
	if r.prepared {
		r.gov.rehearse()
		proc.GiveWay()
		return
	}
	r.prepared = true
	go r.guardTail(func() {
		r.c.Rules.Prepare()
		r.giveBack() // what compiling took
	})
}

// rehearse plays a stop through, up to the point where something would be done.
func (g *governor) rehearse() {
	l, err := g.store.Glance()
	s, ok := l.Sessions[g.self]
	if err != nil || !ok {
		return // the next decision says why
	}
	in := g.input()
	s.State = lockfile.Running
	l.Sessions[g.self] = s
	for _, id := range s.Limiters {
		lim := l.Limiters[id]
		lim.ID = id
		lim.Holds = []lockfile.Hold{{Class: finding.Rate, Measure: finding.Requests, Scope: finding.Account, Since: in.Now, First: in.Now,
			Until: in.Now.Add(time.Minute), UntilSource: finding.Estimate, By: "a sibling", Why: "a row", Rule: "a rule"}}
		l.Limiters[id] = lockfile.AsRead(lim)
	}
	_, _ = g.policy.MustStop(l, in)
}
