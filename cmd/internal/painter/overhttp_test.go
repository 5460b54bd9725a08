package painter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// overHTTP asks an Anthropic-shaped provider as Claude Code does.
func overHTTP(transport http.RoundTripper) Ask {
	return func(ctx context.Context, prompt string, part func(string)) error {
		body, err := json.Marshal(map[string]any{
			"model": "claude-painter", "max_tokens": 1024, "stream": true,
			"messages": []any{map[string]any{"role": "user", "content": prompt}},
			"tools":    []any{map[string]any{"name": "none"}},
		})
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://fake/v1/messages", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("X-Api-Key", "k")
		res, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return refused(res)
		}
		return listen(res.Body, part)
	}
}

// listen reads an event stream to its end.
func listen(r io.Reader, part func(string)) error {
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
			part(e.Delta.Text)
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
func refused(res *http.Response) *Refusal {
	r := &Refusal{Status: res.StatusCode, Message: http.StatusText(res.StatusCode), RetryAfter: -1}
	var body struct {
		Error struct {
			Message string
			Details struct {
				Code string `json:"error_code"`
			}
		}
	}
	data, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // a cut body has no message, which is shown as such
	if json.Unmarshal(data, &body) == nil && body.Error.Message != "" {
		r.Message = body.Error.Message
	}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s >= 0 {
		r.RetryAfter = time.Duration(min(s, 1e9)) * time.Second
	}
	r.Final = res.Header.Get("X-Should-Retry") == "false" || body.Error.Details.Code == "enforced_spend_limit_reached"
	r.Claim = res.Header.Get("Anthropic-Ratelimit-Unified-Representative-Claim")
	if s, err := strconv.ParseInt(res.Header.Get("Anthropic-Ratelimit-Unified-Reset"), 10, 64); err == nil {
		r.Reset = time.Unix(s, 0)
	}
	return r
}
