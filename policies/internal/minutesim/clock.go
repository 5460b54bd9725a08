package minutesim

import (
	"container/heap"
	"time"
)

// clock runs planned calls in the order of their times, which are durations
// since the run began.
type clock struct {
	now  time.Duration
	plan plan
	n    int
}

// planned is one call to come. Forgotten ones are skipped.
type planned struct {
	at   time.Duration
	n    int // the order of planning decides between equals
	do   func()
	gone bool
}

// forget is safe on nil and on a call that is over.
func (p *planned) forget() {
	if p != nil {
		p.gone = true
	}
}

func (c *clock) at(t time.Duration, do func()) *planned {
	c.n++
	p := &planned{at: max(t, c.now), n: c.n, do: do}
	heap.Push(&c.plan, p)
	return p
}

func (c *clock) after(d time.Duration, do func()) *planned { return c.at(c.now+d, do) }

// run goes on until done says so; false: nothing was left to do, or the limit
// has passed.
func (c *clock) run(limit time.Duration, done func() bool) bool {
	for len(c.plan) > 0 && !done() {
		p := heap.Pop(&c.plan).(*planned)
		if p.gone {
			continue
		}
		if p.at > limit {
			return false
		}
		c.now = p.at
		p.do()
	}
	return done()
}

type plan []*planned

func (p plan) Len() int { return len(p) }
func (p plan) Less(i, j int) bool {
	return p[i].at < p[j].at || p[i].at == p[j].at && p[i].n < p[j].n
}
func (p plan) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *plan) Push(x any)   { *p = append(*p, x.(*planned)) }
func (p *plan) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
