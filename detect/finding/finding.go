// Package finding is the vocabulary that every room of qshim shares: what a
// provider's limit is, as plain types. It imports nothing of ours and holds no
// behaviour beyond naming.
package finding

import "time"

// Class says what kind of stop a finding is, which alone decides what follows
// from it (DESIGN section 5).
type Class string

// The classes. Retrying, Warning and Auth are not limits.
const (
	Rate     Class = "rate"     // transient per-minute or concurrency refusal; the client has given up
	Overload Class = "overload" // 500/502/503/529 or no capacity: everybody's problem
	Window   Class = "window"   // subscription window: 5 hours, weekly, monthly
	Daily    Class = "daily"    // per-day quota
	Credit   Class = "credit"   // balance or credits are gone
	Spend    Class = "spend"    // a cap set by the user or the organisation
	Retrying Class = "retrying" // the client is handling it itself; Cause says what
	Warning  Class = "warning"  // approaching a limit, or going on with overage
	Auth     Class = "auth"     // bad key, missing entitlement: not a limit
	Unknown  Class = "unknown"  // only ever a Cause: the client does not say why it retries
	Person   Class = "person"   // only ever a hold's: a person set it (qshim hold); nothing is found to be it
)

// IsLimit reports whether the class closes a limiter.
func (c Class) IsLimit() bool {
	switch c {
	case Rate, Overload, Window, Daily, Credit, Spend:
		return true
	}
	return false
}

// Measure is the quantity that ran out, as far as the text says. Empty: not said.
type Measure string

// The measures.
const (
	Requests     Measure = "requests"
	InputTokens  Measure = "input_tokens"
	OutputTokens Measure = "output_tokens"
	Tokens       Measure = "tokens"
	Ramp         Measure = "ramp"
	Concurrency  Measure = "concurrency"
	Usage        Measure = "usage"
	Credits      Measure = "credits"
	Spending     Measure = "spend"
)

// Scope is what the limit covers, as far as the text says. Empty: not said.
type Scope string

// The scopes.
const (
	Account Scope = "account"
	Model   Scope = "model"
	Project Scope = "project"
	Source  Scope = "source" // this machine or address, not the account
)

// Confidence says how much a finding may move.
type Confidence string

// The confidences, from a structured signal down to one that touches nobody.
const (
	Certain Confidence = "certain" // structured: JSON, exit status, OSC 7501
	Strong  Confidence = "strong"  // the agent's own row, and a second sign agrees
	Weak    Confidence = "weak"    // logged, touches nobody
)

// Rank orders confidences: higher is surer, 0 for an unknown word.
func (c Confidence) Rank() int {
	switch c {
	case Certain:
		return 3
	case Strong:
		return 2
	case Weak:
		return 1
	}
	return 0
}

// ResetSource is the provenance of a reset instant.
type ResetSource string

// The provenances, best first (DESIGN section 4, issue 4.5).
const (
	Epoch    ResetSource = "epoch"    // a Unix time or a full timestamp with offset
	Zoned    ResetSource = "zoned"    // a clock time with its zone beside it
	Local    ResetSource = "local"    // a clock time read in the machine's zone
	Relative ResetSource = "relative" // "in 34 s", anchored when first seen
	Learned  ResetSource = "learned"  // stated to a sibling
	Estimate ResetSource = "estimate" // nobody stated it; qshim's backoff or ladder
)

// Rank orders provenances: higher is better, 0 when there is no instant.
func (s ResetSource) Rank() int {
	switch s {
	case Epoch:
		return 6
	case Zoned:
		return 5
	case Local:
		return 4
	case Relative:
		return 3
	case Learned:
		return 2
	case Estimate:
		return 1
	}
	return 0
}

// Finding is one recognised message of one agent.
type Finding struct {
	At          time.Time     // when it was first seen
	Class       Class         // what it is
	Cause       Class         // for Retrying: the class behind it, or Unknown
	Measure     Measure       // what ran out, if said
	Scope       Scope         // what it covers, if said
	Model       string        // the model or family named, if any
	Project     string        // the project or organisation named, if any
	ErrorCode   string        // the provider's code or HTTP status, if shown
	Reset       time.Time     // when the block ends; zero: not stated
	ResetSource ResetSource   // provenance of Reset; empty when Reset is zero
	Precision   time.Duration // how coarse Reset is: a minute for clock times, 0 for epochs
	RetryAfter  time.Duration // a relative delay as stated, or the client's own next try; 0: none
	Window      time.Duration // length of the window named (5 h, a week, …); 0: not named
	Attempt     int           // for Retrying: the attempt counter, 0 when not shown
	MaxAttempts int           // for Retrying: out of how many, 0 when not shown
	Confidence  Confidence    // how much it may move
	Rule        string        // name of the rule that took it
	Rows        []string      // evidence: the screen rows or the log line, control bytes escaped
}
