package minutesim

import (
	"math"
	"math/rand/v2"
	"time"
)

// call is one model request of a task, with the local work before it.
type call struct {
	local, latency        time.Duration
	context, fresh, reply float64 // tokens: of the whole conversation, new since the last call, of the answer
}

// newTask draws a task of 30-50 calls whose context grows from 2k to 60k.
func newTask(r *rand.Rand) []call {
	n := 30 + r.IntN(21)
	out := make([]call, n)
	last := 0.0
	for i := range out {
		context := (2000 + 58000*float64(i)/float64(n-1)) * (0.95 + r.Float64()/10)
		local := 0.5 + 6*r.ExpFloat64()
		if r.IntN(10) == 0 {
			local += 20 + 30*r.ExpFloat64() // a build, or a run of the tests
		}
		reply := math.Min(4000, math.Max(60, 350*math.Exp(0.9*r.NormFloat64())))
		out[i] = call{local: seconds(local), latency: seconds(1.5 + reply/70), context: context, fresh: math.Max(300, context-last), reply: reply}
		last = context
	}
	return out
}

// shortTask draws a task of few calls whose first comes when the CLI has started.
func shortTask(r *rand.Rand, calls int) []call {
	out := make([]call, calls)
	for i := range out {
		tokens := 1000 * (0.8 + 0.4*r.Float64())
		out[i] = call{local: seconds(0.5 + 1.5*r.ExpFloat64()), latency: seconds(1 + r.Float64()), context: tokens, fresh: tokens, reply: 50}
	}
	out[0].local = seconds(1.5 + r.Float64())
	return out
}

// phase is what an agent does.
type phase int

const (
	unborn   phase = iota // not launched
	working               // tools and thinking
	asking                // the provider answers
	sleeping              // the client waits before its next try
	failed                // the client gave up; a person will press on
	done
)

// message is what an agent shows of a refusal, 1-5 s after it.
type message struct {
	tries int
	at    time.Duration // when it was refused
	next  time.Duration // when the client tries again; zero: it does not say
	final bool          // the client gave up
}

// agent is one CLI with its client's own retries.
type agent struct {
	run   *run
	id    int
	task  []call
	i     int
	phase phase
	tries int
	asked time.Duration // when its prompt cache was last used

	stopped  bool
	since    time.Duration
	timer    *planned
	end      func()        // what the timer does
	left     time.Duration // local work left at the stop
	missed   bool          // the timer ran out during the stop
	unseen   []message     // what it will show once it goes on
	granted  bool          // the oracle lets the next request in
	announce bool          // its next answer is a sign: it retries, or was let go

	wanted, ended time.Duration
	persons       int
}

func (a *agent) launch() { a.announce = true; a.next() }

func (a *agent) next() {
	if a.i == len(a.task) {
		a.phase, a.ended = done, a.run.now
		a.run.left--
		a.run.gov.ended(a)
		a.run.follow(a)
		return
	}
	a.phase, a.tries = working, 0
	a.in(a.task[a.i].local, a.try)
}

// in plans the end of a phase. One that comes during a stop waits for the
// continue, and so does local work that a person begins during one.
func (a *agent) in(d time.Duration, end func()) {
	a.end = end
	if a.stopped && a.phase == working {
		a.left = d
		return
	}
	a.timer = a.run.after(d, func() {
		if a.stopped {
			a.missed = true
			return
		}
		end()
	})
}

func (a *agent) cost() (in, out float64) {
	c := a.task[a.i]
	warm := a.run.w.Cache && a.i > 0 && a.run.now-a.asked < a.run.w.CacheLife
	if warm {
		return c.fresh, c.reply
	}
	return c.context, c.reply
}

func (a *agent) try() {
	if o := a.run.oracle; o != nil && !o.turn(a) {
		return // it is called again
	}
	in, out := a.cost()
	ok, wait := a.run.prov.ask(a.run.now, in, out)
	if !ok {
		a.refused(wait)
		return
	}
	if a.announce {
		a.announce = false
		a.run.after(a.task[a.i].latency*6/10, func() { // the first words
			if !a.stopped && (a.phase == asking || a.phase == working) {
				a.run.gov.answers(a)
			}
		})
	}
	a.phase = asking
	a.in(a.task[a.i].latency, func() {
		a.asked = a.run.now
		a.i++
		a.next()
	})
}

// refused: the vendors' clients wait as told up to a minute, else double from
// 0.5 to 32 s less up to a quarter, and give up after some tries.
func (a *agent) refused(wait time.Duration) {
	w, r := a.run.w, a.run.rng
	a.tries++
	a.announce = true
	m := message{tries: a.tries, at: a.run.now}
	if a.tries >= w.Tries {
		m.final = true
		a.persons++
		a.phase = failed
		a.run.after(seconds(600*(0.5+r.Float64())), a.pressedOn)
	} else {
		d := seconds(math.Min(32, 0.5*math.Pow(2, float64(a.tries-1))) * (1 - 0.25*r.Float64()))
		if wait > 0 && wait <= time.Minute {
			d = wait + seconds(0.05+0.2*r.Float64())
			if !w.NoTime {
				m.next = a.run.now + wait
			}
		}
		a.phase = sleeping
		a.in(d, a.try)
	}
	if m.final || !w.Hidden {
		seen := seconds(1 + 4*r.Float64())
		if w.Prompt {
			seen = seconds(0.05 + 0.25*r.Float64())
		}
		a.run.after(seen, func() { a.show(m) })
	}
}

// pressedOn: a person comes by and says continue.
func (a *agent) pressedOn() {
	a.announce = true
	a.next()
	a.run.gov.pressedOn(a)
}

func (a *agent) show(m message) {
	switch {
	case a.phase == done:
	case a.stopped:
		a.unseen = append(a.unseen, m)
	default:
		a.run.gov.shows(a, m)
	}
}

// stop is SIGSTOP: local work stands still; sleeps and answers go on outside.
func (a *agent) stop() {
	if a.stopped || a.phase == done {
		return
	}
	a.stopped, a.since, a.missed = true, a.run.now, false
	if a.phase == working {
		a.left = a.timer.at - a.run.now
		a.timer.forget()
	}
}

// cont is SIGCONT. An answer that was in flight for too long is lost, and asked
// and paid for again.
func (a *agent) cont() {
	if !a.stopped {
		return
	}
	a.stopped, a.announce = false, true
	switch {
	case a.phase == working:
		a.in(a.left, a.end)
	case a.phase == asking && a.run.now-a.since > a.run.w.StreamLife:
		a.timer.forget()
		a.phase = sleeping
		a.in(time.Second/2, a.try)
		a.run.broken++
	case a.missed:
		a.end()
	}
	a.missed = false
	for _, m := range a.unseen {
		a.run.after(seconds(0.05+0.25*a.run.rng.Float64()), func() { a.show(m) })
	}
	a.unseen = nil
}
