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

// copilot is its screen (1.0.102): the transcript, the input between two lines
// and the row below it.
func copilot(transcript, status string) string {
	line := strings.Repeat("─", 60)
	return "\x1b[H\x1b[2J" + strings.ReplaceAll(transcript, "\n", "\r\n") + "\r\n\r\n" + line + "\r\n❯ \r\n" + line + "\r\n" + status
}

// TestCopilotRows: the row that ends a turn is the client's, the same words in
// the model's, a tool's or the user's frame are not.
func TestCopilotRows(t *testing.T) {
	const busy, idle = " ◉ Working (Esc to cancel)", " /tmp/proj  gpt-5"
	const limit = "✗ You've hit your session rate limit. Please wait for your limit to reset in 3 hours."
	for transcript, want := range map[string]string{
		" ❯ go on\n\n " + limit: "window/strong",
		" ❯ go on\n\n ● It prints:\n\n   " + limit + "\n\n   and stops.":  "",
		" ❯ go on\n\n ● Check the log\n   $ cat app.log\n   └ " + limit:   "",
		" ❯ why " + limit + "\n\n ● Because of the plan.":                 "",
		" ❯ hi\n\n " + limit + "\n\n ❯ go on\n\n ● All done, it is over.": "",
	} {
		l := watch(t, "copilot", detect.Options{Rows: 30, Cols: 120})
		l.out(copilot("", idle))
		l.wait(2 * time.Second)
		l.w.Key(l.now, true)
		l.out(copilot(" ❯ go on", busy))
		l.wait(time.Second)
		l.got()
		l.out(copilot(transcript, busy))
		l.wait(200 * time.Millisecond)
		l.out(copilot(transcript, idle))
		l.wait(5 * time.Second)
		l.want(transcript, want)
	}
}

// TestErrorsForOneFailure: three rows of one failure settle like one, without
// a look every few milliseconds.
func TestErrorsForOneFailure(t *testing.T) {
	l := watch(t, "copilot", detect.Options{Rows: 30, Cols: 120})
	l.out(copilot("", " /tmp/proj"))
	l.wait(2 * time.Second)
	l.w.Key(l.now, true)
	looks := 0
	l.seen = func(detect.Report) { looks++ }
	l.out(copilot(" ❯ go on\n\n ✗ Model call failed: {\"message\":\"You have no quota\",\"code\":\"quota_exceeded\"}\n\n ✗ Quota exceeded. Upgrade to increase your limit\n\n ✗ Execution failed: 402 You have no quota", " /tmp/proj"))
	l.wait(3 * time.Second)
	l.want("three rows", "window/strong")
	if looks > 10 {
		t.Errorf("looked %d times", looks)
	}
}
