package windowsim

import (
	"fmt"
	"maps"
	"reflect"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
)

// shim is what stands around one agent: qshim with the real policy, or nobody.
type shim interface {
	want()                                            // the agent is to be launched
	saw(context, cost float64)                        // an answer ended well
	began()                                           // a turn began by itself
	limited(ends time.Time, alone bool) (resume bool) // the window is used up
	throttled() (resume bool)                         // the client gave up on a transient 429
	retries(attempt int, delay time.Duration)
	over() // the task is done
}

// nobody launches at once and leaves all to clients and people.
type nobody struct{ a *agent }

func (n nobody) want()                      { n.a.start = true; n.a.begin() }
func (nobody) saw(float64, float64)         {}
func (nobody) began()                       {}
func (nobody) limited(time.Time, bool) bool { return false }
func (nobody) throttled() bool              { return false }
func (nobody) retries(int, time.Duration)   {}
func (nobody) over()                        {}

const (
	accountID = "openai/0123456789ab"
	sourceID  = "openai@source"
)

// governed is one shim's loop: what it sees goes into the ledger, and it decides
// on every change and at its own wake.
type governed struct {
	*sim
	a       *agent
	id      string
	wake    *plan
	context float64
	spent   float64
	told    float64 // share
}

func (g *governed) in() policies.Input {
	return policies.Input{Now: g.now, Self: g.id, Rand: g.rng.Float64}
}

func (g *governed) want() {
	g.ledger.Sessions[g.id] = lockfile.Session{
		Schema: lockfile.Schema, ID: g.id, Agent: "agent", Limiters: []string{accountID, sourceID}, Alive: true,
		Priority: g.world.Priority, Headless: g.a.kind == Headless, Prompt: true, Continues: g.a.kind == Claude,
		State: lockfile.Waiting, Since: g.now, Born: g.now,
	}
	g.look()
}

// change writes to the ledger as a shim does; a changed limiter is news to all.
func (g *governed) change(fn func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) {
	next, _ := fn(g.ledger)
	news := !maps.EqualFunc(g.ledger.Limiters, next.Limiters, func(a, b lockfile.Limiter) bool { return reflect.DeepEqual(a, b) })
	g.ledger = next
	if news {
		g.writes++
		for _, other := range g.shims {
			if o, ok := other.(*governed); ok && o != g {
				o.after(g.some(g.world.News), o.look)
			}
		}
	}
}

func (g *governed) act(a policies.Activity) {
	g.change(func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) { return g.policy.Activity(l, g.in(), a) })
}

func (g *governed) find(f finding.Finding) {
	f.Confidence, f.At = finding.Certain, g.now
	g.change(func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) { return g.policy.Finding(l, g.in(), f) })
}

// look decides and does what the decision says.
func (g *governed) look() {
	s, ok := g.ledger.Sessions[g.id]
	if !ok || g.a.state == done {
		return
	}
	d := g.policy.Decide(g.ledger, g.id, g.now)
	wake := d.Wake
	streams := g.a.state == streaming && g.now.Before(d.QuietUntil)
	if d.Claim && !(d.Action == policies.Suspend && s.State == lockfile.Running && streams) {
		g.change(func(l lockfile.Ledger) (next lockfile.Ledger, ev []lockfile.Event) {
			next, d, ev = g.policy.Step(l, g.in())
			return next, ev
		})
		wake = d.Wake
	}
	g.carryOut()
	g.wake.drop()
	if streams && (wake.IsZero() || wake.After(d.QuietUntil)) {
		wake = d.QuietUntil
	}
	if wake.After(g.now) {
		g.wake = g.at(wake, g.look)
	}
}

// carryOut makes the agent what the ledger says of it.
func (g *governed) carryOut() {
	switch g.ledger.Sessions[g.id].State {
	case lockfile.Suspended:
		g.a.stop()
	case lockfile.Running, lockfile.Idle:
		switch {
		case g.a.stopped:
			g.a.cont()
		case g.a.state == unborn:
			g.a.start = true
			g.a.begin()
			g.act(policies.Activity{TurnBegan: true, Busy: true})
		case g.a.state == broken && g.again():
			g.resumes++
			g.a.resume()
			g.act(policies.Activity{TurnBegan: true, Busy: true})
		}
	}
}

// again reports whether a failed task that waited for its turn may go: its
// session was let go since it broke.
func (g *governed) again() bool {
	s := g.ledger.Sessions[g.id]
	return !s.Released.Before(s.Hits[accountID]) && !s.Released.IsZero() && s.Released.Equal(g.now)
}

func (g *governed) saw(context, cost float64) {
	g.context, g.spent = context, g.spent+cost
	g.act(policies.Activity{AnswerBegun: true, Success: true})
	u := policies.Usage{}
	if g.world.Contexts {
		u.Context = int64(context)
	}
	if used, ends := g.account.share(g.now); g.world.Shares && used != g.told {
		g.told = used
		u.Told, u.Used, u.Window, u.Ends = true, used, g.account.length, ends
	}
	if g.world.Contexts && (g.spent >= policies.StepTokens || u.Told) {
		u.Spent, g.spent = int64(g.spent), 0
	}
	g.change(func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) { return g.policy.Usage(l, g.in(), u) })
	if d := g.policy.Decide(g.ledger, g.id, g.now); d.Action == policies.Suspend {
		g.a.state = working // between an answer and the next call: a quiet moment
		g.look()
	}
}

func (g *governed) began() { g.act(policies.Activity{TurnBegan: true, Busy: true}); g.look() }

// limited: the refusal is seen a moment later. Who continues by itself is left
// to; for the others the session waits for its turn to do the task again.
func (g *governed) limited(ends time.Time, alone bool) bool {
	g.after(g.some(g.world.News), func() {
		f := finding.Finding{Class: finding.Window, Scope: finding.Account, Reset: ends, ResetSource: finding.Epoch, Rule: "windowsim"}
		if g.world.HideReset {
			f.Reset, f.ResetSource = time.Time{}, ""
		} else if g.a.kind == Codex && !g.world.Exact {
			f.Reset, f.ResetSource, f.Precision = ends.Truncate(time.Minute), finding.Zoned, time.Minute
		}
		g.find(f)
		g.ended(!alone)
	})
	return g.world.Resume
}

func (g *governed) throttled() bool {
	g.after(g.some(g.world.News), func() {
		g.find(finding.Finding{Class: finding.Rate, Scope: finding.Account, Rule: "windowsim"})
		g.ended(true)
	})
	return g.world.Resume
}

// ended: the turn is over; a task that is to be done again waits like a launch.
func (g *governed) ended(again bool) {
	g.act(policies.Activity{TurnEnded: true, Idle: true})
	if again && g.world.Resume {
		s := g.ledger.Sessions[g.id]
		s.State, s.Since, s.Reason = lockfile.Waiting, g.now, ""
		g.ledger.Sessions[g.id] = s
	}
	g.look()
}

func (g *governed) retries(attempt int, delay time.Duration) {
	g.after(g.some(g.world.News), func() {
		if g.a.state == backing {
			g.find(finding.Finding{Class: finding.Retrying, Cause: finding.Rate, Attempt: attempt, RetryAfter: delay})
			g.look()
		}
	})
}

func (g *governed) over() {
	g.act(policies.Activity{Success: true, TurnEnded: true, Exit: true})
	delete(g.ledger.Sessions, g.id)
}

func name(n int) string { return fmt.Sprintf("s%02d", n) }
