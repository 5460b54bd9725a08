package fakeprovider

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestBucketRefillsContinuously(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		apply(t, s, `{"limits":{"rpm":60,"burst":0.05}}`) // three at once, then one a second
		for i := range 3 {
			if w := post(s, messages, "k", "hi"); w.Code != 200 {
				t.Fatalf("request %d: %d", i, w.Code)
			}
		}
		w := post(s, messages, "k", "hi")
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || w.Header().Get("Anthropic-Ratelimit-Requests-Remaining") != "0" {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
		if w := post(s, messages, "another", "hi"); w.Code != 200 {
			t.Fatalf("another account shares the bucket: %d", w.Code)
		}
		time.Sleep(time.Second)
		if w := post(s, messages, "k", "hi"); w.Code != 200 {
			t.Fatalf("after the stated second: %d", w.Code)
		}
	})
}

func TestTokensAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		apply(t, s, `{"limits":{"itpm":6000,"otpm":600}}`)
		if w := post(s, messages, "k", "in=6000 out=10"); w.Code != 200 {
			t.Fatal(w.Code)
		}
		w := post(s, messages, "k", "in=3000")
		if w.Code != 429 || w.Header().Get("Retry-After") != "30" {
			t.Fatalf("input: %d %q", w.Code, w.Header().Get("Retry-After"))
		}
		time.Sleep(time.Minute)
		if w := post(s, messages, "k", "in=1 out=900"); w.Code != 200 {
			t.Fatal(w.Code)
		}
		// 600 were there, 900 were written: 301 must come back before one is free.
		if w := post(s, messages, "k", "in=1"); w.Code != 429 || w.Header().Get("Retry-After") != "31" {
			t.Fatalf("output: %d %q", w.Code, w.Header().Get("Retry-After"))
		}
	})
}

func TestRefusedRequestsCanCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		apply(t, s, `{"limits":{"rpm":6,"burst":0.1,"count_refused":true}}`)
		waits := []string{"", "10", "20", "30"}
		for i, want := range waits {
			if got := post(s, messages, "k", "hi").Header().Get("Retry-After"); got != want {
				t.Errorf("request %d: retry-after %q, want %q", i, got, want)
			}
		}
	})
}

func TestConcurrentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		apply(t, s, `{"limits":{"concurrent":1,"retry_after_s":-1}}`)
		done := make(chan int)
		go func() { done <- post(s, messages, "k", "hold=10s").Code }()
		synctest.Wait()
		apply(t, s, `{"limits":{"concurrent":1,"retry_after_s":-1}}`) // renewing must not forget who is being answered
		if w := post(s, messages, "k", "hi"); w.Code != 429 || w.Header().Get("Retry-After") != "" {
			t.Errorf("second: %d %q", w.Code, w.Header().Get("Retry-After"))
		}
		if code := <-done; code != 200 {
			t.Errorf("first: %d", code)
		}
		if w := post(s, messages, "k", "hi"); w.Code != 200 {
			t.Errorf("after it: %d", w.Code)
		}
	})
}
