package painter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// updateKind says what happened to the task.
type updateKind int

const (
	callBegan updateKind = iota
	partCame
	retrying
	callDone
	taskDone
	taskFailed
)

// update is one thing that the client tells the screen.
type update struct {
	kind    updateKind
	call    int
	text    string // part of the answer, reason of the retry, or the final error
	until   time.Time
	attempt int
	own     bool // the final error is a row of the client's (⎿), not an API error (●)
	hint    string
}

// The hints that Claude Code 2.1.332 leaves in its input after a failed turn.
const (
	resend = "Resend your message to try again"
	fixed  = "Once fixed, resend your message"
)

// client does the calls of a task.
type client struct {
	o        Options
	provider Ask
	now      func() time.Time
	sleep    func(context.Context, time.Duration) error
	rand     func() float64
	tell     func(update)
}

// Ask sends a prompt to a provider and tells the parts of the answer as they come.
// Its error is a *Refusal where the provider answered with one.
type Ask func(ctx context.Context, prompt string, part func(text string)) error

// Refusal is an answer that is none.
type Refusal struct {
	Status     int           `json:"status"` // as in HTTP
	Message    string        `json:"message"`
	Claim      string        `json:"claim,omitempty"` // the window that is used up: five_hour
	Reset      time.Time     `json:"reset,omitzero"`  // its end, where it is stated
	RetryAfter time.Duration `json:"retry_after"`     // in nanoseconds; -1: none stated
	Final      bool          `json:"final,omitempty"` // x-should-retry: false
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d %s", r.Status, r.Message) }

// The statuses that a client tells apart.
const (
	badRequest = 400
	noLogin    = 401
	forbidden  = 403
	tooMany    = 429
)

// run does the calls from the given one on and returns the first that is not
// done: Calls when all are.
func (c *client) run(ctx context.Context, from int) int {
	for i := from; i < c.o.Calls; i++ {
		c.tell(update{kind: callBegan, call: i})
		if err := c.call(ctx, i); err != nil {
			if ctx.Err() == nil {
				c.tell(final(i, err))
			}
			return i
		}
		c.tell(update{kind: callDone, call: i})
		if err := c.sleep(ctx, c.o.Think); err != nil {
			return i + 1
		}
	}
	c.tell(update{kind: taskDone})
	return c.o.Calls
}

// call asks once and then retries as Claude Code does.
func (c *client) call(ctx context.Context, i int) error {
	for attempt := 1; ; attempt++ {
		err := c.ask(ctx, i)
		if err == nil || ctx.Err() != nil {
			return err
		}
		delay, again := c.delay(err, attempt)
		if !again {
			return err
		}
		c.tell(update{kind: retrying, call: i, text: reason(err, attempt), until: c.now().Add(delay), attempt: attempt})
		if err := c.sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// The constants of Claude Code 2.1.332's own retry loop [claude 2, measured].
const (
	firstDelay   = 500 * time.Millisecond
	longestDelay = 32 * time.Second
	longestAfter = 60 * time.Second // a longer retry-after is final at once
	reasonFrom   = 3                // attempts before this show no reason
)

// delay says how long to wait before the next try, and whether there is one.
func (c *client) delay(err error, attempt int) (time.Duration, bool) {
	if attempt > c.o.Attempts {
		return 0, false
	}
	d := time.Duration(math.Min(float64(firstDelay)*math.Pow(2, float64(attempt-1)), float64(longestDelay)))
	d = time.Duration(float64(d) * (0.75 + c.rand()/2))
	r := (*Refusal)(nil)
	if !errors.As(err, &r) {
		return d, true
	}
	switch {
	case r.Final, r.Claim != "", r.RetryAfter > longestAfter, r.Status == badRequest, r.Status == forbidden:
		return 0, false
	case r.RetryAfter >= 0:
		return max(d, time.Duration(float64(r.RetryAfter)*(1+c.rand()/4))), true
	}
	return d, true
}

func reason(err error, attempt int) string {
	r := (*Refusal)(nil)
	switch {
	case !errors.As(err, &r):
		return "Connection error (ECONNREFUSED)"
	case attempt < reasonFrom:
		return "API error"
	}
	return r.Error()
}

// ask sends one request and tells the parts of its answer.
func (c *client) ask(ctx context.Context, i int) error {
	return c.provider(ctx, c.o.prompt(i), func(text string) { c.tell(update{kind: partCame, call: i, text: text}) })
}

// final words the last row of a failed task as Claude Code 2.1.332 does [claude 1].
func final(call int, err error) update {
	u := update{kind: taskFailed, call: call, hint: resend}
	r := (*Refusal)(nil)
	if !errors.As(err, &r) {
		u.text = "API Error: Connection error."
		return u
	}
	switch {
	case r.Claim != "":
		u.own, u.hint = true, ""
		u.text = "You've hit your " + limitName(r.Claim)
		if !r.Reset.IsZero() {
			u.text += " · resets " + clock(r.Reset)
		}
	case r.Status == badRequest && strings.HasPrefix(r.Message, "Your credit balance is too low"):
		u.own, u.hint = true, fixed
		u.text = "Credit balance too low · Add funds: https://platform.claude.com/settings/billing"
	case r.Status == noLogin:
		u.own, u.hint = true, fixed
		u.text = "Invalid API key · Fix external API key"
	case r.Status == tooMany:
		u.text = "API Error: Request rejected (429) · " + r.Message
	case r.Status >= 500:
		u.text = fmt.Sprintf("API Error: %d %s. This is a server-side issue, usually temporary — try again in a moment. If it persists, check https://status.claude.com.", r.Status, strings.TrimSuffix(r.Message, "."))
	default:
		u.text = fmt.Sprintf("API Error: %d %s", r.Status, r.Message)
	}
	return u
}

func limitName(claim string) string {
	switch claim {
	case "five_hour":
		return "5-hour limit"
	case "seven_day":
		return "weekly limit"
	case "seven_day_opus":
		return "Opus limit"
	case "seven_day_sonnet":
		return "Sonnet limit"
	}
	return "limit"
}

// clock writes a reset as Claude Code does: "6:45pm (UTC)", minutes dropped when 0.
func clock(t time.Time) string {
	layout := "3:04pm (MST)"
	if t.Minute() == 0 {
		layout = "3pm (MST)"
	}
	return t.Format(layout)
}
