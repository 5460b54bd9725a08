package policies

import (
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// Activity works what the caller's watcher saw into the ledger: busy and idle,
// the beginning and end of turns, the verdict on a probe, and the success that
// opens every hold of a limiter that began before its turn did. Call it under
// the lock.
func (p Policy) Activity(l lockfile.Ledger, in Input, a Activity) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	if !e.known {
		return e.done()
	}
	before := e.view().slots()
	e.s.Typed = later(e.s.Typed, a.Typed)
	if e.s.Typed.After(in.Now) {
		e.s.Typed = in.Now // the clock was set back
	}
	if (a.RetryEnded || a.AnswerBegun) && e.s.Retrying {
		e.s.Retrying, e.s.RetryAt = false, time.Time{}
		e.probing(func(pr *lockfile.Probe) { pr.Began, pr.Answer = in.Now, time.Time{} })
	}
	if a.TurnBegan || a.Busy {
		e.busy(a.TurnBegan)
	}
	if a.AnswerBegun {
		e.s.Answered = in.Now
		e.probing(func(pr *lockfile.Probe) { pr.Answer = in.Now })
	}
	if a.Success && !e.justLetGo() {
		e.succeed()
	}
	if a.TurnEnded || a.Idle {
		e.idle()
	}
	if a.Exit {
		e.exit()
	}
	if before != nil {
		e.nudge(before)
	}
	return e.done()
}

// Nothing reports whether there is nothing in it that the ledger has to hear.
func (a Activity) Nothing() bool { return a == Activity{} }

// busy: a turn is in progress. A stopped agent prints nothing, so a late sign
// of it changes nothing.
func (e *edit) busy(began bool) {
	if e.s.State == lockfile.Suspended {
		return
	}
	now := e.in.Now
	if e.s.State != lockfile.Running {
		e.forget()
		e.s.State, e.s.Since, began = lockfile.Running, now, true
	}
	if began {
		// The turn that a launch was let go for is the one that it was put first for.
		e.s.Ahead = e.s.Ahead && e.s.TurnBegan.Before(e.s.Released)
		e.s.TurnBegan, e.s.Broken = now, false
		e.s.Tries, e.s.Early, e.s.Named, e.s.Storm = 0, 0, time.Time{}, false
		e.began()
	}
	e.probing(func(*lockfile.Probe) {})
}

// began notes the first turn of a short window: the window ends a known time later.
func (e *edit) began() {
	now := e.in.Now
	for _, id := range e.s.Limiters {
		lim, ok := e.l.Limiters[id]
		if isSource(id) || ok && now.Sub(lim.Used) < e.p.at(id).Window.Length && !lim.Used.After(now) {
			continue
		}
		lim = e.limiter(id)
		lim.Used = now
		e.put(lim)
	}
}

// probing changes the caller's probes; they have begun to send, at the latest now.
func (e *edit) probing(f func(*lockfile.Probe)) {
	e.sync()
	for _, id := range limitersOf(e.l, e.s) {
		lim := e.l.Limiters[id]
		if lim.Probe == nil || lim.Probe.Session != e.s.ID {
			continue
		}
		before := *lim.Probe
		if lim.Probe.Began.IsZero() && !e.s.Retrying {
			lim.Probe.Began = e.in.Now
		}
		f(lim.Probe)
		if *lim.Probe != before {
			e.put(lim)
		}
	}
}

// justLetGo: what ended within a second of the session's own continue was
// answered before it was stopped, and says nothing about now.
func (e *edit) justLetGo() bool {
	since := e.in.Now.Sub(e.s.Released)
	return e.s.TurnBegan.Before(e.s.Released) && since >= 0 && since < e.p.C.Probe.OldNews
}

// succeed opens what the turn speaks for.
func (e *edit) succeed() {
	now := e.in.Now
	e.s.Answered, e.s.Broken, e.s.Retrying, e.s.Storm = now, false, false, false
	e.sync()
	for _, id := range limitersOf(e.l, e.s) {
		if !speaksFor(e.s, id) {
			continue
		}
		lim := e.l.Limiters[id]
		began := e.s.TurnBegan
		mine := lim.Probe != nil && lim.Probe.Session == e.s.ID
		if mine {
			began = later(began, lim.Probe.Since)
		}
		opened := e.open(&lim, func(h lockfile.Hold) bool {
			return h.Class != finding.Person && (h.Since.Before(began) || mine && h.Since.Equal(began) || h.Class == finding.Retrying && h.By == e.s.ID)
		})
		if mine {
			lim.Probe = nil
		}
		if opened || mine {
			e.put(lim)
		}
	}
}

// idle: composer or dialog. A headless session is busy until it exits.
func (e *edit) idle() {
	if e.s.Headless || e.s.State == lockfile.Idle || e.s.State == lockfile.Waiting {
		return
	}
	if e.s.State == lockfile.Suspended { // it ended just before it was stopped, and is continued
		e.event("continue", "", "").Reason = string(Parked)
	}
	e.s.State, e.s.Since = lockfile.Idle, e.in.Now
	e.s.Retrying, e.s.RetryAt, e.s.Storm, e.s.Ahead = false, time.Time{}, false, false
	e.s.Reason, e.s.Until = "", time.Time{}
}

// exit frees what the session held; its files go with its lease.
func (e *edit) exit() {
	e.s.State, e.s.Since, e.s.Retrying = lockfile.Idle, e.in.Now, false
	e.freeProbes("")
	e.ranShort()
	e.event("exit", "", "")
}
