package policies

import (
	"slices"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// claim is what a session may take under the lock.
type claim int

const (
	nothing   claim = iota
	tidy            // write down that a probe passed, was lost, or that nobody is there to probe
	takeProbe       // go first
	takeSlot        // its turn in the release
	takeStart       // its turn among launches
)

// standing is how a session stands on one limiter.
type standing struct {
	id    string
	stop  bool  // it may not run now
	ask   bool  // waiting does not help: ask
	note  bool  // it opens with a note
	claim claim // what may be claimed; nothing while stopped: wait for news
	at    time.Time
	hold  lockfile.Hold // what is shown
	why   Reason
	until time.Time
	src   finding.ResetSource
	wake  time.Time
	place int
}

// stand works out how s stands on a limiter.
func (v view) stand(id string, s lockfile.Session) standing {
	lim := v.l.Limiters[id]
	force, due, left := v.holds(lim, s)
	st := standing{id: id, why: left}
	switch {
	case len(force) > 0 && v.ownTry(lim, s, force):
		v.standProbed(&st, lim, s, pending, time.Time{})
	case len(force) > 0:
		v.standHeld(&st, lim, s, force)
	case v.over(id, s) && (stopped(s) || s.State == lockfile.Running):
		v.standCapped(&st, lim, s)
	case len(due) > 0:
		v.standDue(&st, lim, s, due)
	default:
		st.note = left.Code == LeftAlone && s.State == lockfile.Waiting
		st.hold, st.until, st.src = v.leftHold(lim, left)
		v.standOpen(&st, lim, s)
	}
	v.watchOwn(&st, lim, s)
	if v.ending(s) && (len(lim.Holds) > 0 || lim.Cap != nil) { // then it is like any other
		st.wakeBy(s.Answered.Add(v.p.C.Probe.Settle))
	}
	if h := v.ownHold(lim, s); h != nil { // then it claims the probe, before the next in line
		st.wakeBy(h.Until)
	}
	if _, capped := v.p.capOf(lim); capped && s.State == lockfile.Running && v.typing(s) {
		// From then on the cap may choose it, and nobody tells.
		st.wakeBy(s.Typed.Add(v.p.C.Concurrency.Typed))
	}
	return st
}

// wakeBy: its standing may change by itself at an instant.
func (st *standing) wakeBy(at time.Time) {
	if st.wake.IsZero() || at.Before(st.wake) {
		st.wake = at
	}
}

// ownHold is the hold in force whose end s waits for in its own client's retry.
func (v view) ownHold(lim lockfile.Limiter, s lockfile.Session) *lockfile.Hold {
	if s.State != lockfile.Running || !s.Retrying || s.Storm {
		return nil
	}
	for i, h := range lim.Holds {
		if isTransient(h.Class) && !h.Blocked && v.inForce(h, s) {
			return &lim.Holds[i]
		}
	}
	return nil
}

// ownTry: s is the probe and is sending, a moment before the hold ends: the
// delay that a client shows is rounded. Stopping it now would lose the probe.
func (v view) ownTry(lim lockfile.Limiter, s lockfile.Session, force []lockfile.Hold) bool {
	pr := lim.Probe
	if pr == nil || pr.Session != s.ID || s.State != lockfile.Running || pr.Began.IsZero() || !v.probeLives(lim) {
		return false
	}
	return !slices.ContainsFunc(force, func(h lockfile.Hold) bool { return h.Since.After(pr.Since) })
}

// leftHold is the hold that a decision to run in spite of it mentions.
func (v view) leftHold(lim lockfile.Limiter, left Reason) (lockfile.Hold, time.Time, finding.ResetSource) {
	if left.Code == "" {
		return lockfile.Hold{}, time.Time{}, ""
	}
	h := shown(lim.Holds)
	return h, h.Until, h.UntilSource
}

// shown picks the hold that people are told of: credit and spend first, then
// blocked ones, then the latest end.
func shown(holds []lockfile.Hold) (best lockfile.Hold) {
	for i, h := range holds {
		if i == 0 || before(h, best) {
			best = h
		}
	}
	return best
}

func before(a, b lockfile.Hold) bool {
	switch {
	case isMoney(a.Class) != isMoney(b.Class):
		return isMoney(a.Class)
	case a.Blocked != b.Blocked:
		return a.Blocked
	}
	return a.Until.After(b.Until)
}

func (v view) standHeld(st *standing, lim lockfile.Limiter, s lockfile.Session, force []lockfile.Hold) {
	h := shown(force)
	st.stop, st.hold, st.until, st.src = true, h, h.Until, h.UntilSource
	st.why = Reason{Code: Held, Class: h.Class, Who: h.By}
	if s.Storm && s.State != lockfile.Waiting {
		st.why.Code = Storming
	}
	if h.Blocked {
		st.why.Code = Blocked
	}
	st.ask = s.State == lockfile.Waiting && (h.Blocked || isMoney(h.Class))
	r := max(0, v.line(lim.ID).place(s.ID))
	st.place = r + 1
	c := v.p.at(lim.ID)
	if !h.Blocked {
		st.wake = h.Until.Add(time.Duration(r) * c.Probe.Step)
	}
	if h.Check.After(v.now) && (st.wake.IsZero() || h.Check.Before(st.wake)) {
		st.wake = h.Check
	}
}

// standDue: the holds have run out, or may be tried early; somebody goes first.
func (v view) standDue(st *standing, lim lockfile.Limiter, s lockfile.Session, due []lockfile.Hold) {
	st.hold = shown(due)
	judged, end := v.judge(lim)
	if judged == pending || judged == passed {
		v.standProbed(st, lim, s, judged, end)
		return
	}
	st.why = Reason{Code: Probing, Class: st.hold.Class}
	if s.State == lockfile.Running {
		// It is sending already: stopping it to let another try makes no sense.
		st.claim, st.at, st.why.Code = takeProbe, v.now, Volunteer
		return
	}
	st.stop, st.ask = true, s.State == lockfile.Waiting && isMoney(st.hold.Class)
	cands := v.candidates(lim.ID)
	r := cands.place(s.ID)
	switch {
	case r >= 0:
		st.claim, st.at, st.place = takeProbe, v.turn(lim, due, end, r), r+1
	case len(cands) == 0 && !v.heldElsewhere(lim.ID, s):
		st.claim, st.at = tidy, v.now
	default:
		st.wake = v.turn(lim, due, end, len(cands)+1)
		st.place = max(0, v.line(lim.ID).place(s.ID)) + 1
	}
	st.until, st.src = later(st.at, st.wake), finding.Estimate
}

// turn is when the candidate at a place may claim the probe: the first at once,
// the next a step later each, should those in front not answer.
func (v view) turn(lim lockfile.Limiter, due []lockfile.Hold, lostAt time.Time, r int) time.Time {
	c := v.p.at(lim.ID)
	var began time.Time
	for _, h := range due {
		began = later(began, v.dueAt(h))
	}
	switch {
	case lim.Probe == nil:
	case !lostAt.IsZero():
		began = later(began, lostAt)
	case r == 0:
		return v.now // the prober was killed: whoever sees it first
	default:
		began = later(began, lim.Probe.Since.Add(c.Probe.Start))
	}
	return began.Add(time.Duration(r) * c.Probe.Step)
}

// standProbed: a session goes first, or has just got through.
func (v view) standProbed(st *standing, lim lockfile.Limiter, s lockfile.Session, judged verdict, end time.Time) {
	c, pr := v.p.at(lim.ID), lim.Probe
	if pr.Session == s.ID {
		st.why = Reason{Code: Prober, Class: pr.Class}
		return // watchOwn does the rest
	}
	if v.withProber(lim, s) {
		st.why = Reason{Code: Nested, Class: pr.Class, Who: pr.Session}
		return
	}
	r := max(0, v.line(lim.ID).place(s.ID))
	st.stop, st.why = true, Reason{Code: Probing, Class: pr.Class, Who: pr.Session}
	st.ask = s.State == lockfile.Waiting && isMoney(pr.Class)
	st.place, st.until, st.src = r+1, end, finding.Estimate
	behind := end.Add(time.Duration(r+1) * c.Probe.Step)
	if judged == passed {
		st.claim, st.at = tidy, behind
		return
	}
	st.wake = behind
	if r == 0 {
		st.wake = earlier(behind, v.now.Add(c.Probe.Settle)) // a killed prober tells nobody
	}
}

// standOpen: no hold stops s here, but others may be in front of it.
func (v view) standOpen(st *standing, lim lockfile.Limiter, s lockfile.Session) {
	if v.retries(lim, s) {
		if cands := v.candidates(lim.ID); cands.place(s.ID) == 0 {
			st.claim, st.at = takeProbe, v.now
		}
		return
	}
	if !stopped(s) || s.Observe || v.ahead(lim, s) || v.heldElsewhere(lim.ID, s) {
		return // held elsewhere: that limiter says so
	}
	switch {
	case few(lim):
		v.standFew(st, lim, s)
	case s.State == lockfile.Suspended || lim.Release != nil:
		v.standQueued(st, lim, s)
	default:
		v.standLaunching(st, lim, s)
	}
}

// retries: s is in its own retry on a due limiter that nobody probes.
func (v view) retries(lim lockfile.Limiter, s lockfile.Session) bool {
	return s.State == lockfile.Running && v.steerable(s) && v.retrier(lim, s) && !v.probeLives(lim)
}

// ahead: its user said so, or the session that it is nested in was let through.
func (v view) ahead(lim lockfile.Limiter, s lockfile.Session) bool {
	since := waitsSince(s)
	if s.State == lockfile.Suspended {
		since = s.Since
	}
	if v.anyway(s, lim.ID, since) || v.nestedLong(s) {
		return true
	}
	return v.parents(s, func(x lockfile.Session) bool {
		return !x.Observe && x.State == lockfile.Running && (lim.Release == nil || !x.Released.Before(lim.Release.Since))
	})
}

// standQueued: one by one, in the order of the queue. Who is further back may
// go if those in front do not take their turn.
func (v view) standQueued(st *standing, lim lockfile.Limiter, s lockfile.Session) {
	q := v.queue(lim.ID)
	r := q.place(s.ID)
	if r < 0 {
		return // held on another limiter, which says so
	}
	next, gap := v.nextSlot(lim)
	start, apart := v.nextStart(lim, s)
	next, gap = later(next, start), max(gap, apart)
	st.stop, st.claim, st.place = true, takeSlot, r+1
	st.at = next.Add(time.Duration(r) * gap)
	st.until, st.src = st.at, finding.Estimate
	st.why = Reason{Code: Queued}
	if lim.Release != nil {
		st.why.Class = lim.Release.Class
	}
	if len(q) > r && r > 0 {
		st.why.Who = q[0].id
	}
}

// nextSlot is when the next one is released, and the gap after it. Without a
// release in progress it follows the last session that was let go.
func (v view) nextSlot(lim lockfile.Limiter) (time.Time, time.Duration) {
	c := v.p.at(lim.ID)
	if lim.Release == nil {
		gap := c.gap(lim, v.now)
		return later(v.lastStart(lim.ID).Add(gap), time.Time{}), gap
	}
	gap := time.Duration(lim.Release.GapS * float64(time.Second))
	next := lim.Release.Next
	if next.After(v.now.Add(2 * gap)) {
		next = v.now // the clock was set back
	}
	return next, gap
}

// gap after a transient hold: short where nothing was hit for long.
func (c Constants) gap(lim lockfile.Limiter, now time.Time) time.Duration {
	if lim.LastHit.IsZero() || now.Sub(lim.LastHit) > c.Release.CalmAfter {
		return c.Release.Calm
	}
	return c.Release.Gap
}

// lastStart is when a sibling was last launched or continued on a limiter.
func (v view) lastStart(id string) (last time.Time) {
	for _, s := range v.l.Sessions {
		if s.ID != v.self && v.alive(s) && DrawsOn(s, id) && !s.Released.After(v.now.Add(time.Second)) {
			last = later(last, s.Released)
		}
	}
	return last
}

// standLaunching spaces launches: a burst, then a gap, where the limiter had a
// transient hit lately; else hardly at all.
func (v view) standLaunching(st *standing, lim lockfile.Limiter, s lockfile.Session) {
	c := v.p.at(lim.ID)
	recent := c.gap(lim, v.now) != c.Release.Calm
	next := v.lastStart(lim.ID).Add(c.Release.Calm)
	gap := c.Release.Calm
	if recent && v.unanswered(lim.ID, c) >= c.Launch.Burst {
		gap = c.Launch.Gap
		next = v.lastStart(lim.ID).Add(gap)
	}
	if recent && lim.Launch != nil && !lim.Launch.Next.After(v.now.Add(2*c.Launch.Gap)) {
		next = later(next, lim.Launch.Next)
	}
	start, apart := v.nextStart(lim, s)
	next, gap = later(next, start), max(gap, apart)
	q := v.queue(lim.ID)
	r := max(0, q.place(s.ID))
	st.claim, st.at = takeStart, next.Add(time.Duration(r)*gap)
	if st.at.After(v.now) {
		st.stop, st.place = true, r+1
		st.why, st.until, st.src = Reason{Code: Launching}, st.at, finding.Estimate
	}
}

// unanswered counts siblings let go lately that have no answer yet.
func (v view) unanswered(id string, c Constants) (n int) {
	for _, s := range v.l.Sessions {
		since := v.now.Sub(s.Released)
		if s.ID != v.self && v.alive(s) && DrawsOn(s, id) && since >= 0 && since < c.Launch.Answer && s.Answered.Before(s.Released) {
			n++
		}
	}
	return n
}

// watchOwn: the session that goes first keeps its own end in sight.
func (v view) watchOwn(st *standing, lim lockfile.Limiter, s lockfile.Session) {
	if lim.Probe == nil || lim.Probe.Session != s.ID {
		return
	}
	judged, end := v.judge(lim)
	switch {
	case judged == pending:
		st.wake = end
		if !st.stop {
			st.why = Reason{Code: Prober, Class: lim.Probe.Class}
		}
	case !st.stop && st.claim == nothing:
		st.claim, st.at = tidy, v.now
	}
}
