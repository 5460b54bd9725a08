package fakeprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// answerText is what the model says to a request.
func answerText(v verdict, a ask) string {
	if v.reply.Text != "" {
		return v.reply.Text
	}
	return "OK: " + cut(strings.Join(strings.Fields(a.text), " "), 400)
}

// outputTokens is what an answer costs.
func outputTokens(v verdict, text string) int {
	if v.reply.Output > 0 {
		return v.reply.Output
	}
	return len(text)/4 + 1
}

// parts cuts the answer into what is sent at once: the numbered words of a Hold
// first, then the text. Joined they are the whole answer.
func parts(r Reply, text string) (filler, answer []string) {
	if r.Hold > 0 {
		n := int(r.Hold.Duration() / gap(r))
		for i := range n {
			filler = append(filler, fmt.Sprintf("word%d ", i))
		}
	}
	return filler, split(text, r.Chunks)
}

// gap is the pause between parts; a Hold without one ticks once a second. A Hold
// is never cut into more than maxParts.
func gap(r Reply) time.Duration {
	switch {
	case r.Hold > 0 && r.Gap == 0:
		return max(time.Second, r.Hold.Duration()/maxParts)
	case r.Hold > 0:
		return max(r.Gap.Duration(), r.Hold.Duration()/maxParts, time.Millisecond)
	}
	return r.Gap.Duration()
}

// split cuts text at runes into n parts, or at words when n is 0.
func split(text string, n int) []string {
	if n == 0 {
		if words := strings.SplitAfter(text, " "); len(words) <= 200 {
			return words
		}
		n = 200
	}
	runes := []rune(text)
	n = min(n, max(len(runes), 1))
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, string(runes[i*len(runes)/n:(i+1)*len(runes)/n]))
	}
	return out
}

// speak sends an answer at its pace and takes its output tokens on the way. It
// returns the whole text, and the error of emit or of the client's hanging up.
func (s *Server) speak(ctx context.Context, v verdict, a ask, emit func(string) error) (string, error) {
	text := answerText(v, a)
	filler, answer := parts(v.reply, text)
	total := outputTokens(v, text)
	if err := s.opt.Sleep(ctx, v.reply.First.Duration()); err != nil {
		return "", err
	}
	all := append(filler, answer...)
	var said strings.Builder
	taken := 0
	for i, p := range all {
		said.WriteString(p)
		if err := emit(p); err != nil {
			return said.String(), err
		}
		due := total * (i + 1) / len(all)
		s.spent(v, due-taken)
		taken = due
		if i == len(all)-1 && len(filler) == 0 {
			break
		}
		if err := s.opt.Sleep(ctx, pause(v.reply, i, len(filler))); err != nil {
			return said.String(), err
		}
	}
	return said.String(), nil
}

// pause follows part i: after the filler a Hold has been held, so the answer
// comes at once.
func pause(r Reply, i, filler int) time.Duration {
	if filler > 0 && i >= filler {
		return 0
	}
	return gap(r)
}

// events writes server-sent events.
type events struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	seq int // OpenAI numbers its events
}

func newEvents(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return &events{w: w, rc: http.NewResponseController(w)}
}

// send writes one event, with its name unless that is empty, and flushes.
func (e *events) send(name string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if name != "" {
		if _, err := fmt.Fprintf(e.w, "event: %s\n", name); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(e.w, "data: %s\n\n", b); err != nil {
		return err
	}
	// A writer that cannot flush (a test's recorder behind a wrapper) still has the bytes.
	_ = e.rc.Flush()
	return nil
}
