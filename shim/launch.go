package shim

import (
	"context"
	"fmt"
	"io"
	"time"

	"qshim/lockfile"
	"qshim/lockfile/fault"
	"qshim/policies"
)

// Verdict is how a launch's wait ended.
type Verdict int

// The verdicts.
const (
	Launch     Verdict = iota // start the agent
	Abandoned                 // the user gave up: exit 130
	TooLong                   // longer than max_wait, or waiting does not help: exit 75
	Terminated                // a signal ended the wait: exit 128 + Signal
)

// Keyboard is the terminal of a launch that waits.
type Keyboard interface {
	// Keys delivers what the user types, one key a value. Ctrl-C comes through
	// Interrupts instead. No key behind it is taken off the terminal before
	// More: what is typed behind the Enter that launches is the agent's.
	Keys() <-chan byte
	// More asks for the next key.
	More()
	// Interrupts delivers one value for each Ctrl-C.
	Interrupts() <-chan struct{}
	// Resumed delivers one value when qshim was stopped (Ctrl-Z) and is back.
	Resumed() <-chan struct{}
}

// LaunchWait delays a launch until the policy lets it go.
type LaunchWait struct {
	Store  lockfile.Store
	Policy policies.Policy
	Self   string // the session, in state waiting
	Family string // of its model
	Agent  string // title
	Label  func(limiter string) string
	Voice  Voice
	Out    io.Writer  // standard error
	Keys   Keyboard   // nil: no terminal
	Cols   func() int // the terminal's width; nil: unknown
	Now    func() time.Time
	Rand   func() float64
	Skip   bool // --now: run anyway
	Dumb   bool // the terminal cannot paint over a line: it gets whole lines
	Again  bool // a task that failed by a limit waits to be run again: only what is on the record is begun

	Prepare func(lockfile.Ledger) // changed together with the first decision; nil: nothing
	Recover func() error          // called before it where killed sessions left something; nil: not
	Strays  func() bool           // reports that a launch that was killed did; nil: not

	Caught *Caught // the session's signals, released where the launch waits; nil: none are caught

	Told   string // the Fault of the state directory that was said last
	Broken error  // why the first decision could not be made; the caller says it

	begun bool // the first decision is made
	shown bool // a live line is on the terminal
	said  time.Time
	asked string // the question that stands on the terminal
	noted bool
}

// eachMinute is how often a launch that waits without a terminal says so.
const eachMinute = time.Minute

// First decides once, before there is a keyboard, a watch or a signal to wait
// for: most launches wait for nothing. Not done: the launch has to wait.
func (w *LaunchWait) First(ctx context.Context) (v Verdict, done bool) {
	w.begun = true
	var dirt error
	if w.Recover != nil && w.Strays != nil && w.Strays() {
		dirt = w.clean()
	}
	d, left, err := w.begin(ctx)
	if err == nil && left {
		dirt = w.clean()
		d, _, err = w.begin(ctx)
	}
	if err == nil && dirt != nil {
		w.warn(dirt) // else the same is said with what could not be done
	}
	switch {
	case err != nil:
		w.Broken = err
		return Launch, true
	case d.Action == policies.Run:
		return w.judge(d)
	}
	return Launch, false
}

// clean tidies up behind killed sessions, once.
func (w *LaunchWait) clean() error {
	err := w.Recover()
	w.Recover = nil
	return err
}

// begin is the first change of the ledger. left: nothing was changed, because
// killed sessions left something.
func (w *LaunchWait) begin(ctx context.Context) (d policies.Decision, left bool, err error) {
	_, err = w.Store.Update(ctx, func(l lockfile.Ledger) (_ lockfile.Ledger, events []lockfile.Event) {
		if left = w.Recover != nil && l.Bereft(); left {
			return l, nil
		}
		if w.Prepare != nil {
			w.Prepare(l)
		}
		if w.Skip {
			l, events = w.Policy.RunAnyway(l, w.input())
		}
		next, dd, ev := w.Policy.Step(l, w.input())
		d = dd
		return next, append(events, ev...)
	})
	return d, left, err
}

// Await returns when the launch may go on or will not. A state directory that
// does not work means that it may.
func (w *LaunchWait) Await(ctx context.Context) Verdict {
	if !w.begun && !w.Again {
		v, done := w.First(ctx)
		if w.Broken != nil {
			w.warn(w.Broken)
		}
		if done {
			return w.end(v)
		}
	}
	hint, err := w.Store.Watch(ctx, nil)
	if err != nil {
		w.warn(err)
	}
	for {
		d, ok := w.decide(ctx)
		if !ok && ctx.Err() != nil {
			return w.end(Terminated) // the directory works: a signal cut us off at it
		}
		if !ok {
			return w.end(map[bool]Verdict{false: Launch, true: TooLong}[w.Again])
		}
		if v, done := w.judge(d); done {
			return w.end(v)
		}
		if d.AskFirst {
			if v, done := w.ask(ctx, d, hint); done {
				return w.end(v)
			}
			continue
		}
		w.show(d)
		if v, done := w.pauseUntil(ctx, d, hint); done {
			return w.end(v)
		}
	}
}

// decide asks the policy, under the lock where something is to be claimed.
// Not ok: the state directory does not work.
func (w *LaunchWait) decide(ctx context.Context) (policies.Decision, bool) {
	l, err := w.Store.Read()
	if err != nil {
		w.warn(err)
		return policies.Decision{}, false
	}
	d := w.Policy.Decide(l, w.Self, w.Now())
	if d.Claim {
		fault.At("launch claim")
		_, err = w.Store.Update(ctx, func(old lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			next, dd, events := w.Policy.Step(old, w.input())
			d = dd
			return next, events
		})
		if err != nil {
			if ctx.Err() == nil {
				w.warn(err)
			}
			return policies.Decision{}, false
		}
	}
	return d, true
}

func (w *LaunchWait) input() policies.Input {
	return policies.Input{Now: w.Now(), Self: w.Self, Rand: w.Rand, Family: w.Family}
}

// judge ends the wait where the decision or the user does.
func (w *LaunchWait) judge(d policies.Decision) (Verdict, bool) {
	switch {
	case w.Again && (d.GiveUp || d.AskFirst || d.Reason.Code == policies.NoSession):
		return TooLong, true // the caller says so, with what failed
	case d.Action == policies.Run:
		fault.At("launch admitted")
		if d.OpenWithNote && !w.noted {
			w.noted = true
			w.print(w.Voice.Note(w.facts(d)))
		}
		return Launch, true
	case d.GiveUp && w.Keys == nil: // who sees the countdown decides by himself
		w.print(w.Voice.GiveUp(w.facts(d)))
		return TooLong, true
	case d.AskFirst && w.Keys == nil:
		w.print(w.Voice.GiveUp(w.facts(d)))
		return TooLong, true
	}
	return Launch, false
}

// ask is for limits that waiting does not mend. Only a plain y launches. It is
// not done when there is something to decide again.
func (w *LaunchWait) ask(ctx context.Context, d policies.Decision, hint <-chan struct{}) (v Verdict, done bool) {
	w.clear()
	if q := w.Voice.Ask(w.facts(d)); q != w.asked {
		w.asked = q
		_, _ = io.WriteString(w.Out, q) // a broken stderr does not change the answer
	}
	select {
	case k := <-w.Keys.Keys():
		yes := k == 'y' || k == 'Y'
		_, _ = fmt.Fprintln(w.Out, map[bool]string{true: "y", false: "n"}[yes]) // as above
		if !yes {
			return Abandoned, true
		}
		w.runAnyway(ctx)
		return Launch, true
	case <-w.Keys.Interrupts():
		_, _ = fmt.Fprintln(w.Out) // as above
		return Abandoned, true
	case <-w.Keys.Resumed():
		w.asked = "" // the shell wrote below it
		return Launch, false
	case <-hint:
		if ctx.Err() != nil { // closed
			return Terminated, true
		}
		return Launch, false
	case <-ctx.Done():
		return Terminated, true
	}
}

// pauseUntil waits for the next reason to decide again.
func (w *LaunchWait) pauseUntil(ctx context.Context, d policies.Decision, hint <-chan struct{}) (Verdict, bool) {
	now := w.Now()
	next := earliest(now.Add(retry), w.said.Add(eachMinute))
	if w.Keys != nil {
		next = now.Add(time.Second - time.Duration(now.Nanosecond())) // the countdown's next second
	}
	next = earliest(next, d.Wake)
	t := time.NewTimer(max(next.Sub(now), 10*time.Millisecond))
	defer t.Stop()
	var keys <-chan byte
	var interrupts, resumed <-chan struct{}
	if w.Keys != nil {
		keys, interrupts, resumed = w.Keys.Keys(), w.Keys.Interrupts(), w.Keys.Resumed()
	}
	for {
		select {
		case k := <-keys:
			if k == '\r' || k == '\n' {
				w.runAnyway(ctx)
				return Launch, !w.Again // that one is written down before it is begun
			}
			w.Keys.More()
		case <-interrupts:
			return Abandoned, true
		case <-resumed:
			w.shown = false // the shell wrote below our line
			return Launch, false
		case _, ok := <-hint:
			if ok {
				return Launch, false
			}
			hint = nil
		case <-t.C:
			return Launch, false
		case <-ctx.Done():
			return Terminated, true
		}
	}
}

// runAnyway records that the user launches in spite of the holds.
func (w *LaunchWait) runAnyway(ctx context.Context) {
	_, err := w.Store.Update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		return w.Policy.RunAnyway(l, w.input())
	})
	if err != nil {
		w.warn(err)
	}
}

// show keeps one live line on a terminal that can; elsewhere a line now and each minute.
func (w *LaunchWait) show(d policies.Decision) {
	p := w.facts(d)
	if w.Keys != nil && !w.Dumb {
		_, _ = fmt.Fprintf(w.Out, "\r\x1b[K%s", w.Voice.Line(p, w.cols())) // a broken stderr must not stop the launch
		w.shown = true
		return
	}
	if now := w.Now(); w.said.IsZero() || now.Sub(w.said) >= eachMinute {
		w.said = now
		w.print(w.Voice.Line(p, 0))
	}
}

func (w *LaunchWait) facts(d policies.Decision) Pause {
	p := Pause{Agent: w.Agent, Label: w.Label(d.Limiter), Decision: d, Now: w.Now(), Again: w.Again}
	if w.Keys == nil {
		p.Keys = HintNone
	}
	return p
}

func (w *LaunchWait) cols() int {
	if w.Cols == nil {
		return 0
	}
	return w.Cols()
}

func (w *LaunchWait) warn(err error) {
	if s := Fault(err); s != w.Told {
		w.Told = s
		w.print(w.Voice.Warn(err))
	}
}

func (w *LaunchWait) print(s string) {
	w.clear()
	_, _ = fmt.Fprintln(w.Out, s) // nowhere left to say that stderr is broken
}

// clear takes the live line away, so that the agent starts where the user was.
func (w *LaunchWait) clear() {
	if w.shown {
		_, _ = io.WriteString(w.Out, "\r\x1b[K") // as above
		w.shown = false
	}
}

func (w *LaunchWait) end(v Verdict) Verdict {
	w.clear()
	return v
}
