package policies

import (
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// edit is one pure change of a ledger: a copy, the caller's session, what is
// told to the event log. put writes the session back.
type edit struct {
	p      Policy
	l      lockfile.Ledger
	in     Input
	s      lockfile.Session
	known  bool
	events []lockfile.Event
	hides  bool // the finding at hand is a failure whose retries nobody saw
}

func (p Policy) edit(l lockfile.Ledger, in Input) *edit {
	e := &edit{p: p, l: l.Clone(), in: in}
	e.s, e.known = e.l.Sessions[in.Self]
	return e
}

func (e *edit) done() (lockfile.Ledger, []lockfile.Event) {
	if e.known {
		e.l.Sessions[e.in.Self] = e.s
	}
	return e.l, e.events
}

// sync makes the session's changes visible to readers of the edited ledger.
func (e *edit) sync() {
	if e.known {
		e.l.Sessions[e.in.Self] = e.s
	}
}

// limiter returns the limiter, made if it is new.
func (e *edit) limiter(id string) lockfile.Limiter {
	lim, ok := e.l.Limiters[id]
	if !ok {
		base, family := split(id)
		lim = lockfile.Limiter{Schema: lockfile.Schema, ID: id}
		if parent, ok := e.l.Limiters[base]; ok && family != "" && parent.Label != "" {
			lim.Label = parent.Label + " " + family
		}
	}
	return lim
}

func (e *edit) put(lim lockfile.Limiter) { e.l.Limiters[lim.ID] = lim }

func (e *edit) event(kind, limiter string, class finding.Class) *lockfile.Event {
	e.events = append(e.events, lockfile.Event{
		At: e.in.Now, Event: kind, Session: e.in.Self, Agent: e.s.Agent, Limiter: limiter, Class: class,
	})
	return &e.events[len(e.events)-1]
}

// Finding works a finding of the caller's watcher into the ledger. Call it
// under the lock; apply the returned events to the log, and show the user what
// those named "surface" say. A session that only observes counts as well.
func (p Policy) Finding(l lockfile.Ledger, in Input, f finding.Finding) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	class := f.Class
	if class == finding.Retrying && f.Cause != "" && f.Cause != finding.Unknown {
		class = f.Cause
	}
	id := ""
	if e.known {
		id = target(e.s, f, class, in.Family)
	}
	e.found(id, f)
	if !e.known || id == "" || f.Confidence.Rank() < finding.Strong.Rank() {
		return e.done()
	}
	switch {
	case f.Class == finding.Auth && !e.s.AuthTold:
		e.s.AuthTold = true
		e.event("surface", id, finding.Auth).Rows = f.Rows
	case f.Class == finding.Retrying && e.s.State == lockfile.Suspended && !isLong(class):
		// Painted before its stop, so it is no probe, and it tells nothing that
		// the hold behind the stop does not know.
	case f.Class == finding.Retrying:
		e.retrying(id, class, f)
	case f.Class.IsLimit():
		e.refused(id, f)
	}
	return e.done()
}

func (e *edit) found(id string, f finding.Finding) {
	ev := e.event("finding", id, f.Class)
	ev.Model, ev.Project, ev.Cause, ev.Measure, ev.Scope = f.Model, f.Project, f.Cause, f.Measure, f.Scope
	ev.ErrorCode, ev.Until, ev.RetryAfter = f.ErrorCode, f.Reset, f.RetryAfter.Seconds()
	ev.Confidence, ev.Rule, ev.Rows = f.Confidence, f.Rule, f.Rows
}

// refused: the client has given up. The session is idle now, or about to exit,
// and is left alone until it begins another turn.
func (e *edit) refused(id string, f finding.Finding) {
	c, now := e.p.at(id), e.in.Now
	told, retried := !e.s.Hits[id].IsZero(), e.s.Retrying
	e.hides = e.unseen(c)
	e.s.Retrying, e.s.Broken, e.s.RetryAt, e.s.Named = false, true, time.Time{}, time.Time{}
	if e.s.Hits == nil {
		e.s.Hits = map[string]time.Time{}
	}
	e.s.Hits[id] = now
	e.tried(c)
	if e.oldNews(c, f) {
		return
	}
	e.dropRetrying(id)
	if retried && (isLong(f.Class) || isMoney(f.Class)) {
		e.unsay()
	}
	lim := e.limiter(id)
	old := e.running(c, lim, f.Class)
	failed := lim.Probe != nil && lim.Probe.Session == e.s.ID || old != nil && !old.Blocked && !old.Until.After(now)
	h := e.newHold(c, lim, old, f, f.Class, failed)
	if f.Class == finding.Window {
		usedUp(&lim, c.Window, h)
	}
	e.close(lim, old, h, told)
}

// unsay takes back what the caller's retry has just said of a rate: now it names
// the limit that it met, and that one lasts. Claude Code 2.1.332 logs a used-up
// window of one model as a 429 before it says so; siblings on other models
// neither wait for it nor are they too many.
func (e *edit) unsay() {
	e.sync()
	for _, x := range limitersOf(e.l, e.s) {
		lim := e.l.Limiters[x]
		h := holdOf(lim, finding.Rate)
		if h == nil || h.By != e.s.ID || !h.First.Equal(h.Since) || h.Since.Before(e.s.TurnBegan) || e.in.Now.Sub(h.Since) > e.p.at(x).Probe.Time {
			continue
		}
		if lim.Probe != nil && lim.Probe.Session == e.s.ID {
			lim.Probe = nil
		}
		if lim.Cap != nil && lim.Cap.Cut.Equal(h.Since) {
			lim.Cap = uncut(*lim.Cap)
		}
		if lim.LastHit.Equal(h.Since) {
			lim.LastHit = time.Time{}
		}
		e.open(&lim, func(h lockfile.Hold) bool { return h.Class == finding.Rate })
		e.put(lim)
	}
}

// unseen reports whether the client may have retried for a while and shown
// nothing of it, so that the refusal is old news: its last sign of life is.
func (e *edit) unseen(c Constants) bool {
	sign := later(e.s.TurnBegan, e.s.Answered)
	return !e.s.Retrying && e.in.Now.Sub(sign) > c.Probe.Time
}

// newHold makes the hold that a finding asks for, as if it stood alone but for
// the run of attempts that it belongs to.
func (e *edit) newHold(c Constants, lim lockfile.Limiter, old *lockfile.Hold, f finding.Finding, class finding.Class, failed bool) lockfile.Hold {
	now := e.in.Now
	h := lockfile.Hold{
		Class: class, Measure: f.Measure, Scope: f.Scope, Since: now, First: now, By: e.s.ID,
		Why: why(f.Rows), Rule: f.Rule, WindowS: f.Window.Seconds(),
	}
	if old != nil {
		h.First, h.Attempts = old.First, old.Attempts
		if h.WindowS == 0 {
			h.WindowS = old.WindowS
		}
		if failed {
			h.Attempts++
		}
	}
	c.ends(&h, c.named(f, class, now), lim.Used, e.in)
	c.bound(&h, failed, now)
	return h
}

// bound gives a run of holds up: after so many failed probes or so long, a
// person is told and nothing more is tried.
func (c Constants) bound(h *lockfile.Hold, failed bool, now time.Time) {
	since := now.Sub(h.First)
	switch {
	case isTransient(h.Class):
		t := c.transient(h.Class)
		h.Blocked = failed && h.Attempts >= t.Probes || since >= t.GiveUp
	case isLong(h.Class):
		h.Blocked = h.Stated.IsZero() && since >= c.longest(h.Class)
	}
	if h.Blocked && !isMoney(h.Class) {
		h.Until, h.UntilSource, h.Check = time.Time{}, "", time.Time{}
	}
}

// close puts the hold on the limiter, ends the caller's probes and tells who
// has to be told.
func (e *edit) close(lim lockfile.Limiter, old *lockfile.Hold, h lockfile.Hold, told bool) {
	now, c := e.in.Now, e.p.at(lim.ID)
	mine := lim.Probe != nil && lim.Probe.Session == e.s.ID
	fresh := h
	if old != nil {
		fresh = merge(*old, h, now)
		if mine && fresh.Since.Equal(old.Since) {
			// An early re-check was refused: the stated time stands.
			fresh.Check = c.recheck(fresh, now)
		}
	}
	if h.Class == finding.Overload {
		fresh.Wide = fresh.Wide || e.seen(&lim, c, h.Class)
	}
	e.cut(&lim, h.Class, e.hides)
	e.hitSpacing(&lim, h)
	if isTransient(h.Class) {
		lim.LastHit = now
	}
	lim.Release = e.interrupted(lim.Release, c, h.Class)
	setHold(&lim, fresh)
	if mine {
		lim.Probe = nil
	}
	e.put(lim)
	e.freeProbes(lim.ID)
	if old == nil || !fresh.Since.Equal(old.Since) {
		e.holdEvent(lim.ID, fresh)
	}
	newlyBlocked := fresh.Blocked && (old == nil || !old.Blocked)
	if newlyBlocked || isMoney(fresh.Class) && !told {
		ev := e.event("surface", lim.ID, fresh.Class)
		ev.Until, ev.Rows = fresh.Until, []string{fresh.Why}
	}
}

// recheck is the next early try after one was refused.
func (c Constants) recheck(h lockfile.Hold, now time.Time) time.Time {
	switch {
	case isMoney(h.Class):
		return now.Add(c.Credit.LaunchEvery)
	case isLong(h.Class) && !h.Stated.IsZero():
		return c.nextCheck(h, now)
	}
	return time.Time{}
}

func (e *edit) holdEvent(id string, h lockfile.Hold) {
	ev := e.event("hold", id, h.Class)
	ev.Measure, ev.Scope, ev.Until, ev.Rule = h.Measure, h.Scope, h.Until, h.Rule
	if !h.Stated.IsZero() {
		ev.RetryAfter = h.Stated.Sub(e.in.Now).Seconds()
	}
}

// interrupted is what a hit leaves of a release in progress: one after a window
// goes on later with a wider gap (burst throttles at the reset), others begin anew.
func (e *edit) interrupted(r *lockfile.Release, c Constants, class finding.Class) *lockfile.Release {
	if r == nil || !isLong(r.Class) || !isTransient(class) {
		return nil
	}
	n := *r
	n.Hits++
	g := c.long(r.Class)
	gap := g.GapAfterHit
	if n.Hits > 1 {
		gap = g.GapAfterHits
	}
	n.GapS = max(n.GapS, gap.Seconds())
	return &n
}

// freeProbes gives up the caller's probes on its other limiters: it met another
// limit before it could say anything about them.
func (e *edit) freeProbes(except string) {
	e.sync()
	for _, id := range limitersOf(e.l, e.s) {
		lim := e.l.Limiters[id]
		if id != except && lim.Probe != nil && lim.Probe.Session == e.s.ID {
			lim.Probe = nil
			e.put(lim)
		}
	}
}

// seen notes the caller's report and says whether enough sessions agree.
func (e *edit) seen(lim *lockfile.Limiter, c Constants, class finding.Class) bool {
	t, now := c.Overload, e.in.Now
	kept := lim.Seen[:0:0]
	who := map[string]bool{e.s.ID: true}
	for _, s := range lim.Seen {
		if s.Session != e.s.ID && now.Sub(s.At) <= t.Within && !s.At.After(now) {
			kept = append(kept, s)
			if s.Class == class {
				who[s.Session] = true
			}
		}
	}
	kept = append(kept, lockfile.Seen{Session: e.s.ID, At: now, Class: class})
	lim.Seen = kept[max(0, len(kept)-3):]
	return len(who) >= t.Sessions
}

// oldNews reports whether a hit was printed so soon after the session's own
// continue or launch that it tells of the time before. A limit that names a
// time still to come is news all the same, and so is the hit of a turn that
// began after it: Codex 0.171.0 starts, asks and is refused within 0.95 s.
func (e *edit) oldNews(c Constants, f finding.Finding) bool {
	if !e.s.TurnBegan.IsZero() && !e.s.TurnBegan.Before(e.s.Released) {
		return false
	}
	since := e.in.Now.Sub(e.s.Released)
	if e.s.Released.IsZero() || since < 0 || since >= c.Probe.OldNews || isMoney(f.Class) {
		return false
	}
	ahead := !f.Reset.IsZero() && f.Reset.After(e.in.Now.Add(time.Minute))
	return !(isLong(f.Class) && ahead)
}

// holdOf returns a copy of the limiter's hold of a class, nil if there is none.
func holdOf(lim lockfile.Limiter, class finding.Class) *lockfile.Hold {
	for _, h := range lim.Holds {
		if h.Class == class {
			return &h
		}
	}
	return nil
}

// running is the limiter's hold of a class as far as its run goes on: one that
// ended a while ago and was probed by nobody is over, and one that nobody could
// probe for as long as a run may last: the machine slept, or its clock was set.
func (e *edit) running(c Constants, lim lockfile.Limiter, class finding.Class) *lockfile.Hold {
	h := holdOf(lim, class)
	if h == nil || h.Blocked || e.in.Now.Sub(h.Until) <= c.Probe.Start {
		return h
	}
	if pr := lim.Probe; pr != nil && !(isTransient(class) && pr.Since.Sub(h.Until) >= c.transient(class).GiveUp) {
		return h
	}
	return nil
}

func setHold(lim *lockfile.Limiter, h lockfile.Hold) {
	for i := range lim.Holds {
		if lim.Holds[i].Class == h.Class {
			lim.Holds[i] = h
			return
		}
	}
	lim.Holds = append(lim.Holds, h)
}

// dropHolds removes the holds that match and returns them.
func dropHolds(lim *lockfile.Limiter, match func(lockfile.Hold) bool) (gone []lockfile.Hold) {
	var kept []lockfile.Hold
	for _, h := range lim.Holds {
		if match(h) {
			gone = append(gone, h)
		} else {
			kept = append(kept, h)
		}
	}
	lim.Holds = kept
	return gone
}
