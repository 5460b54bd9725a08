// Package tier is what a provider allows an account: token buckets, as Anthropic
// documents its own.
package tier

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

// Validate says what is wrong with the limits.
func (l Limits) Validate() error {
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

// Bucket is one continuously refilled allowance.
type Bucket struct {
	PerMinute float64 // 0: no limit
	Full      float64 // capacity
	Level     float64 // as it was at the last call
	at        time.Time
}

// NewBucket is a full one; burst is the share of a minute that it holds, 0: all.
func NewBucket(perMinute int, burst float64, now time.Time) Bucket {
	if burst == 0 {
		burst = 1
	}
	// At least one unit, or a small burst of a small limit could never serve.
	full := max(float64(perMinute)*burst, 1)
	return Bucket{PerMinute: float64(perMinute), Full: full, Level: full, at: now}
}

func (b *Bucket) refill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.Level = min(b.Full, b.Level+d.Minutes()*b.PerMinute)
	}
	b.at = now
}

// Wait is how long until n units are there; 0: now. A request larger than the
// bucket passes when the bucket is full, else it never could.
func (b *Bucket) Wait(now time.Time, n float64) time.Duration {
	if b.PerMinute == 0 {
		return 0
	}
	b.refill(now)
	short := min(n, b.Full) - b.Level
	if short <= 1e-6 { // rounding must not refuse what was promised
		return 0
	}
	return time.Duration(math.Ceil(short / b.PerMinute * float64(time.Minute)))
}

// Take removes n units, into debt of at most a minute.
func (b *Bucket) Take(now time.Time, n float64) {
	if b.PerMinute == 0 {
		return
	}
	b.refill(now)
	b.Level = max(b.Level-n, -b.PerMinute)
}

// Remaining is what a response header states: whole units, never negative.
func (b *Bucket) Remaining(now time.Time) int {
	b.refill(now)
	return int(max(b.Level, 0))
}

// Meter holds the buckets of one account.
type Meter struct {
	Limits    Limits
	Requests  Bucket
	Input     Bucket
	Output    Bucket
	Answering int // requests in progress
}

// NewMeter has full buckets.
func NewMeter(l Limits, now time.Time) *Meter {
	return &Meter{
		Limits:   l,
		Requests: NewBucket(l.RPM, l.Burst, now),
		Input:    NewBucket(l.ITPM, l.Burst, now),
		Output:   NewBucket(l.OTPM, l.Burst, now),
	}
}

// Admit takes one request of n input tokens, or says which allowance is short
// and for how long.
func (m *Meter) Admit(now time.Time, n int) (short string, wait time.Duration) {
	worst := func(name string, d time.Duration) {
		if d > wait {
			short, wait = name, d
		}
	}
	worst(Requests, m.Requests.Wait(now, 1))
	worst(InputTokens, m.Input.Wait(now, float64(n)))
	worst(OutputTokens, m.Output.Wait(now, 1))
	if short == "" && m.Limits.Concurrent > 0 && m.Answering >= m.Limits.Concurrent {
		short = Concurrent
	}
	if short != "" {
		if m.Limits.CountRefused {
			m.Requests.Take(now, 1)
		}
		return short, wait
	}
	m.Requests.Take(now, 1)
	m.Input.Take(now, float64(n))
	return "", 0
}

// The measures, as Admit names them.
const (
	Requests     = "requests"
	InputTokens  = "input tokens"
	OutputTokens = "output tokens"
	Concurrent   = "concurrent connections"
)
