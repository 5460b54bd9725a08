package policies

import (
	"time"

	"qshim/lockfile"
)

// Decide says what a session should do now. It is read-only and cheap: call it
// on every change of the ledger and at Decision.Wake. A session that is not in
// the ledger runs (fail open).
func (p Policy) Decide(l lockfile.Ledger, self string, now time.Time) Decision {
	s, ok := l.Sessions[self]
	if !ok {
		return Decision{Action: Run, Reason: Reason{Code: NoSession}}
	}
	return view{p: p, l: l, now: now, self: self, memo: &memo{}}.decide(s).Decision
}

// Outlook decides for many sessions of one snapshot at one instant, and works
// out only once what they have in common. For simulators and lists; all its
// sessions have to be alive.
type Outlook struct{ v view }

// Outlook looks at a snapshot.
func (p Policy) Outlook(l lockfile.Ledger, now time.Time) Outlook {
	return Outlook{view{p: p, l: l, now: now, memo: &memo{}}}
}

// Decide is Policy.Decide.
func (o Outlook) Decide(self string) Decision {
	s, ok := o.v.l.Sessions[self]
	if !ok {
		return Decision{Action: Run, Reason: Reason{Code: NoSession}}
	}
	v := o.v
	v.self = self
	return v.decide(s).Decision
}

// ruling is a decision and the standings that it came from.
type ruling struct {
	Decision
	all   []standing
	ready bool // something may be taken now, and nothing else stands in the way
}

func (v view) decide(s lockfile.Session) ruling {
	var r ruling
	for _, id := range limitersOf(v.l, s) {
		r.all = append(r.all, v.stand(id, s))
	}
	main := r.main()
	r.Decision = Decision{
		Action: Run, Limiter: main.id, Hold: main.hold, Reason: main.why,
		Until: main.until, Source: main.src, Place: main.place,
	}
	v.act(&r, s, main)
	v.claims(&r, s)
	v.waking(&r, s)
	return r
}

// main is the standing that people are told of: one that stops before one that
// does not, then credit and spend, then what is blocked, then the latest end.
func (r ruling) main() (best standing) {
	for i, st := range r.all {
		switch {
		case i == 0, st.stop && !best.stop:
			best = st
		case st.stop != best.stop:
		case st.why.Code != "" && best.why.Code == "":
			best = st
		case st.why.Code != "" && st.tells(best):
			best = st
		}
	}
	return best
}

// tells: people are told of st, not of b: money and what only a person opens
// before what time does.
func (st standing) tells(b standing) bool {
	if st.hold.Class == b.hold.Class && st.hold.Blocked == b.hold.Blocked {
		return before(st.hold, b.hold) || st.until.After(b.until)
	}
	return before(st.hold, b.hold)
}

// act turns the main standing into an action for the state that s is in.
func (v view) act(r *ruling, s lockfile.Session, main standing) {
	c := v.p.at(main.id)
	switch {
	case !main.stop:
		if r.Reason.Code == "" {
			r.Reason = v.free(s)
		}
		r.OpenWithNote = main.note
	case s.State == lockfile.Waiting:
		r.Action = Wait
		if main.ask {
			r.Action, r.AskFirst = Surface, true
		}
		r.GiveUp = v.tooLong(c, s, main)
	default:
		r.Action = Suspend
		r.QuietUntil = v.quiet(c, s, main)
	}
}

// free says why a session that nothing stops runs.
func (v view) free(s lockfile.Session) Reason {
	switch {
	case s.Observe:
		return Reason{Code: Observing}
	case s.State == lockfile.Idle:
		return Reason{Code: Parked}
	}
	return Reason{Code: Free}
}

// tooLong: a launch has waited beyond max_wait, or the stated end lies beyond.
func (v view) tooLong(c Constants, s lockfile.Session, main standing) bool {
	limit := c.waitsUntil(s)
	if !v.now.Before(limit) {
		return true
	}
	return !main.hold.Stated.IsZero() && main.why.Code == Held && main.until.After(limit)
}

// quiet: a stop that outlasts a stream waits for a quiet moment first.
func (v view) quiet(c Constants, s lockfile.Session, main standing) time.Time {
	long := main.hold.Blocked || main.until.Sub(v.now) > c.Suspend.Long
	if s.State != lockfile.Running || !long || s.Storm {
		return time.Time{}
	}
	return later(main.hold.Since, s.TurnBegan).Add(c.Suspend.Quiet)
}

// claims says whether the lock is worth taking now.
func (v view) claims(r *ruling, s lockfile.Session) {
	if r.Action == Suspend && s.State == lockfile.Running {
		r.Claim = true // the stop is recorded before it happens
		return
	}
	ready, any := true, false
	for _, st := range r.all {
		takes, early := st.claim > tidy, st.at.After(v.now)
		r.Claim = r.Claim || st.claim == tidy && !early
		any = any || takes
		if st.stop && !takes || takes && early {
			ready = false
		}
	}
	if s.State == lockfile.Waiting && r.Action != Run && s.Reason == "" && r.Reason.Code != Launching {
		r.Claim = true // a launch that begins to wait says so, to status and log
	}
	starts := stopped(s) && r.Action == Run
	r.ready = ready && (any || starts)
	r.Claim = r.Claim || r.ready
}

// waking: the earliest instant at which this decision may change by itself.
func (v view) waking(r *ruling, s lockfile.Session) {
	held := r.Action != Run
	wake := time.Time{}
	at := func(t time.Time) {
		if t.After(v.now) && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	for _, st := range r.all {
		at(st.wake)
		if st.claim != nothing {
			at(st.at)
		}
	}
	at(r.QuietUntil)
	if r.Action == Wait {
		at(v.p.at(r.Limiter).waitsUntil(s)) // then it gives up
	}
	if held || s.State == lockfile.Running && v.limited(s) {
		// Those further back look again a little earlier, not all in one instant.
		// A running one looks too: it may have missed that it is to be suspended,
		// and those behind it wait for its slot.
		spread := time.Duration(min(r.Place, 64)) * v.p.C.Suspend.Recheck / 256
		at(v.now.Add(v.p.C.Suspend.Recheck - spread))
	}
	for _, st := range r.all {
		v.moving(st.id, s, r.Place, at)
	}
	r.Wake = wake
}

// moving: whose the slots under a cap are changes with the turns of others, which
// nobody watches. Who is busy looks by and by; who was told that something has
// moved looks once more when the next thing may be told (edit.tell), those further
// back a little later.
func (v view) moving(id string, s lockfile.Session, place int, at func(time.Time)) {
	lim := v.l.Limiters[id]
	if _, capped := v.p.capOf(lim); !capped || s.State == lockfile.Idle {
		return
	}
	c := v.p.at(id).Concurrency
	if s.State == lockfile.Running {
		at(v.now.Add(c.Look))
	}
	if !v.future(lim.Told) {
		at(lim.Told.Add(c.Tell + time.Duration(min(place, 64))*c.Tell/64))
	}
}

// limited: something on its limiters may concern a running session.
func (v view) limited(s lockfile.Session) bool {
	for _, id := range limitersOf(v.l, s) {
		lim := v.l.Limiters[id]
		if _, capped := v.p.capOf(lim); capped || len(lim.Holds) > 0 {
			return true
		}
	}
	return false
}
