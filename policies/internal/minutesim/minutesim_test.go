package minutesim

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"qshim/policies/config"
)

var (
	seeds  = flag.Int("seeds", 1, "runs of each situation; medians are shown")
	all    = flag.Bool("all", false, "score also none, pause all and the oracle")
	others = flag.Bool("worlds", false, "score also the other worlds")
)

// The score that the policy has to keep. Over the 31 seeds of the table.
const (
	mostRatio, mostWorst, mostPersons = 1.08, 1.30, 1.0
)

func describe(w World) string {
	word := func(b bool, yes, no string) string {
		if b {
			return yes
		}
		return no
	}
	return fmt.Sprintf("%-5s tier, %2d agents, %-8s retries %s", w.Tier.Name, w.N, word(w.Cache, "cached,", "uncached,"), word(w.Hidden, "hidden", "shown"))
}

func (s Score) String() string {
	return fmt.Sprintf("ratio %.3f  worst %.2f  persons/agent %.2f  429s/agent %.1f", s.Ratio, s.Worst, s.Persons, s.Refused)
}

// TestScore prints the table, and fails where the policy is worse than it was.
// The short form plays a sample of the situations.
func TestScore(t *testing.T) {
	situations, slack := Situations(), 0.0
	if *seeds < 5 {
		situations = []World{situations[0], situations[2], situations[4], situations[7], situations[8], situations[10], situations[12]}
		slack = 0.1 // few seeds: the median of 31 is what counts
	}
	ways := Ways(config.Defaults().Policy)
	for _, way := range ways {
		if way.Name != "qshim" && !*all {
			continue
		}
		sc := Measure(way, situations, *seeds)
		t.Logf("%-9s %s", way.Name, sc)
		for i, w := range situations {
			c := sc.Cells[i]
			t.Logf("   %s  %6.3f  429s %5.0f  persons %4.0f  flow %4.0f min", describe(w), c.Ratio, c.Refused, c.Persons, c.Flow)
		}
		if way.Name == "qshim" && (sc.Ratio > mostRatio+slack || sc.Worst > mostWorst+5*slack || *seeds >= 5 && sc.Persons > mostPersons) {
			t.Errorf("worse than %.2f, worst %.2f, %.0f persons/agent", mostRatio, mostWorst, mostPersons)
		}
	}
}

// Worlds are the others: what changes in each of the 16 situations.
var worlds = []struct {
	name string
	edit func(*World)
}{
	{"bucket holds 10 s only", func(w *World) { w.Burst = 1.0 / 6 }},
	{"strict admission", func(w *World) { w.Strict = true }},
	{"refusals are free", func(w *World) { w.FreeRefusals = true }},
	{"message tells no time", func(w *World) { w.NoTime = true }},
	{"streams break after 60 s", func(w *World) { w.StreamLife = time.Minute }},
	{"news takes 5 s", func(w *World) { w.Lag = 5 * time.Second }},
	{"cache lives 1 h", func(w *World) { w.CacheLife = time.Hour }},
	{"client tries 3 times", func(w *World) { w.Tries = 3 }},
	{"profiles' own signs seen", func(w *World) { w.Signs = true }},
	{"who presses on types", func(w *World) { w.Typed = true }},
	{"every second one background", func(w *World) { w.Background = true }},
	{"none has a terminal", func(w *World) { w.Headless = true }},
}

func TestOtherWorlds(t *testing.T) {
	if !*others {
		t.Skip("with -worlds")
	}
	for _, x := range worlds {
		t.Run(x.name, func(t *testing.T) {
			situations := Situations()
			for i := range situations {
				x.edit(&situations[i])
			}
			for _, way := range Ways(config.Defaults().Policy) {
				if way.Name == "qshim" || *all {
					t.Logf("%-9s %s", way.Name, Measure(way, situations, *seeds))
				}
			}
		})
	}
}

func TestSameSeedSameRun(t *testing.T) {
	p := config.Defaults().Policy
	w := Base(8, Small, true, false)
	if a, b := Play(p, w, 1), Play(p, w, 1); a != b {
		t.Fatalf("%+v\n%+v", a, b)
	}
}

// No way beats the bound, the oracle is never refused, and where nothing limits
// nothing is lost.
func TestWaysKeepToTheModel(t *testing.T) {
	for _, way := range Ways(config.Defaults().Policy) {
		w := Base(8, Small, true, false)
		o := way.Play(w, 1)
		if !o.Finished || o.Span < o.Bound-spread {
			t.Errorf("%s: %+v", way.Name, o)
		}
		if way.Name == "oracle" && o.Refused > 0 {
			t.Errorf("the oracle was refused %d times", o.Refused)
		}
		w.Tier = Tier{"none", 1e9, 1e12, 1e12}
		if o := way.Play(w, 1); o.Refused+o.Persons != 0 || o.Ratio() > 1.02 {
			t.Errorf("%s, no limit: %+v", way.Name, o)
		}
	}
}

// A refusal counts against the requests: who knocks faster than they come back
// gets nothing.
func TestRefusalsCount(t *testing.T) {
	w := Base(1, Tier{"", 60, 1e9, 1e9}, false, false)
	p := newProvider(&w)
	p.requests.level = 0
	for x := 500 * time.Millisecond; x < 100*time.Second; x += 500 * time.Millisecond {
		if ok, _ := p.ask(x, 1, 1); ok {
			t.Fatal("served at", x)
		}
	}
	if ok, _ := p.ask(102*time.Second, 1, 1); !ok {
		t.Fatal("refused after a quiet while")
	}
}

// SIGSTOP freezes local work; an answer goes on and is read at SIGCONT.
func TestStopAndContinue(t *testing.T) {
	w := Base(1, Big, false, false)
	r := newRun(w, 1)
	r.gov = none{}
	a := r.agents[0]
	a.task = []call{{local: 10 * time.Second, latency: 10 * time.Second, context: 1, fresh: 1, reply: 1}}
	for at, do := range map[int]func(){0: a.launch, 5: a.stop, 25: a.cont, 35: a.stop, 50: a.cont} {
		r.at(time.Duration(at)*time.Second, do)
	}
	r.run(time.Hour, func() bool { return r.left == 0 })
	if a.ended != 50*time.Second {
		t.Fatal(a.ended)
	}
}

// BenchmarkScore reports the score of a sample, and fails where it regresses.
func BenchmarkScore(b *testing.B) {
	p := config.Defaults().Policy
	way := Way{"qshim", func(w World, seed uint64) Outcome { return Play(p, w, seed) }}
	sample := []World{Base(16, Small, true, false), Base(16, Big, false, false), Base(16, Small, true, true)}
	var sc Score
	for b.Loop() {
		sc = Measure(way, sample, 5)
	}
	b.ReportMetric(sc.Ratio, "ratio")
	b.ReportMetric(sc.Worst, "worst")
	b.ReportMetric(sc.Persons, "persons/agent")
	if sc.Ratio > 1.25 || sc.Worst > 1.40 || strings.Contains(sc.String(), "NaN") {
		b.Fatal("the score has regressed: ", sc)
	}
}

// shortRuns are workers that call an agent without a terminal again and again,
// in the sizes that the real ones are run in (cmd/internal/realagents) and up.
func shortRuns() map[string]World {
	base := Base(8, Tier{"fleet", 1000, 8e3, 1e9}, false, false)
	base.Burst, base.Strict, base.Runs, base.Calls, base.Prompt, base.NoTime = 0.25, true, 3, 1, true, true
	many := base
	many.N, many.Runs, many.Tier.Input = 12, 4, 16e3
	told := many
	told.NoTime = false
	untold := many
	untold.Untold = true
	three := many
	three.Calls, three.Tier.Input = 3, 40e3
	long := base
	long.N, long.Runs, long.Burst = 16, 6, 1
	debts := long
	debts.Strict = false
	few := base
	few.N, few.Runs, few.Tier.Input = 4, 4, 6e3
	fewTold, fewUntold := few, few
	fewTold.NoTime, fewUntold.Untold = false, true
	requests := base
	requests.Tier, requests.FreeRefusals = Tier{"requests", 12, 1e9, 1e9}, true
	return map[string]World{
		"8 x 3 runs of one call": base, "12 x 4 runs of one call": many, "12 x 4, the time is told": told, "12 x 4, no cause is told": untold, "12 x 4 runs of three calls": three,
		"16 x 6, a minute's bucket": long, "16 x 6, debts allowed": debts, "8 x 3, requests are short": requests,
		"4 x 4 runs of one call": few, "4 x 4, the time is told": fewTold, "4 x 4, no cause is told": fewUntold,
	}
}

// Of short runs ten times fewer are refused with qshim than without, none
// fails, and they take no longer. Seven times where so few come that the first
// burst, which nobody could know of, is half of what is refused at all.
func TestShortRuns(t *testing.T) {
	ways := Ways(config.Defaults().Policy)
	for name, w := range shortRuns() {
		cell := func(way string) Cell {
			i := slices.IndexFunc(ways, func(x Way) bool { return x.Name == way })
			c := Measure(ways[i], []World{w}, max(*seeds, 5)).Cells[0]
			t.Logf("%-28s %-7s %6.3f  429s %5.1f  persons %4.1f", name, way, c.Ratio, c.Refused, c.Persons)
			return c
		}
		with, without := cell("qshim"), cell("none")
		least := 10.0
		if w.N*w.Runs < 20 {
			least = 7
		}
		if least*with.Refused > without.Refused || with.Persons > 0 || with.Ratio > without.Ratio {
			t.Errorf("%s: %+v with, %+v without", name, with, without)
		}
	}
}
