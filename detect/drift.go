package detect

import (
	"time"

	"qshim/detect/finding"
)

// Unrecognised is a turn that the agent itself calls failed, and rows that speak
// of a limit and that no rule took: a new version may have new words. It
// touches nobody; a person reads it and writes a rule.
type Unrecognised struct {
	Sign string   // what says that the turn failed: osc7501, title, placeholder, log, stream, exit
	Rows []string // control bytes escaped, at most 12
}

// The signs of a turn that failed.
const (
	signOSC   = "osc7501"
	signTitle = "title"
	signHint  = "placeholder"
	signLog   = "log"
	signPipe  = "stream"
	signExit  = "exit"
)

// mostUnrecognised bounds what one session says: a log for a person, who needs
// each text once.
const mostUnrecognised = 20

// limitWords is what rows that no rule took must hold to be worth a person's
// look.
var limitWords = ownPattern(`(?i)rate[ _-]?limit|usage[ _]limit|limit (?:has been |was )?(?:reached|exceeded|hit)|(?:hit|reached|exceeded|over|at) (?:your|the|its|our) [\w -]{0,30}(?:limit|quota|cap|allowance)\b|\bquota\b|\b429\b|too many requests|overloaded|throttl|out of (?:\w+ )?credits?\b|insufficient (?:\w+ )?(?:credits?|balance|quota|funds)|resource[_ ]exhausted|at (?:full )?capacity|(?:retry|try) (?:again )?(?:after|in|at) (?:~?\d|an? )|\bresets? (?:at|in|on) |upgrade your plan|billing`)

// drift is what a watcher knows about turns that failed for a reason unknown.
type drift struct {
	due  time.Time // when the failed turn's rows are looked at; zero: none
	sign string
	turn int             // the turn that was looked at last
	told map[string]bool // texts without blanks and figures
}

// failedTurn notes a sign that the turn in progress has failed. Its rows are
// looked at when every rule has had its time.
func (w *Watcher) failedTurn(now time.Time, sign string) {
	if w.drift.due.IsZero() && w.turn != w.drift.turn {
		w.drift.due, w.drift.sign = now.Add(signTime+settle), sign
	}
}

// checkDrift looks at the rows of a failed turn when it is time.
func (w *Watcher) checkDrift(now time.Time) {
	if w.drift.due.IsZero() || now.Before(w.drift.due) {
		return
	}
	w.drift.due, w.drift.turn = time.Time{}, w.turn
	w.unexplained(now, w.drift.sign, w.blocks, w.lines, w.screenMode())
}

// unexplained reports the last block that speaks of a limit although no rule
// knows it, unless the turn's failure is known.
func (w *Watcher) unexplained(now time.Time, sign string, bs []block, page []line, m Mode) bool {
	if w.explained() {
		return true
	}
	speech := -1
	for i := len(bs) - 1; i >= 0; i-- {
		b := &bs[i]
		if b.to > len(page) || b.def != nil && b.def.who == byUser {
			break
		}
		switch {
		case b.def != nil && b.def.who == byTool && m == Headless && i == len(bs)-1:
			// The last words of a call that failed, whoever they look like.
		case b.def != nil && (b.def.who == byFrame || b.def.who == byTool):
			continue
		case b.def != nil && b.def.who == byModel:
			if speech < 0 {
				speech = i
			}
			continue
		}
		if w.suspect(now, b, page, m) {
			w.unrecognise(sign, b.rows)
			return true
		}
	}
	// With another glyph the client's own row looks like the model's last word.
	if speech >= 0 && w.suspect(now, &bs[speech], page, m) {
		w.unrecognise(sign, bs[speech].rows)
		return true
	}
	return false
}

// explained reports whether the turn's failure has been reported, or is no
// limit's.
func (w *Watcher) explained() bool {
	for _, e := range w.events {
		if e.turn == w.turn && (e.class.IsLimit() || e.class == finding.Auth) {
			return true
		}
	}
	return false
}

// suspect reports whether a block speaks of a limit and no rule claims it.
func (w *Watcher) suspect(now time.Time, b *block, page []line, m Mode) bool {
	b.fill(page)
	if !limitWords.MatchString(b.mended) {
		return false
	}
	_, own := w.p.take(b, m, false, now, w.o.Zone)
	return !own
}

// unrecognise reports rows once.
func (w *Watcher) unrecognise(sign string, rows []string) {
	key := ""
	for _, r := range rows {
		key += withoutFigures(squeeze(r))
	}
	if w.drift.told[key] || len(w.drift.told) >= mostUnrecognised {
		return
	}
	if w.drift.told == nil {
		w.drift.told = map[string]bool{}
	}
	w.drift.told[key] = true
	w.rep.Unrecognised = append(w.rep.Unrecognised, Unrecognised{Sign: sign, Rows: escapeRows(rows)})
}

// exitDrift looks at what stood last when the agent failed: the screen of a
// session, the pipes of a headless call, stderr first.
func (w *Watcher) exitDrift(now time.Time) {
	if w.p == nil {
		return
	}
	if w.o.Mode != Headless {
		w.drift.due = time.Time{}
		w.unexplained(now, signExit, w.blocks, w.lines, w.screenMode())
		return
	}
	for _, out := range []Stream{Stderr, Stdout} {
		p := &w.pipes[out]
		p.blocks = w.p.blocks(p.window, p.blocks)
		if w.unexplained(now, signExit, p.blocks, p.window, Headless) {
			return
		}
	}
}

// recordDrift reports an error record whose sentence nobody knows.
func (w *Watcher) recordDrift(r *jsonRule, d doc, from string) {
	if r.class != "" || r.otherwise != "" {
		return
	}
	msg := r.message(d)
	if _, known := meant(d.code(r.code) + " " + msg); known || !limitWords.MatchString(msg) {
		return
	}
	rows := d.says(r.text, r.code)
	if rows == nil {
		rows = []string{msg}
	}
	sign := signLog
	if from != "log" {
		sign = signPipe
	}
	w.unrecognise(sign, rows)
}

// logError is how the agents' text logs mark an error's line.
var logError = ownPattern(`^(?:\[[^\]]*\] ?){0,3}\[?(?:ERROR|FATAL)\b`)

// logLineDrift reports a line of the log that is marked as an error and speaks
// of a limit although no rule knows it.
func (w *Watcher) logLineDrift(now time.Time, p *pipe, text string) {
	if len(p.window) == 0 || !logError.MatchString(text[:min(len(text), 200)]) || !limitWords.MatchString(clip(text)) {
		return
	}
	bs := w.p.blocks(p.window[len(p.window)-1:], nil)
	if len(bs) == 1 && w.suspect(now, &bs[0], p.window[len(p.window)-1:], logText) {
		w.unrecognise(signLog, []string{text})
	}
}
