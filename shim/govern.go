package shim

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/lockfile/fault"
	"qshim/policies"
)

// governor decides for one session, and carries it out. One goroutine runs it
// and owns everything below; the pump never waits for it.
//
//	bytes, log lines, status, keys, exit -> watcher -> report
//	    report -> Update(policy.Finding | policy.Activity) ------------\
//	a sibling wrote (hint), Decision.Wake, watcher's Wake --------------+-> decide
//	    decide: Read -> policy.Decide -> Claim? Update(policy.Step) -> act
//	    act:    suspend (ledger first, then SIGSTOP, then the pause row; an agent that
//	            the ledger names already is stopped first: stopFirst)
//	            continue (row away, SIGCONT, then the ledger)
//	            surface (a notice, once a hold)
//
// Whatever fails on the state directory means "run": the agent goes on, one
// line says why, and the next hint or 30 s later all is tried again.
type governor struct {
	store   lockfile.Store
	late    *Late // see Config
	policy  policies.Policy
	self    string
	now     func() time.Time
	rand    func() float64
	family  func(model string) string
	watcher *detect.Watcher
	env     []string // the agent's environment
	hands   hands
	face    face

	last       policies.Decision
	wake       time.Time // when to decide again at the latest
	watch      time.Time // when the watcher wants its Tick
	pause      *pauseKeys
	recorded   bool      // the ledger may say that we have stopped something
	deadline   time.Time // when a suspended agent is continued without the ledger
	loud       time.Time // when the agent last painted much
	model      string
	told       consumption // what the ledger knows of the agent's usage
	activity   detect.Activity
	owed       []change         // what the ledger could not be told yet, oldest first
	quits      int              // steps taken to end the agent that its user quits
	over       bool             // the agent has ended: nothing is to be decided any more
	care       time.Time        // when to look after suspended siblings; zero: there are none
	typed      time.Time        // when the user last pressed a key that the agent got, or waits for its turn to get
	typedAt    time.Time        // the same as far as the ledger knows
	crowd      int              // how many sessions the last look saw
	glanced    bool             // the last decision was made without a look at the siblings
	capped     bool             // a limiter of this session bears only so many at once
	tidied     time.Time        // when dead sessions may be looked after again
	resumer    *resumer         // of turns that a limit broke; nil: there is none
	failed     string           // the failure that was said, so that it is said once
	afterwards *afterwards      // of a stop that is not recorded yet; nil: there is none
	unlogged   []lockfile.Event // what the log is told by and by, or with the next change
	logAt      time.Time        // when it is told; zero: there is nothing
}

// hands is what a governor can do to its agent.
type hands interface {
	// Suspend stops the agent. record is called with what will be stopped
	// before it is; its error means that nothing is stopped. What it shows may
	// wait for aside.
	Suspend(aside time.Duration, record func([]lockfile.Stopped) error) error
	// Continue lets a suspended agent go on. It does nothing to one that its
	// user stopped.
	Continue() error
	// Held reports whether the last order was Suspend.
	Held() bool
	// Quit ends the agent as sig would, suspended or not.
	Quit(sig syscall.Signal)
}

// face is what a governor can show.
type face interface {
	Pause(p Pause)   // show or update the pause row; Continue takes it away
	Notify(n Notice) // tell a person who is looking elsewhere
	Warn(err error)  // one line about what qshim cannot do
}

// retry is how long a decision that failed on the state directory waits for
// the next try (DESIGN section 4.14).
const retry = 30 * time.Second

// mostOwed bounds what waits for a ledger that does not work: changes. Beyond
// it the oldest are forgotten; news that old says nothing about now.
const mostOwed = 32

// quiet is how long an agent must have painted little before a long stop: a
// stream that is stopped for longer than the client's timeout is paid twice.
const quiet = 2 * time.Second

func (g *governor) input() policies.Input {
	return policies.Input{Now: g.now(), Self: g.self, Rand: g.rand, Family: g.family(g.model)}
}

// report takes what the watcher saw into the ledger, as one change, in the order
// of its edges.
func (g *governor) report(ctx context.Context, r detect.Report) {
	g.watch = r.Wake
	withoutSecrets(r, g.env)
	e := g.edges(r)
	model := r.Model != "" && r.Model != g.model
	if model {
		g.model = r.Model
	}
	silent := !model && len(r.Findings) == 0 && len(r.Unrecognised) == 0 && e.nothing()
	used := g.told.news(r.Usage, !silent)
	if silent && used.Nothing() {
		return // the ledger is not for heartbeats
	}
	if g.over && len(r.Findings) == 0 && len(r.Unrecognised) == 0 && g.late.pending() {
		return // it was over before anybody heard of it
	}
	if len(r.Findings) > 0 {
		fault.At("finding seen")
	}
	g.update(ctx, func(l lockfile.Ledger) (_ lockfile.Ledger, events []lockfile.Event) {
		step := func(next lockfile.Ledger, ev []lockfile.Event) { l, events = next, append(events, ev...) }
		if s, ok := l.Sessions[g.self]; ok && model {
			s.Family = g.family(r.Model)
			l.Sessions[g.self] = s
		}
		for _, a := range e.before {
			step(g.policy.Activity(l, g.input(), a))
		}
		if !used.Nothing() {
			step(g.policy.Usage(l, g.input(), used))
		}
		for _, f := range r.Findings {
			in := g.input()
			if f.Model != "" {
				in.Family = g.family(f.Model)
			}
			step(g.policy.Finding(l, in, f))
		}
		for _, a := range e.after {
			step(g.policy.Activity(l, g.input(), a))
		}
		return l, append(events, g.unrecognised(l, r.Unrecognised)...)
	})
}

// unrecognised are the log's lines about turns that failed for a reason that no
// rule knows. They decide nothing.
func (g *governor) unrecognised(l lockfile.Ledger, seen []detect.Unrecognised) (events []lockfile.Event) {
	for _, u := range seen {
		events = append(events, lockfile.Event{
			At: g.now(), Event: "unrecognised", Session: g.self, Agent: l.Sessions[g.self].Agent, Reason: u.Sign, Rows: u.Rows,
		})
	}
	return events
}

// update changes the ledger, tells a person what only a person can mend, and
// decides on what came of it. What the ledger cannot be told now, it is told
// with the next change: a limit that was seen while a sibling held the lock is
// still a limit.
func (g *governor) update(ctx context.Context, fn change) {
	all := append(g.owed, fn)
	var events []lockfile.Event
	l, err := g.write(ctx, func(l lockfile.Ledger) (_ lockfile.Ledger, out []lockfile.Event) {
		for _, f := range all {
			next, ev := f(l)
			l, out = next, append(out, ev...)
		}
		events = out
		return l, out
	})
	if err != nil {
		g.owed = all[max(0, len(all)-mostOwed):]
		g.failOpen(ctx, err)
		return
	}
	fault.At("told the ledger")
	g.owed, g.failed = nil, ""
	for _, e := range events {
		if e.Event == "surface" {
			g.surface(e)
		}
	}
	g.decideOn(ctx, l) // as it was under the lock: to read it again would cost half as much once more
}

// change is a pure step of the ledger.
type change = func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)

// decide reads the ledger and does what the policy says. Only where something
// is to be claimed it takes the lock, and then the decision under the lock
// counts.
func (g *governor) decide(ctx context.Context) {
	if g.over || g.quits > 0 {
		return
	}
	if g.recordStop(ctx); g.stopAtOnce(ctx) {
		return
	}
	l, err := g.store.Read()
	if err != nil {
		g.failOpen(ctx, err)
		return
	}
	g.decideOn(ctx, l)
}

// decideOn is decide on a state that was just read.
func (g *governor) decideOn(ctx context.Context, l lockfile.Ledger) {
	if g.over || g.quits > 0 {
		return
	}
	g.glanced, g.crowd = false, len(l.Sessions)
	g.tidy(l)
	if g.capped = g.anyCap(l); g.tellTyped(ctx) {
		return // it has decided
	}
	d := g.policy.Decide(l, g.self, g.now())
	if l.Sessions[g.self].Resume.Due && g.resumer != nil {
		g.last, g.wake = d, d.Wake
		if d.Claim {
			g.resumer.turn(ctx, func() (policies.Decision, error) { return g.step(ctx, nil) })
		}
		return
	}
	if d.Claim && (d.Action != policies.Suspend || g.hands.Held()) {
		var err error
		if d, err = g.step(ctx, nil); err != nil {
			g.failOpen(ctx, err)
			return
		}
		g.failed = ""
	}
	if d.Action == policies.Suspend && !g.hands.Held() {
		g.suspend(ctx, l, d, false) // records in its own time: at a quiet moment
		return
	}
	g.act(ctx, d)
}

// setBack: the wall clock was set back to now. What is pending is due at once:
// by the old clock it would be late by as much.
func (g *governor) setBack(now time.Time) {
	for _, at := range []*time.Time{&g.wake, &g.care, &g.watch, &g.tidied, &g.deadline, &g.logAt} {
		if !at.IsZero() {
			*at = now
		}
	}
	g.typedAt = time.Time{}
}

// tidy looks after sessions whose shim was killed: what they left stopped goes
// on. Whoever sees it first does it; a second one does no harm. A killed shim
// tells nobody, so as long as a sibling is suspended somebody looks.
func (g *governor) tidy(l lockfile.Ledger) {
	now := g.now()
	g.care = time.Time{}
	dead := false
	for _, s := range l.Sessions {
		switch {
		case s.ID == g.self:
		case !s.Alive:
			dead = true
		case len(s.Stopped) > 0:
			g.care = now.Add(careEvery)
		}
	}
	for id, lim := range l.Limiters {
		if policies.DrawsOn(l.Sessions[g.self], id) && slices.ContainsFunc(lim.Holds, func(h lockfile.Hold) bool { return now.Sub(h.Since) < careFresh }) {
			g.care = now.Add(careEvery) // siblings are being suspended just now
		}
	}
	if !dead || now.Before(g.tidied) {
		return
	}
	g.tidied = now.Add(tidyEvery)
	if _, err := g.store.Recover(ContinueOrphan); err != nil {
		g.warnOnce(err)
	}
}

// careEvery is how often a session looks whether the shim of a suspended
// sibling still lives.
const careEvery = 5 * time.Second

// careFresh is how long after a hold began its siblings' suspensions may not
// yet be known here: sessions' files are not watched.
const careFresh = 30 * time.Second

// tidyEvery spaces the tries to look after a dead session that cannot be
// cleared at once.
const tidyEvery = time.Second

// keyed: the user is here. The ledger hears of it only while a cap could choose
// this session, and not of every key.
func (g *governor) keyed(ctx context.Context) {
	g.typed = g.now()
	g.tellTyped(ctx)
}

// typedEvery is how exactly the ledger knows when the user last pressed a key.
const typedEvery = 30 * time.Second

// tellTyped reports whether it had something to tell, and so has decided.
func (g *governor) tellTyped(ctx context.Context) bool {
	if !g.capped || g.typed.Sub(g.typedAt) < typedEvery || g.now().Sub(g.typed) >= g.policy.C.Concurrency.Typed {
		return false
	}
	g.typedAt = g.typed
	g.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		return g.policy.Activity(l, g.input(), policies.Activity{Typed: g.typedAt})
	})
	return true
}

// anyCap reports whether a limiter of this session bears only so many at once,
// or wakes few.
func (g *governor) anyCap(l lockfile.Ledger) bool {
	for id, lim := range l.Limiters {
		few := lim.Release != nil && lim.Release.Awake > 0
		if _, ok := g.policy.Cap(l, id); (ok || few) && policies.DrawsOn(l.Sessions[g.self], id) {
			return true
		}
	}
	return false
}

// again makes up for what failed: what the ledger is owed is tried with a
// decision.
func (g *governor) again(ctx context.Context) {
	if g.quits > 0 {
		g.quit()
		return
	}
	if len(g.owed) > 0 && !g.over {
		g.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) { return l, nil })
		return
	}
	g.decide(ctx)
}

// stop is step for a session that is to be suspended, with what has been read of
// its limiters. Where that does not depend on its siblings the record of its own
// is all that has to be written before the agent is stopped: 100 that waited for
// the lock one behind the other would each cost the next one a millisecond. The
// log hears of it afterwards (logSoon).
func (g *governor) stop(ctx context.Context, in policies.Input, limiters map[string]lockfile.Limiter, what []lockfile.Stopped) (d policies.Decision, events []lockfile.Event, err error) {
	alone := false
	err = g.store.Record(g.self, func(s *lockfile.Session) {
		fault.At("claim")
		s.Alive = true
		own := lockfile.Ledger{Limiters: limiters, Sessions: map[string]lockfile.Session{g.self: *s}}
		if own, d, events, alone = g.policy.Stop(own, in); alone {
			*s = own.Sessions[g.self]
			s.Stopped = what
		}
	})
	if err == nil && alone {
		return d, events, nil
	}
	d, err = g.step(ctx, what) // which also brings back a record that somebody removed
	return d, nil, err
}

// step decides under the lock. also is what goes into the session's record with
// it, where the decision is to suspend.
func (g *governor) step(ctx context.Context, also []lockfile.Stopped) (d policies.Decision, err error) {
	fault.At("claim")
	defer fault.At("claimed")
	_, err = g.write(ctx, func(old lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		next, dd, events := g.policy.Step(old, g.input())
		d = dd
		if s, ok := next.Sessions[g.self]; ok && d.Action == policies.Suspend && also != nil {
			s.Stopped = also
			next.Sessions[g.self] = s
		}
		return next, events
	})
	return d, err
}

// act carries a decision out that asks for no stop, or for one that is there.
func (g *governor) act(ctx context.Context, d policies.Decision) {
	g.last, g.wake = d, d.Wake
	if d.Action == policies.Suspend {
		g.deadline = d.Until
		g.show()
		return
	}
	g.resume(ctx)
}

// errNotNow: between the look and the lock the reason to suspend went away.
var errNotNow = errors.New("no reason to suspend any more")

// suspend stops the agent, at a quiet moment where the stop will be long. must: d
// is MustStop's.
func (g *governor) suspend(ctx context.Context, l lockfile.Ledger, d policies.Decision, must bool) {
	now := g.now()
	g.last, g.wake = d, d.Wake
	if now.Before(d.QuietUntil) && now.Sub(g.loud) < quiet {
		g.wake = earliest(g.wake, earliest(d.QuietUntil, g.loud.Add(quiet)))
		return
	}
	var events []lockfile.Event
	err := g.hands.Suspend(g.aside(), func(what []lockfile.Stopped) (err error) {
		if must && g.stopFirst(l, what) {
			g.recorded = true // it may be, by the time that this is asked
			return nil
		}
		var ev []lockfile.Event
		d, ev, err = g.stop(ctx, g.input(), l.Limiters, what)
		if events = append(events, ev...); err == nil && d.Action != policies.Suspend {
			err = errNotNow
		}
		g.recorded = g.recorded || err == nil
		return err
	})
	defer func() { g.logSoon(events) }()
	switch {
	case errors.Is(err, errNotNow):
		g.act(ctx, d)
		return
	case errors.Is(err, ErrUserStopped) || errors.Is(err, ErrEnded):
		g.wake = time.Time{}
		return // the tap says when there is something to decide again
	case err != nil:
		g.failOpen(ctx, err)
		return
	}
	fault.At("suspended")
	g.last, g.wake, g.deadline, g.failed = d, d.Wake, d.Until, ""
	g.pause = newPauseKeys(now)
	g.show()
	g.face.Notify(Notice{Kind: Suspended, Pause: g.facts()})
}

// resume lets a suspended agent go on. The agent first, then the record of what
// was stopped: a crash in between leaves a record that a sibling clears, never a
// stopped agent.
func (g *governor) resume(ctx context.Context) {
	paused := g.pause != nil || g.hands.Held()
	if !paused && !g.recorded {
		return
	}
	if paused {
		if err := g.hands.Continue(); errors.Is(err, ErrUserStopped) {
			return // it stays stopped, on the record, until the tap says that the user is back
		} else if err != nil {
			g.face.Warn(err)
		}
		g.pause = nil
	}
	fault.At("continued")
	g.forget(ctx)
	fault.At("forgotten")
	if paused {
		g.face.Notify(Notice{Kind: Continued, Pause: g.facts()})
	}
}

// forget clears the record of what was stopped. A ledger that cannot be told is
// asked again with the next decision.
func (g *governor) forget(ctx context.Context) {
	_, err := g.write(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		if s, ok := l.Sessions[g.self]; ok {
			s.Stopped = nil
			l.Sessions[g.self] = s
		}
		return l, nil
	})
	g.recorded = err != nil
	if err != nil {
		g.warnOnce(err)
		g.wake = earliest(g.wake, g.now().Add(retry))
	}
}

// surface tells a person what only a person can mend. The policy logs it once.
func (g *governor) surface(e lockfile.Event) {
	p := g.facts()
	p.Decision = policies.Decision{Limiter: e.Limiter, Until: e.Until,
		Hold: lockfile.Hold{Class: e.Class, Measure: e.Measure}, Reason: policies.Reason{Code: policies.Blocked, Class: e.Class}}
	g.face.Notify(Notice{Kind: NeedsYou, Pause: p})
}

// failOpen is every failure of the state directory: this decision is "run".
// A suspended agent waits for its own deadline, without the ledger.
func (g *governor) failOpen(ctx context.Context, err error) {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return
	}
	g.warnOnce(err)
	now := g.now()
	g.wake = now.Add(retry)
	if !g.hands.Held() {
		return
	}
	if g.deadline.After(now) {
		g.wake = earliest(g.wake, g.deadline)
		return
	}
	g.goOn()
}

// goOn continues the agent and leaves the ledger as it is.
func (g *governor) goOn() {
	if err := g.hands.Continue(); errors.Is(err, ErrUserStopped) {
		return
	} else if err != nil {
		g.face.Warn(err)
	}
	g.pause = nil
	g.face.Notify(Notice{Kind: Continued, Pause: g.facts()})
}

// warnOnce says a failure once until something worked again.
func (g *governor) warnOnce(err error) {
	if s := Fault(err); s != g.failed {
		g.failed = s
		g.face.Warn(err)
	}
}

func (g *governor) show() { g.face.Pause(g.facts()) }

// facts are what the voice needs about this pause.
func (g *governor) facts() Pause {
	p := Pause{Decision: g.last, Now: g.now()}
	if g.pause != nil {
		p.Keys, p.Dropped = g.pause.hint(p.Now), g.pause.dropped
	}
	return p
}

// key takes a key that was pressed while the agent is suspended.
func (g *governor) key(ctx context.Context, k Key) {
	if g.pause == nil {
		return
	}
	switch g.pause.press(k, g.now()) {
	case runAnyway:
		g.runAnyway(ctx)
	case quit:
		g.quit()
	case redraw:
		g.show()
	}
	if g.last.Reason.Code == policies.Queued && (g.last.Reason.Class == finding.Window || g.last.Reason.Class == finding.Daily) {
		g.keyed(ctx) // few are woken after a reset, and who is typed into is one of them
	}
}

// quitSteps end an agent that its user quits: what a SIGTERM does, then what
// the end of its terminal does, and at last what nothing can refuse.
var quitSteps = []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL}

// quitPatience is how long an agent may take to end; Claude Code and Codex take
// under a second.
const quitPatience = 3 * time.Second

// quit ends the agent, one step harder each time. From the first on nothing is
// decided any more: the agent runs, to come to its end.
func (g *governor) quit() {
	if g.quits >= len(quitSteps) {
		return
	}
	g.hands.Quit(quitSteps[g.quits])
	g.quits++
	g.wake = g.now().Add(quitPatience)
}

// runAnyway lets this session run until the holds that stop it end: its user
// said so, on the keyboard or by a SIGCONT from outside.
func (g *governor) runAnyway(ctx context.Context) {
	g.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		return g.policy.RunAnyway(l, g.input())
	})
	g.resume(ctx) // also where the ledger could not be told
}

// earliest is the sooner of two times, zero meaning never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
