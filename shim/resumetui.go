package shim

import (
	"context"
	"strings"
	"time"
	"unicode"

	"qshim/detect"
	"qshim/detect/finding"
	"qshim/detect/screen"
	"qshim/lockfile"
	"qshim/lockfile/fault"
	"qshim/policies"
)

// A turn on a screen that a limit broke is resumed by typing a word, if its user
// asked for that, and then once or not at all:
//
//	a limit broke the turn -> armed: any key of the user's ends it
//	composer empty, no dialog, idle -> the ledger: waits for its turn like a launch
//	its turn: looked once more -> begun, on the record -> text -> pause
//	    -> the text stands in the composer, no dialog -> Enter -> a turn begins: seen
//
// Whatever is otherwise on the way ends it, is logged, and is not tried again.
// The session's loop gives out text and Enter only if no key came in between.

// ResumeTUI is what Run needs of it.
type ResumeTUI struct {
	Once  bool          // type; else say that one may
	Text  string        // "continue"
	Pause time.Duration // between text and Enter, as measured for the agent
}

// typist can type into the agent; a Session is one.
type typist interface {
	Type(b []byte)
	Arm()
	Disarm()
}

// brokenStage is how far a resumption has come.
type brokenStage int

const (
	nothingBroken brokenStage = iota
	broken                    // a limit broke the turn
	waitsTurn                 // the ledger knows that it waits
	textTyped                 // begun, on the record
	enterTyped
	settled // done, given up, or left to the user
)

// resumer resumes the turns of one session on a screen. The watching goroutine
// owns it.
type resumer struct {
	set    ResumeTUI
	keys   typist
	gov    *governor
	look   func() detect.Report   // at the screen as it is now
	holds  func(text string) bool // the composer holds just text
	verify time.Duration          // how long a turn may take to begin
	tell   func(k NoticeKind, h lockfile.Hold, limiter string)

	at      brokenStage
	since   time.Time // of textTyped and enterTyped
	wake    time.Time
	last    detect.Report // what the screen showed last
	limited bool          // the present turn, or the last, met a limit
	touched bool          // the user has pressed a key since the limit
	mine    bool          // the turn that runs was begun by us
}

// echoTime is how long the typed text may take to appear: 0.1 s on the three
// agents, the rest is a loaded machine. echoLook is how often it is looked for.
const (
	echoTime = 3 * time.Second
	echoLook = 50 * time.Millisecond
)

// saw takes what the watcher reported.
func (r *resumer) saw(ctx context.Context, rep detect.Report) {
	if r == nil {
		return
	}
	r.last = rep
	if rep.TurnBegan {
		r.turnBegan(ctx)
	}
	if rep.TurnEnded && (r.at == broken || r.at == settled) && r.limited {
		r.broke() // what its user typed while it ran, an answer to its dialog, was for that turn
	}
	for _, f := range rep.Findings {
		if f.Class.IsLimit() && f.Confidence.Rank() >= finding.Strong.Rank() {
			r.limited = true
			r.broke()
		}
	}
	r.step(ctx)
}

func (r *resumer) broke() {
	if r.at == waitsTurn {
		return
	}
	r.at, r.touched = broken, false
	r.keys.Arm()
}

func (r *resumer) turnBegan(ctx context.Context) {
	was, mine := r.at, r.at == enterTyped
	r.at, r.wake, r.limited = nothingBroken, time.Time{}, false
	r.keys.Disarm()
	switch {
	case mine:
		r.mine = true
		fault.At("resume seen")
		r.gov.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			return r.gov.policy.Resumed(l, r.gov.input())
		})
	case was != nothingBroken || r.mine:
		// The user's own, or the agent continues by itself.
		r.mine = false
		r.gov.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			return r.gov.policy.ForgetResume(l, r.gov.input())
		})
	}
}

// pressed: the user has pressed a key that the agent got.
func (r *resumer) pressed(ctx context.Context) {
	if r == nil || r.at == nothingBroken || r.at == settled || r.at == broken && r.last.Activity == detect.Busy {
		return
	}
	r.touched = true
	r.stop(ctx, "user")
}

// stop leaves the turn to its user.
func (r *resumer) stop(ctx context.Context, why string) {
	was := r.at
	r.at, r.wake = settled, time.Time{}
	r.keys.Disarm()
	if was >= waitsTurn {
		r.gov.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			return r.gov.policy.DropResume(l, r.gov.input(), why)
		})
	}
}

// may: nothing on the screen speaks against typing.
func may(rep detect.Report) bool {
	return rep.Activity == detect.Idle && rep.ComposerEmpty && !rep.Dialog && !rep.Continues
}

// step moves on where what was seen, or time, lets it.
func (r *resumer) step(ctx context.Context) {
	now := r.gov.now()
	switch {
	case r.at == broken && r.last.Activity == detect.Idle && !r.last.Continues:
		if !r.set.Once {
			r.sayWhenOpen(now)
		} else if may(r.last) {
			r.want(ctx)
		}
	case r.at == waitsTurn && !may(r.last):
		r.back(ctx)
	case r.at == textTyped && !now.Before(r.wake):
		r.enter(ctx, now)
	case r.at == enterTyped && !now.Before(r.wake):
		r.unverified(ctx)
	}
}

// want puts the session into the queue.
func (r *resumer) want(ctx context.Context) {
	r.at = waitsTurn
	again, h, id := policies.NoLimit, lockfile.Hold{}, ""
	r.gov.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		_, h, id = r.gov.policy.Broken(l, r.gov.self, r.gov.now())
		next, a, events := r.gov.policy.WantResume(l, r.gov.input())
		again = a
		return next, events
	})
	fault.At("resume wanted")
	if again == policies.WillResume || r.at != waitsTurn { // deciding on it may have begun it
		return
	}
	r.at = settled
	r.keys.Disarm()
	if again == policies.Exhausted || again == policies.TooFar {
		r.tell(NotResumed, h, id)
	}
}

// back takes the session out of the queue: a dialog is open, or text stands in
// the composer. It goes back in when the screen lets it.
func (r *resumer) back(ctx context.Context) {
	r.at = broken
	r.gov.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		return r.gov.policy.DropResume(l, r.gov.input(), "dialog")
	})
}

// sayWhenOpen tells the user, once, that the limit has ended.
func (r *resumer) sayWhenOpen(now time.Time) {
	l, err := r.gov.store.Read()
	if err != nil {
		return
	}
	again, h, id := r.gov.policy.Broken(l, r.gov.self, now)
	switch {
	case again == policies.NoLimit || again == policies.NeedsMoney:
		r.at, r.wake = settled, time.Time{}
	case h.Until.After(now):
		r.wake = h.Until
	default:
		r.at, r.wake = settled, time.Time{}
		r.tell(Resumable, h, id)
	}
}

// turn is called when the policy lets the session go: d says whether it still
// does under the lock. The intent is on the record when it returns Run.
func (r *resumer) turn(ctx context.Context, step func() (policies.Decision, error)) {
	r.last = r.look()
	if r.at != waitsTurn || r.touched || !may(r.last) {
		r.back(ctx)
		return
	}
	d, err := step()
	if err != nil {
		r.gov.failOpen(ctx, err)
		return
	}
	if d.Action != policies.Run {
		r.gov.last, r.gov.wake = d, d.Wake
		return
	}
	fault.At("resume begun")
	now := r.gov.now()
	r.at, r.since, r.wake = textTyped, now, now.Add(max(r.set.Pause, time.Millisecond))
	r.keys.Type([]byte(r.set.Text))
}

// enter sends what was typed, once it is seen to stand in the composer alone.
func (r *resumer) enter(ctx context.Context, now time.Time) {
	rep := r.look()
	switch {
	case rep.Dialog || rep.Activity == detect.Busy:
		r.stop(ctx, "dialog")
	case r.holds(r.set.Text):
		r.at, r.since, r.wake = enterTyped, now, now.Add(r.verify)
		r.keys.Type([]byte("\r"))
	case now.Sub(r.since) >= echoTime:
		r.unverified(ctx)
	default:
		r.wake = now.Add(echoLook)
	}
}

func (r *resumer) unverified(ctx context.Context) {
	r.stop(ctx, "unverified")
	r.tell(NotResumed, lockfile.Hold{}, "")
}

// untyped: the session's loop did not type, since its user did.
func (r *resumer) untyped(ctx context.Context) {
	if r != nil && (r.at == textTyped || r.at == enterTyped) {
		r.stop(ctx, "user")
	}
}

// due is r's part of a tick.
func (r *resumer) due(ctx context.Context, now time.Time) {
	if r != nil && !r.wake.IsZero() && !now.Before(r.wake) {
		r.step(ctx)
	}
}

// setBack: the wall clock was set back to now; see governor.setBack.
func (r *resumer) setBack(now time.Time) {
	if r == nil {
		return
	}
	for _, at := range []*time.Time{&r.since, &r.wake} {
		if !at.IsZero() {
			*at = now
		}
	}
}

// composed reports whether a row of the screen is a composer with just text in
// it: a glyph of the agents', blanks, the box around it, and nothing else.
func composed(s *screen.Screen, text string) bool {
	_, rows := s.Size()
	for y := rows - 1; y >= 0; y-- {
		row := strings.TrimFunc(s.Row(y), func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("│┃|", c) })
		if glyph := strings.TrimLeft(row, "❯›>"); glyph != row {
			return strings.TrimSpace(glyph) == text // the lowest: those above are prompts of the past
		}
	}
	return false
}
