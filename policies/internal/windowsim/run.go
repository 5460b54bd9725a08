package windowsim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"qshim/lockfile"
	"qshim/policies"
)

// World is one situation. Start from Default.
type World struct {
	N    int
	Kind Kind
	Half bool    // every second agent is headless
	Work float64 // in windows; with Size it follows
	Size float64 // tokens a window; 0: by Work

	Length time.Duration // of the window
	Starts float64       // at once; one more each Refill
	Refill time.Duration
	Cache  time.Duration // how long a prompt cache lives
	Stream time.Duration // how long a stopped stream lives
	News   time.Duration // a limit is known to the siblings within
	Apart  time.Duration // launches come so far apart: the reference model's policies all gate them so
	Calls  int           // of a task, ± 25 %
	First  float64       // tokens of its first call …
	Last   float64       // … and of its last

	Priority  lockfile.Priority
	Resume    bool // qshim does a failed task again
	Contexts  bool // the agents' logs tell context sizes and tokens
	Shares    bool // and the used share after each answer
	Exact     bool // resets are known to the second
	HideReset bool // nobody states the reset
	Hour      int  // of the day when it begins, for the people
}

// Default is the world of the reference model: 16 background sessions of an
// agent that tells what it uses, work of 2.5 windows.
func Default() World {
	return World{
		N: 16, Kind: Codex, Work: 2.5, Length: 5 * time.Hour, Starts: 4, Refill: 8 * time.Second, Cache: 5 * time.Minute,
		Stream: 5 * time.Minute, News: 400 * time.Millisecond, Apart: 8 * time.Second, Calls: 240, First: 15e3, Last: 150e3,
		Priority: lockfile.Background, Resume: true, Contexts: true, Shares: true, Exact: true, Hour: 9,
	}
}

// Outcome is what became of one seed.
type Outcome struct {
	Finished    bool
	Left        int           // agents not done
	Took, Bound time.Duration // until the last was done; no policy can be faster
	Broken      int           // turns
	Hands       int           // continued by a person
	Alone       int           // continued by the client itself
	Resumed     int           // by qshim
	Refused     int           // by the window
	Throttled   int           // by the burst throttle
	Resent      int           // streams paid twice
	Windows     int
	Wasted      float64 // cold contexts, in windows
	Peak        int     // most starts within 10 s, the launches at the beginning apart
	Writes      int     // of limiters' files
	Size        float64 // tokens a window
	LearntSize  float64 // what the policy learned of it
}

type sim struct {
	clock
	world   World
	account account
	rng     *rand.Rand
	agents  []*agent
	shims   []shim
	policy  policies.Policy
	ledger  lockfile.Ledger

	finished, brokenTurns, byItself, resumes, resent, hands, writes int
	wasted                                                          float64
	last                                                            time.Time
	began                                                           []time.Time
	visit                                                           *plan
}

func (s *sim) shim(n int) shim { return s.shims[n] }

func (s *sim) some(d time.Duration) time.Duration { return time.Duration(s.rng.Float64() * float64(d)) }

// begun is the first instant of every run.
var begun = time.Date(2026, 11, 29, 0, 0, 13, 0, time.UTC)

// horizon is when a run is given up.
const horizon = 40 * 24 * time.Hour

// Run plays a world once: with p, or with nobody in between when p is nil.
func Run(w World, p *policies.Policy, seed uint64) Outcome {
	s := &sim{world: w, rng: rand.New(rand.NewPCG(seed, 1)), ledger: lockfile.Ledger{
		Limiters: map[string]lockfile.Limiter{}, Sessions: map[string]lockfile.Session{}}}
	start := begun.Add(time.Duration(w.Hour)*time.Hour + s.some(time.Minute))
	s.now, s.last = start, start
	work := rand.New(rand.NewPCG(seed, 2))
	var all, biggest float64
	var longest time.Duration
	for n := range w.N {
		a := &agent{sim: s, n: n, kind: w.Kind, calls: task(work, w), answered: start.Add(-24 * time.Hour)}
		if w.Half && n%2 == 1 {
			a.kind = Headless
		}
		s.agents = append(s.agents, a)
		tokens, most, alone := a.calls[0].warm(), 0.0, time.Duration(0)
		for i, c := range a.calls {
			if i > 0 {
				tokens += c.warm()
			}
			most, alone = max(most, c.warm()), alone+c.local+c.answer
		}
		all, biggest, longest = all+tokens, max(biggest, most), max(longest, alone)
		if p == nil {
			s.shims = append(s.shims, nobody{a})
		} else {
			s.shims = append(s.shims, &governed{sim: s, a: a, id: name(n)})
		}
	}
	if w.Size == 0 {
		w.Size = all / w.Work
	}
	if p != nil {
		s.policy = *p
	}
	s.account = account{size: w.Size, length: w.Length, starts: w.Starts, level: w.Starts, refill: w.Refill, levelAt: start}
	for n := range w.N {
		s.after(time.Duration((float64(n)+work.Float64()/4)*float64(w.Apart)), s.shims[n].want)
	}
	o := Outcome{Bound: bound(w, all, biggest, longest), Size: w.Size}
	o.Finished = s.run(start.Add(horizon), func() bool { return s.finished == w.N })
	s.sum(&o, start)
	return o
}

func (c call) warm() float64 { return c.fresh + c.output }

// bound: every window but the last is used whole from its first second, nothing
// is ever cold, or the longest task alone. It knows the future: about 1.5 times
// it is the best that the reference model has seen.
func bound(w World, all, biggest float64, longest time.Duration) time.Duration {
	whole := max(0, math.Ceil(all/(w.Size+biggest))-1)
	return max(longest, time.Duration(whole*float64(w.Length)))
}

func (s *sim) sum(o *Outcome, start time.Time) {
	o.Left, o.Took = s.world.N-s.finished, s.last.Sub(start)
	if !o.Finished {
		o.Took = horizon
	}
	o.Broken, o.Alone, o.Resumed, o.Resent, o.Hands, o.Writes = s.brokenTurns, s.byItself, s.resumes, s.resent, s.hands, s.writes
	o.Refused, o.Throttled, o.Windows = s.account.refused, s.account.throttled, s.account.windows
	o.Wasted = s.wasted / o.Size
	if sh := s.ledger.Limiters[accountID].Share; sh != nil {
		o.LearntSize = float64(sh.Size)
	}
	slices.SortFunc(s.began, time.Time.Compare)
	for i, t := range s.began {
		if t.Before(start.Add(30 * time.Minute)) {
			continue
		}
		j := i
		for j < len(s.began) && s.began[j].Sub(t) <= 10*time.Second {
			j++
		}
		o.Peak = max(o.Peak, j-i)
	}
}

// call asks a person to continue an agent: one comes 5-15 minutes after the
// reset, at night in the morning, and continues all who wait, 3-8 s apart.
func (s *sim) call(a *agent, from time.Time) {
	a.hand = true
	if from.Before(s.now) {
		from = s.now
	}
	if s.visit != nil && !s.visit.gone && !s.visit.at.Before(from) {
		return
	}
	t := from.Add(5*time.Minute + s.some(10*time.Minute))
	if h := t.Hour(); h >= 23 || h < 7 {
		morning := time.Date(t.Year(), t.Month(), t.Day(), 7, 0, 0, 0, time.UTC)
		if h >= 23 {
			morning = morning.AddDate(0, 0, 1)
		}
		t = morning.Add(5*time.Minute + s.some(10*time.Minute))
	}
	s.visit = s.at(t, func() {
		d := time.Duration(0)
		for _, b := range s.agents {
			if b.state != broken || !b.hand {
				continue
			}
			s.after(d, func() {
				if b.state == broken && b.hand {
					s.hands++
					b.alone = 0
					b.resume()
					s.shim(b.n).began()
				}
			})
			d += 3*time.Second + s.some(5*time.Second)
		}
	})
}
