package fakeprovider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"qshim/cmd/internal/fakeprovider/tier"
)

// maxBody bounds a request body: the real clients send their whole context,
// which Anthropic itself caps at 32 MB.
const maxBody = 32 << 20

// Options are the server's ways to the outside. The zero value uses the real
// clock, timers and randomness.
type Options struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // ends early, with the context's error
	Rand  func() float64                             // in [0, 1)
	// Remember is how many requests the list in Counts holds; 0: 10000.
	Remember int
}

// Server is one fake provider. It is an [http.Handler]; its methods may be
// called at any time from any goroutine.
type Server struct {
	opt Options

	mu       sync.Mutex
	rules    map[target]*rule
	meters   map[target]*tier.Meter
	counts   map[target]*AccountCount
	requests []Request
	seq      int
	changed  chan struct{} // closed and replaced at each change of the counts
}

// target is one account of one provider; an empty member stands for all.
type target struct {
	provider Provider
	account  string
}

// rule is what was set for one target.
type rule struct {
	scenario *Scenario
	reply    *Reply
	limits   *tier.Limits

	first time.Time // first refusal of the scenario
	hits  int       // its refusals so far
}

// New returns a provider that refuses nothing.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Remember <= 0 {
		o.Remember = 10000
	}
	s := &Server{opt: o}
	s.Reset()
	return s
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Account names the account of a credential: the first 12 hex digits of its
// SHA-256, or "none" for an empty one.
func Account(credential string) string {
	if credential == "" {
		return "none"
	}
	sum := sha256.Sum256([]byte(credential))
	return hex.EncodeToString(sum[:6])
}

// credential finds the key or token of a request, whichever header its provider
// uses.
func credential(r *http.Request) string {
	for _, h := range []string{"Chatgpt-Account-Id", "X-Api-Key", "X-Goog-Api-Key"} {
		if v := r.Header.Get(h); v != "" {
			return v
		}
	}
	if v, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return v
	}
	return r.URL.Query().Get("key")
}

// Start serves on a loopback address such as "127.0.0.1:0" until stop is
// called; stop cuts the streams in progress and waits for their handlers. An
// address that is not loopback is refused: nothing here is fit for a network.
func (s *Server) Start(addr string) (url string, stop func(), err error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, fmt.Errorf("fake provider: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", nil, fmt.Errorf("fake provider: %s is not a loopback address", host)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("fake provider: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			busy.Add(1)
			defer busy.Done()
			s.ServeHTTP(w, r)
			if ctx.Err() != nil {
				panic(http.ErrAbortHandler) // stopped: an answer that was cut must not end as if it were whole
			}
		}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 30 * time.Second,
	}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(l) }) // always ErrServerClosed after Close
	stop = func() {
		cancel()
		_ = srv.Close() // the listener is gone either way
		served.Wait()
		busy.Wait()
	}
	return "http://" + l.Addr().String(), stop, nil
}

// ServeHTTP routes a request by its path; unknown paths are 404 in a shape that
// every client takes for "not here".
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/_control"):
		s.control(w, r)
	case r.Method != http.MethodPost:
		s.lookup(w, r)
	case strings.HasSuffix(path, "/v1/messages"):
		s.anthropicMessages(w, r)
	case strings.HasSuffix(path, "/v1/messages/count_tokens"):
		s.anthropicCount(w, r)
	case strings.HasSuffix(path, "/responses"):
		s.openaiResponses(w, r)
	case strings.HasSuffix(path, "/chat/completions"):
		s.openaiChat(w, r)
	case strings.Contains(path, "/v1internal:"):
		s.codeAssist(w, r)
	case strings.Contains(path, "/models/"):
		s.gemini(w, r)
	default:
		notFound(w)
	}
}

// lookup answers the few things that clients read.
func (s *Server) lookup(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodHead && r.URL.Path == "/":
		w.WriteHeader(http.StatusOK) // Claude Code's connectivity check
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{}, "models": []any{}})
	default:
		notFound(w)
	}
}

func notFound(w http.ResponseWriter) {
	writeJSON(w, http.StatusNotFound, map[string]any{
		"type":  "error",
		"error": map[string]any{"type": "not_found_error", "code": http.StatusNotFound, "message": "Not found", "status": "NOT_FOUND"},
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that hung up is no error here
}

// readBody decodes a JSON body into v and returns its size. On failure it has
// answered with 400, or with 413 or 415, and returns false.
func readBody(w http.ResponseWriter, r *http.Request, v any) (int, bool) {
	fail := func(status int, text string) (int, bool) {
		writeJSON(w, status, map[string]any{
			"type":  "error",
			"error": map[string]any{"type": "invalid_request_error", "code": status, "message": text, "status": "INVALID_ARGUMENT"},
		})
		return 0, false
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return fail(http.StatusUnsupportedMediaType, "content encoding "+enc+" is not supported")
	}
	data, err := io.ReadAll(r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return fail(http.StatusRequestEntityTooLarge, "request body too large")
	}
	if err != nil {
		return fail(http.StatusBadRequest, "request body could not be read")
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fail(http.StatusBadRequest, "request body is not the expected JSON: "+err.Error())
	}
	return len(data), true
}
