package lockfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRotation follows a log through many rotations while several write: each
// event arrives once, in the order of its writer, and few files are kept.
func TestRotation(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	const writers, each = 4, 100
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reader := openWith(t, place, Options{tick: 5 * time.Millisecond})
	ready := make(chan struct{})
	var wg sync.WaitGroup
	for w := range writers {
		d := openWith(t, place, Options{maxEvents: 4000})
		wg.Go(func() {
			<-ready
			for n := range each {
				if err := d.Append(Event{Event: "hold", Session: fmt.Sprint(w), RetryAfter: float64(n), Reason: strings.Repeat("x", n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if err := reader.Append(Event{Event: "start"}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wg.Wait()
		if err := reader.Append(Event{Event: "end"}); err != nil {
			t.Error(err)
		}
	}()
	next, total := map[string]int{}, 0
	for e, err := range reader.Events(ctx, zero, true) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == "start" {
			close(ready)
			continue
		}
		if e.Event == "end" {
			break
		}
		// A follower that is slower than five rotations loses what they dropped;
		// it never sees one twice or out of order.
		if int(e.RetryAfter) < next[e.Session] {
			t.Fatalf("writer %s: event %v after %d", e.Session, e.RetryAfter, next[e.Session])
		}
		next[e.Session] = int(e.RetryAfter) + 1
		total++
	}
	if ctx.Err() != nil {
		t.Error("the end was not read")
	}
	<-ended
	t.Logf("%d of %d events were read while they were written", total, writers*each)
	files, err := filepath.Glob(filepath.Join(place, "events*"))
	if err != nil || len(files) != KeepEvents+1 {
		t.Errorf("kept %d files: %v", len(files), err)
	}
}

// TestRotationWithoutLoss is the same with a follower that keeps up.
func TestRotationWithoutLoss(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := openWith(t, place, Options{maxEvents: 300, noWatch: true, tick: time.Millisecond})
	if err := d.Append(Event{Event: "hold"}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for e, err := range d.Events(ctx, zero, true) {
		if err != nil || int(e.RetryAfter) != n {
			t.Fatalf("event %d is %v, %v", n, e.RetryAfter, err)
		}
		if n++; n == 200 {
			break
		}
		for k := range n % 3 { // one, then two together, then none
			if err := d.Append(Event{Event: "hold", RetryAfter: float64(n + k)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n != 200 {
		t.Errorf("followed %d of 200: %v", n, ctx.Err())
	}
}

// TestRotationBetween: what is written and rotated away between a follower's
// looks is not lost, wherever it falls.
func TestRotationBetween(t *testing.T) {
	for _, at := range []string{"end of log", "open log"} {
		place := filepath.Join(t.TempDir(), "state")
		writer := openWith(t, place, Options{maxEvents: 300})
		appendOne := func(name string) {
			if err := writer.Append(Event{Event: name, Reason: strings.Repeat("x", 100)}); err != nil {
				t.Fatal(err)
			}
		}
		appendOne("one")
		times := 0
		reader := openWith(t, place, Options{step: func(name string) error {
			if name != at {
				return nil
			}
			if times++; times == 1 {
				for _, name := range []string{"two", "three", "four", "five"} {
					appendOne(name)
				}
			}
			return nil
		}})
		if got := eventNames(t, reader); got != "one two three four five" {
			t.Errorf("at %s: %s", at, got)
		}
	}
}

// TestSinceSkipsOldFiles: rotated files that ended before are not even opened.
func TestSinceSkipsOldFiles(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	d := openWith(t, place, Options{maxEvents: 200})
	base := time.Now().Add(-time.Hour)
	for i := range 10 {
		if err := d.Append(Event{At: base.Add(time.Duration(i) * time.Minute), Event: "hold", Reason: strings.Repeat("x", 100)}); err != nil {
			t.Fatal(err)
		}
	}
	old, err := filepath.Glob(filepath.Join(place, "events-*"))
	if err != nil || len(old) != KeepEvents {
		t.Fatal(old, err)
	}
	for _, f := range old[:3] {
		if err := errors.Join(os.Chtimes(f, base, base), os.Chmod(f, 0)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for e, err := range d.Events(t.Context(), base.Add(time.Second), false) {
		if err != nil {
			t.Error(err)
		} else if e.At.Before(base.Add(time.Second)) {
			t.Errorf("too old: %v", e.At)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d events", n)
	}
}

// TestTornLine: what a killed writer left of a line is cut off, what stands in
// the log's place is set aside.
func TestTornLine(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	log := filepath.Join(place, eventsName)
	d := open(t, place, SetAside)
	if err := d.Append(Event{Event: "one"}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("{\"at\":\"2026-01-01T00:00:00Z\",\"event\":\"torn" + strings.Repeat("x", 3*maxLine))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := d.Append(Event{Event: "two"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	if err != nil || bytes.Count(data, []byte("\n")) != 3 || bytes.Contains(data, []byte("torn")) {
		t.Errorf("%.500q, %v", data, err)
	}
	if got := eventNames(t, d); got != "one two" {
		t.Errorf("events: %s", got)
	}
	write(t, log, strings.Repeat("garbage\n", 1000), 0o600)
	if err := d.Append(Event{Event: "three"}); err != nil {
		t.Fatal(err)
	}
	aside(t, place, eventsName)
	if got := eventNames(t, d); got != "three" {
		t.Errorf("events: %s", got)
	}
}

// TestGiantLog: 1 GB, one line of it endless, costs neither memory nor time.
func TestGiantLog(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	d := open(t, place)
	if err := d.Append(Event{Event: "one"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(place, eventsName), 64<<20); err != nil {
		t.Fatal(err)
	}
	if err := d.Append(Event{Event: "two"}); err != nil {
		t.Fatal(err)
	}
	if got := eventNames(t, d); got != "one two" {
		t.Errorf("events: %s", got)
	}
}

func eventNames(t *testing.T, d *Dir) string {
	t.Helper()
	var names []string
	for e, err := range d.Events(t.Context(), zero, false) {
		if err != nil {
			t.Error(err)
		}
		names = append(names, e.Event)
	}
	return strings.Join(names, " ")
}
