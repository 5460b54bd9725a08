package detect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
)

// live drives a watcher as the shim does: by output, keys, log lines and ticks.
type live struct {
	t   *testing.T
	w   *detect.Watcher
	now time.Time
	all []finding.Finding
	ids []uint64
	rep detect.Report // the last one, edges of all since reset

	seen func(detect.Report) // sees every report
}

func watch(t *testing.T, agent string, o detect.Options) *live {
	t.Helper()
	if o.Cols == 0 {
		o.Cols, o.Rows = 100, 30
	}
	o.Zone, o.Started = time.UTC, start
	return &live{t: t, w: profile(t, agent).Watch(o), now: start.Add(3 * time.Second)}
}

func (l *live) take(r detect.Report) {
	if l.seen != nil {
		l.seen(r)
	}
	l.all = append(l.all, r.Findings...)
	l.ids = append(l.ids, r.Events...)
	edges := l.rep
	l.rep = r
	l.rep.TurnBegan = l.rep.TurnBegan || edges.TurnBegan
	l.rep.TurnEnded = l.rep.TurnEnded || edges.TurnEnded
	l.rep.Success = l.rep.Success || edges.Success
	l.rep.RetryEnded = l.rep.RetryEnded || edges.RetryEnded
	l.rep.AnswerBegun = l.rep.AnswerBegun || edges.AnswerBegun
}

// out writes bytes; rows are what stands at the top left of a cleared screen.
func (l *live) out(s string)         { l.take(l.w.Output(l.now, []byte(s))) }
func (l *live) paint(rows ...string) { l.out("\x1b[2J\x1b[H" + strings.Join(rows, "\r\n")) }
func (l *live) enter()               { l.w.Key(l.now, true) }

// wait lets time pass, ticking when the watcher asked for it.
func (l *live) wait(d time.Duration) {
	end := l.now.Add(d)
	for n := 0; !l.rep.Wake.IsZero() && l.rep.Wake.Before(end); n++ {
		if n > 1000 {
			l.t.Fatalf("the watcher wants to be woken for ever, now at %v", l.rep.Wake)
		}
		l.now = l.rep.Wake
		l.take(l.w.Tick(l.now))
	}
	l.now = end
}

// got is what was reported so far, "class/confidence" each, and forgets it.
func (l *live) got() string {
	var s []string
	for _, f := range l.all {
		s = append(s, fmt.Sprintf("%s/%s", f.Class, f.Confidence))
	}
	l.all, l.rep = nil, detect.Report{Wake: l.rep.Wake}
	return strings.Join(s, " ")
}

func (l *live) want(what, want string) {
	l.t.Helper()
	if got := l.got(); got != want {
		l.t.Errorf("%s: reported %q, want %q", what, got, want)
	}
}

const (
	claudeBusy = "\x1b]0;◐ Claude Code\a"
	claudeIdle = "\x1b]0;✳ Claude Code\a"
	rule80     = "────────────────────────────────────────────────────────────────────────────────"
	apiError   = "● API Error: Request rejected (429) · This request would exceed your account's rate limit."
	banner     = "  ⎿ \u00a0You've hit your 5-hour limit · resets 6:45pm (UTC)"
)

func (l *live) turn(busy string) {
	l.enter()
	l.out(busy)
	l.got()
}

// TestClaudeErrorNeedsASign: the row alone could be an answer.
func TestClaudeErrorNeedsASign(t *testing.T) {
	t.Run("placeholder", func(t *testing.T) {
		l := watch(t, "claude", detect.Options{})
		l.turn(claudeBusy)
		l.paint("❯ hi", "", apiError, "", rule80, "❯ Resend your message to try again", rule80, "  SL")
		l.wait(50 * time.Millisecond)
		l.want("row and placeholder", "rate/strong")
	})
	t.Run("busy", func(t *testing.T) {
		l := watch(t, "claude", detect.Options{})
		l.turn(claudeBusy)
		l.paint("❯ hi", "", apiError, "", rule80, "❯ ", rule80)
		l.wait(10 * time.Second)
		l.want("while the turn goes on", "")
		l.paint("❯ hi", "", apiError, "", "✻ Crunched for 4s · done 4:55 PM", "", rule80, "❯ ", rule80)
		l.out(claudeIdle)
		l.wait(5 * time.Second)
		l.want("after its done line", "")
	})
	t.Run("no done line", func(t *testing.T) {
		l := watch(t, "claude", detect.Options{})
		l.turn(claudeBusy)
		l.paint("❯ hi", "", apiError, "", rule80, "❯ ", rule80)
		l.out(claudeIdle)
		l.wait(500 * time.Millisecond)
		l.want("at once", "")
		l.wait(2 * time.Second)
		l.want("a second later", "rate/strong")
	})
	t.Run("log silent", func(t *testing.T) {
		l := watch(t, "claude", detect.Options{HasLog: true})
		l.turn(claudeBusy)
		l.take(l.w.Log(l.now, []byte(`{"type":"user","timestamp":"2026-11-29T16:45:03Z","message":{"role":"user","content":"hi"}}`)))
		l.paint("❯ hi", "", apiError, "", rule80, "❯ ", rule80)
		l.out(claudeIdle)
		l.wait(5 * time.Second)
		l.want("the log says nothing", "rate/weak")
	})
	t.Run("log not found", func(t *testing.T) {
		l := watch(t, "claude", detect.Options{HasLog: true})
		l.turn(claudeBusy)
		l.take(l.w.Busy(l.now, true)) // its status file is no transcript
		l.paint("❯ hi", "", apiError, "", rule80, "❯ ", rule80)
		l.take(l.w.Busy(l.now, false))
		l.out(claudeIdle)
		l.wait(1500 * time.Millisecond)
		l.want("no line of it has come", "rate/strong")
	})
	t.Run("placeholder before the log", func(t *testing.T) {
		l := watch(t, "claude", detect.Options{HasLog: true})
		l.turn(claudeBusy)
		l.take(l.w.Log(l.now, []byte(`{"type":"user","timestamp":"2026-11-29T16:45:03Z","message":{"role":"user","content":"hi"}}`)))
		l.paint("❯ hi", "", apiError, "", rule80, "❯ ", rule80)
		l.wait(300 * time.Millisecond)
		l.want("the row alone", "")
		l.out("\x1b[6;3H\x1b[2mResend your message to try again\x1b[22m")
		l.wait(50 * time.Millisecond)
		l.want("row and placeholder", "rate/strong")
	})
	t.Run("log", func(t *testing.T) {
		l := watch(t, "claude", detect.Options{HasLog: true})
		l.turn(claudeBusy)
		l.paint("❯ hi", "", apiError, "", rule80, "❯ ", rule80)
		l.out(claudeIdle)
		l.wait(200 * time.Millisecond)
		l.take(l.w.Log(l.now, []byte(`{"type":"assistant","isApiErrorMessage":true,"error":"rate_limit","apiErrorStatus":429,"timestamp":"2026-11-29T16:45:04Z","message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error: Request rejected (429) · This request would exceed your account's rate limit."}]}}`)))
		l.want("the log agrees", "rate/certain")
		l.wait(3 * time.Second)
		l.want("the same event", "")
	})
}

// TestBannerOnce: a banner is one event, however often it is painted, and its
// reset stays what it was when first seen.
func TestBannerOnce(t *testing.T) {
	l := watch(t, "claude", detect.Options{})
	l.turn(claudeBusy)
	l.out(claudeIdle)
	l.paint("❯ hi", banner, "", rule80, "❯ ", rule80, "  ⚠ Usage limit reached · limit resets 6:45pm", "    Continuing automatically at 6:45pm · Esc to cancel")
	l.wait(100 * time.Millisecond)
	if len(l.all) != 1 || !l.all[0].Reset.Equal(time.Date(2026, 11, 29, 18, 45, 0, 0, time.UTC)) || l.all[0].Window != 5*time.Hour {
		t.Fatalf("%+v", l.all)
	}
	l.want("first seen", "window/strong")
	l.take(l.w.Resize(l.now, 60, 20))
	l.paint("❯ hi", banner, "", rule80, "❯ ", rule80)
	l.wait(2 * time.Second)
	l.paint("❯ hi", "  ⎿ \u00a0You've hit your 5-hour limit · resets", "     6:45pm (UTC)", "", rule80, "❯ ", rule80)
	l.wait(2 * time.Second)
	l.want("painted again at another width", "")
	l.turn(claudeBusy)
	l.paint("❯ hi", banner, "", "❯ again", "", "● Done.", "", rule80, "❯ ", rule80)
	l.wait(2 * time.Second)
	l.want("above a later answer", "")
	l.out(claudeIdle)
	l.paint("❯ hi", banner, "", "❯ again", banner, "", rule80, "❯ ", rule80, "  ⚠ Usage limit reached · limit resets 6:45pm")
	l.wait(2 * time.Second)
	l.want("a second hit", "window/strong")
}

// TestResumedHistory: what a resumed session paints before anything was asked
// is old, whatever it says.
func TestResumedHistory(t *testing.T) {
	l := watch(t, "claude", detect.Options{})
	l.out(claudeIdle)
	l.paint("❯ hi", banner, "", "● Usage limit reached · set to continue automatically at 6:45pm", "", rule80, "❯ ", rule80, "  ⚠ Usage limit reached · limit resets 6:45pm")
	l.wait(5 * time.Second)
	l.want("claude --continue", "")

	l = watch(t, "codex", detect.Options{})
	for _, s := range []string{"idle", "working", "idle"} { // its start-up flicker
		l.out("\x1b]7501;state=" + s + ":app=codex\x1b\\")
	}
	l.paint("› hi", "", "■ You’ve hit your usage limit. Try again at 5:57 PM.", "", "› Ask Codex to do anything", "  model · /tmp")
	l.wait(5 * time.Second)
	l.want("codex resume", "")
}

// TestCodexState: OSC 7501 decides, and cannot be forged.
func TestCodexState(t *testing.T) {
	rows := []string{"› hi", "", "■ You’ve hit your usage limit. Try again at 5:57 PM.", "", "› Ask Codex to do anything", "  model · /tmp"}
	osc := func(s string) string { return "\x1b]7501;state=" + s + ":app=codex\x1b\\" }
	l := watch(t, "codex", detect.Options{})
	l.turn(osc("working"))
	l.out(osc("error"))
	l.paint(rows...)
	l.wait(50 * time.Millisecond)
	l.want("working -> error", "window/certain")
	l.turn(osc("working"))
	l.out(osc("done"))
	l.paint(rows...)
	l.wait(5 * time.Second)
	if !l.rep.Success && l.got() != "" {
		t.Error("working -> done is a success and no finding")
	}
	l = watch(t, "codex", detect.Options{})
	l.turn(osc("working"))
	l.paint(rows...)
	l.out(osc("error"))
	l.out(osc("idle"))
	l.wait(50 * time.Millisecond)
	l.want("the row before the state, idle after it", "window/certain")
}

// TestCodexRollout: the log's epoch replaces the minute on the screen.
func TestCodexRollout(t *testing.T) {
	l := watch(t, "codex", detect.Options{HasLog: true})
	l.turn("\x1b]7501;state=working:app=codex\x1b\\")
	l.take(l.w.Log(l.now, []byte(`{"timestamp":"2026-11-29T16:45:03Z","type":"event_msg","payload":{"type":"token_count","rate_limits":{"primary":{"used_percent":100.0,"window_minutes":300,"resets_at":1795974455},"secondary":{"used_percent":44.0,"resets_at":1796229650}}}}`)))
	l.out("\x1b]7501;state=error:app=codex\x1b\\")
	l.paint("› hi", "", "■ You’ve hit your usage limit. Try again at 5:47 PM.", "", "› Ask Codex to do anything", "  model · /tmp")
	l.wait(50 * time.Millisecond)
	if len(l.all) != 1 || l.all[0].ResetSource != finding.Epoch || l.all[0].Reset.Unix() != 1795974455 {
		t.Fatalf("%+v", l.all)
	}
	l.got()
	l.take(l.w.Log(l.now, []byte(`{"timestamp":"2026-11-29T16:45:03Z","type":"event_msg","payload":{"type":"task_complete","error":{"message":"You’ve hit your usage limit. Try again at 5:47 PM.","codex_error_info":"usage_limit_exceeded"}}}`)))
	l.want("the rollout says it again", "")
}

// TestOldLogRecords: a record from before the launch is history.
func TestOldLogRecords(t *testing.T) {
	l := watch(t, "claude", detect.Options{HasLog: true})
	l.take(l.w.Log(l.now, []byte(`{"type":"assistant","isApiErrorMessage":true,"apiErrorStatus":429,"timestamp":"2026-11-29T12:00:00Z","message":{"content":[{"type":"text","text":"You've hit your 5-hour limit · resets 6:45pm (UTC)"}]}}`)))
	l.want("hours old", "")
}

// TestRetry: attempts are news of one event, and the cause when it shows.
func TestRetry(t *testing.T) {
	l := watch(t, "claude", detect.Options{})
	l.turn(claudeBusy)
	ids := map[uint64]bool{}
	for i, s := range []string{
		"✻ API error · retrying in 1s · attempt 1/10",
		"✻ API error · retrying in 0s · attempt 1/10",
		"✻ API error · retrying in 1s · attempt 2/10",
		"✻ 429 This request would exceed your account's… · retrying in 3s · attempt 3/10",
		"✻ 429 This request would exceed your account's… · retrying in 2s · attempt 3/10",
	} {
		l.paint("❯ hi", "", s, "", rule80, "❯ ", rule80)
		l.wait(time.Second)
		for _, id := range l.ids {
			ids[id] = true
		}
		l.ids = nil
		want := []string{"retrying/strong", "", "retrying/strong", "retrying/strong", ""}[i]
		if i == 3 {
			if f := l.all; len(f) != 1 || f[0].Cause != finding.Rate || f[0].Attempt != 3 || f[0].RetryAfter != 3*time.Second {
				t.Errorf("%+v", f)
			}
		}
		l.want(s, want)
	}
	if len(ids) != 1 {
		t.Errorf("%d events, want one", len(ids))
	}
	l.paint("❯ hi", "", "● Here is the answer.", "", rule80, "❯ ", rule80)
	l.wait(time.Second)
	if !l.rep.RetryEnded || !l.rep.AnswerBegun {
		t.Errorf("after the retry: %+v", l.rep)
	}
}

// TestSplitFrames: a frame that comes in pieces is not half believed.
func TestSplitFrames(t *testing.T) {
	l := watch(t, "claude", detect.Options{})
	l.turn(claudeBusy)
	l.out(claudeIdle)
	frame := "\x1b[2J\x1b[H❯ hi\r\n" + banner + "\r\n\r\n" + rule80 + "\r\n❯ \r\n" + rule80 + "\r\n  ⚠ Usage limit reached · limit resets 6:45pm"
	for i := range len(frame) {
		l.out(frame[i : i+1])
		l.now = l.now.Add(50 * time.Microsecond)
	}
	l.wait(time.Second)
	if len(l.all) != 1 || l.all[0].Reset.IsZero() {
		t.Errorf("%+v", l.all)
	}
}

// TestSynchronised: a row of a frame that is whole is found with it; one that may
// be a part must stand for a moment.
func TestSynchronised(t *testing.T) {
	row := "\x1b[2J\x1b[H❯ hi\r\n" + banner + "\r\n\r\n" + rule80 + "\r\n❯ \r\n" + rule80 + "\r\n  ⚠ Usage limit reached · limit resets 6:45pm"
	for name, c := range map[string]struct {
		frames []string
		atOnce string
	}{
		"whole":            {[]string{"\x1b[?2026h" + row + "\x1b[?2026l"}, "window/strong"},
		"in three reads":   {[]string{"\x1b[?2026h" + row[:60], row[60:], "\x1b[?2026l"}, "window/strong"},
		"not synchronised": {[]string{row}, ""},
		"not ended":        {[]string{"\x1b[?2026h" + row}, ""},
		"a part before":    {[]string{row[:40], "\x1b[?2026h" + row[40:] + "\x1b[?2026l"}, ""},
	} {
		l := watch(t, "claude", detect.Options{})
		l.turn(claudeBusy)
		l.out(claudeIdle)
		l.wait(10 * time.Millisecond) // or the next look would be put off
		for _, f := range c.frames {
			l.out(f)
		}
		l.wait(2 * time.Millisecond)
		l.want(name+", at once", c.atOnce)
		l.wait(time.Second)
		if l.want(name+", a moment later", map[bool]string{true: "window/strong"}[c.atOnce == ""]); l.w.Screen().Synchronised() != (name == "not ended") {
			t.Errorf("%s: the case is not what it says", name)
		}
	}
}

// TestGemini: the debug log is the first source, the dialog waits.
func TestGemini(t *testing.T) {
	l := watch(t, "gemini", detect.Options{HasLog: true})
	l.turn("\x1b]0;✦  Working… (proj)\a")
	for i := 1; i <= 3; i++ {
		l.take(l.w.Log(l.now, []byte(fmt.Sprintf("[2026-11-29T16:45:0%d.241Z] [WARN] Attempt %d failed: You exceeded your current quota, please check your plan and billing details.", i, i))))
		l.take(l.w.Log(l.now, []byte("* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 5, model: gemini-2.5-pro")))
		l.take(l.w.Log(l.now, []byte("Please retry in 34.074824224s. Retrying after 36658ms...")))
		l.wait(100 * time.Millisecond)
	}
	if len(l.all) != 3 || l.all[0].Cause != finding.Rate || l.all[0].RetryAfter != 36658*time.Millisecond || l.all[0].Reset.IsZero() {
		t.Fatalf("%+v", l.all)
	}
	l.got()
	box := []string{" > hi", "", "╭────────────────────╮", "│ Usage limit reached for gemini-3.5-flash-lite. │", "│ /stats model for usage details │", "│ ● 1. Keep trying   │", "│   2. Stop          │", "╰────────────────────╯"}
	l.paint(box...)
	l.wait(time.Second)
	l.want("the dialog", "daily/strong")
	l.out("\x1b]0;◇  Ready (proj)\a")
	l.paint(" > hi", "", "✕ [API Error: You have exhausted your daily quota on this model.]", "  Please wait and try again later.")
	l.wait(2 * time.Second)
	l.want("its own end", "")
}

// TestScrolledError: an error that leaves a small screen within one write.
func TestScrolledError(t *testing.T) {
	l := watch(t, "gemini", detect.Options{Cols: 60, Rows: 10})
	l.turn("\x1b]0;✦  Working… (proj)\a")
	var s strings.Builder
	s.WriteString("\x1b]0;◇  Ready (proj)\a\x1b[2J\x1b[H > hi\r\n\r\n✕ [API Error: {\"error\":{\"code\":429,\"message\":\"Resource has\r\n  been exhausted (e.g. check quota).\",\"status\":\r\n")
	for i := range 14 {
		fmt.Fprintf(&s, "  \"detail %d\": \"x\",\r\n", i)
	}
	s.WriteString("  }}]\r\n\r\n >   Type your message or @path/to/file\r\n")
	l.out(s.String())
	l.wait(2 * time.Second)
	l.want("scrolled off", "rate/strong")
}

// TestHeadlessText: an answer can be any text, that the agent failed decides.
func TestHeadlessText(t *testing.T) {
	const text = "You've hit your 5-hour limit · resets 6:54pm (UTC)\n"
	for code, want := range map[int]string{0: "", 1: "window/strong"} {
		l := watch(t, "claude", detect.Options{Mode: detect.Headless})
		l.take(l.w.Stream(l.now, detect.Stdout, []byte(text)))
		l.wait(2 * time.Second)
		l.want("before it exits", "")
		l.take(l.w.Exit(l.now, code))
		if l.rep.Success != (code == 0) {
			t.Errorf("exit %d: success %v", code, l.rep.Success)
		}
		l.want(fmt.Sprintf("exit %d", code), want)
	}
}

// TestHeadlessRecords: structure decides; a line of JSON in a text answer is text.
func TestHeadlessRecords(t *testing.T) {
	const event = `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795978800,"rateLimitType":"five_hour"}}` + "\n"
	l := watch(t, "claude", detect.Options{Mode: detect.Headless})
	l.take(l.w.Stream(l.now, detect.Stdout, []byte(`{"type":"system","subtype":"init","model":"claude-opus-5-5"}`+"\n"+event[:40])))
	l.take(l.w.Stream(l.now, detect.Stdout, []byte(event[40:])))
	if l.rep.Model != "claude-opus-5-5" {
		t.Errorf("model %q", l.rep.Model)
	}
	if len(l.all) != 1 || l.all[0].Reset.Unix() != 1795978800 || l.all[0].ResetSource != finding.Epoch {
		t.Errorf("%+v", l.all)
	}
	l.want("stream-json", "window/certain")
	l = watch(t, "claude", detect.Options{Mode: detect.Headless})
	l.take(l.w.Stream(l.now, detect.Stdout, []byte("The stream would hold this record:\n"+event)))
	l.take(l.w.Exit(l.now, 1))
	l.want("recited in a text answer", "")
}

// TestEndlessLine: memory is bounded, and the line after it is read.
func TestEndlessLine(t *testing.T) {
	l := watch(t, "codex", detect.Options{Mode: detect.Headless})
	l.take(l.w.Stream(l.now, detect.Stdout, []byte(`{"type":"thread.started"}`+"\n")))
	chunk := []byte(strings.Repeat("x", 64<<10))
	for range 64 {
		l.take(l.w.Stream(l.now, detect.Stdout, chunk))
	}
	l.take(l.w.Stream(l.now, detect.Stdout, []byte("\n"+`{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan and billing details."}}`+"\n")))
	l.want("after 4 MiB without an end", "credit/certain")
}

// TestResync: where bytes were lost the rows may be a mixture.
func TestResync(t *testing.T) {
	l := watch(t, "codex", detect.Options{})
	l.turn("\x1b]7501;state=working:app=codex\x1b\\")
	l.w.Resync()
	l.out("\x1b]7501;state=error:app=codex\x1b\\\x1b[3;1H■ You’ve hit your usage limit. Try again at 5:57 PM.")
	l.wait(time.Second)
	l.want("before a full repaint", "window/weak")
	l.turn("\x1b]7501;state=working:app=codex\x1b\\")
	l.out("\x1b]7501;state=error:app=codex\x1b\\")
	l.paint("› again", "", "■ You’ve hit your usage limit. Try again at 5:58 PM.")
	l.wait(time.Second)
	l.want("after it", "window/certain")
}

// TestGenericIsWeak: without a profile a row alone touches nobody.
func TestGenericIsWeak(t *testing.T) {
	l := watch(t, "generic", detect.Options{})
	l.enter()
	l.paint("> hi", "", "✗ Sorry, you've hit a rate limit. Please try again in 1 minute.")
	l.wait(3 * time.Second)
	l.want("one sign", "rate/weak")
	l = watch(t, "generic", detect.Options{Mode: detect.Headless})
	l.take(l.w.Stream(l.now, detect.Stderr, []byte("Error: 429 Too Many Requests\n")))
	l.take(l.w.Exit(l.now, 1))
	l.want("and it failed", "rate/strong")
}

// TestComposer: what the shim asks before it types.
func TestComposer(t *testing.T) {
	l := watch(t, "claude", detect.Options{})
	l.turn(claudeBusy)
	l.out(claudeIdle)
	l.paint("❯ hi", banner, "", rule80, "❯ ", rule80)
	l.wait(time.Second)
	if !l.rep.ComposerEmpty || l.rep.Dialog || l.rep.Activity != detect.Idle {
		t.Errorf("composer: %+v", l.rep)
	}
	l.paint("❯ hi", banner, "", rule80, "❯ half a thou", rule80)
	l.wait(time.Second)
	if l.rep.ComposerEmpty {
		t.Error("the composer holds text")
	}
	l.paint("❯ hi", banner, "", "  What do you want to do?", "", "  ❯ 1. Stop and wait for limit to reset", "    2. Switch to usage credits", "", "  Enter to confirm · Esc to cancel")
	l.wait(time.Second)
	if !l.rep.Dialog || l.rep.ComposerEmpty {
		t.Errorf("dialog: %+v", l.rep)
	}
}

// TestGenericRetry: where no sign tells that an agent works, a retry row is
// believed when it counts in place; a log with two of them does not.
func TestGenericRetry(t *testing.T) {
	row := func(s string, n int) string {
		return fmt.Sprintf("  ✕ Rate limit error: 429 Too Many Requests\r\n  ↻ Retrying in %s seconds… (attempt %d/10)", s, n)
	}
	l := watch(t, "generic", detect.Options{})
	l.enter()
	l.paint("> hi", "", row("12", 2))
	l.wait(3 * time.Second)
	l.want("it stands", "retrying/weak")
	l.paint("> hi", "", row("11", 2))
	l.wait(time.Second)
	l.want("it counts", "retrying/strong")

	l = watch(t, "generic", detect.Options{})
	l.enter()
	for i := range 5 {
		l.paint("> tail -f app.log", "", row("12", 1), row("13", 2+i), row("14", 3+i))
		l.wait(700 * time.Millisecond)
	}
	if got := l.got(); strings.Contains(got, "strong") {
		t.Errorf("a log of retries: %s", got)
	}
}
