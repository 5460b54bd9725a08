package minutesim

import (
	"math"
	"slices"
	"time"
)

// none launches at once and leaves everything to the clients' own retries.
type none struct{}

func (none) wants(a *agent)        { a.launch() }
func (none) shows(*agent, message) {}
func (none) answers(*agent)        {}
func (none) pressedOn(*agent)      {}
func (none) ended(*agent)          {}

// pauseAll stops everybody at a message, until the time that it tells or 30 s
// doubled on each repeat, and lets everybody go on at once.
type pauseAll struct {
	r      *run
	until  time.Duration
	paused bool
	streak int
	let    time.Duration // when all went on last
	end    *planned
}

func (p *pauseAll) wants(a *agent) {
	a.launch()
	if p.paused {
		a.stop()
	}
}
func (p *pauseAll) answers(*agent)   {}
func (p *pauseAll) pressedOn(*agent) {}
func (p *pauseAll) ended(*agent)     {}

func (p *pauseAll) shows(_ *agent, m message) {
	p.r.after(p.r.w.Lag, func() { p.pause(m) })
}

func (p *pauseAll) pause(m message) {
	now := p.r.now
	if p.let > 0 && now-p.let < time.Second {
		return // from before it went on
	}
	wait := seconds(math.Min(300, 30*math.Pow(2, float64(p.streak))))
	if m.next > 0 {
		if wait = m.next - now; wait <= 0 {
			return
		}
	}
	if p.paused {
		p.streak++
	}
	p.paused, p.until = true, max(p.until, now+wait)
	for _, a := range p.r.agents {
		if a.phase != unborn {
			a.stop()
		}
	}
	p.end.forget()
	p.end = p.r.at(p.until, func() {
		p.paused, p.streak, p.let = false, 0, p.r.now
		for _, a := range p.r.agents {
			a.cont()
		}
	})
}

// oracle knows the buckets: requests wait for them, the oldest task first, and
// none is refused.
type oracle struct {
	r       *run
	waiting []*agent
	next    *planned
}

// turn reports whether the agent's request may go now; if not, it is called
// when it may.
func (o *oracle) turn(a *agent) bool {
	if a.granted {
		a.granted = false
		return true
	}
	o.waiting = append(o.waiting, a)
	slices.SortStableFunc(o.waiting, func(x, y *agent) int { return int(x.wanted - y.wanted) })
	o.serve()
	return false
}

func (o *oracle) serve() {
	o.next.forget()
	for len(o.waiting) > 0 {
		a := o.waiting[0]
		in, out := a.cost()
		if w := o.r.prov.wait(o.r.now, in, out); w > 1e-9 {
			o.next = o.r.after(seconds(w)+time.Microsecond, o.serve)
			return
		}
		o.waiting = o.waiting[1:]
		a.granted = true
		a.try()
	}
}
