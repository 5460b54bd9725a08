package detect_test

import (
	"testing"
	"time"

	"qshim/detect"
)

func codexState(s string) string { return "\x1b]7501;state=" + s + ":app=codex\x1b\\" }

const codexSpins = "\x1b]0;⠹ proj-codex\a"

var codexStarted = []string{"  model: gpt-5", "", "› Ask Codex to do anything", "", "  gpt-5 · /tmp"}

// TestCodexStart: while it starts Codex calls itself working, up to a minute on
// a loaded machine, although no turn runs.
func TestCodexStart(t *testing.T) {
	t.Run("nothing asked", func(t *testing.T) {
		l := watch(t, "codex", detect.Options{})
		l.out(codexState("idle"))
		l.out(codexState("working") + codexSpins)
		l.paint(codexStarted...)
		l.wait(time.Minute)
		if l.rep.TurnBegan || l.rep.Activity == detect.Busy {
			t.Errorf("while it starts: %+v", l.rep)
		}
		l.w.Key(l.now, false) // typed, not sent
		l.out(codexState("idle"))
		l.wait(time.Second)
		if l.rep.TurnBegan || l.rep.TurnEnded || l.rep.Success || l.rep.Activity != detect.Idle {
			t.Errorf("started: %+v", l.rep)
		}
		l.enter()
		l.out(codexState("working"))
		if !l.rep.TurnBegan || l.rep.Activity != detect.Busy {
			t.Errorf("asked: %+v", l.rep)
		}
		l.out(codexState("done"))
		if !l.rep.TurnEnded || !l.rep.Success {
			t.Errorf("answered: %+v", l.rep)
		}
	})
	t.Run("with a prompt", func(t *testing.T) {
		l := watch(t, "codex", detect.Options{Prompt: true})
		l.out(codexState("working"))
		if !l.rep.TurnBegan || l.rep.Activity != detect.Busy {
			t.Errorf("%+v", l.rep)
		}
	})
	t.Run("asked while it starts", func(t *testing.T) {
		l := watch(t, "codex", detect.Options{})
		l.out(codexState("working"))
		l.enter()
		l.take(l.w.Tick(l.now))
		if !l.rep.TurnBegan || l.rep.Activity != detect.Busy {
			t.Errorf("%+v", l.rep)
		}
	})
	t.Run("the log knows better", func(t *testing.T) {
		l := watch(t, "codex", detect.Options{HasLog: true})
		l.out(codexState("working"))
		l.take(l.w.Log(l.now, []byte(`{"timestamp":"2026-11-29T16:45:03Z","type":"event_msg","payload":{"type":"task_started"}}`)))
		if !l.rep.TurnBegan || l.rep.Activity != detect.Busy {
			t.Errorf("%+v", l.rep)
		}
	})
	t.Run("a turn after all", func(t *testing.T) {
		l := watch(t, "codex", detect.Options{})
		l.out(codexState("working"))
		l.out(codexState("error"))
		l.paint("› hi", "", "■ You’ve hit your usage limit. Try again at 5:57 PM.", "", "› Ask Codex to do anything", "  model · /tmp")
		l.wait(50 * time.Millisecond)
		if !l.rep.TurnBegan || !l.rep.TurnEnded {
			t.Errorf("%+v", l.rep)
		}
		l.want("working -> error", "window/certain")
	})
}

// TestCodexStartRecorded: one whose start took a minute, as the shim saw it.
func TestCodexStartRecorded(t *testing.T) {
	cast := readCast(t, "codex-susp60-idle-tui-120x40.cast")
	w := profile(t, "codex").Watch(detect.Options{Cols: cast.Cols, Rows: cast.Rows, Started: cast.Start})
	var began []time.Duration
	take := func(at time.Duration, r detect.Report) {
		if r.TurnBegan {
			began = append(began, at)
		}
	}
	for _, e := range cast.Events {
		now := cast.Start.Add(e.At)
		switch {
		case e.Kind == 'o':
			take(e.At, w.Output(now, []byte(e.Data)))
		case e.Kind == 'i' && e.Data[0] != 0x1b: // not the terminal's answers
			w.Key(now, e.Data == "\r")
		}
	}
	if len(began) != 1 || began[0] < 64*time.Second {
		t.Errorf("turns began at %v, want one after the Enter at 64.4 s", began)
	}
}

// TestNoSigns: where no turn's beginning is shown, nothing on the screen is
// history; a row alone is weak.
func TestNoSigns(t *testing.T) {
	l := watch(t, "generic", detect.Options{})
	l.paint("> hi", "", "✗ Sorry, you've hit a rate limit. Please try again in 1 minute.")
	l.wait(3 * time.Second)
	l.want("before any key", "rate/weak")
}
