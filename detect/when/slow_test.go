package when

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNoTextIsSlow gives the readers texts built from what they might read
// again and again, of one length and of four times that. The machine may be as
// busy as it likes: CPU time is compared, and quadratic work is 16 times as much.
func TestNoTextIsSlow(t *testing.T) {
	now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
	for _, unit := range []string{
		"reset ", "reset: ", "retry-after-", `"resetsAt":1795978800,"status":"allowed"},{`, "1", "1,111", "try again in 1 ",
		"12:00 ", "until reset ", "5m until reset ", "2026-12-01 ", "2026-12-01 重置", "1分钟", "30秒后重试", "(", "{", "}{",
		"resets Dec 2nd, ", "resets 6pm (America/", "a", "é", "\n", "x\n", "resets\n", "1 h ", "retrying attempt 1/2 · ",
		"5-hour limit ", "reset 1h1m1s1ms1us1ns", "-", "limit reached|", "5% left resets 6pm ", "\\", "resets " + strings.Repeat("9", 500) + " ",
	} {
		read := func(size int) time.Duration {
			text := strings.Repeat(unit, size/len(unit)) + "重置 2h until reset"
			return cpu(t, func() {
				Parse(text, now, time.UTC, time.Hour)
				Duration(text)
				Window(text)
			})
		}
		short, long := read(maxText/16), read(maxText/4)
		if long > 10*short+100*time.Millisecond {
			t.Errorf("%.30q…: %v for %d bytes, %v for four times that", unit, short, maxText/16, long)
		}
	}
}

// cpu is the processor time that f takes, the best of two.
func cpu(t *testing.T, f func()) time.Duration {
	t.Helper()
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Skip("no processor time here: ", err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	best := time.Hour
	for range 2 {
		began := used()
		f()
		best = min(best, used()-began)
	}
	return best
}
