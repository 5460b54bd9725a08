// Package windowsim plays the project's own policy (policies.Policy over a
// lockfile.Ledger, not a copy of it) in a world of subscription windows: an
// allowance of tokens that begins with the first request and comes back whole
// after five hours, prompt caches that live five minutes, agents that behave at
// the limit as the real ones were measured to, and shims that hear of each other
// late. One seed is one outcome, and every policy gets the same work for it.
//
//	account.go   what the provider admits
//	agent.go     what a CLI does
//	shim.go      what qshim does around it
//	run.go       one situation, its outcome and the lower bound
//
// The world is that of the reference model beside the project (its README tells
// where each number was measured); the code is not.
package windowsim

import (
	"container/heap"
	"time"
)

// clock runs what is planned, in the order of time and then of planning.
type clock struct {
	now   time.Time
	queue planned
	n     int
}

// plan is one planned call.
type plan struct {
	at   time.Time
	n    int
	do   func()
	gone bool
}

// drop cancels a plan; nil, and one that has run, are fine.
func (p *plan) drop() {
	if p != nil {
		p.gone = true
	}
}

func (c *clock) at(t time.Time, do func()) *plan {
	if t.Before(c.now) {
		t = c.now
	}
	c.n++
	p := &plan{at: t, n: c.n, do: do}
	heap.Push(&c.queue, p)
	return p
}

func (c *clock) after(d time.Duration, do func()) *plan { return c.at(c.now.Add(d), do) }

// run goes on until done, or until an instant; it reports whether done.
func (c *clock) run(until time.Time, done func() bool) bool {
	for len(c.queue) > 0 && !done() {
		p := heap.Pop(&c.queue).(*plan)
		if p.gone {
			continue
		}
		if p.at.After(until) {
			return false
		}
		c.now, p.gone = p.at, true
		p.do()
	}
	return done()
}

type planned []*plan

func (q planned) Len() int { return len(q) }
func (q planned) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].n < q[j].n
}
func (q planned) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *planned) Push(x any)   { *q = append(*q, x.(*plan)) }
func (q *planned) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
