package minutesim

import (
	"math"
	"time"
)

// Tier is a provider's limits per minute.
type Tier struct {
	Name                 string
	Requests, Input, Out float64
}

// The two tiers of the 16 situations.
var (
	Small = Tier{"small", 50, 30e3, 8e3}
	Big   = Tier{"big", 1000, 450e3, 90e3}
)

// bucket refills continuously up to what it holds.
type bucket struct {
	perSecond, holds, level float64
	seen                    time.Duration
}

func newBucket(perMinute, minutes float64) bucket {
	return bucket{perSecond: perMinute / 60, holds: perMinute * minutes, level: perMinute * minutes}
}

func (b *bucket) fill(now time.Duration) {
	b.level = math.Min(b.holds, b.level+(now-b.seen).Seconds()*b.perSecond)
	b.seen = now
}

// lacks is how many seconds pass until the bucket holds so much.
func (b *bucket) lacks(want float64) float64 { return math.Max(0, (want-b.level)/b.perSecond) }

// provider is one account's three buckets. A request is let in where each is
// above zero and then pays in full, so a bucket can be in debt and the mean rate
// holds; in a strict world it has to hold the whole cost.
type provider struct {
	w               *World
	requests, in, o bucket
	refused         int
}

func newProvider(w *World) *provider {
	t := w.Tier
	return &provider{w: w, requests: newBucket(t.Requests, w.Burst), in: newBucket(t.Input, w.Burst), o: newBucket(t.Out, w.Burst)}
}

// wait is how many seconds pass until a request of this cost is let in.
func (p *provider) wait(now time.Duration, in, out float64) float64 {
	p.requests.fill(now)
	p.in.fill(now)
	p.o.fill(now)
	needIn, needOut := 1.0, 1.0
	if p.w.Strict {
		needIn, needOut = math.Min(in, p.in.holds), math.Min(out, p.o.holds)
	}
	return math.Max(p.requests.lacks(1), math.Max(p.in.lacks(needIn), p.o.lacks(needOut)))
}

// ask is one request. A refusal names a retry-after in whole seconds, and counts
// against the requests down to zero, unless refusals are free.
func (p *provider) ask(now time.Duration, in, out float64) (ok bool, retryAfter time.Duration) {
	if w := p.wait(now, in, out); w > 1e-9 {
		p.refused++
		if !p.w.FreeRefusals {
			p.requests.level = math.Max(0, p.requests.level-1)
		}
		return false, seconds(math.Ceil(w))
	}
	p.requests.level--
	p.in.level -= in
	p.o.level -= out
	return true, 0
}
