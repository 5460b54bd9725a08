package painter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"qshim/cmd/internal/fakeprovider"
	"qshim/detect"
	"qshim/detect/finding"
	"qshim/detect/screen"
	"qshim/policies/agents"
)

// inProcess carries requests to a provider without a network, so that
// synctest's clock runs on.
type inProcess struct{ s *fakeprovider.Server }

type pipeWriter struct {
	header http.Header
	once   sync.Once
	status chan int
	body   *io.PipeWriter
}

func (w *pipeWriter) Header() http.Header  { return w.header }
func (w *pipeWriter) WriteHeader(code int) { w.once.Do(func() { w.status <- code }) }
func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	out, in := io.Pipe()
	w := &pipeWriter{header: http.Header{}, status: make(chan int, 1), body: in}
	go func() {
		p.s.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		_ = in.Close() // never fails
	}()
	return &http.Response{StatusCode: <-w.status, Header: w.header, Body: out, Request: r}, nil
}

// stage runs one painter and watches it with qshim's own eyes: the terminal
// model and the real rules for Claude Code.
type stage struct {
	provider *fakeprovider.Server
	keys     *io.PipeWriter
	signals  chan syscall.Signal

	mu       sync.Mutex
	out      bytes.Buffer
	watcher  *detect.Watcher
	wake     time.Time
	findings []finding.Finding
	titles   []string
	frames   []string // the screen after each write
}

func (s *stage) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Write(b)
	s.report(s.watcher.Output(time.Now(), b))
	if title := s.watcher.Screen().Title(); len(s.titles) == 0 || s.titles[len(s.titles)-1] != title {
		s.titles = append(s.titles, title)
	}
	s.frames = append(s.frames, text(s.watcher.Screen()))
	return len(b), nil
}

func (s *stage) report(r detect.Report) {
	s.findings = append(s.findings, r.Findings...)
	s.wake = r.Wake
}

// clock wakes the watcher when it asks for it, as a shim does.
func (s *stage) clock(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(20 * time.Millisecond):
		}
		s.mu.Lock()
		if now := time.Now(); !s.wake.IsZero() && !now.Before(s.wake) {
			s.report(s.watcher.Tick(now))
		}
		s.mu.Unlock()
	}
}

// written is what came out after the first n bytes.
func (s *stage) written(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()[n:]
}

func text(s *screen.Screen) string {
	_, rows := s.Size()
	var out []string
	for y := range rows {
		out = append(out, strings.ReplaceAll(s.Row(y), "\u00a0", " "))
	}
	return strings.Join(out, "\n")
}

func newStage(t *testing.T, cols, rows int) *stage {
	t.Helper()
	data, ok := agents.Builtin("claude")
	if !ok {
		t.Fatal("no profile")
	}
	p, err := detect.ParseProfile("claude", data)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{
		provider: fakeprovider.New(fakeprovider.Options{}), signals: make(chan syscall.Signal),
		watcher: p.Watch(detect.Options{Mode: detect.TUI, Cols: cols, Rows: rows, Zone: time.UTC, Started: time.Now()}),
	}
}

func (s *stage) run(args ...string) int {
	cols, rows := s.watcher.Screen().Size()
	in, keys := io.Pipe()
	s.keys = keys
	defer keys.Close()
	done := make(chan struct{})
	defer close(done)
	go s.clock(done)
	code := Run(context.Background(), append([]string{"-provider", "fake"}, args...), World{
		In: in, Out: s, Err: io.Discard, Env: func(string) string { return "" },
		Size: func() (int, int) { return cols, rows }, Signals: s.signals, Provider: func(Options) Ask { return overHTTP(inProcess{s.provider}) },
		Now: time.Now, Sleep: sleep, Rand: func() float64 { return 0.5 }, Tick: 100 * time.Millisecond,
	})
	_ = in.Close() // lets the reader of keys go
	return code
}

func (s *stage) control(t *testing.T, json string) {
	t.Helper()
	c, err := fakeprovider.ParseControl([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.provider.Apply(c); err != nil {
		t.Fatal(err)
	}
}

// shown reports whether a frame held the text.
func (s *stage) shown(want string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.frames {
		if strings.Contains(f, want) {
			return true
		}
	}
	return false
}

func (s *stage) classes() string {
	var out []string
	for _, f := range s.findings {
		word := string(f.Class)
		if f.Class == finding.Retrying {
			word += ":" + string(f.Cause)
		}
		if len(out) == 0 || out[len(out)-1] != word {
			out = append(out, word)
		}
	}
	return strings.Join(out, " ")
}

// last is the last frame of the painter's own screen, before it leaves it.
func (s *stage) last() string { return s.frames[len(s.frames)-2] }

func TestTaskIsPaintedAndReadAsClaudes(t *testing.T) {
	for _, c := range []struct {
		name, control string
		args          []string
		code          int
		shows         []string
		classes       string
		took          time.Duration // at least
	}{
		{"plain", ``, []string{"-calls", "2", "-think", "1s"}, 0,
			[]string{"❯ painter", "● OK: painter: step 1 of 2", "● OK: painter: step 2 of 2", "✻ Worked for 2s · done"}, "", 2 * time.Second},
		{"its own retry", `{"scenario":{"kind":"rate","retry_after_s":8,"next":1}}`, []string{"-calls", "1"}, 0,
			[]string{"✻ API error · retrying in 9s · attempt 1/10", "● OK: painter: step 1 of 1"}, "retrying:unknown", 8 * time.Second},
		{"given up", `{"scenario":{"kind":"rate","retry_after_s":5}}`, []string{"-calls", "2", "-attempts", "3"}, 1,
			[]string{
				"✻ 429 This request would exceed your account's rate limit. Please try again later. · retrying in 6s · attempt 3/3",
				"● API Error: Request rejected (429) · This request would exceed your account's rate limit.", "❯ Resend your message to try again",
			}, "retrying:unknown retrying:rate rate", 15 * time.Second},
		{"long retry-after", `{"scenario":{"kind":"rate","retry_after_s":90}}`, nil, 1, []string{"● API Error: Request rejected (429)"}, "rate", 0},
		{"overload", `{"scenario":{"kind":"overload"}}`, []string{"-attempts", "1"}, 1, []string{"● API Error: 529 Overloaded. This is a server-side issue"}, "retrying:unknown overload", 0},
		{"window", `{"scenario":{"kind":"window","resets_in_s":3600}}`, nil, 1, []string{"  ⎿  You've hit your 5-hour limit · resets 1am (UTC)"}, "window", 0},
		{"credit", `{"scenario":{"kind":"credit"}}`, nil, 1, []string{"  ⎿  Credit balance too low · Add funds:", "❯ Once fixed, resend your message"}, "credit", 0},
		{"spend", `{"scenario":{"kind":"spend","resets_in_s":86400}}`, nil, 1, []string{"You have reached your specified API usage limits."}, "spend", 0},
		{"auth", `{"scenario":{"kind":"auth"}}`, []string{"-attempts", "0"}, 1, []string{"  ⎿  Invalid API key · Fix external API key"}, "auth", 0},
		{"recital", `{"reply":{"text":"You've hit your 5-hour limit · resets 6:45pm (UTC)"}}`, []string{"-calls", "1"}, 0, []string{"● You've hit your 5-hour limit"}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, 120, 40)
				if c.control != "" {
					s.control(t, c.control)
				}
				begin := time.Now()
				if code := s.run(c.args...); code != c.code {
					t.Errorf("exit status %d, want %d", code, c.code)
				}
				if took := time.Since(begin); took < c.took {
					t.Errorf("took %v, want at least %v", took, c.took)
				}
				for _, want := range c.shows {
					if !s.shown(want) {
						t.Errorf("never shown: %q; at the end\n%s", want, s.last())
					}
				}
				if got := s.classes(); got != c.classes {
					t.Errorf("qshim reads %q, want %q", got, c.classes)
				}
				if s.titles[0] != "" || s.titles[1] != "◐ Claude Code" || s.titles[len(s.titles)-2] != "✳ Claude Code" {
					t.Errorf("titles %q", s.titles)
				}
				if m := s.watcher.Screen(); m.Alt() {
					t.Error("the alternate screen is still on")
				}
			})
		})
	}
}

func TestRetriesGrowAndHonourTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 100, 30)
		s.control(t, `{"scenario":{"kind":"overload"}}`)
		s.run("-attempts", "8")
		var gaps []string
		r := s.provider.Counts().Requests
		for i := 1; i < len(r); i++ {
			gaps = append(gaps, r[i].At.Sub(r[i-1].At).String())
		}
		if got, want := fmt.Sprint(gaps), "[500ms 1s 2s 4s 8s 16s 32s 32s]"; got != want {
			t.Errorf("gaps %s, want %s", got, want)
		}
	})
}

func TestStayingPainterGoesOnWhereItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 100, 30)
		s.control(t, `{"scenario":{"kind":"credit","match":"step 2","next":1}}`)
		code := make(chan int)
		go func() { code <- s.run("-calls", "3", "-stay") }()
		synctest.Wait()
		if !s.shown("❯ Once fixed, resend your message") {
			t.Fatal(s.last())
		}
		io.WriteString(s.keys, "continue")
		io.WriteString(s.keys, "\r")
		synctest.Wait()
		if !s.shown("❯ continue") || !s.shown("● OK: painter: step 3 of 3") {
			t.Errorf("not continued:\n%s", s.last())
		}
		if n := s.provider.Counts().Sum("", "").Requests; n != 4 {
			t.Errorf("%d requests, want 4: call 1 must not be done again", n)
		}
		io.WriteString(s.keys, "\x03")
		if got := <-code; got != 0 {
			t.Errorf("exit status %d", got)
		}
	})
}

func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 100, 30)
		code := make(chan int)
		go func() { code <- s.run("-calls", "1", "-hold", "1h") }()
		time.Sleep(1500 * time.Millisecond)
		before := len(s.written(0))
		s.signals <- syscall.SIGCONT
		synctest.Wait()
		again := s.written(before)
		if !strings.Contains(again, enter) || !strings.Contains(again, "\x1b[2J") || !strings.Contains(again, "]0;◑ Claude Code") || !strings.Contains(again, "word1") {
			t.Errorf("not drawn anew after SIGCONT: %q", again)
		}
		s.signals <- syscall.SIGTERM
		if got := <-code; got != 128+15 {
			t.Errorf("exit status %d", got)
		}
		if !strings.Contains(s.written(0), leave) {
			t.Error("the terminal was left as it was")
		}
		if c := s.provider.Counts(); !c.Requests[0].Cut {
			t.Error("the request was not given up")
		}
	})
}

func TestHeadless(t *testing.T) {
	for _, c := range []struct {
		control string
		code    int
		out     string
	}{
		{`{}`, 0, "OK: painter: step 1 of 2\nOK: painter: step 2 of 2\n"},
		{`{"scenario":{"kind":"rate","retry_after_s":90}}`, 1, "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.\n"},
		{`{"scenario":{"kind":"credit","match":"step 2"}}`, 1, "OK: painter: step 1 of 2\nCredit balance too low · Add funds: https://platform.claude.com/settings/billing\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 80, 24)
			s.control(t, c.control)
			if code := s.run("-p", "-calls", "2"); code != c.code || s.out.String() != c.out {
				t.Errorf("%s: %d %q", c.control, code, s.out.String())
			}
		})
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"-calls", "0"}, {"-nonsense"}, {"-hold", "-1s"}, {"-attempts", "1000"}, {"-provider", ""}} {
		var errs bytes.Buffer
		code := Run(t.Context(), append([]string{"-provider", "fake"}, args...), World{Err: &errs, Env: func(string) string { return "" }})
		if code != exitUsage || errs.Len() == 0 {
			t.Errorf("%q: %d %q", args, code, errs.String())
		}
	}
}
