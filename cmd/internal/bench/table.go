package main

import (
	"fmt"
	"io"
	"slices"
)

// figure is one thing that is measured.
type figure struct {
	name   string
	most   float64 // qshim's target: of the ratio to the bare loop, or of the value; 0 none
	ofBare bool    // the target is a ratio
}

// The figures, with the targets of the project.
var (
	figStart    = &figure{name: "start and exit, ms", most: 1.5, ofBare: true}
	figStartCPU = &figure{name: "start and exit, CPU ms"}
	figEcho50   = &figure{name: "key echo p50, µs", most: 1.15, ofBare: true}
	figEcho90   = &figure{name: "key echo p90, µs"}
	figLines    = &figure{name: "lines, CPU ms", most: 1.25, ofBare: true}
	figFrames   = &figure{name: "TUI frames, CPU ms", most: 1.25, ofBare: true}
	figIdle     = &figure{name: "context switches a second, idle", most: 0.5}
	figSpin     = &figure{name: "context switches a second, 80 ms spinner", most: 1.1, ofBare: true}
	figIdleRSS  = &figure{name: "RSS of all processes idle, MiB", most: 12}
	figFloodRSS = &figure{name: "RSS of all processes after a flood, MiB", most: 12}
	figures     = []*figure{figStart, figStartCPU, figEcho50, figEcho90, figLines, figFrames, figIdle, figSpin, figIdleRSS, figFloodRSS}
)

// table collects samples. A sample that is missing keeps its place, so that
// ratios are those of one round.
type table struct {
	names  []string
	rounds int
	got    map[string]map[*figure]map[int]float64 // wrapper, figure, round
	failed []string
}

func newTable(all []wrapper) *table {
	t := &table{got: map[string]map[*figure]map[int]float64{}}
	for _, w := range all {
		t.names = append(t.names, w.name)
		t.got[w.name] = map[*figure]map[int]float64{}
	}
	return t
}

func (t *table) add(name string, s sample) {
	for f, v := range s {
		if t.got[name][f] == nil {
			t.got[name][f] = map[int]float64{}
		}
		t.got[name][f][t.rounds] = v
	}
}

func (t *table) fail(name string, err error) {
	t.failed = append(t.failed, fmt.Sprintf("round %d, %s: %v", t.rounds, name, err))
}

// ratios are those to the bare loop, of the rounds that have both.
func (t *table) ratios(name string, f *figure) (out []float64) {
	for round, v := range t.got[name][f] {
		if base := t.got[bareName][f][round]; base > 0 {
			out = append(out, v/base)
		}
	}
	return out
}

func (t *table) values(name string, f *figure) (out []float64) {
	for _, v := range t.got[name][f] {
		out = append(out, v)
	}
	return out
}

func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "%d rounds, terminal %dx%d; median [min-max]; ratios to the %s, within a round\n", t.rounds, cols, rows, bareName)
	for _, f := range figures {
		if !slices.ContainsFunc(t.names, func(name string) bool { return len(t.got[name][f]) > 0 }) {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", f.name)
		for _, name := range t.names {
			v := t.values(name, f)
			if len(v) == 0 {
				continue
			}
			fmt.Fprintf(w, "  %-10s %26s", name, spread(v))
			if r := t.ratios(name, f); len(r) > 0 {
				fmt.Fprintf(w, "  x %s", spread(r))
			}
			if name == "qshim" {
				fmt.Fprint(w, f.verdict(v, t.ratios(name, f)))
			}
			fmt.Fprintln(w)
		}
	}
	for _, line := range t.failed {
		fmt.Fprintln(w, "failed:", line)
	}
}

// verdict says whether the target was met.
func (f *figure) verdict(values, ratios []float64) string {
	if f.most == 0 {
		return ""
	}
	of, unit := values, ""
	if f.ofBare {
		of, unit = ratios, "x "
	}
	if len(of) == 0 {
		return ""
	}
	word := "missed"
	if quantile(of, 0.5) <= f.most {
		word = "met"
	}
	return fmt.Sprintf("  (at most %s%g: %s)", unit, f.most, word)
}

// spread is the median of some values, their least and their most.
func spread(v []float64) string {
	return fmt.Sprintf("%s [%s-%s]", short(quantile(v, 0.5)), short(slices.Min(v)), short(slices.Max(v)))
}

// short is three digits of a number.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// quantile is linear between ranks; v is not changed and not empty.
func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	x := q * float64(len(s)-1)
	i := int(x)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (x-float64(i))*(s[i+1]-s[i])
}
