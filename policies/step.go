package policies

import (
	"slices"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// Step decides again under the lock and writes what follows: a probe that
// passed opens its limiter, one that was lost is cleared, and the caller takes
// the probe, its turn in the release or its launch; or it is marked as waiting
// or suspended, before it is stopped. The decision returned is the one that
// counts: Run means launch or continue now.
func (p Policy) Step(l lockfile.Ledger, in Input) (lockfile.Ledger, Decision, []lockfile.Event) {
	e := p.edit(l, in)
	if !e.known {
		out, events := e.done()
		return out, Decision{Action: Run, Reason: Reason{Code: NoSession}}, events
	}
	for _, id := range limitersOf(e.l, e.s) {
		e.tidy(id)
		e.grow(id)
	}
	r := e.view().decide(e.s)
	d := r.Decision
	switch {
	case r.ready:
		d = e.take(r)
		d.Wake = e.view().decide(e.s).Wake // nobody may tell it: not every claim writes a limiter
	case d.Action == Suspend && e.s.State == lockfile.Running:
		e.suspend(d)
	case d.Action != Run:
		e.wait(d)
	}
	out, events := e.done()
	d.Claim = false
	return out, d, events
}

// Launched tells the ledger of a launch that had nothing to wait for, a moment
// after it. What has come up since is decided like for any session that runs.
func (p Policy) Launched(l lockfile.Ledger, in Input) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	if e.known && e.s.State == lockfile.Waiting {
		d := Decision{Reason: Reason{Code: Free}}
		if len(e.s.Limiters) > 0 {
			d.Limiter = e.s.Limiters[0]
		}
		e.start(d)
	}
	return e.done()
}

// tidy writes down what time alone has decided about a limiter.
func (e *edit) tidy(id string) {
	v, lim := e.view(), e.l.Limiters[id]
	if e.open(&lim, func(h lockfile.Hold) bool { return h.Class == finding.Person && v.personsOver(h) }) {
		e.put(lim)
		v = e.view()
	}
	judged, _ := v.judge(lim)
	switch judged {
	case passed:
		e.open(&lim, v.passing(*lim.Probe))
		lim.Probe = nil
		e.put(lim)
		return
	case lost:
		e.lose(&lim)
		e.put(lim)
	}
	v = e.view()
	_, due, _ := v.holds(lim, e.s)
	someDue := len(due) > 0 || v.over(id, e.s) && slices.ContainsFunc(lim.Holds, v.ended)
	if lim.Probe == nil && someDue && stopped(e.s) && !v.heldOn(id, e.s) && !v.heldElsewhere(id, e.s) && len(v.candidates(id)) == 0 {
		// Nobody is there to go first: the limiter is open, and the first may go at once.
		e.open(&lim, v.ended)
		if lim.Release != nil {
			lim.Release.Next = e.in.Now
		}
		e.put(lim)
	}
	if lim.Release != nil && len(v.line(id)) == 0 && lim.Release.Next.Before(e.in.Now) {
		lim.Release = nil
		e.put(lim)
	}
}

// lose clears a probe that ended without a verdict.
func (e *edit) lose(lim *lockfile.Limiter) {
	c, now := e.p.at(lim.ID), e.in.Now
	for i, h := range lim.Holds {
		if h.Class == lim.Probe.Class && (h.Blocked || h.Until.After(now)) {
			lim.Holds[i].Check = c.recheck(h, now)
		}
	}
	lim.Probe = nil
}

// passing selects the holds that a probe answers for: those that stood when it
// went, and those that did before the clock was set back.
func (v view) passing(pr lockfile.Probe) func(lockfile.Hold) bool {
	return func(h lockfile.Hold) bool {
		return h.Class != finding.Person && (!h.Since.After(pr.Since) || v.future(h.Since))
	}
}

// open ends the holds that match and paces who waited for them.
func (e *edit) open(lim *lockfile.Limiter, match func(lockfile.Hold) bool) bool {
	gone := dropHolds(lim, match)
	if len(gone) == 0 {
		return false
	}
	if len(lim.Holds) == 0 {
		lim.Seen = nil
	}
	h := longest(gone)
	e.guessSpacing(lim, gone)
	e.startRelease(lim, h)
	ev := e.event("release", lim.ID, h.Class)
	ev.Reason = "open"
	return true
}

// longest picks the hold whose release is the most careful one.
func longest(holds []lockfile.Hold) lockfile.Hold {
	best := holds[0]
	for _, h := range holds[1:] {
		if isLong(h.Class) && !isLong(best.Class) {
			best = h
		}
	}
	return best
}

// startRelease paces those that waited, unless a careful release goes on.
func (e *edit) startRelease(lim *lockfile.Limiter, h lockfile.Hold) {
	now, c := e.in.Now, e.p.at(lim.ID)
	if isLong(h.Class) && lim.Share != nil {
		sh := *lim.Share
		fresh(&sh)
		lim.Share = &sh
	}
	e.l.Limiters[lim.ID] = *lim
	if len(e.view().line(lim.ID)) == 0 {
		lim.Release = nil
		return
	}
	if r := lim.Release; r != nil && isLong(r.Class) && !isLong(h.Class) {
		lim.Release = e.nextGap(c, *r)
		return
	}
	gap := c.gap(*lim, now)
	if isLong(h.Class) {
		gap = c.long(h.Class).Gap
	}
	lim.Release = e.nextGap(c, lockfile.Release{Since: now, Class: h.Class, GapS: gap.Seconds()})
	if isLong(h.Class) && now.Sub(h.First) > c.long(h.Class).ColdAfter {
		lim.Release = e.startFew(lim, *lim.Release)
	}
}

// nextGap sets the next instant of a release, with jitter.
func (e *edit) nextGap(c Constants, r lockfile.Release) *lockfile.Release {
	share := 1 + c.Release.Jitter*(2*e.in.rnd()-1)
	if isLong(r.Class) {
		share = 1 + c.long(r.Class).GapStretch*e.in.rnd()
	}
	r.Next = e.in.Now.Add(time.Duration(r.GapS * share * float64(time.Second)))
	return &r
}

// take claims what the ruling allows, on every limiter at once, and starts the
// session if it stood still.
func (e *edit) take(r ruling) Decision {
	d := r.Decision
	if !stopped(e.s) {
		e.takeOn(r.all)
		return d
	}
	d.Reason = e.takeOn(r.all)
	if d.Reason.Code == "" {
		d.Reason = r.Decision.Reason
	}
	d.Action, d.AskFirst, d.GiveUp, d.Until, d.Source, d.Place = Run, false, false, time.Time{}, "", 0
	e.start(d)
	e.endReleases(r.all)
	return d
}

// endReleases drops a release that nobody waits for any more, so that later
// launches are not paced by it.
func (e *edit) endReleases(all []standing) {
	v := e.view()
	for _, st := range all {
		if lim := e.l.Limiters[st.id]; lim.Release != nil && len(v.line(st.id)) == 0 {
			lim.Release = nil
			e.put(lim)
		}
	}
}

// takeOn writes the claims; the reason is the weightiest of them.
func (e *edit) takeOn(all []standing) (why Reason) {
	for _, st := range all {
		lim := e.l.Limiters[st.id]
		switch st.claim {
		case takeProbe:
			e.claimProbe(&lim, st)
			why = Reason{Code: Prober, Class: lim.Probe.Class}
		case takeSlot:
			class := e.claimSlot(&lim)
			if why.Code == "" || why.Code == Released && why.Class == "" {
				why = Reason{Code: Released, Class: class}
			}
		case takeStart:
			e.claimStart(&lim)
			continue
		default:
			continue
		}
		e.put(lim)
	}
	return why
}

func (e *edit) claimProbe(lim *lockfile.Limiter, st standing) {
	now, c := e.in.Now, e.p.at(lim.ID)
	pr := lockfile.Probe{Session: e.s.ID, Since: now, Class: st.hold.Class}
	if pr.Class == "" {
		pr.Class = shown(lim.Holds).Class
	}
	if e.s.State == lockfile.Suspended || e.s.State == lockfile.Running && !e.s.Retrying || e.s.Headless {
		pr.Began = now // it is in a turn already, or will be as soon as it runs
	}
	lim.Probe = &pr
	for i, h := range lim.Holds {
		if h.Blocked || h.Until.After(now) {
			lim.Holds[i].Check = c.recheck(h, now)
		}
	}
	e.event("probe", lim.ID, pr.Class)
}

func (e *edit) claimSlot(lim *lockfile.Limiter) finding.Class {
	r := lim.Release
	if r == nil {
		return "" // the session's own Released paces the next one
	}
	n := e.nextGap(e.p.at(lim.ID), *r)
	n.Count, n.Last = r.Count+1, e.s.ID
	e.woke(*lim, n)
	lim.Release = n
	return n.Class
}

// claimStart notes a launch where launches are spaced.
func (e *edit) claimStart(lim *lockfile.Limiter) {
	c, now := e.p.at(lim.ID), e.in.Now
	if c.gap(*lim, now) == c.Release.Calm {
		return // nobody was hit lately: nothing to write, nobody to wake
	}
	n := lockfile.Pace{Since: now, Count: 1, Next: now.Add(c.Release.Calm)}
	if lim.Launch != nil && now.Sub(lim.Launch.Since) < c.Launch.Answer {
		n.Since, n.Count = lim.Launch.Since, lim.Launch.Count+1
	}
	if n.Count >= c.Launch.Burst {
		n.Next = now.Add(c.Launch.Gap)
	}
	lim.Launch = &n
	e.put(*lim)
}

// start marks the session as let go.
func (e *edit) start(d Decision) {
	now := e.in.Now
	e.keepAnyway()
	e.taken()
	e.forget()
	e.spaced()
	kind := "continue"
	if e.s.State == lockfile.Waiting {
		kind = "launch"
		if e.s.Resume.Due {
			kind = "resume"
		}
		e.s.State = lockfile.Idle
		if e.s.Headless {
			e.s.State, e.s.TurnBegan, e.s.Broken = lockfile.Running, now, false
			e.began()
		}
	} else {
		e.s.State = lockfile.Running
	}
	e.s.Since, e.s.Released = now, now
	e.s.Storm, e.s.Tries, e.s.Early, e.s.Named = false, 0, 0, time.Time{}
	e.s.Retrying, e.s.RetryAt = false, time.Time{} // an elapsed retry fires at once: its row tells what became of it
	e.s.Reason, e.s.Until = "", time.Time{}
	if e.s.Resume.Due {
		e.beginAgain()
	}
	ev := e.event(kind, d.Limiter, d.Reason.Class)
	if ev.Reason = string(d.Reason.Code); kind == "resume" {
		ev.Reason = "begin"
	}
	e.filled()
}

func (e *edit) suspend(d Decision) {
	e.s.State, e.s.Since = lockfile.Suspended, e.in.Now
	e.mark(d)
	ev := e.event("suspend", d.Limiter, d.Reason.Class)
	ev.Until, ev.Reason = d.Until, string(d.Reason.Code)
}

// wait marks a launch or a stopped session with what it waits for; the log
// hears of each reason once.
func (e *edit) wait(d Decision) {
	if !e.mark(d) || e.s.State != lockfile.Waiting {
		return
	}
	ev := e.event("launch_wait", d.Limiter, d.Reason.Class)
	ev.Until, ev.Reason = d.Until, string(d.Reason.Code)
}

// mark writes why and how long into the session's own file, for status and
// siblings; it reports whether the reason is a new one.
func (e *edit) mark(d Decision) bool {
	reason := string(d.Reason.Code)
	if d.Reason.Class != "" {
		reason += ":" + string(d.Reason.Class)
	}
	if e.s.Resume.Due {
		reason = resumeReason + ":" + string(e.s.Resume.Class)
	}
	fresh := e.s.Reason != reason
	e.s.Reason, e.s.Until = reason, d.Until
	return fresh
}
