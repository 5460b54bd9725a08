package shim

import (
	"testing"
	"time"
)

func TestPauseKeys(t *testing.T) {
	type press struct {
		after time.Duration
		key   Key
		want  order
	}
	s := time.Second
	for name, script := range map[string][]press{
		"r after a quiet second runs":           {{2 * s, KeyRun, runAnyway}},
		"r while typing does not":               {{s / 10, KeyOther, redraw}, {s / 2, KeyRun, redraw}, {s, KeyRun, runAnyway}},
		"r at the moment of the pause does not": {{0, KeyRun, redraw}},
		"q asks, y quits at once":               {{2 * s, KeyQuit, redraw}, {s / 10, KeyYes, quit}},
		"q asks, anything else withdraws":       {{2 * s, KeyQuit, redraw}, {s / 10, KeyOther, redraw}, {s / 10, KeyYes, redraw}},
		"y alone is nothing":                    {{2 * s, KeyYes, redraw}},
		"one Ctrl-C shows the keys":             {{2 * s, KeyInterrupt, redraw}},
		"two Ctrl-C within a second quit":       {{0, KeyInterrupt, redraw}, {s / 2, KeyInterrupt, quit}},
		"two Ctrl-C far apart do not":           {{0, KeyInterrupt, redraw}, {2 * s, KeyInterrupt, redraw}},
		"Ctrl-C withdraws the question":         {{2 * s, KeyQuit, redraw}, {s / 10, KeyInterrupt, redraw}, {s / 10, KeyYes, redraw}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			p := newPauseKeys(now)
			for i, k := range script {
				now = now.Add(k.after)
				if got := p.press(k.key, now); got != k.want {
					t.Fatalf("press %d: got %v, want %v", i, got, k.want)
				}
			}
		})
	}
}

func TestPauseKeysCountsWhatItSwallows(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := newPauseKeys(now)
	for range 5 {
		p.press(KeyOther, now)
	}
	if p.dropped != 5 {
		t.Fatalf("dropped %d, want 5", p.dropped)
	}
}
