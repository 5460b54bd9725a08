package shim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
	"qshim/policies/config"
)

const (
	testLimiter = "anthropic/0123456789ab"
	me          = "me"
	sibling     = "sibling"
)

// journal keeps what store, hands and face did, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(f string, a ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(f, a...))
}

// take returns what was done since the last take.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.lines
	j.lines = nil
	return out
}

// memStore is a ledger in memory that fails when told to.
type memStore struct {
	lockfile.Store // what a governor does not use
	j              *journal
	mu             sync.Mutex
	l              lockfile.Ledger
	events         []lockfile.Event
	updates        int
	failRead       error
	failUpdate     error
	failAppend     error
	hint           chan struct{}
}

func (m *memStore) UpdateOwn(ctx context.Context, fn func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) (lockfile.Ledger, error) {
	return m.Update(ctx, fn)
}

// Recover lets what dead sessions left go on, and forgets them.
func (m *memStore) Recover(func(lockfile.Stopped) error) ([]lockfile.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, s := range m.l.Sessions {
		if !s.Alive {
			delete(m.l.Sessions, id)
			m.j.add("recover %s", id)
		}
	}
	return nil, nil
}

func (m *memStore) Watch(context.Context, func() bool) (<-chan struct{}, error) { return m.hint, nil }

func (m *memStore) Read() (lockfile.Ledger, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.l.Clone(), m.failRead
}

func (m *memStore) Record(id string, fn func(*lockfile.Session)) error {
	_, err := m.Update(context.Background(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		s := l.Sessions[id]
		fn(&s)
		l.Sessions[id] = s
		return l, nil
	})
	return err
}

func (m *memStore) Append(events ...lockfile.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failAppend == nil {
		m.events = append(m.events, events...)
	}
	return m.failAppend
}

func (m *memStore) Glance() (lockfile.Ledger, error) { return m.Read() }

func (m *memStore) Update(_ context.Context, fn func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) (lockfile.Ledger, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failUpdate != nil {
		return lockfile.Ledger{}, m.failUpdate
	}
	before := len(m.l.Sessions[me].Stopped)
	l, events := fn(m.l.Clone())
	m.l, m.events, m.updates = l, append(m.events, events...), m.updates+1
	switch after := len(l.Sessions[me].Stopped); {
	case before == 0 && after > 0:
		m.j.add("record")
	case before > 0 && after == 0:
		m.j.add("clear")
	}
	return l.Clone(), nil
}

func (m *memStore) fail(read, update error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failRead, m.failUpdate = read, update
}

func (m *memStore) session(id string) lockfile.Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.l.Sessions[id]
}

// count counts logged events of a kind.
func (m *memStore) count(kind string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if e.Event == kind {
			n++
		}
	}
	return n
}

type fakeHands struct {
	j       *journal
	held    bool
	refuse  error // of Suspend and Continue
	ordered int   // calls of Suspend that came through
}

func (h *fakeHands) Suspend(_ time.Duration, record func([]lockfile.Stopped) error) error {
	if h.refuse != nil {
		return h.refuse
	}
	if err := record([]lockfile.Stopped{{PID: 4711, Start: 1, Group: true}}); err != nil {
		return err
	}
	h.ordered++
	h.held = true
	h.j.add("STOP")
	return nil
}

func (h *fakeHands) Continue() error {
	if h.refuse != nil {
		return h.refuse
	}
	if h.held {
		h.held = false
		h.j.add("CONT")
	}
	return nil
}

func (h *fakeHands) Held() bool { return h.held }
func (h *fakeHands) Quit(sig syscall.Signal) {
	h.j.add("%s", map[syscall.Signal]string{syscall.SIGTERM: "quit", syscall.SIGHUP: "quit harder", syscall.SIGKILL: "kill"}[sig])
}

type fakeFace struct {
	j     *journal
	pause Pause
}

func (f *fakeFace) Pause(p Pause)   { f.pause = p }
func (f *fakeFace) Notify(n Notice) { f.j.add("notice %s", n.Kind) }
func (f *fakeFace) Warn(err error)  { f.j.add("warn %v", err) }

// govBench is a governor among fakes.
type govBench struct {
	*governor
	t     *testing.T
	j     *journal
	store *memStore
	hands *fakeHands
	face  *fakeFace
	ctx   context.Context
}

// newGovBench puts a busy session and a busy sibling on one limiter.
func newGovBench(t *testing.T) *govBench {
	j := &journal{}
	b := &govBench{t: t, j: j, store: &memStore{j: j, hint: make(chan struct{}, 1)}, hands: &fakeHands{j: j}, face: &fakeFace{j: j}, ctx: t.Context()}
	b.store.l = lockfile.Ledger{Limiters: map[string]lockfile.Limiter{}, Sessions: map[string]lockfile.Session{}}
	for i, id := range []string{me, sibling} {
		born := time.Now().Add(time.Duration(i-10) * time.Minute)
		b.store.l.Sessions[id] = lockfile.Session{
			ID: id, Agent: "claude", Limiters: []string{testLimiter}, Priority: lockfile.Interactive,
			State: lockfile.Running, Since: born, Born: born, TurnBegan: born, Alive: true,
		}
	}
	b.governor = &governor{
		store: b.store, policy: config.Defaults().Policy, self: me, now: time.Now, rand: func() float64 { return 0.5 },
		family: func(string) string { return "" }, hands: b.hands, face: b.face,
	}
	return b
}

// hit closes the limiter as if the sibling had met a limit.
func (b *govBench) hit(f finding.Finding) {
	b.t.Helper()
	f.Confidence, f.At, f.Rule = finding.Strong, time.Now(), "test"
	_, err := b.store.Update(b.ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		return b.policy.Finding(l, policies.Input{Now: time.Now(), Self: sibling}, f)
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func rateHit(after time.Duration) finding.Finding {
	return finding.Finding{Class: finding.Rate, Scope: finding.Account, Measure: finding.Requests, RetryAfter: after}
}

// edit changes the ledger as nobody in particular.
func (b *govBench) edit(fn func(l lockfile.Ledger)) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	fn(b.store.l)
}

// open ends every hold.
func (b *govBench) open() {
	b.edit(func(l lockfile.Ledger) { delete(l.Limiters, testLimiter) })
}

// pass lets time pass as the runner does: it decides whenever the governor
// asked to.
func (b *govBench) pass(d time.Duration) (wakes int) {
	end := time.Now().Add(d)
	for !b.wake.IsZero() && b.wake.Before(end) {
		time.Sleep(max(time.Until(b.wake), time.Millisecond))
		b.wake = time.Time{}
		b.again(b.ctx)
		if wakes++; wakes > 100000 {
			b.t.Fatal("the governor never rests")
		}
	}
	time.Sleep(time.Until(end))
	return wakes
}

// did checks what was done since the last look.
func (b *govBench) did(want ...string) {
	b.t.Helper()
	if got := b.j.take(); !slices.Equal(got, want) {
		b.t.Fatalf("did\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func bubble(t *testing.T, f func(t *testing.T, b *govBench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newGovBench(t)) })
}
