package policies_test

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"go/build"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
)

// herd is a discrete-event simulation of sessions that work against a provider
// and learn of each other late, as through files and a busy machine: news takes
// up to lag. The provider refuses everything while shut.
type herd struct {
	*world
	rng    *rand.Rand
	queue  events
	lag    time.Duration
	shut   time.Time
	calls  map[string]*call // in progress
	asked  []request
	timer  map[string]int // a later look replaces the wake of an earlier one
	locked []time.Time
}

type call struct {
	stopped bool
}

type request struct {
	at      time.Time
	who     string
	refused bool
}

type event struct {
	at time.Time
	n  int
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

func newHerd(t *testing.T, n int, seed uint64) *herd {
	h := &herd{world: newWorld(t), rng: rand.New(rand.NewPCG(seed, 2)), lag: 300 * time.Millisecond, calls: map[string]*call{}, timer: map[string]int{}}
	h.rand = h.rng.Float64
	for i := range n {
		id := fmt.Sprintf("s%02d", i)
		h.add(lockfile.Session{ID: id, Agent: "claude", State: lockfile.Idle, Born: day.Add(time.Duration(i-n) * time.Minute)})
		h.act(id, policies.Activity{Busy: true, TurnBegan: true})
		h.after(h.some(3*time.Second), func() { h.ask(id) })
	}
	return h
}

func (h *herd) after(d time.Duration, do func()) {
	heap.Push(&h.queue, event{h.now.Add(d), h.steps + h.queue.Len(), do})
}

func (h *herd) some(most time.Duration) time.Duration {
	return time.Duration(h.rng.Float64() * float64(most))
}

func (h *herd) play(d time.Duration) {
	end := h.now.Add(d)
	for h.queue.Len() > 0 && !h.queue[0].at.After(end) {
		e := heap.Pop(&h.queue).(event)
		h.now = e.at
		e.do()
	}
	h.now = end
}

// news reaches every session within lag.
func (h *herd) news() {
	for id := range h.l.Sessions {
		h.after(h.some(h.lag), func() { h.look(id) })
	}
}

// look is a shim's loop: decide, step if it is worth the lock, act.
func (h *herd) look(id string) {
	d := h.p.Decide(h.l, id, h.now)
	if d.Claim {
		h.locked = append(h.locked, h.now)
		h.changing(func() { h.step(id) })
		if d = h.p.Decide(h.l, id, h.now); d.Claim {
			h.fail("%s claims again at once: %+v", id, d)
		}
	}
	c := h.calls[id]
	switch held := h.l.Sessions[id].State == lockfile.Suspended; {
	case held && c != nil:
		c.stopped = true
	case !held && c != nil && c.stopped:
		// SIGCONT: what was in flight is read, the elapsed timer fires at once.
		c.stopped = false
		h.after(h.some(300*time.Millisecond), func() { h.ask(id) })
	}
	if d.Wake.After(h.now) {
		h.timer[id]++
		mine := h.timer[id]
		h.after(d.Wake.Sub(h.now), func() {
			if h.timer[id] == mine {
				h.look(id)
			}
		})
	}
}

// changing does something to the ledger; only a changed limiter is news, as only
// the limiters' files are watched.
func (h *herd) changing(do func()) {
	before := h.l.Limiters
	do()
	if !reflect.DeepEqual(before, h.l.Limiters) {
		h.news()
	}
}

// ask sends a request; the answer comes a little later, and the next after some
// local work.
func (h *herd) ask(id string) {
	if c := h.calls[id]; c != nil && c.stopped || h.l.Sessions[id].State != lockfile.Running {
		return
	}
	r := request{h.now, id, h.now.Before(h.shut)}
	h.asked = append(h.asked, r)
	h.calls[id] = &call{}
	h.after(400*time.Millisecond+h.some(time.Second), func() {
		if h.calls[id].stopped {
			return
		}
		if r.refused {
			h.changing(func() {
				h.find(id, finding.Finding{Class: finding.Rate, RetryAfter: h.shut.Sub(r.at).Round(time.Second)})
				h.act(id, policies.Activity{TurnEnded: true, Idle: true})
			})
			return
		}
		h.changing(func() { h.act(id, policies.Activity{AnswerBegun: true}) })
		h.after(time.Second+h.some(4*time.Second), func() { h.ask(id) })
	})
}

// After one 429 with Retry-After 30 s the siblings stop, one goes first, the
// others follow one by one, the oldest first, and there is no stampede at the
// lock or at the provider.
func TestOneRefusalAndNoStampede(t *testing.T) {
	for _, n := range []int{4, 16, 64} {
		for seed := range uint64(max(1, 32/n)) {
			h := newHerd(t, n, seed)
			h.play(20 * time.Second)
			from := h.now
			h.shut = from.Add(30 * time.Second)
			h.asked, h.let, h.locked = nil, nil, nil
			h.play(30 * time.Second)
			refused := len(h.asked)
			// Those who ask before the news of the first refusal reaches them are
			// refused too; nobody after that.
			first := h.asked[0].at
			for _, r := range h.asked {
				if r.at.After(first.Add(1400*time.Millisecond + 2*h.lag)) {
					t.Errorf("n=%d seed=%d: %s asked %s after the first refusal", n, seed, r.who, r.at.Sub(first))
				}
			}
			h.asked = nil
			// One more each half minute: everybody is back when the last third is.
			h.play(40*time.Second + time.Duration(n)*12*time.Second)
			h.checkRelease(t, n, seed, refused)
		}
	}
}

func (h *herd) checkRelease(t *testing.T, n int, seed uint64, refused int) {
	t.Helper()
	who := fmt.Sprintf("n=%d seed=%d", n, seed)
	if !slices.IsSorted(h.let) {
		t.Errorf("%s: not the oldest first: %v", who, h.let)
	}
	for id, s := range h.l.Sessions {
		if s.State == lockfile.Suspended {
			t.Errorf("%s: %s is still suspended", who, id)
		}
	}
	// The limiter is opened once, the probe goes alone.
	var begun []time.Time
	seen := map[string]bool{}
	for _, r := range h.asked {
		if r.refused {
			t.Errorf("%s: refused again", who)
		}
		if !seen[r.who] {
			seen[r.who] = true
			begun = append(begun, r.at)
		}
	}
	if len(begun)+refused < n {
		t.Errorf("%s: %d came back and %d were refused", who, len(begun), refused)
	}
	for i := 1; i < len(begun); i++ {
		least := 200 * time.Millisecond // a gap of 0.5 s at least, less what SIGCONT takes
		if i == 1 {
			least = 7 * time.Second
		}
		if gap := begun[i].Sub(begun[i-1]); gap < least {
			t.Errorf("%s: %d follows after %s", who, i, gap)
		}
	}
	// Each stops once and is let go once: the lock is not taken by everybody at
	// every turn.
	if most := 6*n + 10; len(h.locked) > most {
		t.Errorf("%s: %d times at the lock", who, len(h.locked))
	}
	for i, at := range h.locked {
		j := i
		for j < len(h.locked) && h.locked[j].Sub(at) < 100*time.Millisecond {
			j++
		}
		if at.After(h.shut) && j-i > 8 {
			t.Errorf("%s: %d at the lock within 100 ms", who, j-i)
		}
	}
}

// The policy is pure: it imports nothing that reaches outside.
func TestImports(t *testing.T) {
	pkg, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"cmp", "embed", "maps", "math", "slices", "strings", "time", "unicode/utf8", "qshim/detect/finding", "qshim/lockfile"}
	for _, path := range pkg.Imports {
		if !slices.Contains(allowed, path) {
			t.Errorf("imports %s", path)
		}
	}
}

// A limiter's file is read by every sibling at each change.
func TestLimiterStaysSmall(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.add(lockfile.Session{ID: fmt.Sprintf("0123456789ab%d", i), State: lockfile.Running, Born: day})
	}
	row := "  ⎿  You've hit your 5-hour limit · resets 6:45pm (UTC)"
	w.find("0123456789ab0", finding.Finding{Class: finding.Window, Measure: finding.Usage, Scope: finding.Account, Reset: w.now.Add(time.Hour),
		ResetSource: finding.Epoch, Rule: "claude.usage-limit", Rows: []string{row}})
	size := func() int {
		data, err := json.Marshal(w.l.Limiters[acct])
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	if n := size(); n > 600 {
		t.Errorf("with one hold: %d bytes", n)
	}
	w.find("0123456789ab1", finding.Finding{Class: finding.Rate, RetryAfter: 30 * time.Second, Scope: finding.Account, Rows: []string{row}})
	w.run(31 * time.Second)
	if n := size(); n > 1100 {
		t.Errorf("with two holds: %d bytes", n)
	}
}

// Every change of a limiter makes every sibling decide.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{4, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(b)
			for i := range n {
				id := fmt.Sprintf("s%03d", i)
				w.add(lockfile.Session{ID: id, State: lockfile.Running, Born: day})
			}
			w.find("s000", finding.Finding{Class: finding.Rate, RetryAfter: 30 * time.Second})
			w.settle()
			for name, at := range map[string]time.Time{"held": w.now.Add(time.Second), "due": w.now.Add(40 * time.Second)} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						w.p.Decide(w.l, "s001", at)
					}
				})
			}
		})
	}
}
