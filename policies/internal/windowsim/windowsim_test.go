package windowsim_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"qshim/lockfile"
	"qshim/policies"
	"qshim/policies/config"
	"qshim/policies/internal/windowsim"
)

// long asks for the whole table: QSHIM_WINDOWSIM=long go test -run Table -v
var long = os.Getenv("QSHIM_WINDOWSIM") == "long"

func policy() *policies.Policy {
	p := config.Defaults().Policy
	return &p
}

// mean of several seeds.
type mean struct {
	seeds                                                                 int
	hours, worst, bound, broken, hands, left, refused, throttled, wasted  float64
	resent, alone, resumed, peak, writes, learnt, windows, worstBroken, n float64
}

func play(w windowsim.World, p *policies.Policy, seeds int) (m mean) {
	m.seeds = seeds
	for seed := range seeds {
		o := windowsim.Run(w, p, uint64(seed+1))
		n := float64(seeds)
		m.hours += o.Took.Hours() / n
		m.worst = max(m.worst, o.Took.Hours())
		m.worstBroken = max(m.worstBroken, float64(o.Broken))
		m.bound += o.Bound.Hours() / n
		m.broken += float64(o.Broken) / n
		m.hands += float64(o.Hands) / n
		m.left += float64(o.Left) / n
		m.refused += float64(o.Refused) / n
		m.throttled += float64(o.Throttled) / n
		m.wasted += o.Wasted / n
		m.resent += float64(o.Resent) / n
		m.alone += float64(o.Alone) / n
		m.resumed += float64(o.Resumed) / n
		m.peak += float64(o.Peak) / n
		m.writes += float64(o.Writes) / n
		m.windows += float64(o.Windows) / n
		m.learnt += o.LearntSize / o.Size / n
	}
	return m
}

func (m mean) String() string {
	took := fmt.Sprintf("%6.1f h (worst %5.1f)", m.hours, m.worst)
	if m.left > 0 {
		took = fmt.Sprintf("never, %4.1f left     ", m.left)
	}
	return fmt.Sprintf("%s · bound %5.1f · broken %5.1f · by hand %4.1f · by itself %4.1f · resumed %5.1f · refused %5.1f · burst 429 %5.1f · resent %4.1f · wasted %5.2f windows · peak %4.1f · learned size %.2f · %5.0f writes",
		took, m.bound, m.broken, m.hands, m.alone, m.resumed, m.refused, m.throttled, m.resent, m.wasted, m.peak, m.learnt, m.writes)
}

// 16 background sessions with work of 2.5 windows: what issue 5 asks for.
func TestWakeFew(t *testing.T) {
	seeds := 5
	if long {
		seeds = 31
	}
	m := play(windowsim.Default(), policy(), seeds)
	t.Log(m)
	if m.hours > 17 || m.broken > 4 || m.hands > 0 || m.left > 0 {
		t.Errorf("want at most 17 h, 4 broken turns and none by hand: %v", m)
	}
}

// BenchmarkScore fails when the policy gets worse: the mean of three seeds may
// not be above what is written here, which is what was measured and a tenth.
func BenchmarkScore(b *testing.B) {
	for _, x := range []struct {
		name          string
		edit          func(*windowsim.World)
		hours, broken float64
	}{
		{"codex", func(*windowsim.World) {}, 17, 4.4},
		{"claude", func(w *windowsim.World) { w.Kind, w.Shares = windowsim.Claude, false }, 17, 4},
		{"half", func(w *windowsim.World) { w.Kind, w.Half, w.Shares = windowsim.Claude, true, false }, 17, 4},
		{"blind", func(w *windowsim.World) { w.Contexts, w.Shares = false, false }, 23, 6.2},
		{"hidden", func(w *windowsim.World) { w.HideReset = true }, 17, 6},
		{"small", func(w *windowsim.World) { w.N, w.Size = 8, 0.4e6 }, 45, 9},
	} {
		b.Run(x.name, func(b *testing.B) {
			w := windowsim.Default()
			x.edit(&w)
			for b.Loop() {
				m := play(w, policy(), 3)
				b.ReportMetric(m.hours, "h")
				b.ReportMetric(m.broken, "broken")
				if m.hours > x.hours || m.broken > x.broken || m.left > 0 || m.hands > 0 {
					b.Fatalf("worse than %v h and %v broken turns: %v", x.hours, x.broken, m)
				}
			}
		})
	}
}

// One seed is one outcome.
func TestSameSeed(t *testing.T) {
	w := windowsim.Default()
	w.N, w.Work = 6, 1.5
	a, b := windowsim.Run(w, policy(), 7), windowsim.Run(w, policy(), 7)
	if a != b {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// worlds are the rows of the table.
var worlds = []struct {
	name string
	edit func(*windowsim.World)
}{
	{"codex, background", func(*windowsim.World) {}},
	{"claude, background (tokens, no share)", func(w *windowsim.World) { w.Kind, w.Shares = windowsim.Claude, false }},
	{"half claude, half headless", func(w *windowsim.World) { w.Kind, w.Half, w.Shares = windowsim.Claude, true, false }},
	{"nothing known", func(w *windowsim.World) { w.Contexts, w.Shares = false, false }},
	{"share, no contexts", func(w *windowsim.World) { w.Contexts = false }},
	{"all launched within 5 s", func(w *windowsim.World) { w.Apart = 300 * time.Millisecond }},
	{"reset cut to the minute", func(w *windowsim.World) { w.Exact = false }},
	{"nobody states the reset", func(w *windowsim.World) { w.HideReset = true }},
	{"codex, interactive, resumed once", func(w *windowsim.World) { w.Priority = lockfile.Interactive }},
	{"claude, interactive, no resume", func(w *windowsim.World) {
		w.Kind, w.Shares, w.Priority, w.Resume = windowsim.Claude, false, lockfile.Interactive, false
	}},
}

// TestTable prints the scores beside nobody and the bound; it is for people.
func TestTable(t *testing.T) {
	if !long {
		t.Skip("QSHIM_WINDOWSIM=long prints the table")
	}
	for _, x := range worlds {
		for _, n := range []int{4, 16} {
			w := windowsim.Default()
			w.N = n
			x.edit(&w)
			t.Logf("%-38s N=%-2d nobody %v", x.name, n, play(w, nil, 5))
			t.Logf("%-38s N=%-2d qshim  %v", x.name, n, play(w, policy(), 5))
		}
	}
}

// U = 0.4 M: one cold session of 150k is 38 % of the window. Who wakes all
// never ends.
func TestSmallWindow(t *testing.T) {
	w := windowsim.Default()
	w.Size, w.N = 0.4e6, 8
	seeds := 1
	if long {
		w.N, seeds = 32, 5
	}
	p := policy()
	p.C.Suspend.Recheck = 2 * time.Minute // of 30 s: the model's own time
	m := play(w, p, seeds)
	t.Log(m)
	if m.left > 0 || m.hands > 0 {
		t.Errorf("does not end: %v", m)
	}
	if long {
		t.Log("nobody:", play(w, nil, 1))
	}
}
