package policies

import (
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// retrying: the client handles it itself. Hands off that session: it is the
// probe. What its siblings do depends on the cause; an unknown one moves them
// only from the third attempt on, with a long first delay, or when a second
// session reports the like.
func (e *edit) retrying(id string, class finding.Class, f finding.Finding) {
	c, now := e.p.at(id), e.in.Now
	delay := f.RetryAfter
	e.s.RetryShown = delay > 0
	if delay <= 0 {
		delay = c.Retrying.DefaultDelay
	}
	e.early(f)
	e.tried(c)
	seen := f.At
	if seen.After(now) || now.Sub(seen) > time.Minute {
		seen = now
	}
	e.s.Retrying, e.s.RetryAt = true, seen.Add(min(delay, c.Window.Longest))
	if e.s.State == lockfile.Idle {
		e.s.State, e.s.Since = lockfile.Running, now
	}
	if e.s.RetryShown && e.s.RetryAt.Before(now) {
		return // what it announced is over already: whatever came of it is the news
	}
	if e.oldNews(c, f) {
		e.yield(id)
		return
	}
	lim := e.limiter(id)
	if class == finding.Retrying && !e.enough(&lim, c, f) {
		e.put(lim)
		return
	}
	old := e.running(c, lim, class)
	h := e.newHold(c, lim, old, f, class, false)
	e.awaits(c, &h)
	e.follow(lim, old, h)
}

// enough reports whether a retry of unknown cause concerns the siblings. Where
// short runs are spaced already it is the limit that they are spaced for.
func (e *edit) enough(lim *lockfile.Limiter, c Constants, f finding.Finding) bool {
	r := c.Retrying
	second := e.seen(lim, c, finding.Retrying)
	return second || e.s.Storm || holdOf(*lim, finding.Retrying) != nil || e.view().spacing(*lim) > 0 ||
		f.Attempt >= r.Attempt || f.Attempt == 1 && f.RetryAfter >= r.FirstDelay
}

// awaits makes a transient hold end with the client's own next try, so that its
// outcome is seen before anybody else tries.
func (e *edit) awaits(c Constants, h *lockfile.Hold) {
	if h.Blocked || !isTransient(h.Class) {
		return
	}
	limit := e.in.Now.Add(c.longest(h.Class))
	h.Until = earlier(e.s.RetryAt, limit)
	if h.Stated.IsZero() {
		h.UntilSource = finding.Relative
	} else {
		h.Until = later(h.Until, earlier(h.Stated, limit))
	}
}

// follow closes the limiter with the retrying client as its probe, unless
// another session is trying already.
func (e *edit) follow(lim lockfile.Limiter, old *lockfile.Hold, h lockfile.Hold) {
	mine := lim.Probe != nil && lim.Probe.Session == e.s.ID
	other := lim.Probe != nil && !mine && e.view().probeLives(lim)
	told := old != nil && old.By == e.s.ID
	probe := lim.Probe
	if !other && !e.s.Storm && !e.s.UserStopped {
		probe = &lockfile.Probe{Session: e.s.ID, Since: e.in.Now, Class: h.Class}
	} else if mine {
		probe = nil
	}
	lim.Probe = nil // the caller's probe has not failed: its client tries on
	e.close(lim, old, h, told)
	lim = e.l.Limiters[lim.ID]
	lim.Probe = probe
	e.put(lim)
}

// dropRetrying: a known class takes the place of an unknown one.
func (e *edit) dropRetrying(id string) {
	e.sync()
	for _, x := range limitersOf(e.l, e.s) {
		lim := e.l.Limiters[x]
		gone := dropHolds(&lim, func(h lockfile.Hold) bool {
			return h.Class == finding.Retrying && (x == id || h.By == e.s.ID)
		})
		if len(gone) > 0 {
			e.put(lim)
		}
	}
}

// tried counts the session's own tries: too many too fast are a storm.
func (e *edit) tried(c Constants) {
	r, now := c.Retrying, e.in.Now
	if d := now.Sub(e.s.TriesSince); d > r.StormWithin || d < 0 {
		e.s.Tries, e.s.TriesSince = 0, now
	}
	e.s.Tries++
	if e.s.Tries > r.StormTries || e.s.Early >= r.EarlyTries {
		e.s.Storm = true
	}
}

// early counts tries before the time that the server itself named.
func (e *edit) early(f finding.Finding) {
	now := e.in.Now
	if !e.s.Named.IsZero() && now.Before(e.s.Named) {
		e.s.Early++
	} else {
		e.s.Early, e.s.Named = 0, time.Time{}
	}
	if named := f.Reset.Add(-max(f.Precision, time.Second)); !f.Reset.IsZero() && named.After(now) {
		e.s.Named = named
	}
}
