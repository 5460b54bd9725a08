package shim

import (
	"errors"
	"testing"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
	"qshim/detect/screen"
	"qshim/lockfile"
	"qshim/policies"
)

// resumeBench is a session on a screen whose turns are resumed.
type resumeBench struct {
	*govBench
	*resumer
	screen   detect.Report // as the agent shows itself now
	composer string
	loopSaw  bool // the session's loop has seen a key of the user's
}

// Type writes down what is typed, and how often the ledger says that the turn
// was begun again by then.
func (b *resumeBench) Type(text []byte) {
	if b.loopSaw {
		b.j.add("untyped")
		return
	}
	b.j.add("type %q, on the record %d", text, b.store.session(me).Resume.Runs)
}
func (b *resumeBench) Arm()    {}
func (b *resumeBench) Disarm() {}

func resuming(t *testing.T, once bool, f func(b *resumeBench)) {
	t.Helper()
	bubble(t, func(t *testing.T, g *govBench) {
		b := &resumeBench{govBench: g, screen: detect.Report{Activity: detect.Busy}}
		b.restart(once)
		f(b)
	})
}

// restart is a new watching side over the same ledger, as after a crash.
func (b *resumeBench) restart(once bool) {
	b.resumer = &resumer{
		set: ResumeTUI{Once: once, Text: "continue", Pause: 150 * time.Millisecond}, keys: b, gov: b.governor,
		look: func() detect.Report { return b.screen }, holds: func(text string) bool { return b.composer == text },
		verify: b.policy.C.Resuming.Verify, tell: func(k NoticeKind, _ lockfile.Hold, _ string) { b.j.add("tell %s", k) },
	}
	b.governor.resumer = b.resumer
}

// sees hands a report on, with what the screen shows.
func (b *resumeBench) sees(r detect.Report) {
	r.Activity, r.ComposerEmpty, r.Dialog, r.Continues = b.screen.Activity, b.screen.ComposerEmpty, b.screen.Dialog, b.screen.Continues
	b.report(b.ctx, r)
	b.saw(b.ctx, r)
}

// refusedBy ends the turn by a limit.
func (b *resumeBench) refusedBy(f finding.Finding) {
	f.Confidence, f.At, f.Rule = finding.Strong, time.Now(), "test"
	b.screen = detect.Report{Activity: detect.Idle, ComposerEmpty: true}
	b.sees(detect.Report{Findings: []finding.Finding{f}, TurnEnded: true})
}

// passes lets time pass as the runner does.
func (b *resumeBench) passes(d time.Duration) {
	end := time.Now().Add(d)
	for {
		next := earliest(b.governor.wake, b.resumer.wake)
		if next.IsZero() || next.After(end) {
			break
		}
		time.Sleep(max(time.Until(next), time.Millisecond))
		if w := b.governor.wake; !w.IsZero() && !time.Now().Before(w) {
			b.governor.wake = time.Time{}
			b.again(b.ctx)
		}
		b.due(b.ctx, time.Now())
	}
	time.Sleep(time.Until(end))
}

func (b *resumeBench) begins() {
	b.screen = detect.Report{Activity: detect.Busy}
	b.sees(detect.Report{TurnBegan: true})
}

// Text and Enter, each once, both after the record; then nothing more.
func TestResumeTypesOnce(t *testing.T) {
	resuming(t, true, func(b *resumeBench) {
		b.refusedBy(rateHit(10 * time.Second))
		if s := b.store.session(me); s.State != lockfile.Waiting || !s.Resume.Due {
			t.Fatalf("%+v", s)
		}
		b.passes(9 * time.Second)
		b.did()
		b.passes(5 * time.Second)
		b.did(`type "continue", on the record 1`)
		b.composer = "continue"
		b.passes(60 * time.Millisecond)
		b.did(`type "\r", on the record 1`)
		b.begins()
		b.passes(time.Minute)
		b.did()
		if b.store.count("resume") != 3 {
			t.Errorf("events %v", b.store.events)
		}
		// Refused again: once is once.
		b.refusedBy(rateHit(10 * time.Second))
		b.passes(time.Minute)
		b.did("tell not_resumed")
		b.open()
		// A turn of its user's counts anew.
		b.begins()
		b.refusedBy(rateHit(10 * time.Second))
		b.composer = ""
		b.passes(13 * time.Second)
		b.did(`type "continue", on the record 1`)
	})
}

func TestResumeLeavesTheUserAlone(t *testing.T) {
	for name, c := range map[string]func(b *resumeBench){
		"a key":           func(b *resumeBench) { b.pressed(b.ctx) },
		"half a prompt":   func(b *resumeBench) { b.screen.ComposerEmpty = false; b.sees(detect.Report{}) },
		"a dialog":        func(b *resumeBench) { b.screen.Dialog = true; b.sees(detect.Report{}) },
		"a dialog unseen": func(b *resumeBench) { b.screen.Dialog = true }, // the last look finds it
		"it continues":    func(b *resumeBench) { b.screen.Continues = true; b.sees(detect.Report{}) },
		"its own turn":    func(b *resumeBench) { b.begins() },
	} {
		t.Run(name, func(t *testing.T) {
			resuming(t, true, func(b *resumeBench) {
				b.refusedBy(rateHit(10 * time.Second))
				c(b)
				b.passes(time.Hour)
				b.did()
				if s := b.store.session(me); s.Resume.Due || s.State == lockfile.Waiting {
					t.Errorf("others wait for it: %+v", s)
				}
			})
		})
	}
}

// A dialog that closes by itself lets the turn be resumed.
func TestResumeAfterADialog(t *testing.T) {
	resuming(t, true, func(b *resumeBench) {
		b.refusedBy(rateHit(10 * time.Second))
		b.screen.Dialog = true
		b.sees(detect.Report{})
		b.passes(time.Minute)
		b.did()
		b.screen.Dialog = false
		b.sees(detect.Report{})
		b.passes(100 * time.Millisecond)
		b.did(`type "continue", on the record 1`)
	})
}

// Enter follows only text that stands alone in the composer.
func TestResumeNoEnterWithoutItsText(t *testing.T) {
	for name, c := range map[string]struct {
		then func(b *resumeBench)
		did  []string
	}{
		"not shown":  {func(b *resumeBench) {}, []string{"tell not_resumed"}},
		"more of it": {func(b *resumeBench) { b.composer = "continue?" }, []string{"tell not_resumed"}},
		"a dialog":   {func(b *resumeBench) { b.screen.Dialog, b.composer = true, "continue" }, nil},
		"a key":      {func(b *resumeBench) { b.composer = "continue"; b.pressed(b.ctx) }, nil},
		"a key that only the loop saw": {func(b *resumeBench) { b.composer, b.loopSaw = "continue", true },
			[]string{"untyped", "tell not_resumed"}},
	} {
		t.Run(name, func(t *testing.T) {
			resuming(t, true, func(b *resumeBench) {
				b.refusedBy(rateHit(10 * time.Second))
				b.passes(12*time.Second + 600*time.Millisecond)
				if got := b.j.take(); len(got) != 1 {
					t.Fatalf("did %v", got)
				}
				c.then(b)
				b.passes(time.Hour)
				b.did(c.did...)
			})
		})
	}
}

// What is on the record is not done again, whatever happened to whoever wrote it.
func TestResumeNeverTwice(t *testing.T) {
	resuming(t, true, func(b *resumeBench) {
		b.refusedBy(rateHit(10 * time.Second))
		_, err := b.store.Update(b.ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			in := b.input()
			in.Now = in.Now.Add(time.Minute)
			next, d, ev := b.policy.Step(l, in)
			if d.Action != policies.Run {
				t.Errorf("%+v", d)
			}
			return next, ev
		})
		if err != nil {
			t.Fatal(err)
		}
		b.restart(true) // it crashed before it typed
		b.refusedBy(rateHit(10 * time.Second))
		b.passes(time.Hour)
		b.did("tell not_resumed")
	})
}

// A ledger that cannot be written to types nothing.
func TestResumeNotWithoutARecord(t *testing.T) {
	resuming(t, true, func(b *resumeBench) {
		b.refusedBy(rateHit(10 * time.Second))
		b.store.fail(nil, errors.New("read-only"))
		b.passes(time.Minute)
		b.did("warn read-only")
		b.store.fail(nil, nil)
		b.passes(time.Minute)
		b.did(`type "continue", on the record 1`, "tell not_resumed")
	})
}

func TestResumeNotify(t *testing.T) {
	resuming(t, false, func(b *resumeBench) {
		b.refusedBy(rateHit(10 * time.Second))
		b.passes(5 * time.Second)
		b.did()
		b.passes(time.Hour)
		b.did("tell resumable")
	})
	resuming(t, true, func(b *resumeBench) {
		b.refusedBy(finding.Finding{Class: finding.Credit, Scope: finding.Account})
		b.passes(time.Hour)
		b.did("notice needs_you") // waiting does not help, and that was said
	})
}

func TestComposed(t *testing.T) {
	for _, c := range []struct {
		rows string
		want bool
	}{
		{"❯ continue\r\n  auto mode", true},
		{"❯\u00a0continue", true},
		{"│ > continue    │\r\n╰──╯", true},
		{"› continue\r\n  gpt", true},
		{"❯ continue\r\n● answer\r\n❯ ", false},
		{"❯ continue with tests", false},
		{"continue", false},
		{"❯ 1. continue", false},
	} {
		s := screen.New(40, 6)
		_, _ = s.Write([]byte(c.rows))
		if got := composed(s, "continue"); got != c.want {
			t.Errorf("%q: %v", c.rows, got)
		}
	}
}
