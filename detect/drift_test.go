package detect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// TestUnrecognisedByTitle: a profile of one's own may name the title of a turn
// that failed; of the built-in agents none has one.
func TestUnrecognisedByTitle(t *testing.T) {
	p, err := detect.ParseProfile("mine.toml", []byte("[detect.activity]\ntitle_busy = '^working'\ntitle_error = '^failed'\ntitle_idle = '^mine'\n"))
	if err != nil {
		t.Fatal(err)
	}
	for title, want := range map[string]int{"failed": 1, "mine": 0} {
		l := &live{t: t, w: p.Watch(detect.Options{Zone: time.UTC, Started: start}), now: start.Add(time.Second)}
		got := 0
		l.seen = func(r detect.Report) { got += len(r.Unrecognised) }
		l.turn("\x1b]0;working\a")
		l.paint("hi", "", "We cannot go on: over our allowance, at our limit for today.")
		l.out("\x1b]0;" + title + "\a")
		l.wait(3 * time.Second)
		if got != want {
			t.Errorf("title %s: %d unrecognised, want %d", title, got, want)
		}
	}
}

// TestUnrecognised: a turn that its agent calls failed, and rows about a limit
// that no rule knows, are kept for a person; known ones and other failures are not.
func TestUnrecognised(t *testing.T) {
	osc := func(s string) string { return "\x1b]7501;state=" + s + ":app=codex\x1b\\" }
	codex := func(rows ...string) func(l *live) {
		return func(l *live) {
			l.turn(osc("working"))
			l.out(osc("error"))
			l.paint(append(append([]string{"› hi", ""}, rows...), "", "› Ask Codex to do anything", "  model · /tmp")...)
		}
	}
	claude := func(rows ...string) func(l *live) {
		return func(l *live) {
			l.turn(claudeBusy)
			l.paint(append(append([]string{"❯ hi", ""}, rows...), "", rule80, "❯ Resend your message to try again", rule80)...)
			l.out(claudeIdle)
		}
	}
	for _, c := range []struct {
		name, agent string
		opts        detect.Options
		do          func(l *live)
		want        string
	}{
		{"codex, another glyph", "codex", detect.Options{}, codex("▲ Usage allowance: you have hit your plan limit. Comes back tomorrow."), "osc7501: ▲ Usage allowance: you have hit your plan limit. Comes back tomorrow."},
		{"codex, as speech", "codex", detect.Options{}, codex("• The service says: rate limit, come back soon"), "osc7501: • The service says: rate limit, come back soon"},
		{"codex, known", "codex", detect.Options{}, codex("■ You’ve hit your usage limit. Try again at 5:57 PM."), ""},
		{"codex, known to be no limit", "codex", detect.Options{}, codex("■ agent thread limit reached"), ""},
		{"codex, nothing about limits", "codex", detect.Options{}, codex("▲ The disk is full"), ""},
		{"codex, a tool's words", "codex", detect.Options{}, codex("• Ran cat log", "  └ 429 Too Many Requests"), ""},
		{"codex, a good turn", "codex", detect.Options{}, func(l *live) {
			l.turn(osc("working"))
			l.paint("› hi", "", "▲ rate limit, come back soon", "", "› Ask Codex to do anything", "  model · /tmp")
			l.out(osc("done"))
		}, ""},
		{"claude, another glyph", "claude", detect.Options{}, claude("✖ You have used up this week's quota"), "placeholder: ✖ You have used up this week's quota"},
		{"claude, known", "claude", detect.Options{}, claude("  ⎿ \u00a0You've hit your 5-hour limit · resets 6:45pm (UTC)"), ""},
		{"codex, its log", "codex", detect.Options{HasLog: true}, func(l *live) {
			l.take(l.w.Log(l.now, []byte(`{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"Allowance gone: at our limit for you.","codex_error_info":"allowance_gone"}}}`)))
		}, "log: Allowance gone: at our limit for you. (allowance_gone)"},
		{"gemini, its log", "gemini", detect.Options{HasLog: true}, func(l *live) {
			l.take(l.w.Log(l.now, []byte("[2026-11-29T16:45:01.241Z] [ERROR] Quota service said no")))
			l.take(l.w.Log(l.now, []byte("[2026-11-29T16:45:01.241Z] [DEBUG] Quota service said no")))
		}, "log: [2026-11-29T16:45:01.241Z] [ERROR] Quota service said no"},
		{"headless, stderr", "codex", detect.Options{Mode: detect.Headless}, func(l *live) {
			l.take(l.w.Stream(l.now, detect.Stdout, []byte("I will not hit your rate limit.\n")))
			l.take(l.w.Stream(l.now, detect.Stderr, []byte("FATAL>> rate limit, come back in a week\n")))
			l.take(l.w.Exit(l.now, 1))
		}, "exit: FATAL>> rate limit, come back in a week"},
		{"headless, it ended well", "codex", detect.Options{Mode: detect.Headless}, func(l *live) {
			l.take(l.w.Stream(l.now, detect.Stderr, []byte("FATAL>> rate limit, come back in a week\n")))
			l.take(l.w.Exit(l.now, 0))
		}, ""},
		{"headless, a record", "codex", detect.Options{Mode: detect.Headless}, func(l *live) {
			l.take(l.w.Stream(l.now, detect.Stdout, []byte(`{"type":"turn.failed","error":{"message":"Your plan's allowance is over its limit for this epoch, billing closed."}}`+"\n")))
			l.take(l.w.Exit(l.now, 1))
		}, "stream: Your plan's allowance is over its limit for this epoch, billing closed."},
		{"escape sequences", "codex", detect.Options{Mode: detect.Headless}, func(l *live) {
			l.take(l.w.Stream(l.now, detect.Stderr, []byte("!! rate limit \x1b[2J\x01 gone\n")))
			l.take(l.w.Exit(l.now, 1))
		}, `exit: !! rate limit \x01 gone`},
	} {
		l := watch(t, c.agent, c.opts)
		var got []string
		l.seen = func(r detect.Report) {
			for _, u := range r.Unrecognised {
				got = append(got, u.Sign+": "+strings.Join(u.Rows, "|"))
			}
		}
		c.do(l)
		l.wait(3 * time.Second)
		if s := strings.Join(got, "\n"); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

// TestUnrecognisedOnce: each text once a session, however often it comes and
// whatever its figures, and not without end.
func TestUnrecognisedOnce(t *testing.T) {
	l := watch(t, "codex", detect.Options{})
	n := 0
	l.seen = func(r detect.Report) { n += len(r.Unrecognised) }
	for i := range 60 {
		text := fmt.Sprintf("▲ Rate limit %d", i)
		if i >= 10 {
			text += strings.Repeat("x", i)
		}
		l.turn("\x1b]7501;state=working:app=codex\x1b\\")
		l.out("\x1b]7501;state=error:app=codex\x1b\\")
		l.paint("› hi", "", text, "", "› Ask Codex to do anything", "  model · /tmp")
		l.wait(3 * time.Second)
		if i == 9 && n != 1 {
			t.Fatalf("%d reports of one text", n)
		}
	}
	if n != 20 {
		t.Errorf("%d reports, want the 20 that a session may make", n)
	}
}
