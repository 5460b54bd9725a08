package detect_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// TestHostileLines gives pipes and logs what nobody writes but an attacker: it
// ends, keeps little and makes nothing of it. The test's own time limit is the
// judge of "ends".
func TestHostileLines(t *testing.T) {
	detect.OneGoroutine(t)
	deep := strings.Repeat(`{"a":`, 40000)
	wide := `{"type":"error","error":{"message":"` + strings.Repeat(`\u0000\\n`, 20000) + `"}}`
	for name, line := range map[string]string{
		"deep objects":     deep,
		"deep lists":       `{"error":` + strings.Repeat("[", 100000),
		"closed bomb":      strings.Repeat(`{"error":`, 9000) + "1" + strings.Repeat("}", 9000),
		"escapes":          wide,
		"many keys":        `{"type":"error"` + strings.Repeat(`,"k":1`, 20000) + "}",
		"huge number":      `{"error":{"message":"429","resets_at":` + strings.Repeat("9", 60000) + `}}`,
		"huge exponent":    `{"error":{"message":"429 rate limit","resets_at":1e999999999,"resets_in_seconds":-1e308}}`,
		"spaces":           strings.Repeat(" ", 200<<10),
		"invalid":          strings.Repeat("\xff\xfe{", 60000),
		"carriage returns": strings.Repeat("429\r", 10000),
		"escapes in text":  strings.Repeat("\x1b[", 80000),
		"open osc":         "\x1b]0;" + strings.Repeat("x", 200<<10),
		"limit words":      strings.Repeat("rate limit ", 18000),
		"resets":           strings.Repeat("resets at 3pm (A/B) ", 10000),
	} {
		for _, agent := range []string{"claude", "generic"} {
			p := profile(t, agent)
			w := p.Watch(detect.Options{Mode: detect.Headless, Started: start, HasLog: true})
			w.Stream(start, detect.Stdout, []byte(line+"\n"))
			w.Stream(start, detect.Stderr, []byte(line))
			w.Log(start, []byte(line))
			for _, f := range w.Exit(start, 1).Findings {
				checkFinding(t, f)
				if n := len(strings.Join(f.Rows, "")); n > 12*500 {
					t.Errorf("%s: %d bytes of evidence", name, n)
				}
			}
		}
	}
}

// TestStreamMemory: whatever a pipe carries, what is kept of it is bounded.
func TestStreamMemory(t *testing.T) {
	w := profile(t, "codex").Watch(detect.Options{Mode: detect.Headless, Started: start})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	feed := func() {
		for i := range 400 {
			w.Stream(start, detect.Stdout, []byte(strings.Repeat("rate limit ", 700)+fmt.Sprint(i)+"\n"))
			w.Stream(start, detect.Stderr, []byte(strings.Repeat("429 ", 2000)))
			w.Log(start, []byte(fmt.Sprintf("[x] [ERROR] quota %s %d", strings.Repeat("y", i), i)))
		}
	}
	feed()
	before := heap()
	for range 3 {
		feed()
	}
	if after := heap(); after > before+(2<<20) {
		t.Errorf("grew from %d to %d bytes", before, after)
	}
	runtime.KeepAlive(w)
}

// TestHostileTimes: no stated time holds anybody for longer than a limit can
// last, or reads a file.
func TestHostileTimes(t *testing.T) {
	for _, s := range []string{
		"resets at 9999-12-31T23:59:59Z", "try again at Dec 31st, 9999 11:59 PM", "resets in 999999 days", "resets in -5 minutes",
		"try again in 99999999999999999999 hours", "resets at 99999999999", "resets in 1e300 seconds", "Retry-After: -1", "resets 0000-00-00",
		"resets at 253402300799", "try again in PT999999999H",
	} {
		got := profile(t, "codex").ExplainRows([]string{"■ You’ve hit your usage limit. " + s + "."}, detect.ExplainOptions{Mode: detect.TUI, Now: start, Zone: time.UTC})
		if len(got) != 1 || got[0].Class != "window" {
			t.Fatalf("%s: %+v", s, got)
		}
		if !got[0].Reset.IsZero() || got[0].RetryAfter < 0 {
			t.Errorf("%s: reset %v, delay %v", s, got[0].Reset, got[0].RetryAfter)
		}
	}
	for _, zone := range []string{"../../etc/passwd", "/etc/localtime", "America/../../etc/passwd", "Local", strings.Repeat("A/", 5000), "\x00", "C:\\x"} {
		got := profile(t, "claude").ExplainRows([]string{"❯ hi", "  ⎿  You've hit your 5-hour limit · resets 6:45pm (" + zone + ")"}, detect.ExplainOptions{Mode: detect.TUI, Now: start, Zone: time.UTC})
		want := time.Date(2026, 11, 29, 18, 45, 0, 0, time.UTC)
		if len(got) != 1 || !got[0].Reset.IsZero() && !got[0].Reset.Equal(want) {
			t.Errorf("zone %.40q: %+v", zone, got)
		}
	}
}
