package policies

import "qshim/lockfile"

// A limit is told to everybody at once. Were each to read all its siblings then,
// 200 sessions would read 40,000 files before the last one is stopped; but that a
// hold stops a session follows from the hold and its own record.

// MustStop says whether a running session has to stop for a hold in force,
// whatever its siblings do: l need not hold them. False: they count, ask Decide.
// The decision does not say its place in the line.
func (p Policy) MustStop(l lockfile.Ledger, in Input) (Decision, bool) {
	s, ok := l.Sessions[in.Self]
	if !ok || s.State != lockfile.Running || s.Parent != "" {
		return Decision{}, false // a nested session does as its parent
	}
	d := view{p: p, l: l, now: in.Now, self: in.Self, memo: &memo{}}.decide(s).Decision
	stops := d.Reason.Code == Held || d.Reason.Code == Storming || d.Reason.Code == Blocked
	d.Place = 0
	return d, d.Action == Suspend && stops
}

// Stop is Step where MustStop says so: it marks the session as suspended. False:
// nothing was changed, ask Step.
func (p Policy) Stop(l lockfile.Ledger, in Input) (lockfile.Ledger, Decision, []lockfile.Event, bool) {
	d, ok := p.MustStop(l, in)
	if !ok {
		return l, d, nil, false
	}
	e := p.edit(l, in)
	e.suspend(d)
	out, events := e.done()
	d.Claim = false
	return out, d, events, true
}
