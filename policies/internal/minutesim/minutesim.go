// Package minutesim runs the project's own policy in a model of agents that
// share a provider's per-minute limits, and scores it. It is a discrete-event
// simulation: token buckets, agents with their clients' own retries, and one
// shim an agent, all over one ledger, driven by policies.Policy as package shim
// drives it.
//
//	go test ./policies/internal/minutesim                          # short: few seeds, fails when the score regresses
//	go test ./policies/internal/minutesim -run Score -seeds 31 -v  # the whole table
//	go test ./policies/internal/minutesim -run Score -seeds 5 -worlds -v
//
// The worlds and their numbers are those of the reference model that the
// policy's constants come from: two tiers, 4 to 64 agents, contexts that a
// prompt cache pays or not, clients that show their retries or hide them.
//
// What a shim sees is what the reference lets a wrapper see, and no more: that
// its agent runs, a message 1-5 s after a refusal (with the time of the next try
// where the client shows one; nothing but the last where it hides its retries),
// that the agent stands idle after it gave up and is busy when a person presses
// on, and that it exits. It sees no request, no token and no success before the
// end. World.Signs adds what the profiles of the real agents see besides: that a
// retry is over, and that an answer begins after a continue.
package minutesim

import (
	"math"
	"math/rand/v2"
	"time"
)

// World is one situation.
type World struct {
	N      int
	Tier   Tier
	Cache  bool // only new tokens are paid while the prompt cache is warm
	Hidden bool // the client shows only its final failure
	Signs  bool // the shim also sees the end of retries and the beginning of answers
	Typed  bool // who presses on types: that session is not chosen for a while

	Burst        float64 // minutes of refill that a bucket holds
	Strict       bool    // a request has to fit whole
	FreeRefusals bool    // they do not count against the requests
	NoTime       bool    // messages do not tell when the client tries again
	CacheLife    time.Duration
	StreamLife   time.Duration // an answer survives a stop of this length
	Lag          time.Duration // from a change of the ledger to the siblings' look
	Tries        int           // of the client, before it gives up
	Background   bool          // every second agent is a background one
	Headless     bool          // all run without a terminal

	// Runs makes N workers of the agents: each does so many tasks of Calls calls,
	// one after another, each a run of its own without a terminal. 0: one task on
	// a screen.
	Runs, Calls int
	Untold      bool // a message does not say why it was refused
	Prompt      bool // a message is seen within 0.3 s: it comes from a log
}

// Base is the world of the 16 situations.
func Base(n int, t Tier, cache, hidden bool) World {
	return World{N: n, Tier: t, Cache: cache, Hidden: hidden, Burst: 1, CacheLife: 5 * time.Minute, StreamLife: 5 * time.Minute,
		Lag: 50 * time.Millisecond, Tries: 10}
}

// Outcome is what one run came to.
type Outcome struct {
	Span, Bound time.Duration // from the start to the last end, and what no order of requests can beat
	Refused     int           // 429s
	Persons     int           // times a person had to press on
	Broken      int           // answers lost to long stops
	Flow        time.Duration // mean time from wanted to done
	FlowBack    time.Duration // the same of the background agents
	Busiest     int           // most agents that ran at a time after the first minute
	Looks       int           // decisions
	Finished    bool
}

// Ratio is the span over its bound.
func (o Outcome) Ratio() float64 { return o.Span.Seconds() / o.Bound.Seconds() }

// governor is a way to share the limit. It hears what wrappers see.
type governor interface {
	wants(a *agent)            // a user starts it
	shows(a *agent, m message) // a message on its screen
	answers(a *agent)          // an answer begins, the first since a retry or a continue
	pressedOn(a *agent)        // a person has told it to go on
	ended(a *agent)
}

// run is one run of a world.
type run struct {
	clock
	w      *World
	prov   *provider
	rng    *rand.Rand
	agents []*agent
	gov    governor
	oracle *oracle
	left   int
	broken int
}

// spread is the time within which the user starts all agents.
const spread = 5 * time.Second

func newRun(w World, seed uint64) *run {
	r := &run{w: &w, rng: rand.New(rand.NewPCG(seed, 1)), left: w.N * max(1, w.Runs)}
	r.prov = newProvider(&w)
	work := rand.New(rand.NewPCG(seed, 2)) // the same work whatever governs
	for i := range r.left {
		a := &agent{run: r, id: i, asked: -time.Hour}
		if w.Runs > 0 {
			a.task = shortTask(work, w.Calls)
		} else {
			a.task = newTask(work)
		}
		a.wanted = seconds(work.Float64() * spread.Seconds())
		r.agents = append(r.agents, a)
	}
	return r
}

// follow: a worker that has done a task begins its next one.
func (r *run) follow(a *agent) {
	if next := a.id + r.w.N; next < len(r.agents) {
		n := r.agents[next]
		n.wanted = r.now + seconds(0.1)
		r.at(n.wanted, func() { r.gov.wants(n) })
	}
}

// play runs the world to its end.
func (r *run) play() Outcome {
	for _, a := range r.agents[:r.w.N] {
		r.at(a.wanted, func() { r.gov.wants(a) })
	}
	o := Outcome{Bound: r.bound()}
	o.Finished = r.clock.run(60*24*time.Hour, func() bool { return r.left == 0 })
	for _, a := range r.agents {
		o.Span = max(o.Span, a.ended)
		if r.w.Background && a.id%2 == 1 {
			o.FlowBack += 2 * (a.ended - a.wanted) / time.Duration(r.w.N)
		} else if r.w.Background {
			o.Flow += 2 * (a.ended - a.wanted) / time.Duration(r.w.N)
		} else {
			o.Flow += (a.ended - a.wanted) / time.Duration(r.w.N)
		}
		o.Persons += a.persons
	}
	o.Refused, o.Broken = r.prov.refused, r.broken
	return o
}

// bound is the largest of what each bucket needs for the work, with a cache that
// never cools, and the longest task by itself.
func (r *run) bound() time.Duration {
	var in, out, requests, biggest, alone float64
	owns := make([]float64, r.w.N)
	for _, a := range r.agents {
		own := &owns[a.id%r.w.N]
		for i, c := range a.task {
			tokens := c.context
			if r.w.Cache && i > 0 {
				tokens = c.fresh
			}
			in, out, requests, biggest = in+tokens, out+c.reply, requests+1, math.Max(biggest, tokens)
			*own += (c.local + c.latency).Seconds()
		}
		alone = math.Max(alone, *own)
	}
	need := func(work float64, b bucket, debt float64) float64 { return (work - b.holds - debt) / b.perSecond }
	p := r.prov
	return seconds(max(need(in, p.in, biggest), need(out, p.o, 4000), need(requests, p.requests, 0), alone))
}
