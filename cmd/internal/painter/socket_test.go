package painter

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serve answers on a socket of the test's own.
func serve(t *testing.T, reply Ask) (Ask, func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	stop, err := Serve(path, reply)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return OverSocket(path), stop
}

func TestSocket(t *testing.T) {
	refusal := &Refusal{Status: tooMany, Message: "slow down\n\x1b[31m", Claim: "five_hour", Reset: time.Unix(1e9, 0).UTC(), RetryAfter: time.Second, Final: true}
	ask, _ := serve(t, func(_ context.Context, prompt string, part func(string)) error {
		if prompt == "no" {
			return refusal
		}
		for _, w := range strings.SplitAfter(prompt, " ") {
			part(w)
		}
		if prompt == "broken" {
			return errors.New("the provider is broken")
		}
		return nil
	})
	for range 3 { // each question has a connection of its own
		var said strings.Builder
		if err := ask(t.Context(), "step 1 of 2 ❯", func(s string) { said.WriteString(s) }); err != nil || said.String() != "step 1 of 2 ❯" {
			t.Errorf("%q, %v", said.String(), err)
		}
	}
	var got *Refusal
	if err := ask(t.Context(), "no", nil); !errors.As(err, &got) || !cmp.Equal(got, refusal) {
		t.Errorf("%v, want %v", err, refusal)
	}
	if err := ask(t.Context(), "broken", func(string) {}); err == nil || errors.As(err, &got) {
		t.Errorf("an answer that was cut: %v", err)
	}
	if err := OverSocket(filepath.Join(t.TempDir(), "none"))(t.Context(), "x", nil); err == nil {
		t.Error("nobody serves there, and no error")
	}
}

// Whoever hangs up gives the question up: the painter, and the provider.
func TestSocketHangUp(t *testing.T) {
	asked, given := make(chan struct{}), make(chan error)
	ask, stop := serve(t, func(ctx context.Context, _ string, _ func(string)) error {
		asked <- struct{}{}
		<-ctx.Done()
		given <- ctx.Err()
		return ctx.Err()
	})
	answered := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { answered <- ask(ctx, "x", func(string) {}) }()
	<-asked
	cancel()
	if err := <-answered; err == nil {
		t.Error("a question that was given up has an answer")
	}
	<-given
	go func() { answered <- ask(t.Context(), "x", func(string) {}) }()
	<-asked
	go stop()
	<-given
	if err := <-answered; err == nil {
		t.Error("a provider that has gone has answered")
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"part":"OK"}` + "\n" + `{"end":true}` + "\n")
	f.Add(`{"refusal":{"status":429,"retry_after":-1}}`)
	f.Add("{\n")
	f.Fuzz(func(t *testing.T, text string) {
		said := 0
		if err := listenTo(strings.NewReader(text), func(s string) { said += len(s) }); err == nil && text == "" {
			t.Error("an end that was not said")
		}
		if said > 4*len(text) {
			t.Errorf("%d bytes said in %d", said, len(text))
		}
	})
}
