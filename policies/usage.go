package policies

import (
	"time"

	"qshim/lockfile"
)

// Usage is what a session's agent told of its consumption since the last call.
type Usage struct {
	Context int64 // tokens of its conversation; 0: not known
	Spent   int64 // tokens since the last call that were not read from a cache

	Told   bool          // the share below was told
	Used   float64       // percent of the account's shortest window
	Window time.Duration // its length
	Ends   time.Time     // zero: not said
}

// Nothing reports whether there is nothing in it that the ledger has to hear.
func (u Usage) Nothing() bool { return u == Usage{} }

// StepTokens is how many tokens a session may spend before the ledger hears of
// them: a percent of the smallest window that is worth the care.
const StepTokens = 10_000

// Used is the percentage of a limiter's present window that is used, as an agent
// told it last; known is false where none has, or where that window is over.
func (p Policy) Used(l lockfile.Ledger, id string, now time.Time) (percent float64, known bool) {
	sh := l.Limiters[id].Share
	if sh == nil || sh.At.IsZero() {
		return 0, false
	}
	end := sh.Ends
	if end.IsZero() {
		end = sh.At.Add(p.at(id).Window.Length)
	}
	return sh.Used, now.Before(end)
}

// Usage works a session's consumption into the ledger: the size of its
// conversation into its own record, tokens and shares into its account's. Call
// it under the lock, and only for steps worth a write: every sibling reads the
// account's file.
func (p Policy) Usage(l lockfile.Ledger, in Input, u Usage) (lockfile.Ledger, []lockfile.Event) {
	e := p.edit(l, in)
	if !e.known {
		return e.done()
	}
	if u.Context > 0 {
		e.s.Context = u.Context
	}
	id := account(e.s)
	if id == "" || !u.Told && u.Spent <= 0 {
		return e.done()
	}
	lim := e.limiter(id)
	sh := lockfile.Share{}
	if lim.Share != nil {
		sh = *lim.Share
	}
	before := sh
	c := e.p.at(id).Window
	if !sh.Ends.IsZero() && !e.in.Now.Before(sh.Ends) {
		fresh(&sh)
	}
	sh.Tokens += max(0, u.Spent)
	if u.Told && u.Window <= c.Length+time.Hour && (u.Ends.IsZero() || u.Ends.After(e.in.Now)) {
		told(&sh, u, e.in.Now, lim.Share == nil)
	}
	if sh == before && lim.Share != nil {
		return e.done()
	}
	lim.Share = &sh
	if r := lim.Release; r != nil && r.Awake > 0 && e.in.Now.Before(r.Woken.Add(c.WakeSettle)) {
		n := *r
		n.Low, _ = e.view().used(lim, c)
		lim.Release = &n
	}
	e.put(lim)
	return e.done()
}

// told takes an agent's word on the share. One that fell, or a window that ends
// later, is another window.
func told(sh *lockfile.Share, u Usage, now time.Time, first bool) {
	another := u.Used < sh.Used-1 || !sh.Ends.IsZero() && u.Ends.Sub(sh.Ends) > 10*time.Minute
	if first || another {
		sh.From, sh.Base = u.Used, sh.Tokens
	} else {
		learn(sh, u.Used)
	}
	sh.Used, sh.At = u.Used, now
	if another || !u.Ends.IsZero() {
		sh.Ends = u.Ends
	}
}

// fresh begins another window.
func fresh(sh *lockfile.Share) {
	sh.Used, sh.At, sh.Ends, sh.From, sh.Base = 0, time.Time{}, time.Time{}, 0, sh.Tokens
}

const (
	// learnFrom is how many points of share a first estimate rests on at least:
	// with whole percents it is then within a fifth.
	learnFrom = 5
	// relearnFrom is how many an estimate needs to take the place of one that
	// rests on more.
	relearnFrom = 25
)

// learn works out how many tokens of ours fill a window. What was used
// elsewhere (a phone, another machine) makes the window look smaller than it
// is, and the policy more careful, never less.
func learn(sh *lockfile.Share, used float64) {
	points, tokens := used-sh.From, sh.Tokens-sh.Base
	if points < learnFrom || tokens <= 0 || points < sh.Learnt && points < relearnFrom {
		return
	}
	sh.Size, sh.Learnt = int64(100*float64(tokens)/points), points
}

// nearlyUp is the least share, in percent, at which a refusal is the short
// window's: below it another window has refused.
const nearlyUp = 90

// usedUp: a refusal says that the window is used up. A weekly window and a
// model's own say nothing about the short one.
func usedUp(lim *lockfile.Limiter, c Long, h lockfile.Hold) {
	if lim.Share == nil || h.WindowS > (c.Length+time.Hour).Seconds() || lim.ID != baseOf(lim.ID) {
		return
	}
	sh := *lim.Share
	if !sh.At.IsZero() && sh.Used < nearlyUp {
		return
	}
	learn(&sh, 100)
	sh.Used, sh.Ends = 100, h.Stated
	lim.Share = &sh
}

func baseOf(id string) string {
	base, _ := split(id)
	return base
}
