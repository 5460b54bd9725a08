package agentlog

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var launch = time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)

func later() time.Time { return launch.Add(time.Minute) }

// fakeProcs is a process tree that a test makes up.
type fakeProcs struct {
	parents map[int]int
	starts  map[int]string
	open    map[int][]string
	running []int
	blind   bool
}

func (p *fakeProcs) Running(string, string) ([]int, error) {
	if p.blind {
		return nil, ErrNoOpenFiles
	}
	return p.running, nil
}

func (p *fakeProcs) Parent(pid int) (int, string, bool) {
	parent, ok := p.parents[pid]
	return parent, p.starts[pid], ok
}

func (p *fakeProcs) Family(pid int) []int {
	family := []int{pid}
	for i := 0; i < len(family); i++ {
		for child, parent := range p.parents {
			if parent == family[i] {
				family = append(family, child)
			}
		}
	}
	return family
}

func (p *fakeProcs) OpenFiles(pid int) ([]string, error) {
	if p.blind {
		return nil, ErrNoOpenFiles
	}
	return p.open[pid], nil
}

// bench steps through a finder by hand: no goroutine, no waiting.
type bench struct {
	t     *testing.T
	find  finder
	tail  *tailer
	items []Item
}

func newBench(t *testing.T, s Spec) *bench {
	t.Helper()
	find, err := finderFor(s)
	if err != nil {
		t.Fatal(err)
	}
	if s.Started.IsZero() {
		s.Started = launch
	}
	if s.Now == nil {
		s.Now = later
	}
	b := &bench{t: t, find: find}
	b.tail = &tailer{spec: s, files: map[string]*file{}, emit: func(i Item) { b.items = append(b.items, i) }}
	t.Cleanup(b.tail.close)
	find.begin(b.tail)
	return b
}

// step looks once and returns what came, lines and statuses as words.
func (b *bench) step() string {
	b.t.Helper()
	b.items = nil
	b.find.look(b.tail)
	b.tail.read()
	return words(b.items)
}

// expect steps and compares.
func (b *bench) expect(want string) {
	b.t.Helper()
	if got := b.step(); got != want {
		b.t.Errorf("got %q, want %q", got, want)
	}
}

func words(items []Item) string {
	var w []string
	for _, i := range items {
		switch {
		case i.Status != "":
			w = append(w, "<"+i.Status+">")
		case i.Skipped > 0:
			w = append(w, "<skipped>")
		default:
			w = append(w, string(i.Line))
		}
	}
	return strings.Join(w, " ")
}

// write makes a file with its directories, or adds to it.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// set replaces a file's content in place, as Claude does its status file.
func set(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// waiting is a context that says when Tail waits for the first time: what is
// written from then on is new.
type waiting struct {
	context.Context
	once sync.Once
	ch   chan struct{}
}

func (w *waiting) Done() <-chan struct{} {
	w.once.Do(func() { close(w.ch) })
	return w.Context.Done()
}

// running is a Tail in a goroutine.
type running struct {
	t     *testing.T
	items chan Item
	tick  chan time.Time // a poll each, when polling
	stop  context.CancelFunc
	done  chan error
}

// run starts Tail and returns when it waits.
func run(t *testing.T, s Spec) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	w := &waiting{Context: ctx, ch: make(chan struct{})}
	r := &running{t: t, items: make(chan Item, 1000), tick: make(chan time.Time), stop: stop, done: make(chan error, 1)}
	s.Every = func(time.Duration) (<-chan time.Time, func()) {
		if !s.Poll {
			return nil, func() {} // events alone must do
		}
		return r.tick, func() {}
	}
	if s.Started.IsZero() {
		s.Started = launch
	}
	go func() { r.done <- Tail(w, s, func(i Item) { r.items <- i }) }()
	t.Cleanup(func() {
		stop()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-w.ch:
	case <-time.After(20 * time.Second):
		t.Fatal("Tail does not wait")
	}
	return r
}

// expect waits for one item. When polling it makes the polls.
func (r *running) expect(want string) {
	r.t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case i := <-r.items:
			if got := words([]Item{i}); got != want {
				r.t.Fatalf("got %q, want %q", got, want)
			}
			return
		case r.tick <- time.Time{}:
		case <-timeout:
			r.t.Fatalf("no %q", want)
		}
	}
}
