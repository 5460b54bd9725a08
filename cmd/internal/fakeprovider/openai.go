package fakeprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"qshim/cmd/internal/fakeprovider/tier"
)

// openaiBody is the part of a Responses request that matters here.
type openaiBody struct {
	Model  string          `json:"model"`
	Stream bool            `json:"stream"`
	Input  json.RawMessage `json:"input"`
}

// lastUser finds the last user text: input is a string or a list of items.
func (b openaiBody) lastUser() string {
	var one string
	if json.Unmarshal(b.Input, &one) == nil {
		return one
	}
	var items []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(b.Input, &items) != nil {
		return ""
	}
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Role != "user" {
			continue
		}
		texts := contentTexts(items[i].Content)
		if len(texts) == 0 {
			continue
		}
		return strings.TrimSpace(texts[len(texts)-1])
	}
	return ""
}

func (s *Server) openaiResponses(w http.ResponseWriter, r *http.Request) {
	var body openaiBody
	size, ok := readBody(w, r, &body)
	if !ok {
		return
	}
	a := ask{
		provider: OpenAI, account: Account(credential(r)), path: r.URL.Path, model: body.Model,
		text: body.lastUser(), size: size, stream: body.Stream,
		// Codex asks for a title once a thread [codex 0.171.0, measured].
		side: strings.Contains(string(body.Input), "Generate a concise, single-line task title"),
	}
	v := s.decide(a)
	hungUp := false
	defer func() { s.done(v, hungUp) }()
	openaiHeaders(w.Header(), v)
	o := openaiResponse{id: fmt.Sprintf("resp_fake%06d", v.id), model: body.Model, created: v.now.Unix()}
	var err error
	switch {
	case v.refused && v.scenario.InStream && v.scenario.Kind != Auth:
		err = s.openaiFail(w, v, o)
	case v.refused:
		s.openaiRefuse(w, v)
	case body.Stream:
		s.status(v, http.StatusOK)
		err = s.openaiStream(w, r, v, a, o)
	default:
		s.status(v, http.StatusOK)
		err = s.openaiWhole(w, r, v, a, o)
	}
	hungUp = err != nil
}

type openaiResponse struct {
	id, model string
	created   int64
}

func (o openaiResponse) object(status string, members map[string]any) map[string]any {
	out := map[string]any{
		"id": o.id, "object": "response", "created_at": o.created, "model": o.model, "status": status,
		"output": []any{}, "error": nil, "incomplete_details": nil, "metadata": map[string]any{},
	}
	for k, v := range members {
		out[k] = v
	}
	return out
}

func (o openaiResponse) message(status, text string) map[string]any {
	content := []any{}
	if status == "completed" {
		content = append(content, map[string]any{"type": "output_text", "text": text, "annotations": []any{}})
	}
	return map[string]any{"id": "msg_" + o.id, "type": "message", "role": "assistant", "status": status, "content": content}
}

func (o openaiResponse) completed(v verdict, text string) map[string]any {
	out := outputTokens(v, text)
	return o.object("completed", map[string]any{
		"output": []any{o.message("completed", text)},
		"usage": map[string]any{
			"input_tokens": v.input, "input_tokens_details": map[string]int{"cached_tokens": 0},
			"output_tokens": out, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
			"total_tokens": v.input + out,
		},
	})
}

func (s *Server) openaiWhole(w http.ResponseWriter, r *http.Request, v verdict, a ask, o openaiResponse) error {
	text, err := s.speak(r.Context(), v, a, func(string) error { return nil })
	if err == nil {
		writeJSON(w, http.StatusOK, o.completed(v, text))
	}
	return err
}

// numbered sends a Responses event: its type in the data, and a sequence number.
func (e *events) numbered(name string, members map[string]any) error {
	members["type"] = name
	members["sequence_number"] = e.seq
	e.seq++
	return e.send(name, members)
}

func (s *Server) openaiStream(w http.ResponseWriter, r *http.Request, v verdict, a ask, o openaiResponse) error {
	e := newEvents(w)
	if err := e.numbered("response.created", map[string]any{"response": o.object("in_progress", nil)}); err != nil {
		return err
	}
	item := "msg_" + o.id
	_ = e.numbered("response.output_item.added", map[string]any{"output_index": 0, "item": o.message("in_progress", "")})
	_ = e.numbered("response.content_part.added", map[string]any{
		"output_index": 0, "content_index": 0, "item_id": item,
		"part": map[string]any{"type": "output_text", "text": "", "annotations": []any{}},
	})
	text, err := s.speak(r.Context(), v, a, func(part string) error {
		return e.numbered("response.output_text.delta", map[string]any{
			"output_index": 0, "content_index": 0, "item_id": item, "delta": part,
		})
	})
	if err != nil {
		return err
	}
	_ = e.numbered("response.output_text.done", map[string]any{"output_index": 0, "content_index": 0, "item_id": item, "text": text})
	_ = e.numbered("response.output_item.done", map[string]any{"output_index": 0, "item": o.message("completed", text)})
	return e.numbered("response.completed", map[string]any{"response": o.completed(v, text)})
}

// openaiHeaders states a plan's windows as ChatGPT's backend does.
func openaiHeaders(h http.Header, v verdict) {
	h.Set("X-Request-Id", fmt.Sprintf("req_fake%06d", v.id))
	used := ""
	switch v.scenario.Kind {
	case Window, Daily:
		used = "100"
	case Warning:
		used = "92"
	default:
		return
	}
	primary, minutes := "Primary", "300"
	if v.scenario.Kind == Daily {
		primary, minutes = "Secondary", "10080"
	}
	h.Set("X-Codex-"+primary+"-Used-Percent", used)
	h.Set("X-Codex-"+primary+"-Window-Minutes", minutes)
	if !v.resets.IsZero() {
		h.Set("X-Codex-"+primary+"-Reset-At", strconv.FormatInt(v.resets.Unix(), 10))
	}
}

// openaiError is one refusal; members join type and message in the body.
type openaiError struct {
	status              int
	kind, code, message string
	members             map[string]any
}

func (e openaiError) body(v verdict) map[string]any {
	if v.scenario.Message != "" {
		e.message = v.scenario.Message
	}
	out := map[string]any{"type": e.kind, "message": e.message, "param": nil}
	if e.code != "" {
		out["code"] = e.code
	}
	for k, m := range e.members {
		out[k] = m
	}
	return out
}

func (s *Server) openaiRefuse(w http.ResponseWriter, v verdict) {
	e := openaiRefusal(w.Header(), v)
	if v.scenario.Status != 0 {
		e.status = v.scenario.Status
	}
	s.status(v, e.status)
	writeJSON(w, e.status, map[string]any{"error": e.body(v)})
}

// openaiFail refuses inside a 200 stream; it counts with the status that the
// same refusal has outside.
func (s *Server) openaiFail(w http.ResponseWriter, v verdict, o openaiResponse) error {
	e := openaiRefusal(http.Header{}, v)
	s.status(v, e.status)
	sse := newEvents(w)
	_ = sse.numbered("response.created", map[string]any{"response": o.object("in_progress", nil)})
	return sse.numbered("response.failed", map[string]any{"response": o.object("failed", map[string]any{"error": e.body(v)})})
}

// openaiRefusal picks the body of a refusal and sets its headers. The texts are
// those that Codex's recordings and public reports show.
func openaiRefusal(h http.Header, v verdict) openaiError {
	sc := v.scenario
	plan := sc.Plan
	if plan == "" {
		plan = "plus"
	}
	switch sc.Kind {
	case Window, Daily:
		members := map[string]any{"plan_type": plan}
		if !v.resets.IsZero() {
			members["resets_at"] = v.resets.Unix()
		}
		return openaiError{http.StatusTooManyRequests, "usage_limit_reached", "", "The usage limit has been reached", members}
	case Credit:
		if sc.Reached == "" {
			return openaiError{http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.", nil}
		}
		h.Set("X-Codex-Rate-Limit-Reached-Type", sc.Reached)
		return openaiError{http.StatusTooManyRequests, "usage_limit_reached", "", "The usage limit has been reached", map[string]any{"plan_type": plan}}
	case Spend:
		reached := sc.Reached
		if reached == "" {
			reached = "workspace_member_usage_limit_reached"
		}
		h.Set("X-Codex-Rate-Limit-Reached-Type", reached)
		return openaiError{http.StatusTooManyRequests, "usage_limit_reached", "", "The usage limit has been reached", map[string]any{"plan_type": "business"}}
	case Overload:
		return openaiError{http.StatusServiceUnavailable, "server_error", "server_is_overloaded", "Our servers are currently overloaded. Please try again later.", nil}
	case Auth:
		return openaiError{http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.", nil}
	}
	v.retryHeader(h)
	return openaiError{http.StatusTooManyRequests, "tokens", "rate_limit_exceeded", openaiRateText(v), nil}
}

func openaiRateText(v verdict) string {
	what, limit := "requests per min (RPM)", v.limit
	if v.measure != tier.Requests {
		what = "tokens per min (TPM)"
	}
	if limit == 0 {
		limit = 30000
	}
	text := fmt.Sprintf("Rate limit reached for gpt-5 in organization org-fake on %s: Limit %d, Used %d, Requested %d.", what, limit, limit, v.input)
	if v.retryAfter > 0 {
		text += fmt.Sprintf(" Please try again in %.3fs.", v.retryAfter.Seconds())
	}
	return text + " Visit https://platform.openai.com/account/rate-limits to learn more."
}
