package painter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
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
	o     Options
	http  http.RoundTripper
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
	rand  func() float64
	tell  func(update)
}

// refusal is an answer that is none.
type refusal struct {
	status     int
	kind       string
	message    string
	code       string
	claim      string
	reset      time.Time
	retryAfter time.Duration // -1: none stated
	final      bool          // x-should-retry: false
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s", r.status, r.message) }

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
	r := (*refusal)(nil)
	if !errors.As(err, &r) {
		return d, true
	}
	switch {
	case r.final, r.claim != "", r.retryAfter > longestAfter, r.status == http.StatusBadRequest, r.status == http.StatusForbidden:
		return 0, false
	case r.retryAfter >= 0:
		return max(d, time.Duration(float64(r.retryAfter)*(1+c.rand()/4))), true
	}
	return d, true
}

func reason(err error, attempt int) string {
	r := (*refusal)(nil)
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
	body, err := json.Marshal(map[string]any{
		"model": "claude-painter", "max_tokens": 1024, "stream": true,
		"messages": []any{map[string]any{"role": "user", "content": c.o.prompt(i)}},
		"tools":    []any{map[string]any{"name": "none"}},
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.URL+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", c.o.Key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "painter")
	res, err := c.http.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return refused(res)
	}
	return c.listen(res.Body, i)
}

// listen reads an event stream to its end.
func (c *client) listen(r io.Reader, i int) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type  string
			Delta struct{ Text string }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("the stream holds no JSON: %w", err)
		}
		switch e.Type {
		case "content_block_delta":
			c.tell(update{kind: partCame, call: i, text: e.Delta.Text})
		case "message_stop":
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// refused reads an error response.
func refused(res *http.Response) *refusal {
	r := &refusal{status: res.StatusCode, message: http.StatusText(res.StatusCode), retryAfter: -1}
	var body struct {
		Error struct {
			Type, Message string
			Details       struct {
				Code string `json:"error_code"`
			}
		}
	}
	data, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // a cut body has no message, which is shown as such
	if json.Unmarshal(data, &body) == nil && body.Error.Message != "" {
		r.kind, r.message, r.code = body.Error.Type, body.Error.Message, body.Error.Details.Code
	}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s >= 0 {
		r.retryAfter = time.Duration(min(s, 1e9)) * time.Second
	}
	r.final = res.Header.Get("X-Should-Retry") == "false" || r.code == "enforced_spend_limit_reached"
	r.claim = res.Header.Get("Anthropic-Ratelimit-Unified-Representative-Claim")
	if s, err := strconv.ParseInt(res.Header.Get("Anthropic-Ratelimit-Unified-Reset"), 10, 64); err == nil {
		r.reset = time.Unix(s, 0)
	}
	return r
}

// final words the last row of a failed task as Claude Code 2.1.332 does [claude 1].
func final(call int, err error) update {
	u := update{kind: taskFailed, call: call, hint: resend}
	r := (*refusal)(nil)
	if !errors.As(err, &r) {
		u.text = "API Error: Connection error."
		return u
	}
	switch {
	case r.claim != "":
		u.own, u.hint = true, ""
		u.text = "You've hit your " + limitName(r.claim)
		if !r.reset.IsZero() {
			u.text += " · resets " + clock(r.reset)
		}
	case r.status == http.StatusBadRequest && strings.HasPrefix(r.message, "Your credit balance is too low"):
		u.own, u.hint = true, fixed
		u.text = "Credit balance too low · Add funds: https://platform.claude.com/settings/billing"
	case r.status == http.StatusUnauthorized:
		u.own, u.hint = true, fixed
		u.text = "Invalid API key · Fix external API key"
	case r.status == http.StatusTooManyRequests:
		u.text = "API Error: Request rejected (429) · " + r.message
	case r.status >= 500:
		u.text = fmt.Sprintf("API Error: %d %s. This is a server-side issue, usually temporary — try again in a moment. If it persists, check https://status.claude.com.", r.status, strings.TrimSuffix(r.message, "."))
	default:
		u.text = fmt.Sprintf("API Error: %d %s", r.status, r.message)
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
