package detect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// A wall clock that is set back while something waits changes nothing of what
// is found and when.
func TestClockSetBack(t *testing.T) {
	back := func(l *live, by time.Duration) { // as the session does it: all that is pending is due at once
		l.now = l.now.Add(-by)
		l.take(l.w.Tick(l.now))
	}
	for _, c := range []struct {
		name, agent, want string
		opts              detect.Options
		do                func(l *live, step func())
	}{
		{"a row whose turn ends", "claude", "rate/strong", detect.Options{}, func(l *live, step func()) {
			l.turn(claudeBusy)
			l.paint("❯ hi", "", apiError, "", rule80, "❯ ", rule80)
			l.out(claudeIdle)
			step()
		}},
		{"a second sign that comes later", "claude", "rate/strong", detect.Options{}, func(l *live, step func()) {
			l.turn(claudeBusy)
			l.paint("❯ hi", "", apiError, "", rule80, "❯ ", rule80)
			step()
			l.paint("❯ hi", "", apiError, "", rule80, "❯ Resend your message to try again", rule80, "  SL")
		}},
		{"a state before its row", "codex", "window/certain", detect.Options{}, func(l *live, step func()) {
			l.turn("\x1b]7501;state=working:app=codex\x1b\\")
			l.out("\x1b]7501;state=error:app=codex\x1b\\")
			step()
			l.paint("› hi", "", "■ You’ve hit your usage limit. Try again at 5:57 PM.", "", "› Ask Codex to do anything", "  model · /tmp")
		}},
		{"a failed turn that nothing explains", "codex", "unrecognised", detect.Options{}, func(l *live, step func()) {
			l.turn("\x1b]7501;state=working:app=codex\x1b\\")
			l.out("\x1b]7501;state=error:app=codex\x1b\\")
			l.paint("› hi", "", "▲ you have hit your plan limit", "", "› Ask Codex to do anything", "  model · /tmp")
			step()
		}},
		{"a turn that ends by a missing row", "opencode", "rate/strong", detect.Options{Rows: 30, Cols: 100}, func(l *live, step func()) {
			l.w.Key(l.now, true)
			l.out(openCode(ocAsked, ocBusy))
			l.wait(time.Second)
			l.out(openCode(ocLimit, ocIdle))
			l.wait(100 * time.Millisecond)
			step()
		}},
		{"a log that begins behind the start", "codex", "window/certain", detect.Options{HasLog: true}, func(l *live, step func()) {
			step()
			l.take(l.w.Log(l.now, fmt.Appendf(nil, `{"timestamp":%q,"type":"event_msg","payload":{"type":"task_complete","error":{"message":"You’ve hit your usage limit.","codex_error_info":"usage_limit_exceeded"}}}`, l.now.Format(time.RFC3339))))
		}},
	} {
		for _, by := range []time.Duration{0, time.Hour, 365 * 24 * time.Hour} {
			t.Run(fmt.Sprint(c.name, " ", by), func(t *testing.T) {
				l := watch(t, c.agent, c.opts)
				var strange []string
				l.seen = func(r detect.Report) {
					for range r.Unrecognised {
						strange = append(strange, "unrecognised")
					}
				}
				c.do(l, func() { back(l, by) })
				l.wait(3 * time.Second)
				if got := strings.TrimSpace(l.got() + strings.Join(strange, " ")); got != c.want {
					t.Errorf("found %q, want %q", got, c.want)
				}
			})
		}
	}
}
