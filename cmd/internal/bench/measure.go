package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// settled is after what a wrapper still does for its start: qshim gives memory
// back after a second.
const settled = 1500 * time.Millisecond

// measure runs everything in rounds until the harness's context ends. What fails
// is told in the table; the rest goes on.
func measure(h *harness, all []wrapper, o options) *table {
	t := newTable(all)
	runs := []func(*harness, wrapper, options) (sample, error){starts, keys, lines, frames, resources}
	for range o.rounds {
		if h.ctx.Err() != nil {
			break
		}
		t.rounds++
		for _, run := range runs {
			for j := range all {
				w := all[(j+t.rounds)%len(all)] // nobody is always the first
				s, err := run(h, w, o)
				if h.ctx.Err() != nil {
					return t // what was being measured is cut off
				}
				if err != nil {
					t.fail(w.name, err)
				}
				t.add(w.name, s)
			}
		}
	}
	return t
}

// sample is what one run showed, by figure.
type sample map[*figure]float64

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// startsEach is how many starts make one sample, their middle.
const startsEach = 15

func starts(h *harness, w wrapper, _ options) (sample, error) {
	var took, cpu []float64
	for range startsEach {
		before := childCPU()
		r, err := h.start(w, "/bin/true")
		if err != nil {
			return nil, err
		}
		_, d, err := r.toEnd()
		r.end()
		if err != nil {
			return nil, err
		}
		took, cpu = append(took, ms(d)), append(cpu, ms(childCPU()-before))
	}
	return sample{figStart: quantile(took, 0.5), figStartCPU: quantile(cpu, 0.5)}, nil
}

// warmUp keys are not counted.
const warmUp = 30

func keys(h *harness, w wrapper, o options) (sample, error) {
	r, err := h.start(w, h.self, echoWord)
	if err != nil {
		return nil, err
	}
	defer r.end()
	if err := firstOf(r.until(readyMark), r.drain(150*time.Millisecond)); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	took := make([]float64, 0, o.keys)
	for i := range o.keys + warmUp {
		key := i % len(echoMarks)
		began := time.Now()
		if err := firstOf(r.press("ab"[key:key+1]), r.until(echoMarks[key])); err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		if d := time.Since(began); i >= warmUp {
			took = append(took, float64(d.Nanoseconds())/1000)
		}
	}
	return sample{figEcho50: quantile(took, 0.5), figEcho90: quantile(took, 0.9)}, nil
}

func lines(h *harness, w wrapper, o options) (sample, error) {
	return bulk(h, w, o, linesWord, figLines)
}
func frames(h *harness, w wrapper, o options) (sample, error) {
	return bulk(h, w, o, framesWord, figFrames)
}

// bulk is the processor's time of wrapper and workload together.
func bulk(h *harness, w wrapper, o options, word string, fig *figure) (sample, error) {
	before := childCPU()
	r, err := h.start(w, h.self, word, fmt.Sprint(o.mib))
	if err != nil {
		return nil, err
	}
	n, _, err := r.toEnd()
	r.end() // which waits for a server, too
	if err != nil {
		return nil, err
	}
	if n < o.mib<<20 && w.name != "tmux" { // which paints what fits
		return nil, fmt.Errorf("%d of %d bytes arrived", n, o.mib<<20)
	}
	return sample{fig: ms(childCPU() - before)}, nil
}

// childCPU is the time of all that was waited for.
func childCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func resources(h *harness, w wrapper, o options) (sample, error) {
	if _, ok := h.usage(); !ok || w.name == "direct" {
		return nil, nil
	}
	r, err := h.start(w, h.self, hogWord)
	if err != nil {
		return nil, err
	}
	defer r.end()
	if err := firstOf(r.until(readyMark), r.drain(settled)); err != nil {
		return nil, err
	}
	s := sample{}
	switches := func(do func() error) (perSecond float64, err error) {
		before, began := h.first(), time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		return float64(h.first().switches-before.switches) / time.Since(began).Seconds(), nil
	}
	s[figIdleRSS] = float64(h.first().kib) / 1024
	if s[figIdle], err = switches(func() error { return r.drain(o.window) }); err != nil {
		return nil, err
	}
	spinFor := max(1, min(9, int(o.window.Seconds())))
	if s[figSpin], err = switches(func() error {
		return firstOf(r.press(fmt.Sprintf("s%d", spinFor)), r.until(doneMark))
	}); err != nil {
		return nil, err
	}
	if err := firstOf(r.press("f4"), r.until(doneMark), r.drain(300*time.Millisecond)); err != nil {
		return nil, err
	}
	s[figFloodRSS] = float64(h.first().kib) / 1024
	return s, nil
}

func (h *harness) first() usage { u, _ := h.usage(); return u }
