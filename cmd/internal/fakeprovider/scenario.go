package fakeprovider

import (
	"fmt"
	"time"

	"qshim/cmd/internal/fakeprovider/tier"
)

// Provider names whose API a request speaks.
type Provider string

// The providers. CodeAssist is Gemini behind a Google login.
const (
	Anthropic  Provider = "anthropic"
	OpenAI     Provider = "openai"
	Gemini     Provider = "gemini"
	CodeAssist Provider = "codeassist"
)

func (p Provider) known() bool {
	switch p {
	case "", Anthropic, OpenAI, Gemini, CodeAssist:
		return true
	}
	return false
}

// Kind is what a scenario answers with.
type Kind string

// The kinds. Where a provider has no such refusal, the nearest of its own is
// given: Daily is the longest window for Anthropic and OpenAI.
const (
	Plain    Kind = "plain"    // no refusal: the limits and the reply decide
	Warning  Kind = "warning"  // a normal answer whose headers say that a window is nearly used
	Rate     Kind = "rate"     // transient 429: Anthropic rate_limit_error, OpenAI rate_limit_exceeded, Gemini PerMinute with RetryInfo
	Window   Kind = "window"   // plan window with a reset instant
	Daily    Kind = "daily"    // daily quota: Gemini QuotaFailure PerDay
	Credit   Kind = "credit"   // the balance is gone
	Spend    Kind = "spend"    // a cap set by the user or the organisation
	Overload Kind = "overload" // 529 or 503
	Auth     Kind = "auth"     // 401
)

// Seconds is a duration written as a number of seconds in control JSON.
type Seconds float64

// Duration converts; values beyond a century are cut to one.
func (s Seconds) Duration() time.Duration {
	const century = 100 * 365 * 24 * 3600
	return time.Duration(min(max(float64(s), 0), century) * float64(time.Second))
}

// Scenario says how requests are refused. The zero value refuses nothing.
//
// It begins with the first request that it refuses and ends after Next
// refusals or For, whichever comes first; with neither it stays until changed.
type Scenario struct {
	Kind Kind `json:"kind"`

	Next int     `json:"next,omitempty"`  // refuse so many requests, then none; side requests neither count nor are refused
	For  Seconds `json:"for_s,omitempty"` // refuse for so long, counted from the first refusal

	// RetryAfter is sent as it stands. 0: what is left of For, rounded up to a
	// second; without For, nothing is sent.
	RetryAfter Seconds `json:"retry_after_s,omitempty"`
	// ResetsIn is when a window or a cap ends, counted from the first refusal.
	// 0: For; without For, no instant is stated.
	ResetsIn Seconds `json:"resets_in_s,omitempty"`

	Match string  `json:"match,omitempty"` // only requests whose last user text contains this
	Model string  `json:"model,omitempty"` // only models whose name contains this
	Share float64 `json:"share,omitempty"` // only this share of the requests, by chance; 0: all

	Status  int    `json:"status,omitempty"`  // another HTTP status: 400 for spend (Anthropic), 500 or 503 for overload
	Message string `json:"message,omitempty"` // another text in the body

	Claim    string `json:"claim,omitempty"`     // Anthropic: representative claim, "five_hour" unless set; "none" for a plan 429 without one
	Plan     string `json:"plan,omitempty"`      // OpenAI: plan_type, "plus" unless set
	Reached  string `json:"reached,omitempty"`   // OpenAI: x-codex-rate-limit-reached-type, e.g. workspace_member_usage_limit_reached
	InStream bool   `json:"in_stream,omitempty"` // OpenAI: refuse by response.failed inside a 200 stream
	Form     string `json:"form,omitempty"`      // Gemini credit: "prepay" (default), "limit0", "billing"; Code Assist rate: "capacity"
	Tokens   bool   `json:"tokens,omitempty"`    // Rate: the measure is input tokens, not requests
}

func (s Scenario) validate() error {
	switch s.Kind {
	case "", Plain, Warning, Rate, Window, Daily, Credit, Spend, Overload, Auth:
	default:
		return fmt.Errorf("scenario: unknown kind %q", s.Kind)
	}
	if s.Next < 0 || s.For < 0 || s.RetryAfter < 0 || s.ResetsIn < 0 {
		return fmt.Errorf("scenario: next, for_s, retry_after_s and resets_in_s must not be negative")
	}
	if s.Share < 0 || s.Share > 1 {
		return fmt.Errorf("scenario: share must lie between 0 and 1")
	}
	if s.Status != 0 && (s.Status < 400 || s.Status > 599) {
		return fmt.Errorf("scenario: status %d is no error status", s.Status)
	}
	return nil
}

func (s Scenario) refuses() bool { return s.Kind != "" && s.Kind != Plain && s.Kind != Warning }

// maxParts bounds what one answer is cut into.
const maxParts = 10000

// Reply is what an accepted request is told, and how slowly.
type Reply struct {
	// Text is the answer. Empty: an echo of the last user text.
	Text string `json:"text,omitempty"`
	// Chunks cuts the answer into so many parts; 0: a part a word, at most 200.
	// A Hold makes its own parts.
	Chunks int `json:"chunks,omitempty"`
	// Gap is the pause between two parts.
	Gap Seconds `json:"gap_s,omitempty"`
	// First is the pause before the first part.
	First Seconds `json:"first_s,omitempty"`
	// Hold keeps the stream open for so long: numbered words, one a second (or
	// one a Gap), then the answer.
	Hold Seconds `json:"hold_s,omitempty"`
	// Input and Output are the tokens that a request costs; 0: four bytes each.
	Input  int `json:"input_tokens,omitempty"`
	Output int `json:"output_tokens,omitempty"`
}

func (r Reply) validate() error {
	if r.Chunks < 0 || r.Chunks > maxParts || r.Gap < 0 || r.First < 0 || r.Hold < 0 || r.Input < 0 || r.Output < 0 {
		return fmt.Errorf("reply: numbers must not be negative, chunks not above %d", maxParts)
	}
	return nil
}

// Control is one change from outside, as POST /_control takes it. A member that
// is absent is left as it is; an empty object puts it back to its zero value.
type Control struct {
	Provider Provider `json:"provider,omitempty"` // empty: every provider
	Account  string   `json:"account,omitempty"`  // 12 hex digits, see Account; empty: every account
	Key      string   `json:"key,omitempty"`      // a credential instead of its hash

	Scenario *Scenario    `json:"scenario,omitempty"`
	Reply    *Reply       `json:"reply,omitempty"`
	Limits   *tier.Limits `json:"limits,omitempty"`
}

func (c Control) validate() error {
	if !c.Provider.known() {
		return fmt.Errorf("unknown provider %q", c.Provider)
	}
	if c.Account != "" && c.Key != "" {
		return fmt.Errorf("give account or key, not both")
	}
	if c.Scenario != nil {
		if err := c.Scenario.validate(); err != nil {
			return err
		}
	}
	if c.Reply != nil {
		if err := c.Reply.validate(); err != nil {
			return err
		}
	}
	if c.Limits != nil {
		return c.Limits.Validate()
	}
	return nil
}
