package detect

import (
	"strings"
	"time"

	"qshim/detect/finding"
	"qshim/detect/screen"
)

// signs are the second sources besides a row: what the title, OSC 7501, the
// composer, dialogs and the log say.
type signs struct {
	activity Activity
	idleAt   time.Time // last busy -> idle edge
	began    time.Time // last idle -> busy edge
	enter    time.Time // last Enter of the user's
	keys     bool      // the user's keys are known
	early    bool      // the agent calls itself busy although nothing was asked

	osc     string    // last OSC 7501 state, "" never seen
	errorAt time.Time // last state "error"

	titles bool      // a title of the profile's was seen
	quiet  time.Time // since when the busy row is gone, see quiet.go; zero: it is there
	hint   bool      // the composer shows the placeholder of a failed turn

	composer, composerEmpty, dialog, footer bool
	continues                               bool // the agent says that it will continue by itself

	logged   bool      // a line of the log has come: it is found and followed
	logAt    time.Time // last error record of the log
	logClass finding.Class
	model    string
}

// takeEvents reads titles and OSC 7501 states.
func (w *Watcher) takeEvents(now time.Time) {
	for _, e := range w.s.TakeEvents() {
		switch e.Kind {
		case screen.Title:
			w.title(now, e.Text)
		case screen.OSC7501:
			if w.p.act.osc {
				w.oscState(now, e.Text)
			}
		}
	}
}

func (w *Watcher) title(now time.Time, t string) {
	a := &w.p.act
	if a.titleError != nil && a.titleError.MatchString(t) {
		w.sig.titles = true
		w.setActivity(now, Idle)
		w.failedTurn(now, signTitle)
		return
	}
	switch {
	case a.titleBusy != nil && a.titleBusy.MatchString(t):
		w.sig.titles = true
		w.looksBusy(now)
	case a.titleIdle != nil && a.titleIdle.MatchString(t):
		w.sig.titles, w.sig.early = true, false
		w.setActivity(now, Idle)
	}
}

// looksBusy takes the agent's own word that it works, unless nobody has asked
// it anything yet: Codex says so for as long as it starts, up to a minute on a
// loaded machine (measured 0.171.0).
func (w *Watcher) looksBusy(now time.Time) {
	if w.p.act.startsBusy && w.unasked() {
		w.sig.early = true
		return
	}
	w.setActivity(now, Busy)
}

// unasked reports whether no turn can have begun: no prompt came with the
// launch and the user has not pressed Enter. Without keys nobody knows.
func (w *Watcher) unasked() bool {
	return w.turn == 0 && !w.o.Prompt && w.sig.enter.IsZero() && (!w.o.Lenient || w.sig.keys)
}

// oscState takes "state=working:app=codex".
func (w *Watcher) oscState(now time.Time, text string) {
	state := ""
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ';' }) {
		if v, ok := strings.CutPrefix(f, "state="); ok {
			state = v
		}
	}
	if state == "" || state == "clear" {
		return
	}
	was := w.sig.osc
	w.sig.osc = state
	if state == "error" {
		w.sig.errorAt = now
		w.failedTurn(now, signOSC)
	}
	if state == "working" {
		w.looksBusy(now)
		return
	}
	if w.sig.early && state != "idle" {
		w.setActivity(now, Busy) // starting ends idle: it was a turn after all
	}
	w.sig.early = false
	if state == "done" && was == "working" {
		w.rep.Success = true
	}
	w.setActivity(now, Idle)
}

// verdict is what the second signs say of a row.
type verdict int

const (
	waits verdict = iota
	agrees
	disagrees
)

// judge asks the second signs about a pending row.
func (w *Watcher) judge(p *pending, now time.Time) verdict {
	late := now.Sub(p.first) >= signTime
	if w.o.Mode == Headless && p.rule.needs != "" && p.rule.needs != "live" {
		// On a pipe a good answer can be any text: that the agent failed is
		// the second sign.
		if w.o.Lenient || w.failed {
			return agrees
		}
		return waits
	}
	switch p.rule.needs {
	case "osc-error":
		return w.judgeOSC(p, late)
	case "banner":
		if p.kind == "own-error" {
			return w.judgeError(p, now, late)
		}
		return w.judgeBanner(p, now, late)
	case "idle":
		return w.judgeIdle(late)
	case "exit", "second":
		if w.failed && now.Sub(p.first) < failReach || w.logAgrees(p) {
			return agrees
		}
		return w.unknown(late)
	case "live":
		// A row that is only live while the agent works.
		if w.sig.activity == Idle && w.sig.titlesOrOSC() {
			return disagrees
		}
		if w.o.Mode == Headless || w.p.tells() || w.o.Lenient || p.ticked || w.logAgrees(p) {
			return agrees
		}
		return waits // nothing says that it is live: a log that a tool printed reads the same
	}
	return agrees
}

func (s *signs) titlesOrOSC() bool { return s.titles || s.osc != "" }

// judgeOSC: every failed turn of Codex goes working -> error, everything else
// does not, and no model text can forge it (measured 0.171.0).
func (w *Watcher) judgeOSC(p *pending, late bool) verdict {
	if w.sig.osc == "" {
		return w.unknown(late)
	}
	near := !w.sig.errorAt.IsZero() && w.sig.errorAt.Sub(p.first).Abs() <= oscReach
	switch {
	case near, w.logAgrees(p):
		return agrees
	case w.sig.osc == "working", !late:
		return waits
	}
	return disagrees
}

// judgeError: Claude draws an answer that begins with "API Error:" exactly as
// its own error. Only the failure's placeholder, the log, or the missing
// "done" line tell (measured 2.1.332).
func (w *Watcher) judgeError(p *pending, now time.Time, late bool) verdict {
	switch {
	case w.sig.hint, w.logAgrees(p):
		return agrees
	case w.sig.activity == Busy:
		return waits
	case w.retriedFor(p):
		return agrees
	case w.o.HasLog && w.sig.logged && !w.o.Lenient, p.finished && w.sig.titles:
		return waits // the log would tell; 2.1.197 ends good turns alike
	case !w.sig.idleAt.IsZero():
		if late && now.Sub(w.sig.idleAt) >= signTime {
			return agrees // a good turn would have left its "done" line
		}
		return waits
	case w.sig.composer && w.sig.keys:
		return waits
	}
	return w.unknown(late)
}

// judgeBanner: a ⎿ row of Claude's is its own below the user's prompt; below
// speech or a tool it could be theirs.
func (w *Watcher) judgeBanner(p *pending, now time.Time, late bool) verdict {
	switch {
	case w.sig.footer, w.sig.dialog, w.sig.hint, w.logAgrees(p):
		return agrees
	case p.colour == uncoloured:
		return disagrees
	case w.sig.activity == Busy:
		return waits
	case p.prev == promptRow && !w.sig.idleAt.IsZero() && p.first.Sub(w.sig.idleAt).Abs() <= oscReach:
		return agrees
	}
	return w.unknown(late)
}

// judgeIdle: the row ends a turn, so the agent cannot be busy any more.
func (w *Watcher) judgeIdle(late bool) verdict {
	switch {
	case w.sig.activity == Idle:
		return agrees
	case w.sig.activity == Busy:
		return waits
	}
	return w.unknown(late)
}

// unknown is the verdict where no sign came: in explain the input could not
// hold one, live the row stays weak.
func (w *Watcher) unknown(late bool) verdict {
	if w.o.Lenient && (late || w.o.Mode == Headless) {
		return agrees
	}
	return waits
}

// retriedFor reports whether this turn's own retries had the same cause: when
// they run out the error is theirs.
func (w *Watcher) retriedFor(p *pending) bool {
	for _, e := range w.events {
		if e.turn == w.turn && e.class == finding.Retrying && e.f.Cause == p.f.Class {
			return true
		}
	}
	return false
}

func (w *Watcher) logAgrees(p *pending) bool {
	return !w.sig.logAt.IsZero() && w.sig.logAt.Sub(p.first).Abs() <= oscReach
}
