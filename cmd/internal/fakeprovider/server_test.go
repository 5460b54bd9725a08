package fakeprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	messages  = "/v1/messages"
	responses = "/v1/responses"
	complete  = "/v1/chat/completions"
	generate  = "/v1beta/models/gemini-2.5-pro:streamGenerateContent"
	assist    = "/v1internal:streamGenerateContent"
)

func askBody(path, text string) string {
	t, _ := json.Marshal(text)
	switch path {
	case messages:
		return `{"model":"claude-opus","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":` + string(t) + `}]}],"tools":[{}]}`
	case responses:
		return `{"model":"gpt-5","stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":` + string(t) + `}]}]}`
	case complete:
		return `{"model":"gpt-5","stream":true,"messages":[{"role":"system","content":"be kind"},{"role":"user","content":[{"type":"text","text":` + string(t) + `}]}]}`
	case assist:
		return `{"model":"gemini-2.5-pro","request":{"contents":[{"role":"user","parts":[{"text":` + string(t) + `}]}]}}`
	}
	return `{"contents":[{"role":"user","parts":[{"text":` + string(t) + `}]}]}`
}

// post sends one request without a network, so that synctest's clock runs on.
func post(s *Server, path, key, text string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(askBody(path, text)))
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func apply(t *testing.T, s *Server, control string) {
	t.Helper()
	c, err := ParseControl([]byte(control))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
}

func TestEveryProviderAnswersInItsOwnShape(t *testing.T) {
	for path, want := range map[string][]string{
		messages:  {"event: message_start", `"text":"OK: "`, `"text":"there"`, "event: message_stop", `"stop_reason":"end_turn"`},
		responses: {"event: response.created", `"delta":"there"`, "event: response.completed", `"text":"OK: hi there"`, `"total_tokens"`},
		complete:  {`"delta":{"content":"there"}`, `"finish_reason":"stop"`, `"total_tokens"`, "data: [DONE]"},
		generate:  {`"text":"there"`, `"finishReason":"STOP"`, `"promptTokenCount"`},
		assist:    {`"response":{"candidates"`, `"text":"there"`, `"finishReason":"STOP"`},
	} {
		w := post(New(Options{}), path, "k", "hi there")
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
		for _, s := range want {
			if !strings.Contains(w.Body.String(), s) {
				t.Errorf("%s: no %q in\n%s", path, s, w.Body)
			}
		}
		for _, line := range strings.Split(w.Body.String(), "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Errorf("%s: not JSON: %s", path, data)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	at := time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)
	epoch := strconv.FormatInt(at.Add(time.Hour).Unix(), 10)
	for _, c := range []struct {
		name, path, scenario string
		status               int
		header, value        string
		body                 string
	}{
		{"throttle", messages, `{"kind":"rate","retry_after_s":30}`, 429, "Retry-After", "30", `"rate_limit_error"`},
		{"throttle without a time", messages, `{"kind":"rate"}`, 429, "Retry-After", "", "would exceed your account's rate limit"},
		{"input tokens", messages, `{"kind":"rate","tokens":true}`, 429, "", "", "40,000 input tokens per minute"},
		{"window", messages, `{"kind":"window","resets_in_s":3600}`, 429, "Anthropic-Ratelimit-Unified-Reset", epoch, ""},
		{"chat throttle", complete, `{"kind":"rate","retry_after_s":30}`, 429, "Retry-After", "30", `"code":"rate_limit_exceeded"`},
		{"chat credit", complete, `{"kind":"credit"}`, 429, "", "", `"insufficient_quota"`},
		{"claim", messages, `{"kind":"window","claim":"seven_day_opus"}`, 429, "Anthropic-Ratelimit-Unified-Representative-Claim", "seven_day_opus", ""},
		{"no claim", messages, `{"kind":"window","claim":"none"}`, 429, "Anthropic-Ratelimit-Unified-Status", "", ""},
		{"credit", messages, `{"kind":"credit"}`, 400, "", "", "credit balance is too low"},
		{"spend", messages, `{"kind":"spend","resets_in_s":115200}`, 429, "X-Should-Retry", "false", `"error_code":"enforced_spend_limit_reached"`},
		{"spend's date", messages, `{"kind":"spend","resets_in_s":115200}`, 429, "", "", "regain access on 2026-12-01 at 00:00 UTC"},
		{"spend as 400", messages, `{"kind":"spend","status":400}`, 400, "", "", `"invalid_request_error"`},
		{"overload", messages, `{"kind":"overload"}`, 529, "", "", `"overloaded_error"`},
		{"overload as 500", messages, `{"kind":"overload","status":500}`, 500, "", "", `"api_error"`},
		{"auth", messages, `{"kind":"auth"}`, 401, "", "", `"authentication_error"`},
		{"text", messages, `{"kind":"rate","message":"Go away"}`, 429, "", "", "Go away"},
		{"openai throttle", responses, `{"kind":"rate","retry_after_s":12}`, 429, "Retry-After", "12", "try again in 12.000s"},
		{"openai window", responses, `{"kind":"window","resets_in_s":3600}`, 429, "X-Codex-Primary-Reset-At", epoch, `"resets_at":` + epoch},
		{"openai plan", responses, `{"kind":"window","plan":"team"}`, 429, "", "", `"plan_type":"team"`},
		{"openai weekly", responses, `{"kind":"daily","resets_in_s":3600}`, 429, "X-Codex-Secondary-Window-Minutes", "10080", ""},
		{"openai credit", responses, `{"kind":"credit"}`, 429, "", "", "insufficient_quota"},
		{"openai spend", responses, `{"kind":"spend"}`, 429, "X-Codex-Rate-Limit-Reached-Type", "workspace_member_usage_limit_reached", ""},
		{"openai overload", responses, `{"kind":"overload"}`, 503, "", "", "server_is_overloaded"},
		{"openai in the stream", responses, `{"kind":"rate","in_stream":true,"retry_after_s":11}`, 200, "", "", "event: response.failed"},
		{"openai auth", responses, `{"kind":"auth"}`, 401, "", "", "invalid_api_key"},
		{"gemini minute", generate, `{"kind":"rate","retry_after_s":34}`, 429, "", "", `"retryDelay":"34s"`},
		{"gemini minute's quota", generate, `{"kind":"rate","retry_after_s":34}`, 429, "", "", "PerMinutePerProject"},
		{"gemini plain", generate, `{"kind":"rate"}`, 429, "", "", "Resource has been exhausted"},
		{"gemini day", generate, `{"kind":"daily"}`, 429, "", "", "GenerateRequestsPerDayPerProjectPerModel-FreeTier"},
		{"gemini long", generate, `{"kind":"window","resets_in_s":3600}`, 429, "", "", `"retryDelay":"3600s"`},
		{"gemini prepaid", generate, `{"kind":"credit"}`, 429, "", "", "prepayment credits are depleted"},
		{"gemini no tier", generate, `{"kind":"credit","form":"limit0"}`, 429, "", "", "limit: 0,"},
		{"gemini billing", generate, `{"kind":"credit","form":"billing"}`, 403, "", "", "BILLING_DISABLED"},
		{"gemini spend", generate, `{"kind":"spend"}`, 429, "", "", "monthly spending cap"},
		{"gemini overload", generate, `{"kind":"overload"}`, 503, "", "", "UNAVAILABLE"},
		{"login window", assist, `{"kind":"window","resets_in_s":7384}`, 429, "", "", "Your quota will reset after 2h3m4s."},
		{"login credits", assist, `{"kind":"credit"}`, 429, "", "", "INSUFFICIENT_G1_CREDITS_BALANCE"},
		{"login capacity", assist, `{"kind":"overload"}`, 429, "", "", "MODEL_CAPACITY_EXHAUSTED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Options{Now: func() time.Time { return at }})
			apply(t, s, `{"scenario":`+c.scenario+`}`)
			w := post(s, c.path, "k", "hi")
			if w.Code != c.status {
				t.Errorf("status %d, want %d: %s", w.Code, c.status, w.Body)
			}
			if c.header != "" && w.Header().Get(c.header) != c.value {
				t.Errorf("%s: %q, want %q", c.header, w.Header().Get(c.header), c.value)
			}
			if !strings.Contains(w.Body.String(), c.body) {
				t.Errorf("no %q in %s", c.body, w.Body)
			}
		})
	}
}

func TestNextRefusalsSpareSideRequests(t *testing.T) {
	s := New(Options{})
	apply(t, s, `{"provider":"openai","scenario":{"kind":"window","next":2}}`)
	title := "Generate a concise, single-line task title of this"
	var got []int
	for _, text := range []string{"a", title, "b", "c"} {
		got = append(got, post(s, responses, "k", text).Code)
	}
	if want := []int{429, 200, 429, 200}; !equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
	if c := s.Counts().Sum(OpenAI, ""); c.Requests != 4 || c.OK != 2 || c.Limited != 2 || c.Side != 1 {
		t.Errorf("counts %+v", c)
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestScenarioRunsFromItsFirstRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		apply(t, s, `{"scenario":{"kind":"rate","for_s":30}}`)
		time.Sleep(time.Hour) // an agent may take its time to start
		for _, c := range []struct {
			after time.Duration
			code  int
			retry string
		}{{0, 429, "30"}, {1500 * time.Millisecond, 429, "29"}, {28 * time.Second, 429, "1"}, {time.Second, 200, ""}} {
			time.Sleep(c.after)
			if w := post(s, messages, "k", "hi"); w.Code != c.code || w.Header().Get("Retry-After") != c.retry {
				t.Errorf("after %v: %d retry-after %q, want %d %q", c.after, w.Code, w.Header().Get("Retry-After"), c.code, c.retry)
			}
		}
	})
}

func TestMostSpecificSettingWins(t *testing.T) {
	s := New(Options{})
	apply(t, s, `{"scenario":{"kind":"overload"}}`)
	apply(t, s, `{"provider":"anthropic","scenario":{"kind":"credit"}}`)
	apply(t, s, `{"provider":"anthropic","key":"mine","scenario":{"kind":"plain"}}`)
	apply(t, s, `{"provider":"anthropic","scenario":{"kind":"rate","match":"pane1"}, "key":"shared"}`)
	for _, c := range []struct {
		path, key, text string
		want            int
	}{
		{generate, "mine", "hi", 503}, {messages, "other", "hi", 400}, {messages, "mine", "hi", 200},
		{messages, "shared", "pane1 hi", 429}, {messages, "shared", "pane2 hi", 200},
	} {
		if w := post(s, c.path, c.key, c.text); w.Code != c.want {
			t.Errorf("%s as %s: %d, want %d", c.path, c.key, w.Code, c.want)
		}
	}
	apply(t, s, `{"provider":"anthropic","scenario":{}}`)
	if w := post(s, messages, "other", "hi"); w.Code != 529 {
		t.Errorf("after removing the provider's scenario: %d, want the general 529", w.Code)
	}
}

func TestShareOfRequests(t *testing.T) {
	next := 0.0
	s := New(Options{Rand: func() float64 { next += 0.25; return next - 0.25 }})
	apply(t, s, `{"scenario":{"kind":"overload","share":0.5}}`)
	var got []int
	for range 4 {
		got = append(got, post(s, messages, "k", "hi").Code)
	}
	if want := []int{529, 529, 200, 200}; !equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
}

func TestStreamKeepsItsPaceAndCanBeHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		begin := time.Now()
		w := post(s, messages, "k", "hold=20m gap=10s please")
		if d := time.Since(begin); d != 20*time.Minute {
			t.Errorf("held for %v, want 20m", d)
		}
		if n := strings.Count(w.Body.String(), `"text":"word`); n != 120 {
			t.Errorf("%d words, want 120", n)
		}
		apply(t, s, `{"reply":{"text":"abcdef","chunks":3,"gap_s":2,"first_s":5}}`)
		begin = time.Now()
		post(s, generate, "k", "hi")
		if d := time.Since(begin); d != 9*time.Second {
			t.Errorf("streamed for %v, want 5 s and twice 2 s", d)
		}
	})
}

func TestHangingUpEndsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, messages, strings.NewReader(askBody(messages, "hold=1h")))
		s.ServeHTTP(httptest.NewRecorder(), r)
		c := s.Counts()
		if got := c.Requests[0]; !got.Cut || got.Done.Sub(got.At) != 5*time.Second {
			t.Errorf("request %+v", got)
		}
		if sum := c.Sum("", ""); sum.Answering != 0 || sum.OK != 1 {
			t.Errorf("counts %+v", sum)
		}
	})
}

func TestWaitReturnsAtTheEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(3 * time.Second)
			post(s, messages, "k", "hi")
		})
		begin := time.Now()
		err := s.Wait(t.Context(), func(c Counts) bool { return c.Sum("", "").OK == 1 })
		if err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Wait(ctx, func(Counts) bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func TestStartServesLoopbackOnly(t *testing.T) {
	s := New(Options{})
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "nonsense"} {
		if _, _, err := s.Start(addr); err == nil {
			t.Errorf("%s was accepted", addr)
		}
	}
	url, stop, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	send := func(method, path, body string) (int, string) {
		t.Helper()
		req, _ := http.NewRequest(method, url+path, strings.NewReader(body))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	defer http.DefaultClient.CloseIdleConnections()
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/_control", `{"scenario":{"kind":"rate","retry_after_s":3}}`, 200, "ok"},
		{"POST", messages, askBody(messages, "hi"), 429, "rate_limit_error"},
		{"GET", "/_control/counts", "", 200, `"limited":1`},
		{"POST", "/_control", `{"scenaro":{}}`, 400, "unknown field"},
		{"POST", "/_control/reset", "", 200, "ok"},
		{"GET", "/_control/counts", "", 200, `"requests":[]`},
		{"GET", "/_control/other", "", 404, "counts"},
		{"HEAD", "/", "", 200, ""},
		{"GET", "/v1/models?client_version=1", "", 200, `"models":[]`},
		{"GET", "/v1/responses", "", 404, "Not found"}, // a WebSocket upgrade: Codex falls back to HTTP
		{"POST", "/v1/messages/count_tokens", askBody(messages, "hi"), 200, "input_tokens"},
		{"POST", "/api/event_logging/batch", "{}", 404, ""},
		{"POST", messages, "{", 400, "invalid_request_error"},
		{"POST", "/v1beta/models/m:countTokens", "{}", 200, "totalTokens"},
		{"POST", "/v1beta/models/m:embedContent", "{}", 404, ""},
		{"POST", "/v1internal:loadCodeAssist", "{}", 200, "cloudaicompanionProject"},
	} {
		if status, body := send(c.method, c.path, c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
	}
}

func TestStopCutsHeldStreams(t *testing.T) {
	s := New(Options{})
	url, stop, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url+messages, "application/json", strings.NewReader(askBody(messages, "hold=1h")))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	_, err = io.ReadAll(res.Body)
	if err == nil {
		t.Error("the stream ended as if it were whole")
	}
	res.Body.Close()
	if c := s.Counts().Sum("", ""); c.Answering != 0 {
		t.Errorf("%d still answering after stop", c.Answering)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestRequestListIsBounded(t *testing.T) {
	s := New(Options{Remember: 3})
	for range 5 {
		post(s, generate, "k", "hi")
	}
	c := s.Counts()
	if len(c.Requests) != 3 || c.Requests[0].ID != 3 || c.Sum("", "").OK != 5 || c.Sum("", "").Answering != 0 {
		t.Errorf("%d requests from %d, sums %+v", len(c.Requests), c.Requests[0].ID, c.Sum("", ""))
	}
}

func TestLargeAndCompressedBodiesAreRefused(t *testing.T) {
	s := New(Options{})
	r := httptest.NewRequest(http.MethodPost, messages, bytes.NewReader(make([]byte, maxBody+1)))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d", w.Code)
	}
	r = httptest.NewRequest(http.MethodPost, messages, strings.NewReader("x"))
	r.Header.Set("Content-Encoding", "zstd")
	w = httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("compressed: %d", w.Code)
	}
}

func TestAccountsAreHashesOfWhicheverCredential(t *testing.T) {
	for _, c := range []struct{ header, value, key string }{
		{"X-Api-Key", "a", "a"}, {"X-Goog-Api-Key", "b", "b"}, {"Authorization", "Bearer c", "c"}, {"Chatgpt-Account-Id", "d", "d"}, {"Cookie", "x=y", ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set(c.header, c.value)
		if got := credential(r); got != c.key {
			t.Errorf("%s: %q", c.header, got)
		}
	}
	if a := Account("secret"); len(a) != 12 || strings.Contains(a, "secret") || a == Account("other") || Account("") != "none" {
		t.Errorf("account %q", a)
	}
}
