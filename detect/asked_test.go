package detect_test

import (
	"testing"
	"time"

	"qshim/detect"
)

const claudeInput = rule80 + "\r\n❯ \r\n" + rule80

// A turn that is over before the agent has painted that it works (Claude Code
// 2.1.332 on one core: prompt, answer and "done" line in one frame).
func TestSwiftTurn(t *testing.T) {
	warning := "                         You've used 93% of your 5-hour limit · resets 9:05am (UTC)"
	start := func(t *testing.T, rows ...string) *live {
		l := watch(t, "claude", detect.Options{})
		l.out(claudeIdle)
		l.paint(append(rows, claudeInput)...)
		l.wait(time.Second)
		l.got()
		return l
	}
	t.Run("answered", func(t *testing.T) {
		l := start(t)
		l.enter()
		l.paint("❯ hi", "", "● OK", "", "✻ Cogitated for 0s · done 8:05 AM", "", claudeInput)
		if l.rep.Activity != detect.Idle || !l.rep.TurnBegan || !l.rep.TurnEnded {
			t.Errorf("activity %v, began %v, ended %v", l.rep.Activity, l.rep.TurnBegan, l.rep.TurnEnded)
		}
		l.wait(8 * time.Second)
		l.paint("❯ hi", "", "● OK", "", "✻ Cogitated for 0s · done 8:05 AM", "", warning, claudeInput)
		l.wait(time.Second)
		l.want("the note above the input", "warning/strong")
	})
	t.Run("refused, and again", func(t *testing.T) {
		l := start(t, "❯ before", "", "● OK", "")
		l.enter()
		l.paint("❯ before", "", "● OK", "", "❯ hi", banner, "", claudeInput)
		l.wait(time.Second)
		l.want("the first", "window/strong")
		l.enter()
		l.paint("❯ before", "", "● OK", "", "❯ hi", banner, "", "❯ hi", banner, "", claudeInput)
		l.wait(time.Second)
		l.want("the second", "window/strong")
	})
	t.Run("its work shows later", func(t *testing.T) {
		l := start(t)
		l.enter()
		l.paint("❯ hi", "", claudeInput)
		l.wait(500 * time.Millisecond)
		l.got()
		l.out(claudeBusy)
		if l.rep.TurnBegan || l.rep.Activity != detect.Busy {
			t.Errorf("activity %v, another turn: %v", l.rep.Activity, l.rep.TurnBegan)
		}
	})
	for name, page := range map[string][]string{
		"a history of many turns":   {"❯ one", "", "● OK", "", "❯ two", banner, ""},
		"nothing new":               {"❯ before", banner, ""},
		"wound back to the turn":    {"", "❯ before", banner, ""},
		"the prompt is still typed": {"❯ before", banner, "", rule80, "❯ hi", rule80, "", "● "},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, "❯ before", "", "● OK", "", "❯ after", "", "● OK", "")
			l.enter()
			l.paint(append(page, claudeInput)...)
			if l.rep.TurnBegan {
				t.Error("a turn")
			}
			l.wait(3 * time.Second)
			l.want("old", "")
		})
	}
	t.Run("begun by the Enter already", func(t *testing.T) {
		l := watch(t, "kimi", detect.Options{}) // a row is its only sign of work
		l.paint("", kimiInput)
		l.wait(2 * time.Second)
		l.got()
		l.enter()
		l.paint(" ✨ hi", "", kimiInput)
		l.wait(100 * time.Millisecond)
		if l.rep.TurnEnded {
			t.Errorf("its turn was told to be over, activity %v", l.rep.Activity)
		}
	})
	t.Run("picked from a dialog", func(t *testing.T) {
		l := watch(t, "claude", detect.Options{})
		l.out(claudeIdle)
		l.paint("  Resume session", "", "  ❯ 1. yesterday", "    2. the day before", "", "  Enter to confirm · Esc to cancel")
		l.wait(time.Second)
		l.enter()
		l.paint("❯ hi", banner, "", claudeInput)
		l.wait(3 * time.Second)
		l.want("old", "")
	})
}
