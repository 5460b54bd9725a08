package policies

import (
	"math"
	"slices"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// How far apart short runs begin. A cap cannot say less than one at a time, and
// it learns nothing within runs of some seconds each (claude -p in a loop): its
// slots turn over faster than the allowance refills. But an allowance is just
// used up when a request is refused, and again at the next refusal; so the time
// from one to the other, by the runs that got through meanwhile, is how far
// apart their starts have to be, whatever is short and however it refills:
//
//	first hit      a guess: as long as the limiter stayed closed, within bounds
//	one alone      the guess was too small: the same by the few runs since
//	another        (its end - the end of the one before) / runs that got through
//	quiet          a little less each while, or nothing would tell that more is there
//
// Only a run without a terminal that has just begun waits for it: what a longer
// one costs, its start does not tell.

// spaces: s stands still before its run, or soon after its beginning.
func (v view) spaces(s lockfile.Session) bool {
	if !s.Headless || s.Observe {
		return false
	}
	switch s.State {
	case lockfile.Waiting:
		return true
	case lockfile.Suspended:
		return s.Since.Sub(s.TurnBegan) < v.p.C.Spacing.Short
	}
	return false
}

// spacing is how far apart the starts of short runs have to be now; 0: nothing
// is known.
func (v view) spacing(lim lockfile.Limiter) time.Duration {
	sp, c := lim.Spacing, v.p.at(lim.ID)
	if sp == nil || sp.GapS <= 0 || sp.Learned.IsZero() && sp.Runs == 0 {
		return 0 // a guess counts once there are short runs
	}
	since := later(lim.LastHit, sp.Learned)
	quiet := v.now.Sub(since)
	if v.future(since) || quiet >= c.Concurrency.Forget {
		return 0
	}
	ease := c.Spacing.Ease
	if sp.Learned.IsZero() {
		ease = c.Spacing.EaseGuess
	}
	eased := sp.GapS * math.Pow(1-ease, max(0, quiet.Seconds())/c.Concurrency.Grow.Seconds())
	return time.Duration(eased * float64(time.Second))
}

// Spacing is how far apart the starts of short runs on a limiter have to be now;
// 0: nothing is known that would keep them apart.
func (p Policy) Spacing(l lockfile.Ledger, id string, now time.Time) time.Duration {
	lim := l.Limiters[id]
	lim.ID = id
	return view{p: p, l: l, now: now}.spacing(lim)
}

// nextStart is when the next short run may begin, and the gap after it.
func (v view) nextStart(lim lockfile.Limiter, s lockfile.Session) (time.Time, time.Duration) {
	gap := v.spacing(lim)
	if gap == 0 || !v.spaces(s) {
		return time.Time{}, 0
	}
	last := lim.Spacing.Last
	if last.After(v.now.Add(v.p.at(lim.ID).Spacing.Most)) {
		last = v.now // the clock was set back: no next try is that far away
	}
	return last.Add(gap), gap
}

// spaced notes the start of a short run where starts are spaced.
func (e *edit) spaced() {
	v := e.view()
	if !v.spaces(e.s) {
		return
	}
	for _, id := range limitersOf(e.l, e.s) {
		if lim := e.l.Limiters[id]; v.spacing(lim) > 0 {
			n := *lim.Spacing
			n.Last, lim.Spacing = e.in.Now, &n
			e.put(lim)
		}
	}
}

// yield: the caller, just let go, says that it was refused. That may be from
// before and closes nothing; but its next try takes the place of a start, so the
// next run follows that.
func (e *edit) yield(id string) {
	e.sync()
	c, lim := e.p.at(id).Spacing, e.limiter(id)
	if !e.s.Headless || e.view().spacing(lim) == 0 {
		return
	}
	n := *lim.Spacing
	next := earlier(e.s.RetryAt, e.in.Now.Add(c.Most))
	e.raise(&n, id, next)
	n.Last = later(n.Last, next)
	lim.Spacing = &n
	e.put(lim)
}

// raise a guess that was too small, where the one that was refused ran alone: so
// few runs measure a gap no better than to a factor of two, but they do say more
// than how long the limiter was closed.
func (e *edit) raise(n *lockfile.Spacing, id string, until time.Time) {
	if n.Learned.IsZero() && n.Runs > 0 && e.view().busy(id) == 1 {
		gap := min(until.Sub(n.Since)/time.Duration(n.Runs), e.p.at(id).Spacing.Most)
		n.GapS = max(n.GapS, gap.Round(time.Millisecond).Seconds())
	}
}

// ranShort counts a short run that got through, once: its log and its exit both
// say so. One that had its answer before it was stopped and is gone at once asked
// for nothing since: the start that it was given is the next one's.
func (e *edit) ranShort() {
	now := e.in.Now
	for _, id := range limitersOf(e.l, e.s) {
		c, lim := e.p.at(id).Spacing, e.l.Limiters[id]
		if lim.Spacing == nil || !e.s.Headless || e.s.Broken || now.Sub(e.s.Released) >= c.Short {
			continue
		}
		n := *lim.Spacing
		switch {
		case e.justLetGo() && n.Last.Equal(e.s.Released):
			n.Last = now.Add(-e.view().spacing(lim))
		case e.s.Answered.After(e.s.Released) && now.Sub(n.Since) <= c.Within:
			n.Runs++
		default:
			continue
		}
		lim.Spacing = &n
		e.put(lim)
	}
}

// spacesOut: a rate, or retries of a cause that two sessions could not tell:
// codex exec 0.171.0 says "Reconnecting... 1/5" of a 429. An overload is not ours.
func spacesOut(h lockfile.Hold) bool {
	return h.Class == finding.Rate || h.Class == finding.Retrying
}

// hitSpacing learns from a refusal: the allowance is just used up until then.
func (e *edit) hitSpacing(lim *lockfile.Limiter, h lockfile.Hold) {
	if !spacesOut(h) || h.Measure == finding.Concurrency || isSource(lim.ID) {
		return
	}
	c, now := e.p.at(lim.ID).Spacing, e.in.Now
	until := later(h.Stated, now)
	n := lockfile.Spacing{Since: until}
	if old, gap := lim.Spacing, e.view().spacing(*lim); old != nil && (old.GapS == 0 || gap > 0) {
		n = *old
		took := until.Sub(n.Since)
		switch {
		case took <= 0: // of the same burst
		case took > c.Within || e.view().future(n.Since):
			n.Since, n.Runs = until, 0 // it was full in between
		case n.Runs >= c.Runs:
			took = min(took/time.Duration(n.Runs), c.Most)
			if !n.Learned.IsZero() {
				took = (took + gap) / 2
			}
			n.GapS, n.Learned, n.Since, n.Runs = took.Round(time.Millisecond).Seconds(), now, until, 0
		default:
			e.raise(&n, lim.ID, until)
		}
	}
	lim.Spacing = &n
}

// guessSpacing: what one request lacks comes back while the limiter is closed.
func (e *edit) guessSpacing(lim *lockfile.Limiter, gone []lockfile.Hold) {
	i := slices.IndexFunc(gone, spacesOut)
	if i < 0 || lim.Spacing == nil {
		return
	}
	c, n, now := e.p.at(lim.ID), *lim.Spacing, e.in.Now
	n.Last, n.Since = now, earlier(n.Since, now) // who went first has just used what there was
	if n.Learned.IsZero() {
		h := gone[i]
		closed := earlier(now, later(h.Until, h.Since)).Sub(h.Since)
		guess := min(max(closed, c.Launch.Gap), c.Launch.Answer, c.Spacing.Most)
		n.GapS = max(n.GapS, guess.Round(time.Millisecond).Seconds())
	}
	lim.Spacing = &n
}
