package when

import (
	"strings"
	"testing"
	"time"
)

// TestNoTextIsSlow gives Parse the longest texts it looks at, built from what
// its readers might read again and again. The bound is wide for a loaded
// machine; quadratic work on 64 KiB is seconds.
func TestNoTextIsSlow(t *testing.T) {
	now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
	for _, unit := range []string{
		"reset ", "reset: ", "retry-after-", `"resetsAt":1795978800,"status":"allowed"},{`, "1", "1,111", "try again in 1 ",
		"12:00 ", "until reset ", "5m until reset ", "2026-12-01 ", "2026-12-01 重置", "1分钟", "30秒后重试", "(", "{", "}{",
		"resets Dec 2nd, ", "resets 6pm (America/", "a", "é", "\n", "x\n", "resets\n", "1 h ", "retrying attempt 1/2 · ",
		"5-hour limit ", "reset 1h1m1s1ms1us1ns", "-", "limit reached|", "5% left resets 6pm ", "\\", "resets " + strings.Repeat("9", 500) + " ",
	} {
		text := strings.Repeat(unit, maxText/len(unit)+1)
		start := time.Now()
		Parse(text, now, time.UTC, 0)
		Parse(text+"重置 2h until reset", now, time.UTC, time.Hour)
		Duration(text)
		Window(text)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%.30q… took %v", unit, took)
		} else if testing.Verbose() && took > 50*time.Millisecond {
			t.Logf("%.30q… took %v", unit, took)
		}
	}
}
