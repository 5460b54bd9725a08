// Package policies decides who runs. Every shim runs the same pure code over
// the same snapshot of the ledger; there is no leader. It imports no os and
// reads no clock: the time and the randomness come in with each call.
//
// How a shim uses it:
//
//	finding          -> Update(Finding)     a limiter closes, a probe fails
//	turn edges       -> Update(Activity)    a probe is judged, a success opens
//	ledger changed,  -> Decide(snapshot)    read-only, as often as one likes
//	Decision.Wake       \- Claim?  Update(Step)   the decision that counts
//
// Decide never needs the lock. Where it says Claim, the shim takes the lock and
// calls Step, which decides again on the fresh ledger, writes what follows from
// it (the probe, the release, the session's own state) and returns what to do.
// A policy changes limiters and the caller's own session, never a sibling.
package policies

import (
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// Policy is the pure policy with its constants.
type Policy struct {
	C       Constants            // what holds where nothing more special is set
	Special map[string]Constants // by limiter ID, or by provider (the part before the slash); each complete, not partial
}

// Input is what a decision may know besides the ledger.
type Input struct {
	Now    time.Time
	Self   string         // the session that calls
	Rand   func() float64 // uniform in [0, 1); nil: always 0.5, which means no jitter either way
	Family string         // family of Finding.Model as the agent's profile maps it; empty: the policy's own reading of the name
}

// Activity is what a session's watcher has seen since the last call. Several
// edges may come together.
type Activity struct {
	Busy, Idle  bool // the best sign so far; neither: unknown, nothing changes
	TurnBegan   bool
	TurnEnded   bool
	Success     bool      // the turn ended well by the profile's own sign
	AnswerBegun bool      // the turn in progress has begun to answer
	RetryEnded  bool      // the client's own retry ended, either way
	Exit        bool      // the agent is gone
	Typed       time.Time // when its user last pressed a key; zero: nothing new
}

// Action is what a session should do.
type Action string

// The actions.
const (
	Run     Action = "run"     // launch, continue or go on
	Wait    Action = "wait"    // a launch is delayed
	Suspend Action = "suspend" // a busy session is stopped, or stays so
	Surface Action = "surface" // waiting does not help: tell a person; a launch asks first
)

// Code says why a decision is as it is.
type Code string

// The codes of a Reason.
const (
	Free      Code = "free"       // nothing applies
	Held      Code = "held"       // a hold is in force
	Probing   Code = "probing"    // another session goes first
	Prober    Code = "prober"     // this session goes first
	Queued    Code = "queued"     // its turn in the release comes
	Released  Code = "released"   // its turn in the release has come
	Capped    Code = "capped"     // as many are busy as the limiter bears; older ones finish first
	Launching Code = "launching"  // launches are spaced
	Blocked   Code = "blocked"    // only a person or a success opens
	LeftAlone Code = "left_alone" // a hold is in force, but does not concern this session (Class says which)
	Retrying  Code = "retrying"   // its client retries by itself: hands off
	Storming  Code = "storming"   // its client retries faster than it was told
	Volunteer Code = "volunteer"  // its user pressed Enter in spite of the hold
	Anyway    Code = "run_anyway" // its user said so
	Observing Code = "observe"    // mode = observe: never touched
	Nested    Code = "nested"     // shares its parent's place, or waited a minute
	Parked    Code = "parked"     // idle: never stopped
	NoSession Code = "no_session" // not in the ledger: fail open
)

// Reason is why, as values; words are made in cmd/qshim.
type Reason struct {
	Code  Code
	Class finding.Class // class of the hold, probe or release behind it
	Who   string        // the session that probes, that hit the limit, or the parent
}

// Decision is what one session should do now.
type Decision struct {
	Action  Action
	Claim   bool // take the lock and call Step: something is to be written before acting
	Limiter string
	Hold    lockfile.Hold // the hold that is shown: credit and spend first, then the latest end
	Reason  Reason
	Until   time.Time           // when the stop ends as far as is known; zero: unknown or not held
	Source  finding.ResetSource // provenance of Until
	Wake    time.Time           // decide again then at the latest; at most 30 s away while held

	QuietUntil   time.Time // with Suspend: a long stop; wait for a quiet moment, but not beyond
	OpenWithNote bool      // with Run: an interactive launch opens in spite of the hold, with a line that says so
	AskFirst     bool      // with Surface: ask the user; not a terminal: exit 75
	GiveUp       bool      // a launch without a terminal has waited, or would have to wait, beyond max_wait: exit 75
	Place        int       // in the queue, 1 = next; 0: not queued
}
