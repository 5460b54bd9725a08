package policies

import (
	"math"
	"time"
	"unicode/utf8"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// whyBytes bounds the evidence kept in a limiter's file, which every sibling reads.
const whyBytes = 160

// rnd draws from the injected source; without one there is no jitter either way.
func (in Input) rnd() float64 {
	if in.Rand == nil {
		return 0.5
	}
	return in.Rand()
}

// stated is an instant that the provider or its client named.
type stated struct {
	at        time.Time
	source    finding.ResetSource
	precision time.Duration
	cut       bool // it was absurd and is cut to the class's bound
}

// named takes the instant out of a finding; zero where none is named or where
// it passed so long ago that it says nothing.
func (c Constants) named(f finding.Finding, class finding.Class, now time.Time) stated {
	seen := f.At
	if seen.After(now) || now.Sub(seen) > time.Minute {
		seen = now
	}
	st := stated{at: f.Reset, source: f.ResetSource, precision: f.Precision}
	if st.at.IsZero() && f.RetryAfter > 0 {
		st = stated{at: seen.Add(min(f.RetryAfter, c.longest(class)+time.Second)), source: finding.Relative}
	}
	if st.at.IsZero() || now.Sub(st.at) > c.Margin.Forgotten {
		return stated{}
	}
	if st.source == "" {
		st.source = finding.Relative
	}
	if limit := now.Add(c.longest(class)); st.at.After(limit) {
		st.at, st.cut = limit, true
	}
	return st
}

// longest is the class's bound on any named time.
func (c Constants) longest(class finding.Class) time.Duration {
	switch class {
	case finding.Rate:
		return c.Rate.Longest
	case finding.Overload:
		return c.Overload.Longest
	case finding.Window:
		return c.Window.Longest
	case finding.Daily:
		return c.Daily.Longest
	case finding.Credit, finding.Spend:
		return c.Credit.Longest
	}
	return c.Retrying.Longest
}

// long returns the rules of a window or daily class.
func (c Constants) long(class finding.Class) Long {
	if class == finding.Daily {
		return c.Daily.Long
	}
	return c.Window
}

// transient returns the rules of a rate, overload or unknown class.
func (c Constants) transient(class finding.Class) Transient {
	if class == finding.Overload {
		return c.Overload
	}
	return c.Rate
}

func isTransient(class finding.Class) bool {
	return class == finding.Rate || class == finding.Overload || class == finding.Retrying
}

func isLong(class finding.Class) bool { return class == finding.Window || class == finding.Daily }

func isMoney(class finding.Class) bool { return class == finding.Credit || class == finding.Spend }

// backoff is min(cap, base·2^n)·U(0.5, 1.5).
func (t Transient) backoff(n int, u float64) time.Duration {
	d := float64(t.Base) * math.Pow(2, float64(min(max(n, 0), 30)))
	return time.Duration(min(float64(t.Cap), d) * (0.5 + u))
}

// ends sets a hold's end from what is named, or from backoff or ladder. The
// hold's First and Attempts are set already; used is the first turn of the
// current short window, if known.
func (c Constants) ends(h *lockfile.Hold, st stated, used time.Time, in Input) {
	switch {
	case isTransient(h.Class):
		c.endsTransient(h, st, in)
	case isLong(h.Class):
		c.endsLong(h, st, used, in)
	default:
		c.endsMoney(h, st, in)
	}
	h.Bounded = st.cut
}

// endsTransient: the server's time is a floor; without one, backoff. A server
// whose time was wrong Trust times is not believed to be enough.
func (c Constants) endsTransient(h *lockfile.Hold, st stated, in Input) {
	t, now := c.transient(h.Class), in.Now
	if st.at.IsZero() {
		h.Until, h.UntilSource = now.Add(t.backoff(h.Attempts, in.rnd())), finding.Estimate
		return
	}
	wait := max(0, st.at.Sub(now))
	spread := time.Duration(float64(wait) * t.Stretch)
	if st.source != finding.Relative {
		spread = min(spread, c.Margin.Spread)
	}
	h.Stated, h.UntilSource = st.at, st.source
	h.Until = later(now, st.at).Add(c.margin(st) + time.Duration(in.rnd()*float64(spread)))
	if limit := now.Add(c.longest(h.Class)); h.Until.After(limit) {
		h.Until = limit
	}
	if h.Attempts >= t.Trust {
		h.Until = later(h.Until, now.Add(t.backoff(h.Attempts-t.Trust, in.rnd())))
	}
}

// margin is added to an instant, none to a delay.
func (c Constants) margin(st stated) time.Duration {
	switch {
	case st.source == finding.Relative && st.precision == 0:
		return 0
	case st.precision >= time.Minute:
		return c.Margin.Minute
	}
	return c.Margin.Exact
}

func (c Constants) endsLong(h *lockfile.Hold, st stated, used time.Time, in Input) {
	spread := time.Duration(in.rnd() * float64(c.Margin.Spread))
	if st.at.IsZero() {
		h.Until, h.UntilSource = c.ladder(*h, used, in.Now).Add(spread), finding.Estimate
		return
	}
	margin := max(c.margin(st), c.Margin.Exact)
	h.Stated, h.UntilSource = st.at, st.source
	h.Until = later(in.Now, st.at.Add(margin+spread))
	h.Check = c.nextCheck(*h, in.Now)
}

// nextCheck is when an earlier return of the quota is looked for; zero when
// that would be no earlier than the end.
func (c Constants) nextCheck(h lockfile.Hold, now time.Time) time.Time {
	g := c.long(h.Class)
	left := h.Until.Sub(now)
	wait := min(max(time.Duration(float64(left)*g.CheckShare), g.CheckMin), g.CheckMax)
	if wait >= left {
		return time.Time{}
	}
	return now.Add(wait)
}

// ladder is the next try where nobody states a reset: the computed end of the
// short window if its first use is known, the provider's day end, and tries on
// the way; hourly where a week or a day has to pass.
func (c Constants) ladder(h lockfile.Hold, used, now time.Time) time.Time {
	g := c.long(h.Class)
	window := time.Duration(h.WindowS * float64(time.Second))
	if h.Class == finding.Daily {
		return earlier(now.Add(g.LadderSlow), c.dayEnd(now).Add(g.Slack))
	}
	if window > g.Length {
		return now.Add(g.LadderSlow)
	}
	if end := used.Add(g.Length + g.Slack); !used.IsZero() && end.After(now) {
		return earlier(now.Add(g.LadderKnown), end)
	}
	if now.Sub(h.First) < g.LadderUntil {
		return now.Add(g.Ladder)
	}
	return now.Add(g.LadderSlow)
}

// dayEnd is the next midnight in the provider's zone: a guess, and marked as an
// estimate.
func (c Constants) dayEnd(now time.Time) time.Time {
	zone, err := time.LoadLocation(c.Daily.Zone)
	if err != nil {
		zone = time.UTC // the config room has refused unknown zones already
	}
	y, m, d := now.In(zone).Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, zone)
}

func (c Constants) endsMoney(h *lockfile.Hold, st stated, in Input) {
	h.Check = in.Now.Add(c.Credit.LaunchEvery)
	if st.at.IsZero() {
		h.Blocked = true
		return
	}
	margin := max(c.margin(st), c.Margin.Exact)
	h.Stated, h.UntilSource = st.at, st.source
	h.Until = later(in.Now, st.at.Add(margin+time.Duration(in.rnd()*float64(c.Margin.Spread))))
}

// merge decides between a hold in force and a newer one of the same class. The
// provenance decides; an estimate never shortens a stated time, and between
// equals the later end counts, as each is a floor.
func merge(old, h lockfile.Hold, now time.Time) lockfile.Hold {
	keep := old
	switch {
	case old.Blocked && (isMoney(old.Class) || isLong(old.Class)) && !h.Blocked && !h.Stated.IsZero():
		return carry(old, h)
	case old.Blocked:
		return keep
	case h.Blocked:
		return carry(old, h)
	case !old.Until.After(now):
		return carry(old, h)
	case h.UntilSource.Rank() > old.UntilSource.Rank():
		return carry(old, h)
	case h.UntilSource.Rank() == old.UntilSource.Rank() && h.Until.After(old.Until) && h.UntilSource != finding.Estimate:
		return carry(old, h)
	}
	return keep
}

// carry gives the newer hold what the older one knows of its run.
func carry(old, h lockfile.Hold) lockfile.Hold {
	h.First, h.Wide = old.First, h.Wide || old.Wide
	if h.Measure == "" {
		h.Measure = old.Measure
	}
	if h.WindowS == 0 {
		h.WindowS = old.WindowS
	}
	return h
}

// why is the first evidence row, cut at a rune.
func why(rows []string) string {
	if len(rows) == 0 {
		return ""
	}
	w := rows[0]
	if len(w) <= whyBytes {
		return w
	}
	cut := whyBytes
	for cut > 0 && !utf8.RuneStart(w[cut]) {
		cut--
	}
	return w[:cut]
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
