package minutesim

import (
	"math"
	"runtime"
	"slices"
	"sync"

	"qshim/policies"
)

// Way is a way to share a limit, by name.
type Way struct {
	Name string
	Play func(w World, seed uint64) Outcome
}

// Ways lists the project's policy and what it is measured beside.
func Ways(p policies.Policy) []Way {
	return []Way{
		{"none", func(w World, seed uint64) Outcome { r := newRun(w, seed); r.gov = none{}; return r.play() }},
		{"pause all", func(w World, seed uint64) Outcome { r := newRun(w, seed); r.gov = &pauseAll{r: r}; return r.play() }},
		{"qshim", func(w World, seed uint64) Outcome { return Play(p, w, seed) }},
		{"oracle", func(w World, seed uint64) Outcome {
			r := newRun(w, seed)
			r.gov, r.oracle = none{}, &oracle{r: r}
			return r.play()
		}},
	}
}

// Play runs a world under the project's policy.
func Play(p policies.Policy, w World, seed uint64) Outcome {
	r := newRun(w, seed)
	f := newFleet(r, p)
	r.gov = f
	o := r.play()
	o.Looks, o.Busiest = f.looks, f.busiest
	return o
}

// Situations are the 16 that the policy is scored on: full limits and one that
// is not, for clients that show their retries and for those that hide them.
func Situations() (out []World) {
	for _, hidden := range []bool{false, true} {
		out = append(out,
			Base(16, Small, true, hidden), Base(64, Small, true, hidden), Base(4, Small, false, hidden), Base(16, Small, false, hidden),
			Base(16, Big, false, hidden), Base(64, Big, false, hidden), Base(64, Big, true, hidden), Base(16, Big, true, hidden))
	}
	return out
}

// Cell holds the medians of one situation over its seeds.
type Cell struct{ Ratio, Refused, Persons, Flow, FlowBack float64 }

// Score is the cost over situations: the geometric mean and the worst of the
// ratio, persons and 429s per agent.
type Score struct {
	Cells                          []Cell
	Ratio, Worst, Persons, Refused float64
}

// Measure plays every situation with seeds 1 to n.
func Measure(way Way, worlds []World, seeds int) Score {
	outs := make([][]Outcome, len(worlds))
	var wg sync.WaitGroup
	gate := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range worlds {
		outs[i] = make([]Outcome, seeds)
		for s := range seeds {
			wg.Go(func() {
				gate <- struct{}{}
				outs[i][s] = way.Play(worlds[i], uint64(s+1))
				<-gate
			})
		}
	}
	wg.Wait()
	var sc Score
	logs := 0.0
	for i, os := range outs {
		c := Cell{
			Ratio: median(os, Outcome.Ratio), Refused: median(os, func(o Outcome) float64 { return float64(o.Refused) }),
			Persons: median(os, func(o Outcome) float64 { return float64(o.Persons) }),
			Flow:    median(os, func(o Outcome) float64 { return o.Flow.Minutes() }), FlowBack: median(os, func(o Outcome) float64 { return o.FlowBack.Minutes() }),
		}
		for _, o := range os {
			if !o.Finished {
				c.Ratio = math.Inf(1)
			}
		}
		n := float64(worlds[i].N)
		sc.Cells = append(sc.Cells, c)
		logs += math.Log(c.Ratio)
		sc.Worst = math.Max(sc.Worst, c.Ratio)
		sc.Persons += c.Persons / n / float64(len(outs))
		sc.Refused += c.Refused / n / float64(len(outs))
	}
	sc.Ratio = math.Exp(logs / float64(len(outs)))
	return sc
}

func median(os []Outcome, f func(Outcome) float64) float64 {
	var v []float64
	for _, o := range os {
		v = append(v, f(o))
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
