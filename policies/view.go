package policies

import (
	"cmp"
	"slices"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// view reads a ledger at one instant. Everything that Decide says follows from
// it; it changes nothing.
type view struct {
	p    Policy
	l    lockfile.Ledger
	now  time.Time
	self string
	memo *memo // nil: nothing is kept
}

func (e *edit) view() view {
	e.sync()
	return view{p: e.p, l: e.l, now: e.in.Now, self: e.in.Self, memo: &memo{}}
}

// alive: the caller's own lease is its own business.
func (v view) alive(s lockfile.Session) bool { return s.Alive || s.ID == v.self }

// steerable sessions may be elected and queued. One that its user stopped
// cannot answer, unless it is the one that asks: then it runs again.
func (v view) steerable(s lockfile.Session) bool {
	return v.alive(s) && !s.Observe && (!s.UserStopped || s.ID == v.self)
}

// stopped sessions wait for something: a launch, or a continue.
func stopped(s lockfile.Session) bool {
	return s.State == lockfile.Waiting || s.State == lockfile.Suspended
}

// sends reports whether a waiting launch will send at once.
func sends(s lockfile.Session) bool { return s.Headless || s.Prompt || s.Resume.Due }

// root is the outermost living session that s is nested in, else s itself. A
// nested session shares its place.
func (v view) root(s lockfile.Session) lockfile.Session {
	for range 16 { // a loop of parents cannot happen, and would end here
		if s.Parent == "" {
			return s
		}
		parent, ok := v.l.Sessions[s.Parent]
		if !ok || !v.alive(parent) {
			return s
		}
		s = parent
	}
	return s
}

// parents calls f for every living session that s is nested in.
func (v view) parents(s lockfile.Session, f func(lockfile.Session) bool) bool {
	for range 16 {
		if s.Parent == "" {
			return false
		}
		parent, ok := v.l.Sessions[s.Parent]
		if !ok || !v.alive(parent) {
			return false
		}
		if f(parent) {
			return true
		}
		s = parent
	}
	return false
}

// anyway reports whether the user of s, or of a session around it, said to run
// anyway after an instant's run began, or a person continued everything while
// it was stopped.
func (v view) anyway(s lockfile.Session, id string, began time.Time) bool {
	said := func(x lockfile.Session) bool {
		at, ok := x.RunAnyway[id]
		if all := v.l.Limiters[id].Anyway; continued(x, all) {
			at, ok = later(at, all), true
		}
		return ok && !at.Before(began)
	}
	return said(s) || v.parents(s, said)
}

// continued reports whether s stood still when a person continued everything.
func continued(s lockfile.Session, all time.Time) bool {
	return stopped(s) && !all.IsZero() && !s.Since.After(all)
}

// concerns reports whether a hold stops s in the state that it is in, and if
// not, why not. It is the table of DESIGN section 5.
func (v view) concerns(h lockfile.Hold, id string, s lockfile.Session) (bool, Code) {
	switch {
	case s.Observe:
		return false, Observing
	case h.Class == finding.Person && v.personsOver(h):
		return false, "" // nobody has to try first
	case s.State == lockfile.Idle:
		return false, Parked
	case v.anyway(s, id, h.First):
		return false, Anyway
	case s.State == lockfile.Waiting:
		return v.concernsLaunch(h, s)
	case h.Class == finding.Person:
		return true, Held
	case s.Storm && !isMoney(h.Class):
		return true, Storming
	case s.Retrying && s.State == lockfile.Running && !v.secondTry(id, s):
		return false, Retrying
	case isMoney(h.Class), isTransient(h.Class) && v.ending(s):
		return false, LeftAlone
	case v.refusedIn(h, id, s):
		return false, LeftAlone
	case h.Class == finding.Overload:
		return h.Wide, LeftAlone
	case isLong(h.Class):
		return v.concernsLong(h, id, s)
	}
	return true, Held
}

// secondTry: the next try of a run without a terminal would come beside that of
// another which goes first: what comes back bears one. Stopped, its elapsed retry
// is sent when its turn comes.
func (v view) secondTry(id string, s lockfile.Session) bool {
	lim := v.l.Limiters[id]
	return s.Headless && lim.Probe != nil && lim.Probe.Session != s.ID && v.probeLives(lim)
}

// ending: a run without a terminal that has just been answered. What it asked is
// paid, and most likely it was its last: a moment later it is gone. Stopped there
// it may hold what its siblings wait for: Codex 0.171.0 writes into the database
// of its home then, and who starts meanwhile stands still for 90 s.
func (v view) ending(s lockfile.Session) bool {
	since := v.now.Sub(s.Answered)
	return s.Headless && s.State == lockfile.Running && s.Answered.After(s.TurnBegan) && since >= 0 && since < v.p.C.Probe.Settle
}

func (v view) concernsLaunch(h lockfile.Hold, s lockfile.Session) (bool, Code) {
	if isLong(h.Class) && !sends(s) {
		return false, LeftAlone
	}
	if v.nestedLong(s) {
		return false, Nested
	}
	return true, Held
}

// nestedLong: a nested agent's launch has waited long enough; its parent may be
// waiting for it.
func (v view) nestedLong(s lockfile.Session) bool {
	return s.State == lockfile.Waiting && v.root(s).ID != s.ID && v.now.Sub(waitsSince(s)) >= v.p.C.Launch.Nested
}

// refusedIn reports whether the session was itself refused in this hold's run
// and has begun no turn since: it is idle, or about to exit.
func (v view) refusedIn(h lockfile.Hold, id string, s lockfile.Session) bool {
	hit, ok := s.Hits[id]
	return ok && !hit.Before(h.First) && !s.TurnBegan.After(hit)
}

// concernsLong: windows and daily quotas. The session that hit is left across
// the reset (Claude Code continues by itself), a user's Enter is a volunteer
// probe, and a busy interactive session is stopped only for a short while.
func (v view) concernsLong(h lockfile.Hold, id string, s lockfile.Session) (bool, Code) {
	if hit, ok := s.Hits[id]; ok && !hit.Before(h.First) && !s.Headless {
		return false, LeftAlone
	}
	if s.Headless || s.Priority == lockfile.Background {
		return true, Held
	}
	if s.TurnBegan.After(h.First) {
		return false, Volunteer
	}
	short := h.UntilSource != finding.Estimate && h.Until.Sub(v.now) <= v.p.at(id).long(h.Class).InteractiveMost
	return short && !h.Blocked, LeftAlone
}

// inForce reports whether a hold still stops s, as opposed to being due for a
// probe that s may be.
func (v view) inForce(h lockfile.Hold, s lockfile.Session) bool {
	checkDue := !h.Check.IsZero() && !v.now.Before(h.Check)
	switch {
	case isMoney(h.Class) && checkDue && s.State == lockfile.Waiting && sends(s):
		return false
	case h.Blocked:
		return true
	case v.steppedBack(h):
		return false
	case isLong(h.Class) && checkDue && mayBeRefused(s):
		return false
	}
	return v.now.Before(h.Until)
}

// steppedBack: the hold began in the future, so the clock was set back. What
// counted from then says nothing any more; a stated clock time still does.
func (v view) steppedBack(h lockfile.Hold) bool {
	return v.future(h.Since) && h.UntilSource.Rank() <= finding.Relative.Rank()
}

// future: something happened in the future, so the clock was set back since, and
// nobody knows how long ago it was.
func (v view) future(t time.Time) bool { return t.After(v.now.Add(time.Minute)) }

// mayBeRefused: an early re-check costs whoever is refused its turn. An
// interactive launch parks itself with its prompt in sight; a headless run
// would fail, so it waits for the stated time, unless it has failed already and
// waits to be run again: one refusal more costs it nothing. A turn on a screen
// is resumed only once, so that one is not for a guess.
func mayBeRefused(s lockfile.Session) bool {
	if s.Resume.Due {
		return s.Headless
	}
	return s.State == lockfile.Waiting && s.Prompt && !s.Headless && !s.Broken || s.State == lockfile.Running && s.Retrying
}

// dueAt is when a hold first became due for s.
func (v view) dueAt(h lockfile.Hold) time.Time {
	at := h.Until
	if h.Blocked || !h.Check.IsZero() && h.Check.Before(at) && v.now.Before(at) {
		at = h.Check
	}
	return earlier(at, v.now)
}

// holds sorts the limiter's holds that concern s into those in force and those
// due for a probe, and names why the others do not concern it.
func (v view) holds(lim lockfile.Limiter, s lockfile.Session) (force, due []lockfile.Hold, left Reason) {
	for _, h := range lim.Holds {
		ok, code := v.concerns(h, lim.ID, s)
		switch {
		case !ok:
			left = Reason{Code: code, Class: h.Class, Who: h.By}
		case v.inForce(h, s):
			force = append(force, h)
		default:
			due = append(due, h)
		}
	}
	return force, due, left
}

// count is holds without the holds: many sessions are counted for one decision.
func (v view) count(lim lockfile.Limiter, s lockfile.Session) (force, due int) {
	for i := range lim.Holds {
		switch ok, _ := v.concerns(lim.Holds[i], lim.ID, s); {
		case !ok:
		case v.inForce(lim.Holds[i], s):
			force++
		default:
			due++
		}
	}
	return force, due
}

// verdict on a limiter's probe.
type verdict int

const (
	noProbe verdict = iota
	pending         // not judged yet; the instant is the latest end
	passed          // nothing came: the limiter is open since the instant
	lost            // gone, idle without success, or silent: the next claims
)

// judge reads what became of the probe, and since or until when; a zero instant
// means that nobody can know since when. A probe passes on an answer begun and
// 8 s, or 20 s; only an answer counts where money was short.
func (v view) judge(lim lockfile.Limiter) (verdict, time.Time) {
	pr, c := lim.Probe, v.p.at(lim.ID)
	if pr == nil {
		return noProbe, time.Time{}
	}
	s, ok := v.l.Sessions[pr.Session]
	if !ok || !v.alive(s) || s.UserStopped && s.ID != v.self || s.State == lockfile.Suspended || s.State == lockfile.Waiting ||
		v.future(pr.Since) {
		return lost, time.Time{}
	}
	if s.Retrying {
		return v.judgeRetrier(pr, s, c)
	}
	if pr.Began.IsZero() {
		return v.until(pr.Since.Add(c.Probe.Start), lost)
	}
	if s.State == lockfile.Idle {
		return v.until(later(s.Since, pr.Began).Add(c.Probe.Settle), lost)
	}
	end, then := pr.Began.Add(c.Probe.Time), passed
	if isMoney(pr.Class) {
		end, then = pr.Began.Add(c.Retrying.Silence), lost
	}
	if answered := later(pr.Answer, pr.Began.Add(c.Probe.Answer)); !pr.Answer.IsZero() && !answered.After(end) {
		end, then = answered, passed
	}
	return v.until(end, then)
}

// judgeRetrier: a refusal of its next try would have been shown by then. Where
// the time of that try is not known, silence says nothing good.
func (v view) judgeRetrier(pr *lockfile.Probe, s lockfile.Session, c Constants) (verdict, time.Time) {
	next := later(s.RetryAt, pr.Since)
	if s.RetryShown && !isMoney(pr.Class) {
		return v.until(next.Add(c.Probe.Time), passed)
	}
	return v.until(next.Add(c.Retrying.Silence), lost)
}

func (v view) until(end time.Time, then verdict) (verdict, time.Time) {
	if v.now.Before(end) {
		return pending, end
	}
	return then, end
}

// probeLives reports whether a probe is under way.
func (v view) probeLives(lim lockfile.Limiter) bool {
	j, _ := v.judge(lim)
	return j == pending || j == passed
}

// heldOn reports whether s is stopped on a limiter with nothing to claim there:
// by a hold in force, or because another session goes first.
func (v view) heldOn(id string, s lockfile.Session) bool {
	lim := v.l.Limiters[id]
	force, due := v.count(lim, s)
	if force > 0 {
		return true
	}
	return due > 0 && lim.Probe != nil && lim.Probe.Session != s.ID && v.probeLives(lim) && !v.withProber(lim, s)
}

// withProber: a session nested in the prober shares its place.
func (v view) withProber(lim lockfile.Limiter, s lockfile.Session) bool {
	return lim.Probe != nil && v.parents(s, func(x lockfile.Session) bool { return x.ID == lim.Probe.Session })
}

func (v view) heldElsewhere(id string, s lockfile.Session) bool {
	return v.overElsewhere(id, s) || v.heldElsewhereByHold(id, s)
}

// heldElsewhereByHold leaves the caps out.
func (v view) heldElsewhereByHold(id string, s lockfile.Session) bool {
	for x, lim := range v.l.Limiters {
		if x != id && len(lim.Holds) > 0 && DrawsOn(s, x) && v.heldOn(x, s) {
			return true
		}
	}
	return false
}

// candidates lists who may be the limiter's probe, best first: a client in its
// own retry, a failed task to be done again, a waiting launch that will send, a
// suspended session. Within these
// interactive before background, then the oldest.
func (v view) candidates(id string) line {
	lim := v.l.Limiters[id]
	return v.lineUp(id, func(s lockfile.Session) (int, bool) {
		ok := DrawsOn(s, id) && v.steerable(s) && v.electable(lim, s) && !v.over(id, s) && !v.heldElsewhere(id, s)
		return rank(s), ok
	})
}

// rank of a candidate; lower goes first.
func rank(s lockfile.Session) int {
	switch s.State {
	case lockfile.Running:
		return 0
	case lockfile.Waiting:
		if s.Resume.Due {
			return 1
		}
		return 2
	}
	return 3
}

func (v view) electable(lim lockfile.Limiter, s lockfile.Session) bool {
	switch s.State {
	case lockfile.Running:
		return v.retrier(lim, s)
	case lockfile.Waiting:
		if !sends(s) {
			return false
		}
	case lockfile.Suspended:
	default:
		return false
	}
	force, due := v.count(lim, s)
	return force == 0 && due > 0
}

// retrier: its client tries again by itself soon, and the holds are due.
func (v view) retrier(lim lockfile.Limiter, s lockfile.Session) bool {
	c := v.p.at(lim.ID)
	soon := !s.RetryAt.After(v.now.Add(c.Probe.Start)) && v.now.Before(s.RetryAt.Add(c.Retrying.Silence))
	if !s.Retrying || s.Storm || !soon {
		return false
	}
	for _, h := range lim.Holds {
		if v.inForce(h, s) {
			return false
		}
	}
	return len(lim.Holds) > 0
}

// queue lists who waits for its turn on a limiter that is open to them: the
// order of the release, oldest first within the priorities.
func (v view) queue(id string) line {
	return v.lineUp(id, func(s lockfile.Session) (int, bool) {
		return 0, stopped(s) && DrawsOn(s, id) && v.steerable(s) && !v.over(id, s) && !v.heldOn(id, s) && !v.heldElsewhere(id, s)
	})
}

// line lists everybody who is stopped on a limiter, held elsewhere or not.
func (v view) line(id string) line {
	return v.lineUp(id, func(s lockfile.Session) (int, bool) {
		return 0, stopped(s) && DrawsOn(s, id) && v.steerable(s)
	})
}

// line is a number of sessions in order.
type line []inLine

// inLine is what orders a session: sessions themselves are large.
type inLine struct {
	rank, priority int
	said           int       // place in what a person said, below 0 where it is named
	root, born     time.Time // of the outermost session that it is nested in, and its own
	id             string
}

func (a inLine) compare(b inLine) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.said, b.said), cmp.Compare(a.priority, b.priority),
		a.root.Compare(b.root), a.born.Compare(b.born), cmp.Compare(a.id, b.id))
}

// lineUp orders the sessions that pick takes: as a person said for the limiter,
// then interactive before background, then the oldest.
func (v view) lineUp(limiter string, pick func(lockfile.Session) (rank int, ok bool)) line {
	var out line
	first := v.l.Limiters[limiter].First
	if limiter == "" { // of all limiters at once
		for _, lim := range v.l.Limiters {
			first = append(first[:len(first):len(first)], lim.First...)
		}
	}
	for id, s := range v.l.Sessions {
		rank, ok := pick(s)
		if !ok {
			continue
		}
		root := v.root(s)
		x := inLine{rank: rank, said: said(first, id, root.ID), priority: v.priority(root), root: root.Born, born: s.Born, id: id}
		if limiter == "" && s.Ahead {
			x.priority = -1 // a slot is kept, a turn in a queue counts once
		}
		out = append(out, x)
	}
	slices.SortFunc(out, inLine.compare)
	return out
}

// said is the place of a session, or of the one around it, among those that a
// person named; 0 for any other.
func said(first []string, id, root string) int {
	for i, x := range first {
		if x == id || x == root {
			return i - len(first)
		}
	}
	return 0
}

// place of a session in a line, -1 if it is not in it.
func (l line) place(id string) int {
	return slices.IndexFunc(l, func(x inLine) bool { return x.id == id })
}
