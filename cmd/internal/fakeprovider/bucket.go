package fakeprovider

import (
	"fmt"
	"math"
	"time"
)

// Limits are the token buckets of one account. They refill continuously, as
// Anthropic documents its own: a limit of 60 a minute gives one a second, and a
// bucket holds at most a minute's worth (or Burst of it). A zero is no limit.
type Limits struct {
	RPM  int `json:"rpm,omitempty"`  // requests a minute
	ITPM int `json:"itpm,omitempty"` // input tokens a minute, taken when a request is accepted
	OTPM int `json:"otpm,omitempty"` // output tokens a minute, taken as they are written; may run into debt
	// Concurrent is how many requests may be answered at once.
	Concurrent int `json:"concurrent,omitempty"`
	// Burst is the share of a minute that a bucket holds when full; 0: all of it.
	Burst float64 `json:"burst,omitempty"`
	// RetryAfter is sent with a refusal instead of the computed time; below 0:
	// none is sent.
	RetryAfter float64 `json:"retry_after_s,omitempty"`
	// CountRefused takes a request from RPM for a refused one too, down to an
	// empty bucket's debt of a minute: hammering makes it worse.
	CountRefused bool `json:"count_refused,omitempty"`
}

func (l Limits) validate() error {
	if l.RPM < 0 || l.ITPM < 0 || l.OTPM < 0 || l.Concurrent < 0 {
		return fmt.Errorf("limits: must not be negative")
	}
	if !(l.Burst >= 0 && l.Burst <= 10) {
		return fmt.Errorf("limits: burst must lie between 0 and 10 minutes")
	}
	if !(l.RetryAfter >= -1 && l.RetryAfter <= 1e9) {
		return fmt.Errorf("limits: retry_after_s is out of range")
	}
	return nil
}

// bucket is one continuously refilled allowance. perMinute 0: no limit.
type bucket struct {
	perMinute float64
	full      float64 // capacity
	level     float64
	at        time.Time // when level was true
}

func newBucket(perMinute int, burst float64, now time.Time) bucket {
	if burst == 0 {
		burst = 1
	}
	// At least one unit, or a small burst of a small limit could never serve.
	full := max(float64(perMinute)*burst, 1)
	return bucket{perMinute: float64(perMinute), full: full, level: full, at: now}
}

func (b *bucket) refill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.full, b.level+d.Minutes()*b.perMinute)
	}
	b.at = now
}

// wait is how long until n units are there; 0: now. A request larger than the
// bucket passes when the bucket is full, else it never could.
func (b *bucket) wait(now time.Time, n float64) time.Duration {
	if b.perMinute == 0 {
		return 0
	}
	b.refill(now)
	short := min(n, b.full) - b.level
	if short <= 1e-6 { // rounding must not refuse what was promised
		return 0
	}
	return time.Duration(math.Ceil(short / b.perMinute * float64(time.Minute)))
}

// take removes n units, into debt of at most a minute.
func (b *bucket) take(now time.Time, n float64) {
	if b.perMinute == 0 {
		return
	}
	b.refill(now)
	b.level = max(b.level-n, -b.perMinute)
}

// remaining is what a response header states: whole units, never negative.
func (b *bucket) remaining(now time.Time) int {
	b.refill(now)
	return int(max(b.level, 0))
}

// meter holds the buckets of one account.
type meter struct {
	limits    Limits
	requests  bucket
	input     bucket
	output    bucket
	answering int // requests in progress
}

func newMeter(l Limits, now time.Time) *meter {
	return &meter{
		limits:   l,
		requests: newBucket(l.RPM, l.Burst, now),
		input:    newBucket(l.ITPM, l.Burst, now),
		output:   newBucket(l.OTPM, l.Burst, now),
	}
}

// admit takes one request of n input tokens, or says which allowance is short
// and for how long.
func (m *meter) admit(now time.Time, n int) (short string, wait time.Duration) {
	worst := func(name string, d time.Duration) {
		if d > wait {
			short, wait = name, d
		}
	}
	worst(measureRequests, m.requests.wait(now, 1))
	worst(measureInput, m.input.wait(now, float64(n)))
	worst(measureOutput, m.output.wait(now, 1))
	if short == "" && m.limits.Concurrent > 0 && m.answering >= m.limits.Concurrent {
		short = measureConcurrent
	}
	if short != "" {
		if m.limits.CountRefused {
			m.requests.take(now, 1)
		}
		return short, wait
	}
	m.requests.take(now, 1)
	m.input.take(now, float64(n))
	return "", 0
}

// The names of the measures inside this package.
const (
	measureRequests   = "requests"
	measureInput      = "input tokens"
	measureOutput     = "output tokens"
	measureConcurrent = "concurrent connections"
)
