package fakeprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// chatBody is the part of a Chat Completions request that matters here.
// OpenCode 1.18.33 (AI SDK) and Qwen Code 0.15.10 (OpenAI SDK) ask so.
type chatBody struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// lastUser is the last text of the last user message; what stands before it
// there is the client's own (reminders, the environment).
func (b chatBody) lastUser() string {
	for i := len(b.Messages) - 1; i >= 0; i-- {
		m := b.Messages[i]
		if m.Role != "user" {
			continue
		}
		if texts := contentTexts(m.Content); len(texts) > 0 {
			return strings.TrimSpace(texts[len(texts)-1])
		}
	}
	return ""
}

// side reports whether the client asks for something of its own: OpenCode's
// title (measured 1.18.33).
func (b chatBody) side() bool {
	for _, m := range b.Messages {
		if m.Role == "system" && strings.Contains(string(m.Content), "title generator") {
			return true
		}
	}
	return false
}

func (s *Server) openaiChat(w http.ResponseWriter, r *http.Request) {
	var body chatBody
	size, ok := readBody(w, r, &body)
	if !ok {
		return
	}
	a := ask{
		provider: OpenAI, account: Account(credential(r)), path: r.URL.Path, model: body.Model,
		text: body.lastUser(), size: size, stream: body.Stream, side: body.side(),
	}
	v := s.decide(a)
	hungUp := false
	defer func() { s.done(v, hungUp) }()
	w.Header().Set("X-Request-Id", fmt.Sprintf("req_fake%06d", v.id))
	c := chat{id: fmt.Sprintf("chatcmpl-fake%06d", v.id), model: body.Model, created: v.now.Unix()}
	var err error
	switch {
	case v.refused:
		s.openaiRefuse(w, v)
	case body.Stream:
		s.status(v, http.StatusOK)
		err = s.chatStream(w, r, v, a, c)
	default:
		s.status(v, http.StatusOK)
		err = s.chatWhole(w, r, v, a, c)
	}
	hungUp = err != nil
}

// chat is one completion, whole or in chunks.
type chat struct {
	id, model string
	created   int64
}

func (c chat) object(kind string, members map[string]any) map[string]any {
	out := map[string]any{"id": c.id, "object": kind, "created": c.created, "model": c.model}
	for k, m := range members {
		out[k] = m
	}
	return out
}

// chunk is one streamed piece; finish is empty but in the last.
func (c chat) chunk(delta map[string]any, finish string) map[string]any {
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	return c.object("chat.completion.chunk", map[string]any{"choices": []any{choice}})
}

func chatUsage(v verdict, text string) map[string]int {
	out := outputTokens(v, text)
	return map[string]int{"prompt_tokens": v.input, "completion_tokens": out, "total_tokens": v.input + out}
}

func (s *Server) chatWhole(w http.ResponseWriter, r *http.Request, v verdict, a ask, c chat) error {
	text, err := s.speak(r.Context(), v, a, func(string) error { return nil })
	if err == nil {
		writeJSON(w, http.StatusOK, c.object("chat.completion", map[string]any{
			"choices": []any{map[string]any{
				"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text},
			}},
			"usage": chatUsage(v, text),
		}))
	}
	return err
}

// chatStream ends with the usage, as stream_options.include_usage asks, and [DONE].
func (s *Server) chatStream(w http.ResponseWriter, r *http.Request, v verdict, a ask, c chat) error {
	e := newEvents(w)
	if err := e.send("", c.chunk(map[string]any{"role": "assistant", "content": ""}, "")); err != nil {
		return err
	}
	text, err := s.speak(r.Context(), v, a, func(part string) error {
		return e.send("", c.chunk(map[string]any{"content": part}, ""))
	})
	if err != nil {
		return err
	}
	_ = e.send("", c.chunk(map[string]any{}, "stop"))
	_ = e.send("", c.object("chat.completion.chunk", map[string]any{"choices": []any{}, "usage": chatUsage(v, text)}))
	_, err = fmt.Fprint(w, "data: [DONE]\n\n")
	_ = e.rc.Flush() // as in send
	return err
}
