package fakeprovider

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// FuzzRequest: any body on any path is answered, with a status, and counted to
// its end.
func FuzzRequest(f *testing.F) {
	paths := []string{messages, responses, complete, generate, assist, "/v1beta/models/x:generateContent", "/v1/messages/count_tokens", "/v1internal:onboardUser", "/nowhere", "/v1beta/models/%zz"}
	for i, p := range paths {
		f.Add(i, askBody(p, "hi hold=3s gap=1ms chunks=7 in=5 out=9"))
		f.Add(i, `{"messages":[{"role":"user","content":5}],"input":{"role":[]},"contents":[{"parts":null}]}`)
		f.Add(i, `{"input":[{"role":"user"}],"contents":[{}],"messages":[{"content":[{"text":"<x"}]}]}`)
		f.Add(i, "nonsense")
	}
	f.Fuzz(func(t *testing.T, i int, body string) {
		path := paths[(i%len(paths)+len(paths))%len(paths)]
		s := New(Options{Sleep: func(context.Context, time.Duration) error { return nil }})
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.URL.Path = path
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("status %d", w.Code)
		}
		if sum := s.Counts().Sum("", ""); sum.Answering != 0 || sum.Requests != sum.OK+sum.Limited+sum.Failed {
			t.Errorf("counts do not add up: %+v", sum)
		}
	})
}

// FuzzControl: what is accepted can be applied, written and read again, and the
// server goes on answering.
func FuzzControl(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"scenario":{"kind":"rate","for_s":1e300,"retry_after_s":3}}`, `{"provider":"gemini","account":"x","limits":{"rpm":1,"burst":0.001,"itpm":9999999}}`,
		`{"key":"k","reply":{"text":"x","chunks":10000,"hold_s":1e9,"gap_s":1e-9}}`, `{"scenario":{"kind":"spend","status":400}}{}`, `{"limits":{"retry_after_s":-1}}`, `[]`, `{"scenario":{"share":0.5,"kind":"window","resets_in_s":1e18}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseControl([]byte(text))
		if err != nil {
			return
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if _, err := ParseControl(b); err != nil {
			t.Fatalf("written as %s: %v", b, err)
		}
		sleeps := 0 // a client that hangs up keeps long answers cheap
		s := New(Options{Rand: func() float64 { return 0 }, Sleep: func(context.Context, time.Duration) error {
			if sleeps++; sleeps%50 == 0 {
				return context.Canceled
			}
			return nil
		}})
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{messages, responses, complete, generate, assist} {
			if w := post(s, p, c.Key, "hi"); w.Code < 200 {
				t.Errorf("status %d", w.Code)
			}
		}
	})
}
