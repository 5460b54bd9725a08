package fakeprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"qshim/cmd/internal/fakeprovider/tier"
)

// anthropicBody is the part of a Messages request that matters here.
type anthropicBody struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []json.RawMessage `json:"tools"`
}

// lastUser finds what the person typed last: Claude Code adds blocks of its own
// in <system-reminder> tags.
func (b anthropicBody) lastUser() string {
	for i := len(b.Messages) - 1; i >= 0; i-- {
		if b.Messages[i].Role != "user" {
			continue
		}
		texts := contentTexts(b.Messages[i].Content)
		for j := len(texts) - 1; j >= 0; j-- {
			if t := strings.TrimSpace(texts[j]); t != "" && !strings.HasPrefix(t, "<") {
				return t
			}
		}
	}
	return ""
}

// contentTexts reads content that is a string or a list of blocks.
func contentTexts(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return nil
	}
	out := make([]string, 0, len(blocks))
	for _, b := range blocks {
		out = append(out, b.Text)
	}
	return out
}

func (s *Server) anthropicMessages(w http.ResponseWriter, r *http.Request) {
	var body anthropicBody
	size, ok := readBody(w, r, &body)
	if !ok {
		return
	}
	a := ask{
		provider: Anthropic, account: Account(credential(r)), path: r.URL.Path, model: body.Model,
		text: body.lastUser(), size: size, stream: body.Stream,
		// Claude Code names sessions and summarises with small calls that carry no tools.
		side: len(body.Tools) == 0 && strings.HasPrefix(r.UserAgent(), "claude-cli"),
	}
	v := s.decide(a)
	hungUp := false
	defer func() { s.done(v, hungUp) }()
	anthropicHeaders(w.Header(), v)
	if v.refused {
		s.anthropicRefuse(w, v)
		return
	}
	s.status(v, http.StatusOK)
	m := anthropicMessage{id: fmt.Sprintf("msg_fake%06d", v.id), model: body.Model, input: v.input}
	var err error
	if body.Stream {
		err = s.anthropicStream(w, r, v, a, m)
	} else {
		err = s.anthropicWhole(w, r, v, a, m)
	}
	hungUp = err != nil
}

type anthropicMessage struct {
	id, model string
	input     int
}

func (m anthropicMessage) object(text []any, stop any, output int) map[string]any {
	return map[string]any{
		"id": m.id, "type": "message", "role": "assistant", "model": m.model, "content": text,
		"stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{
			"input_tokens": m.input, "output_tokens": output,
			"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
		},
	}
}

func (s *Server) anthropicWhole(w http.ResponseWriter, r *http.Request, v verdict, a ask, m anthropicMessage) error {
	text, err := s.speak(r.Context(), v, a, func(string) error { return nil })
	if err != nil {
		return err
	}
	block := map[string]any{"type": "text", "text": text}
	writeJSON(w, http.StatusOK, m.object([]any{block}, "end_turn", outputTokens(v, text)))
	return nil
}

func (s *Server) anthropicStream(w http.ResponseWriter, r *http.Request, v verdict, a ask, m anthropicMessage) error {
	e := newEvents(w)
	typed := func(name string, members map[string]any) error {
		members["type"] = name
		return e.send(name, members)
	}
	if err := typed("message_start", map[string]any{"message": m.object([]any{}, nil, 1)}); err != nil {
		return err
	}
	_ = typed("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	_ = typed("ping", map[string]any{})
	text, err := s.speak(r.Context(), v, a, func(part string) error {
		return typed("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": part}})
	})
	if err != nil {
		return err
	}
	_ = typed("content_block_stop", map[string]any{"index": 0})
	_ = typed("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": "end_turn", "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": outputTokens(v, text)},
	})
	return typed("message_stop", map[string]any{})
}

func (s *Server) anthropicCount(w http.ResponseWriter, r *http.Request) {
	var body anthropicBody
	if size, ok := readBody(w, r, &body); ok {
		writeJSON(w, http.StatusOK, map[string]int{"input_tokens": size/4 + 1})
	}
}

// anthropicHeaders states the allowances as api.anthropic.com does: buckets for
// keys, unified windows for subscriptions.
func anthropicHeaders(h http.Header, v verdict) {
	h.Set("Request-Id", fmt.Sprintf("req_fake%06d", v.id))
	bucket := func(name string, limit int, b *tier.Bucket) {
		if limit == 0 {
			return
		}
		left := b.Remaining(v.now)
		full := time.Duration((b.Full - b.Level) / b.PerMinute * float64(time.Minute))
		h.Set("Anthropic-Ratelimit-"+name+"-Limit", strconv.Itoa(limit))
		h.Set("Anthropic-Ratelimit-"+name+"-Remaining", strconv.Itoa(left))
		h.Set("Anthropic-Ratelimit-"+name+"-Reset", v.now.Add(full).UTC().Format(time.RFC3339))
	}
	m := v.meter
	bucket("Requests", m.Limits.RPM, &m.Requests)
	bucket("Input-Tokens", m.Limits.ITPM, &m.Input)
	bucket("Output-Tokens", m.Limits.OTPM, &m.Output)
	if v.scenario.Kind == Warning {
		reset := strconv.FormatInt(v.resets.Unix(), 10)
		for name, value := range map[string]string{
			"Status": "allowed_warning", "Reset": reset, "Representative-Claim": claim(v.scenario, "five_hour"),
			"5h-Status": "allowed_warning", "5h-Reset": reset, "5h-Utilization": "0.93", "5h-Surpassed-Threshold": "0.9",
		} {
			h.Set("Anthropic-Ratelimit-Unified-"+name, value)
		}
	}
}

func claim(sc Scenario, otherwise string) string {
	if sc.Claim != "" {
		return sc.Claim
	}
	return otherwise
}

// anthropicError is one refusal.
type anthropicError struct {
	status        int
	kind, message string
	code          string // error.details.error_code, where Claude Code 2.1.332 reads it [read in its program text]
}

func (s *Server) anthropicRefuse(w http.ResponseWriter, v verdict) {
	e := anthropicRefusal(w.Header(), v)
	if v.scenario.Message != "" {
		e.message = v.scenario.Message
	}
	if v.scenario.Status != 0 {
		e.status = v.scenario.Status
	}
	body := map[string]any{"type": e.kind, "message": e.message}
	if e.code != "" {
		body["details"] = map[string]any{"error_code": e.code}
	}
	s.status(v, e.status)
	writeJSON(w, e.status, map[string]any{"type": "error", "error": body, "request_id": w.Header().Get("Request-Id")})
}

// anthropicRefusal picks the body of a refusal and sets its headers. The texts
// are those that the recordings of Claude Code show.
func anthropicRefusal(h http.Header, v verdict) anthropicError {
	sc := v.scenario
	switch sc.Kind {
	case Window, Daily:
		anthropicWindow(h, v)
		return anthropicError{http.StatusTooManyRequests, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later.", ""}
	case Credit:
		return anthropicError{http.StatusBadRequest, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.", ""}
	case Spend:
		text := "You have reached your specified API usage limits."
		if !v.resets.IsZero() {
			text += v.resets.UTC().Format(" You will regain access on 2006-01-02 at 15:04 UTC.")
		}
		if sc.Status == http.StatusBadRequest {
			return anthropicError{http.StatusBadRequest, "invalid_request_error", text, ""}
		}
		h.Set("X-Should-Retry", "false")
		return anthropicError{http.StatusTooManyRequests, "rate_limit_error", text, "enforced_spend_limit_reached"}
	case Overload:
		switch sc.Status {
		case http.StatusInternalServerError, http.StatusServiceUnavailable:
			return anthropicError{sc.Status, "api_error", "Internal server error", ""}
		}
		v.retryHeader(h)
		return anthropicError{529, "overloaded_error", "Overloaded", ""}
	case Auth:
		return anthropicError{http.StatusUnauthorized, "authentication_error", "invalid x-api-key", ""}
	}
	v.retryHeader(h)
	return anthropicError{http.StatusTooManyRequests, "rate_limit_error", anthropicRateText(v), ""}
}

func anthropicRateText(v verdict) string {
	switch {
	case v.measure == tier.Concurrent:
		return "Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales at https://www.anthropic.com/contact-sales to discuss your options for a rate limit increase."
	case v.limit > 0 || v.measure == tier.InputTokens:
		limit := v.limit
		if limit == 0 {
			limit = 40000
		}
		return fmt.Sprintf("This request would exceed the rate limit for your organization (00000000-0000-4000-8000-000000000000) of %s %s per minute. For details, refer to: https://docs.claude.com/en/api/rate-limits.", thousands(limit), v.measure)
	}
	return "This request would exceed your account's rate limit. Please try again later."
}

// thousands writes 40000 as 40,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// anthropicWindow sets the unified headers of a plan limit; without a claim
// Claude Code takes it for a throttle of the server's.
func anthropicWindow(h http.Header, v verdict) {
	name := claim(v.scenario, map[Kind]string{Window: "five_hour", Daily: "seven_day"}[v.scenario.Kind])
	if name == "none" {
		return
	}
	h.Set("Anthropic-Ratelimit-Unified-Status", "rejected")
	h.Set("Anthropic-Ratelimit-Unified-Representative-Claim", name)
	window := "7d"
	if name == "five_hour" {
		window = "5h"
	}
	h.Set("Anthropic-Ratelimit-Unified-"+window+"-Status", "rejected")
	h.Set("Anthropic-Ratelimit-Unified-"+window+"-Utilization", "1")
	if v.resets.IsZero() {
		return
	}
	reset := strconv.FormatInt(v.resets.Unix(), 10)
	h.Set("Anthropic-Ratelimit-Unified-Reset", reset)
	h.Set("Anthropic-Ratelimit-Unified-"+window+"-Reset", reset)
}
