package windowsim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Kind is how an agent behaves at the window's end.
type Kind int

// The kinds, as measured on the real ones (their pages beside the project).
const (
	Claude   Kind = iota // continues by itself 30-90 s after the reset, three times at most
	Codex                // idle until somebody continues it; states the share after each answer
	Headless             // exits with an error
)

// call is one request of a task with what comes before it.
type call struct {
	local   time.Duration // tools; they run on while the CLI is stopped
	answer  time.Duration
	context float64 // tokens of the conversation
	fresh   float64 // of these, new since the last call
	output  float64
}

// task draws the calls of one agent: contexts grow from first to last tokens.
func task(r *rand.Rand, w World) []call {
	n := w.Calls*3/4 + r.IntN(w.Calls/2+1)
	top := w.First + (w.Last-w.First)*float64(n)/float64(w.Calls)
	calls := make([]call, n)
	before := 0.0
	for i := range calls {
		context := (w.First + (top-w.First)*float64(i)/float64(n-1)) * (0.99 + 0.02*r.Float64())
		local := 0.5 + 6*r.ExpFloat64()
		if r.Float64() < 0.1 {
			local += 20 + 30*r.ExpFloat64()
		}
		output := min(4000, max(60, 350*math.Exp(0.9*r.NormFloat64())))
		calls[i] = call{
			local: seconds(local), answer: seconds(1.5 + output/70),
			context: context, fresh: max(300, context-before), output: output,
		}
		before = context
	}
	calls[0].fresh = calls[0].context
	return calls
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

type state int

const (
	unborn    state = iota // not launched
	working                // tools
	streaming              // the provider answers
	backing                // waits before its client's own next try
	broken                 // the turn ended by the limit
	done
)

// agent is one CLI process.
type agent struct {
	*sim
	n     int
	kind  Kind
	calls []call
	i     int
	state state

	next     *plan // the end of the state
	stopped  bool
	since    time.Time // stopped
	late     func()    // what came due while stopped
	tries    int
	answered time.Time
	start    bool // the next request is a start
	redo     bool // the turn was broken: finding its place costs more
	alone    int  // continued by itself since a person's prompt
	hand     bool // waits for a person
}

func (a *agent) busy() bool { return a.state == working || a.state == streaming || a.state == backing }

// begin starts the next call, or ends the task.
func (a *agent) begin() {
	if a.i == len(a.calls) {
		a.state = done
		a.finished++
		a.last = a.now
		a.shim(a.n).over()
		return
	}
	a.state, a.tries = working, 0
	a.in(a.calls[a.i].local, a.ask)
}

// in plans the end of a state; SIGSTOP holds it back.
func (a *agent) in(d time.Duration, do func()) {
	a.next = a.after(d, func() {
		if a.stopped {
			a.late = do
			return
		}
		do()
	})
}

// cost of the next call in tokens that are not read from a cache.
func (a *agent) cost() float64 {
	c := a.calls[a.i]
	in := c.fresh
	if cold := a.now.Sub(a.answered) > a.world.Cache; cold {
		a.wasted += c.context - in
		in = c.context
	}
	if a.redo {
		in += 2000
	}
	return in + c.output
}

func (a *agent) ask() {
	if a.start && a.tries == 0 {
		a.began = append(a.began, a.now)
	}
	before := a.wasted
	cost := a.cost()
	switch a.account.ask(a.now, cost, a.start) {
	case served:
		extra := time.Duration(0)
		if a.redo {
			extra = 10 * time.Second
		}
		a.state, a.start, a.redo = streaming, false, false
		a.in(a.calls[a.i].answer+extra, func() { a.done(cost) })
	case throttled:
		a.wasted = before
		a.throttled()
	case usedUp:
		a.wasted = before
		a.refused()
	}
}

func (a *agent) done(cost float64) {
	a.answered = a.now
	c := a.calls[a.i]
	a.i++
	a.shim(a.n).saw(c.context, cost)
	a.begin()
}

// refused: the turn ends. Claude continues by itself; for the others somebody
// has to.
func (a *agent) refused() {
	if !a.redo {
		a.brokenTurns++
	}
	a.state, a.redo, a.start = broken, true, true
	ends := a.account.ends
	alone := a.kind == Claude && a.alone < 3
	if alone {
		a.alone++
		a.at(ends.Add(30*time.Second+a.some(time.Minute)), func() {
			if a.state == broken && !a.stopped {
				a.byItself++
				a.resume()
				a.shim(a.n).began()
			}
		})
	}
	resumes := a.shim(a.n).limited(ends, alone)
	if !alone && !resumes {
		a.call(a, ends)
	}
}

// throttled is the transient 429: Claude tries ten times by itself, Codex gives up.
func (a *agent) throttled() {
	a.tries++
	if a.kind == Codex || a.tries > 10 {
		if !a.redo {
			a.brokenTurns++
		}
		a.state, a.redo, a.start, a.tries = broken, true, true, 0
		if !a.shim(a.n).throttled() {
			a.call(a, a.now)
		}
		return
	}
	a.state = backing
	delay := seconds(min(32, 0.5*math.Pow(2, float64(a.tries-1))) * (0.75 + 0.5*a.rng.Float64()))
	a.shim(a.n).retries(a.tries, delay)
	a.in(delay, a.ask)
}

// resume begins the broken turn again: the client, qshim or a person did it.
func (a *agent) resume() {
	if a.state != broken {
		return
	}
	a.hand = false
	a.state, a.tries = working, 0
	a.in(time.Second, a.ask)
}

func (a *agent) stop() {
	if !a.stopped && a.busy() {
		a.stopped, a.since, a.late = true, a.now, nil
	}
}

func (a *agent) cont() {
	if !a.stopped {
		return
	}
	a.stopped = false
	d := a.now.Sub(a.since)
	if d > time.Minute {
		a.start = true
	}
	if a.state == streaming && d > a.world.Stream {
		a.next.drop() // the stream broke meanwhile: all is sent and paid again
		a.resent++
		a.state = backing
		a.in(seconds(0.5), a.ask)
		return
	}
	if do := a.late; do != nil {
		a.late = nil
		do()
	}
}
