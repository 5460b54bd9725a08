package shim

import (
	"context"
	"errors"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
)

// governor decides for one session, and carries it out. One goroutine runs it
// and owns everything below; the pump never waits for it.
//
//	bytes, log lines, status, keys, exit -> watcher -> report
//	    report -> Update(policy.Finding | policy.Activity) ------------\
//	a sibling wrote (hint), Decision.Wake, watcher's Wake --------------+-> decide
//	    decide: Read -> policy.Decide -> Claim? Update(policy.Step) -> act
//	    act:    suspend (ledger first, then SIGSTOP, then the pause row)
//	            continue (row away, SIGCONT, then the ledger)
//	            surface (a notice, once a hold)
//
// Whatever fails on the state directory means "run": the agent goes on, one
// line says why, and the next hint or 30 s later all is tried again.
type governor struct {
	store   lockfile.Store
	policy  policies.Policy
	self    string
	now     func() time.Time
	rand    func() float64
	family  func(model string) string
	watcher *detect.Watcher
	hands   hands
	face    face
	observe bool

	last     policies.Decision
	wake     time.Time // when to decide again at the latest
	watch    time.Time // when the watcher wants its Tick
	pause    *pauseKeys
	stopped  time.Time // when this pause began
	deadline time.Time // when a suspended agent is continued without the ledger
	loud     time.Time // when the agent last painted much
	model    string
	busy     bool
	surfaced map[surfacedKey]bool
	failed   string // the failure that was said, so that it is said once
}

// surfacedKey is one thing that a person was told of.
type surfacedKey struct {
	limiter string
	class   finding.Class
	since   int64
}

// hands is what a governor can do to its agent.
type hands interface {
	// Suspend stops the agent. record is called with what will be stopped
	// before it is; its error means that nothing is stopped.
	Suspend(record func([]lockfile.Stopped) error) error
	// Continue lets a suspended agent go on. It does nothing to one that its
	// user stopped.
	Continue() error
	// Held reports whether the last order was Suspend.
	Held() bool
	// Quit ends the agent as SIGTERM would, suspended or not.
	Quit()
}

// face is what a governor can show.
type face interface {
	Pause(p Pause)   // show or update the pause row
	Unpause()        // restore what was under it
	Notify(n Notice) // tell a person who is looking elsewhere
	Warn(err error)  // one line about what qshim cannot do
}

// retry is how long a decision that failed on the state directory waits for
// the next try (DESIGN section 4.14).
const retry = 30 * time.Second

// quiet is how long an agent must have painted little before a long stop: a
// stream that is stopped for longer than the client's timeout is paid twice.
const quiet = 2 * time.Second

func (g *governor) input() policies.Input {
	return policies.Input{Now: g.now(), Self: g.self, Rand: g.rand, Family: g.family(g.model)}
}

// report takes what the watcher saw into the ledger.
func (g *governor) report(ctx context.Context, r detect.Report) {
	g.watch = r.Wake
	if r.Model != "" && r.Model != g.model {
		g.model = r.Model
		g.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			if s, ok := l.Sessions[g.self]; ok {
				s.Family = g.family(r.Model)
				l.Sessions[g.self] = s
			}
			return l, nil
		})
	}
	for _, f := range r.Findings {
		g.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			in := g.input()
			if f.Model != "" {
				in.Family = g.family(f.Model)
			}
			return g.policy.Finding(l, in, f)
		})
	}
	if a, edge := g.activity(r); edge {
		g.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			return g.policy.Activity(l, g.input(), a)
		})
	}
	if len(r.Findings) > 0 || !g.wake.IsZero() && !g.now().Before(g.wake) {
		g.decide(ctx)
	}
}

// activity keeps only edges: the ledger is not for heartbeats.
func (g *governor) activity(r detect.Report) (policies.Activity, bool) {
	a := policies.Activity{
		Busy: r.Activity == detect.Busy, Idle: r.Activity == detect.Idle,
		TurnBegan: r.TurnBegan, TurnEnded: r.TurnEnded, Success: r.Success,
		AnswerBegun: r.AnswerBegun, RetryEnded: r.RetryEnded,
	}
	edge := a.TurnBegan || a.TurnEnded || a.Success || a.AnswerBegun || a.RetryEnded
	if (a.Busy || a.Idle) && a.Busy != g.busy {
		g.busy, edge = a.Busy, true
	}
	return a, edge
}

// update changes the ledger and decides on what came of it.
func (g *governor) update(ctx context.Context, fn func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) {
	if _, err := g.store.Update(ctx, fn); err != nil {
		g.failOpen(ctx, err)
		return
	}
	g.failed = ""
	g.decide(ctx)
}

// decide reads the ledger and does what the policy says. Only where something
// is to be claimed it takes the lock, and then the decision under the lock
// counts.
func (g *governor) decide(ctx context.Context) {
	l, err := g.store.Read()
	if err != nil {
		g.failOpen(ctx, err)
		return
	}
	d := g.policy.Decide(l, g.self, g.now())
	if d.Claim {
		_, err = g.store.Update(ctx, func(old lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			next, dd, events := g.policy.Step(old, g.input())
			d = dd
			return next, events
		})
		if err != nil {
			g.failOpen(ctx, err)
			return
		}
	}
	g.failed = ""
	g.act(ctx, d)
}

// act carries a decision out.
func (g *governor) act(ctx context.Context, d policies.Decision) {
	g.last, g.wake = d, d.Wake
	if g.observe {
		return
	}
	switch d.Action {
	case policies.Suspend, policies.Wait:
		g.suspend(ctx, d)
	case policies.Surface:
		g.surface(d)
		g.resume(ctx)
	default:
		g.resume(ctx)
	}
}

// suspend stops the agent, at a quiet moment where the stop will be long.
func (g *governor) suspend(ctx context.Context, d policies.Decision) {
	now := g.now()
	g.deadline = d.Until
	if g.hands.Held() {
		g.show()
		return
	}
	if soon := now.Add(quiet / 4); now.Before(d.QuietUntil) && now.Sub(g.loud) < quiet && g.busy {
		g.wake = earliest(g.wake, soon)
		return
	}
	err := g.hands.Suspend(func(what []lockfile.Stopped) error {
		_, err := g.store.Update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			return g.markSuspended(l, what, d)
		})
		return err
	})
	if err != nil {
		g.failOpen(ctx, err)
		return
	}
	g.stopped, g.pause = now, newPauseKeys(now)
	g.show()
	g.face.Notify(Notice{Kind: Suspended, Pause: g.facts()})
}

func (g *governor) markSuspended(l lockfile.Ledger, what []lockfile.Stopped, d policies.Decision) (lockfile.Ledger, []lockfile.Event) {
	s, ok := l.Sessions[g.self]
	if !ok {
		return l, nil
	}
	s.Stopped = what
	if s.State != lockfile.Suspended {
		s.State, s.Since = lockfile.Suspended, g.now()
	}
	s.Until, s.Reason = d.Until, string(d.Reason.Class)
	l.Sessions[g.self] = s
	return l, []lockfile.Event{g.event("suspend", s, d)}
}

// resume lets a suspended agent go on. The agent first, then the ledger: a
// crash in between leaves a record that a sibling clears, never a stopped agent.
func (g *governor) resume(ctx context.Context) {
	if !g.hands.Held() {
		return
	}
	g.face.Unpause()
	g.pause = nil
	if err := g.hands.Continue(); err != nil {
		g.face.Warn(err)
	}
	_, err := g.store.Update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		s, ok := l.Sessions[g.self]
		if !ok {
			return l, nil
		}
		s.Stopped = nil
		if s.State == lockfile.Suspended {
			s.State, s.Since = lockfile.Running, g.now()
		}
		s.Until, s.Reason, s.Released = time.Time{}, "", g.now()
		l.Sessions[g.self] = s
		return l, []lockfile.Event{g.event("continue", s, g.last)}
	})
	if err != nil {
		g.warnOnce(err)
	}
	g.face.Notify(Notice{Kind: Continued, Pause: g.facts()})
}

// surface tells a person once what only a person can mend.
func (g *governor) surface(d policies.Decision) {
	k := surfacedKey{d.Limiter, d.Hold.Class, d.Hold.Since.UnixNano()}
	if g.surfaced[k] {
		return
	}
	if g.surfaced == nil {
		g.surfaced = map[surfacedKey]bool{}
	}
	g.surfaced[k] = true
	g.face.Notify(Notice{Kind: NeedsYou, Pause: g.facts()})
}

func (g *governor) event(name string, s lockfile.Session, d policies.Decision) lockfile.Event {
	return lockfile.Event{At: g.now(), Event: name, Session: s.ID, Agent: s.Agent, Limiter: d.Limiter, Model: g.model,
		Class: d.Reason.Class, Measure: d.Hold.Measure, Scope: d.Hold.Scope, Until: d.Until, Reason: string(d.Reason.Code)}
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
	g.face.Unpause()
	g.pause = nil
	if err := g.hands.Continue(); err != nil {
		g.face.Warn(err)
	}
}

// warnOnce says a failure once until something worked again.
func (g *governor) warnOnce(err error) {
	if s := err.Error(); s != g.failed {
		g.failed = s
		g.face.Warn(err)
	}
}

func (g *governor) show() { g.face.Pause(g.facts()) }

// facts are what the voice needs about this pause.
func (g *governor) facts() Pause {
	p := Pause{Decision: g.last, Now: g.now()}
	if g.pause != nil {
		p.Keys, p.Dropped = g.pause.hint(), g.pause.dropped
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
		g.hands.Quit()
	case redraw:
		g.show()
	}
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
