package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"qshim/lockfile"
)

func all(t *testing.T, st lockfile.Store, since time.Time) []lockfile.Event {
	t.Helper()
	var got []lockfile.Event
	for e, err := range st.Events(t.Context(), since, false) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}

func (s suite) events(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	if got := all(t, a, time.Time{}); len(got) != 0 {
		t.Errorf("events in a new store: %v", got)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("x", 3600))
	if err := a.Append(lockfile.Event{At: at, Event: "finding", Rows: []string{"a\nb", "\x1b[2J\u009b"}}, lockfile.Event{At: at.Add(time.Hour), Event: "hold"}); err != nil {
		t.Fatal(err)
	}
	update(t, b, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		return l, []lockfile.Event{{Event: "probe", Reason: strings.Repeat("x", 1<<20)}}
	})
	got := all(t, a, time.Time{})
	if len(got) != 3 || got[0].Event != "finding" || got[1].Event != "hold" || got[2].Event != "probe" {
		t.Fatalf("%d events: %.300v", len(got), got)
	}
	if e := got[0]; !e.At.Equal(at) || e.At.Location() != time.UTC || e.Rows[0] != "a\nb" || e.Rows[1] != "\x1b[2J\u009b" {
		t.Errorf("event came back as %+v", e)
	}
	if got[2].At.IsZero() {
		t.Error("an event without a time was not stamped")
	}
	if got := all(t, b, at.Add(time.Minute)); len(got) != 2 {
		t.Errorf("since: %d events", len(got))
	}
	for range b.Events(t.Context(), time.Time{}, false) {
		break // a consumer may stop
	}
}

func (s suite) followed(t *testing.T) {
	place := t.TempDir()
	a, b := s.store(t, place), s.store(t, place)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Append(lockfile.Event{Event: "launch", Reason: "0"}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for e, err := range b.Events(ctx, time.Time{}, true) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Reason != fmt.Sprint(n) {
			t.Errorf("event %d is %q", n, e.Reason)
		}
		if n++; n == 20 {
			cancel()
			continue
		}
		if err := a.Append(lockfile.Event{Event: "launch", Reason: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if n != 20 {
		t.Errorf("followed %d of 20", n)
	}
}

func (s suite) interleave(t *testing.T) {
	place := t.TempDir()
	const writers, each = 8, 25
	stores := make([]lockfile.Store, writers)
	for i := range stores {
		stores[i] = s.store(t, place)
	}
	var wg sync.WaitGroup
	for i, st := range stores {
		wg.Go(func() {
			text := strings.Repeat(fmt.Sprint(i), 3000)
			for n := range each {
				if err := st.Append(lockfile.Event{Event: "finding", Session: fmt.Sprint(i), RetryAfter: float64(n), Rows: []string{text}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	next := map[string]int{}
	for _, e := range all(t, stores[0], time.Time{}) {
		if e.Rows[0] != strings.Repeat(e.Session, 3000) || int(e.RetryAfter) != next[e.Session] {
			t.Errorf("writer %s: event %v, want %d", e.Session, e.RetryAfter, next[e.Session])
		}
		next[e.Session]++
	}
	for i := range writers {
		if got := next[fmt.Sprint(i)]; got != each {
			t.Errorf("writer %d: %d of %d events", i, got, each)
		}
	}
}
