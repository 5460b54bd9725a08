package policies

import (
	"strings"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// A task that failed by a limit and is to be done again waits for its turn like
// a launch: its session is waiting and Resume.Due. Decide and Step then say when
// it may; Step writes that it is begun before it is, so that it never is twice.
//
//	run failed, or turn broken -> WantResume -> waiting, due
//	    Decide, Step ------------> Run: begun, on the record -> run again, or type
//	    its user typed, a dialog -> DropResume -> as if it had not been wanted

// Again says whether a failed task will be done again, and if not, why not.
type Again string

// The answers.
const (
	WillResume Again = "due"       // the session waits for its turn
	NoLimit    Again = "no_limit"  // no limit broke it
	NeedsMoney Again = "blocked"   // waiting does not help: credit, spend, or given up
	TooFar     Again = "too_late"  // the limit ends beyond the bound on time
	Exhausted  Again = "exhausted" // it was done again as often as may be
)

// Broken says how the session's last turn or run met its end: with what the
// ledger knows of the limit.
func (p Policy) Broken(l lockfile.Ledger, self string, now time.Time) (Again, lockfile.Hold, string) {
	s, ok := l.Sessions[self]
	if !ok || !s.Broken || s.Observe {
		return NoLimit, lockfile.Hold{}, ""
	}
	v := view{p: p, l: l, now: now, self: self}
	h, id := v.broke(s)
	c := p.at(id).Resuming
	most := c.Runs
	if !s.Headless {
		most = c.Typed
	}
	first := s.Resume.First
	if first.IsZero() {
		first = now
	}
	switch {
	case isMoney(h.Class) || h.Blocked:
		return NeedsMoney, h, id
	case s.Resume.Runs >= most:
		return Exhausted, h, id
	case !now.Before(first.Add(c.Longest)), h.Until.After(first.Add(c.Longest)):
		return TooFar, h, id
	}
	return WillResume, h, id
}

// broke finds the hold that the session's own hit made or met: none if the
// limiter has opened since.
func (v view) broke(s lockfile.Session) (best lockfile.Hold, on string) {
	for _, id := range limitersOf(v.l, s) {
		hit, ok := s.Hits[id]
		if !ok || hit.Before(s.TurnBegan) {
			continue
		}
		if on == "" {
			on = id
		}
		for _, h := range v.l.Limiters[id].Holds {
			if best.Class == "" || before(h, best) {
				best, on = h, id
			}
		}
	}
	return best, on
}

// WantResume makes the caller's failed task wait for its turn, if it may be done
// again at all. Call it under the lock.
func (p Policy) WantResume(l lockfile.Ledger, in Input) (lockfile.Ledger, Again, []lockfile.Event) {
	e := p.edit(l, in)
	again, h, id := p.Broken(e.l, in.Self, in.Now)
	if again != WillResume {
		out, events := e.done()
		return out, again, events
	}
	e.freeProbes("")
	if e.s.Resume.First.IsZero() {
		e.s.Resume.First = in.Now
	}
	e.s.Resume.Due, e.s.Resume.Class = true, h.Class
	e.s.State, e.s.Since = lockfile.Waiting, in.Now
	e.s.Retrying, e.s.RetryAt, e.s.Storm = false, time.Time{}, false
	e.s.Reason, e.s.Until = resumeReason+":"+string(h.Class), h.Until
	e.resumeEvent(id, "wait").Until = h.Until
	out, events := e.done()
	return out, again, events
}

// resumeReason is what status shows of a session that waits to do its task again.
const resumeReason = "resume"

// DropResume: what was to be done again will not be, or not now. why goes to the
// event log: user, dialog, gave_up, unverified.
func (p Policy) DropResume(l lockfile.Ledger, in Input, why string) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	if !e.known {
		return e.done()
	}
	if e.s.Resume.Due {
		e.s.Resume.Due = false
		e.s.State, e.s.Since = lockfile.Idle, in.Now
		e.s.Reason, e.s.Until = "", time.Time{}
	}
	e.freeProbes("")
	e.resumeEvent(e.brokeOn(), why)
	return e.done()
}

// Resumed: the turn that was begun again has been seen to begin.
func (p Policy) Resumed(l lockfile.Ledger, in Input) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	if e.known {
		e.resumeEvent(e.brokeOn(), "seen")
	}
	return e.done()
}

// ForgetResume: the user has begun a turn of his own; what failed before is his
// business now, and what fails next may be done again.
func (p Policy) ForgetResume(l lockfile.Ledger, in Input) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	if e.known {
		if e.s.Resume.Due && e.s.State == lockfile.Waiting {
			e.s.State, e.s.Since, e.s.Reason, e.s.Until = lockfile.Idle, in.Now, "", time.Time{}
		}
		e.s.Resume = lockfile.Resume{}
	}
	return e.done()
}

func (e *edit) brokeOn() string {
	_, id := e.view().broke(e.s)
	return id
}

func (e *edit) resumeEvent(id, why string) *lockfile.Event {
	ev := e.event("resume", id, e.s.Resume.Class)
	ev.Reason = why
	return ev
}

// beginAgain is start's part for a task that was due: from here on it counts as
// done again, whatever comes of it. A look whether a window is back before its
// time does not count: it is free, there are more of them in five hours than a
// task may be done again, and the time bounds them.
func (e *edit) beginAgain() {
	e.s.Resume.Due = false
	if !e.looksAhead() {
		e.s.Resume.Runs++
	}
	e.s.Resume.At = e.in.Now
}

// looksAhead: the session goes while a window or day is not known to be back.
func (e *edit) looksAhead() bool {
	for _, id := range limitersOf(e.l, e.s) {
		for _, h := range e.l.Limiters[id].Holds {
			if isLong(h.Class) && (h.Until.After(e.in.Now) || h.UntilSource == finding.Estimate) {
				return true
			}
		}
	}
	return false
}

// waitsSince is when a launch, or a task to be done again, began to wait.
func waitsSince(s lockfile.Session) time.Time {
	if s.Resume.Due {
		return s.Since
	}
	return s.Born
}

// waitsUntil is when it gives up.
func (c Constants) waitsUntil(s lockfile.Session) time.Time {
	if s.Resume.Due {
		return s.Resume.First.Add(c.Resuming.Longest)
	}
	return s.Born.Add(c.Launch.MaxWait)
}

// IsResume reports whether a session's reason, as status shows it, is a task
// that waits to be done again, and the class of its limit.
func IsResume(reason string) (finding.Class, bool) {
	code, class, _ := strings.Cut(reason, ":")
	return finding.Class(class), code == resumeReason
}
