package detect_test

import (
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// openCode is its screen (1.18.33): the transcript's rows, the composer and the
// status row below it.
func openCode(transcript, status string) string {
	return "\x1b[H\x1b[2J" + strings.ReplaceAll(transcript, "\n", "\r\n") +
		"\r\n\r\n  ┃\r\n  ┃  Build · GPT-5 Fake\r\n  ╹" + strings.Repeat("▀", 60) + "\r\n" + status
}

const (
	ocAsked = "  ┃\n  ┃  go on\n  ┃\n\n     ▣  Build · GPT-5"
	ocLimit = "  ┃\n  ┃  go on\n  ┃\n\n  ┃\n  ┃  Rate limit reached for gpt-5 on requests per min (RPM): Limit 3\n  ┃\n\n     ▣  Build · GPT-5"
	ocSaid  = "  ┃\n  ┃  go on\n  ┃\n\n     Rate limit reached for gpt-5 on requests per min (RPM): Limit 3\n\n     ▣  Build · GPT-5 · 3.1s"
	ocBusy  = "   ■■■⬝⬝⬝⬝⬝  esc interrupt        tab agents  ctrl+p commands"
	ocIdle  = "   /tmp/proj                      tab agents  ctrl+p commands"
	ocRetry = "   ■■■⬝⬝⬝⬝⬝ Rate limit reached for gpt-5 on requests per min [retrying in 20s attempt #1]"
)

// TestQuiet: an agent whose only sign of working is a row. Its turn ends when
// the row has been gone for a while, not when one frame lacks it.
func TestQuiet(t *testing.T) {
	l := watch(t, "opencode", detect.Options{Rows: 30, Cols: 100})
	l.w.Key(l.now, true)
	l.out(openCode(ocAsked, ocBusy))
	l.wait(200 * time.Millisecond)
	if got := l.w.Tick(l.now).Activity; got != detect.Busy {
		t.Fatalf("activity %v, want busy", got)
	}
	l.out(openCode(ocAsked, ocIdle)) // one frame without it
	l.wait(200 * time.Millisecond)
	l.out(openCode(ocAsked, ocBusy))
	l.wait(2 * time.Second)
	if got := l.w.Tick(l.now).Activity; got != detect.Busy {
		t.Fatalf("a frame without the row ended the turn: %v", got)
	}
	l.out(openCode(ocSaid, ocIdle))
	l.wait(2 * time.Second)
	if got := l.w.Tick(l.now).Activity; got != detect.Idle {
		t.Fatalf("activity %v, want idle", got)
	}
	l.want("an answer that reads like a limit", "")
}

// TestOpenCodeRows: the error in the transcript and the retry below the composer.
func TestOpenCodeRows(t *testing.T) {
	l := watch(t, "opencode", detect.Options{Rows: 30, Cols: 100})
	l.w.Key(l.now, true)
	l.out(openCode(ocAsked, ocBusy))
	l.wait(time.Second)
	l.out(openCode(ocAsked, ocRetry))
	l.wait(time.Second)
	l.want("its own retry", "retrying/strong")
	l.out(openCode(ocLimit, ocIdle))
	l.wait(3 * time.Second)
	l.want("the error that ended the turn", "rate/strong")
}

// TestIdleFromTheStart: an agent whose composer stands there without its working
// row is idle although it has done nothing yet, and what its first turn shows is
// news all the same.
func TestIdleFromTheStart(t *testing.T) {
	l := watch(t, "opencode", detect.Options{Rows: 30, Cols: 100})
	l.out(openCode("", ocIdle))
	l.wait(2 * time.Second)
	if got := l.w.Tick(l.now).Activity; got != detect.Idle {
		t.Fatalf("activity %v, want idle", got)
	}
	l.w.Key(l.now, true)
	l.out(openCode(ocLimit, ocIdle))
	l.wait(3 * time.Second)
	l.want("an error faster than the working row", "rate/strong")

	l = watch(t, "opencode", detect.Options{Rows: 30, Cols: 100, Prompt: true})
	l.out(openCode("", ocIdle))
	l.wait(2 * time.Second)
	if got := l.w.Tick(l.now).Activity; got == detect.Idle {
		t.Fatal("it was given a prompt and is called idle before its turn")
	}
}
