package windowsim

import (
	"math"
	"time"
)

// answer is what becomes of a request.
type answer int

const (
	served    answer = iota
	usedUp           // the window: the turn ends
	throttled        // too many starts at once: a transient 429
)

// account is one subscription: a window, and a throttle on simultaneous starts.
type account struct {
	size   float64       // tokens a window
	length time.Duration // of the window
	ends   time.Time     // zero: the next request begins one
	used   float64

	starts  float64 // that may come at once
	refill  time.Duration
	level   float64
	levelAt time.Time

	windows, refused, throttled int
}

func (a *account) roll(now time.Time) {
	if !a.ends.IsZero() && !now.Before(a.ends) {
		a.ends, a.used = time.Time{}, 0
	}
}

// ask admits a request while the window is not full, and takes all that it
// costs then: a window is overrun by one request at most. start is a session's
// first request after a launch, a broken turn or a stop of over a minute.
func (a *account) ask(now time.Time, cost float64, start bool) answer {
	a.roll(now)
	if a.used >= a.size {
		a.refused++
		return usedUp
	}
	if start && !a.begin(now) {
		a.throttled++
		return throttled
	}
	if a.ends.IsZero() {
		a.ends = now.Add(a.length)
		a.windows++
	}
	a.used += cost
	return served
}

func (a *account) begin(now time.Time) bool {
	a.level = min(a.starts, a.level+float64(now.Sub(a.levelAt))/float64(a.refill))
	a.levelAt = now
	if a.level < 1 {
		return false
	}
	a.level--
	return true
}

// share is what agents are told after each answer: whole percents.
func (a *account) share(now time.Time) (used float64, ends time.Time) {
	a.roll(now)
	return math.Floor(100 * a.used / a.size), a.ends
}
