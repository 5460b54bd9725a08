package policies

import (
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// Wake few. Who waited for hours pays its whole context with its first request;
// all of them together can eat the window that they waited for (windowsim: work
// of 2.5 windows takes 16 h when few are woken, 30-250 h when all are). So after
// a window or day that outlasted the prompt caches the release has a number of
// sessions that may be awake:
//
//	at first    the oldest whose contexts cost WakeBudget together, one at least
//	then        one more each WakeEvery, while what is used stays affordable
//	always      who is done is replaced; who is typed into goes at once
//
// Where contexts or shares are not known, only one goes at first and one more
// each WakeEvery.

// startFew makes a release wake few.
func (e *edit) startFew(lim *lockfile.Limiter, r lockfile.Release) *lockfile.Release {
	r.Awake, r.Woken = 1, e.in.Now
	lim.Release = &r
	e.l.Limiters[lim.ID] = *lim
	r.Awake = max(1, e.view().affordable(*lim, e.p.at(lim.ID).long(r.Class)))
	return &r
}

// few reports whether a release wakes few.
func few(lim lockfile.Limiter) bool { return lim.Release != nil && lim.Release.Awake > 0 }

// affordable is how many may be awake at first: those that are, then the oldest
// of those who wait, while their contexts together stay in the budget. One
// whose context is not known ends the sum.
func (v view) affordable(lim lockfile.Limiter, c Long) (n int) {
	left := 100 * c.WakeBudget
	fits := func(s lockfile.Session) bool {
		cost, known := v.wakeCost(lim, c, s)
		left -= cost
		return known && left >= 0
	}
	for _, s := range v.l.Sessions {
		if !DrawsOn(s, lim.ID) || !v.alive(s) || !v.wakes(lim, c, s) {
			continue
		}
		if !fits(s) {
			return n
		}
		n++
	}
	for _, x := range v.queue(lim.ID) {
		s := v.l.Sessions[x.id]
		switch {
		case v.root(s).ID != s.ID || !mayCost(s):
		case fits(s):
			n++
		default:
			return n
		}
	}
	return n
}

// mayCost: a terminal that opens without a prompt sends nothing.
func mayCost(s lockfile.Session) bool { return s.State != lockfile.Waiting || sends(s) }

// wakes reports whether s is awake, or will be in a moment by itself: Claude
// Code goes on by itself after a reset, and the others are woken around it.
func (v view) wakes(lim lockfile.Limiter, c Long, s lockfile.Session) bool {
	if s.State == lockfile.Running {
		return v.root(s).ID == s.ID
	}
	r := lim.Release
	if !s.Continues || !s.Broken || s.Headless || s.State != lockfile.Idle || r == nil {
		return false
	}
	hit, ok := s.Hits[lim.ID]
	return ok && hit.Before(r.Since) && !s.TurnBegan.After(hit) && v.now.Before(r.Since.Add(c.ContinueWithin))
}

// awake counts who is awake on a limiter; a nested session shares a place.
func (v view) awake(lim lockfile.Limiter, c Long) (n int) {
	for _, s := range v.l.Sessions {
		if v.alive(s) && DrawsOn(s, lim.ID) && v.wakes(lim, c, s) {
			n++
		}
	}
	return n
}

// wakeCost is the percentage of the window that a session's next request
// costs. What is still in the cache costs nothing worth counting, and neither
// does a first launch: its context is small.
func (v view) wakeCost(lim lockfile.Limiter, c Long, s lockfile.Session) (percent float64, known bool) {
	switch {
	case s.State == lockfile.Waiting && s.Context == 0:
		return 0, true
	case s.State == lockfile.Suspended && v.now.Sub(s.Since) <= c.ColdAfter:
		return 0, true
	case s.Context == 0 || lim.Share == nil || lim.Share.Size == 0:
		return 0, false
	}
	return 100 * float64(s.Context) / float64(lim.Share.Size), true
}

// standFew: its turn comes while few are awake.
func (v view) standFew(st *standing, lim lockfile.Limiter, s lockfile.Session) {
	c, r := v.p.at(lim.ID).long(lim.Release.Class), lim.Release
	q := v.queue(lim.ID)
	place := q.place(s.ID)
	if place < 0 || !mayCost(s) {
		return // held on another limiter, which says so; or it will not send
	}
	st.stop, st.place = true, place+1
	st.why = Reason{Code: Queued, Class: r.Class}
	if place > 0 {
		st.why.Who = q[0].id
	}
	next, gap := v.nextSlot(lim)
	if v.typedInto(s) {
		st.claim, st.at, st.until = takeSlot, v.now, v.now
		return
	}
	if v.awake(lim, c) >= r.Awake {
		next = later(next, r.Woken.Add(c.WakeEvery))
		if !v.mayAdd(lim, c, v.l.Sessions[q[0].id], later(next, v.now)) {
			return // the share that is used decides, and its news wakes us
		}
	}
	st.claim, st.at = takeSlot, next.Add(time.Duration(place)*gap)
	st.until, st.src = st.at, finding.Estimate
}

// typedInto: its user presses keys in its pause row.
func (v view) typedInto(s lockfile.Session) bool {
	return s.State == lockfile.Suspended && v.typing(s) && !s.Typed.Before(s.Since)
}

// mayAdd reports whether one more may be awake at an instant: what is used by
// then, what waking costs, and the rate since the last one was woken, going on
// for one more, must fit the window. Without a word on the share it may.
func (v view) mayAdd(lim lockfile.Limiter, c Long, s lockfile.Session, at time.Time) bool {
	r := lim.Release
	used, known := v.used(lim, c)
	if !known {
		return true
	}
	wake, _ := v.wakeCost(lim, c, s)
	if used+wake >= 100*c.WakeMost {
		return false
	}
	since := at.Sub(r.Woken.Add(c.WakeSettle))
	if since <= 0 {
		return true
	}
	// A share comes in whole percents: half of one is the least that is seen.
	rate := max(used-r.Low, 0.5) / since.Seconds()
	n := float64(max(1, v.awake(lim, c)))
	left := max(0, v.windowEnd(lim, c).Sub(at).Seconds())
	return used+wake+rate*left*(n+1)/n < 100*c.WakeProjected
}

// used is the percentage of the present window that is used: what an agent told
// in it, or what our own tokens come to where none tells, whichever is more.
func (v view) used(lim lockfile.Limiter, c Long) (percent float64, known bool) {
	sh := lim.Share
	if sh == nil || !v.now.Before(v.windowEnd(lim, c)) {
		return 0, false
	}
	if lim.Release != nil && sh.At.After(lim.Release.Since) {
		percent, known = sh.Used, true
	}
	if sh.Size > 0 {
		percent, known = max(percent, sh.From+100*float64(sh.Tokens-sh.Base)/float64(sh.Size)), true
	}
	return percent, known
}

// windowEnd is when the present window ends: as told, or a length after its
// first turn, which was about when the release began.
func (v view) windowEnd(lim lockfile.Limiter, c Long) time.Time {
	if sh := lim.Share; sh != nil && !sh.Ends.IsZero() {
		return sh.Ends
	}
	if lim.Release == nil {
		return lim.Used.Add(c.Length)
	}
	return later(lim.Release.Since, lim.Used).Add(c.Length)
}

// woke notes on a release that one more goes. One that is typed into goes
// besides: it makes no room for others.
func (e *edit) woke(lim lockfile.Limiter, n *lockfile.Release) {
	if n.Awake == 0 {
		return
	}
	v, c := e.view(), e.p.at(lim.ID).long(n.Class)
	if !v.typedInto(e.s) {
		n.Awake = max(n.Awake, v.awake(lim, c)+1)
	}
	n.Woken = e.in.Now
	n.Low, _ = v.used(lim, c)
}
