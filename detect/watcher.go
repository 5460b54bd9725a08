// Package detect turns what an agent shows and logs into findings: terminal
// bytes, pipe lines and log lines in, finding.Finding out. Who is speaking
// decides, not which words: a profile (policies/agents/*.toml) says how its
// agent draws its own rows, the model's speech, tool output and the user's
// prompt, and only the agent's own rows can make a finding. Where a row alone
// cannot decide, a second sign must agree (signs.go).
//
// There is no clock, disk or environment here: now and zone are arguments.
//
//	bytes -> screen.Screen -> page of lines -> blocks by speaker -> rules
//	                                              -> signs, freshness -> Report
package detect

import (
	"time"

	"qshim/detect/finding"
	"qshim/detect/screen"
)

const (
	// settle is how long a new row must stand unchanged before it is
	// believed: a frame can reach us in several reads (a PTY passes 4 KB at
	// a time) and half a sentence means something else.
	settle = 12 * time.Millisecond
	// settleMost bounds settle for a row that goes on changing.
	settleMost = 200 * time.Millisecond
	// signTime is how long a row waits for its second sign. Claude's screen,
	// title and transcript agree within 0.5 s in any order (measured 2.1.332).
	signTime = time.Second
	// oscReach is how far an OSC 7501 state may stand from its row: Codex
	// writes both in one frame (measured 0.171.0), the rest is slack.
	oscReach = 2 * time.Second
	// failReach is how long before a failed exit a row can have stood on a
	// terminal and still be its reason.
	failReach = time.Minute
	// breath is the shortest time between two looks at the page, so that a
	// flood of output costs a small share of its time.
	breath = 5 * time.Millisecond
	// lull is how often a page without hot rows is looked at, for composer
	// and dialog.
	lull = 40 * time.Millisecond
	// maxScrolled is how many rows above the screen are looked at.
	maxScrolled = 60
)

// Activity is what the agent is doing by its profile's best sign.
type Activity int

// The activities.
const (
	Unknown Activity = iota // no sign seen
	Idle                    // composer or dialog
	Busy                    // a turn is in progress
)

// Stream names a pipe of a headless agent.
type Stream int

// The streams.
const (
	Stdout Stream = iota
	Stderr

	onTerminal Stream = 2 // both in one
)

// Options are what a watcher must know of its session.
type Options struct {
	Mode       Mode
	Cols, Rows int            // terminal size; 0: 80x24
	Zone       *time.Location // the machine's zone; nil: UTC
	Started    time.Time      // when the agent was started
	Lenient    bool           // explain: what the input cannot hold counts as agreeing
	HasLog     bool           // the agent's log is tailed too: once a line of it has come, its silence means something
	Records    bool           // headless: the launch asked for JSON records, so every line of JSON is one
	Prompt     bool           // the launch carries a prompt: a turn begins without the user's Enter
}

// Report is what one step brought.
type Report struct {
	Findings    []finding.Finding
	Events      []uint64 // Events[i] names the event of Findings[i]: a second finding of one event is a better reading of it
	Activity    Activity
	TurnBegan   bool // a turn began since the last report
	TurnEnded   bool // a turn ended, well or not
	Success     bool // a turn, or a request of one, ended well by the profile's own sign
	AnswerBegun bool // the turn in progress has begun to answer since the last report
	RetryEnded  bool // the client's own retry ended, either way

	Unrecognised []Unrecognised // turns that failed for a reason that no rule knows

	Usage    Usage // as far as the agent's records and warnings tell
	UsageNew bool  // one of them has told something since the last report

	ComposerEmpty bool      // the composer is visible and holds no text of the user's
	Continues     bool      // the agent says that it will continue by itself after the limit
	Dialog        bool      // a dialog waits for a key: type nothing
	Model         string    // last model seen, "" unknown
	Wake          time.Time // call Tick then; zero: nothing pending
}

// Watcher is one session's detector. It is not safe for concurrent use.
type Watcher struct {
	of *Profile // where p comes from, once there is something to judge
	p  *book
	o  Options
	s  *screen.Screen

	lines   []line // the page: scrolled rows, then the visible ones
	cache   []cached
	scrolls []line
	total   uint64 // rows scrolled off so far
	blocks  []block

	sig        signs
	turn       int
	events     []event
	nextID     uint64
	screenDesk desk

	now      time.Time // the last one that was told
	dirty    time.Time // a change that has not been looked at; zero: none
	looked   time.Time
	retrying bool
	answer   bool
	said     uint64 // what the model had said when the present try began; 0: nothing
	rep      Report

	usage    Usage
	requests map[int]request // the last one that each usage rule has counted

	pipes  [3]pipe // stdout, stderr, log
	known  []exhausted
	drift  drift
	asked  asked
	exited bool
	failed bool // it ended by itself, with an error

	refused bool // its last record was a refusal: Qwen Code ends with 0 all the same (measured 0.15.10)
}

// cached is a classified visible row.
type cached struct {
	version uint64
	ok      bool
	l       line
}

// event is one thing that happened, reported once.
type event struct {
	id    uint64
	turn  int
	class finding.Class
	f     finding.Finding
	key   string
}

// Watch starts watching one session of the profile's agent.
func (p *Profile) Watch(o Options) *Watcher {
	w := newWatcher(o)
	w.of = p
	return w
}

func (p *book) watch(o Options) *Watcher {
	w := newWatcher(o)
	w.p = p
	return w
}

// ready gets the rules; only what was seen or logged needs them.
func (w *Watcher) ready() {
	if w.p == nil {
		w.p = w.of.rules()
	}
}

func newWatcher(o Options) *Watcher {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Cols == 0 {
		o.Cols = 80
	}
	if o.Rows == 0 {
		o.Rows = 24
	}
	w := &Watcher{o: o, s: screen.New(o.Cols, o.Rows)}
	w.pipes[logPipe].desk.own = true
	if o.Mode == Headless {
		w.turn = 1
		w.sig.activity = Busy
	}
	return w
}

// Screen is the terminal model that Output feeds.
func (w *Watcher) Screen() *screen.Screen { return w.s }

// Output takes terminal bytes on their way from the agent to the user. A
// headless call on a terminal is read line by line, both pipes in one.
func (w *Watcher) Output(now time.Time, b []byte) Report {
	now = w.clock(now)
	_, _ = w.s.Write(b) // never fails
	w.ready()
	if w.o.Mode == Headless {
		return w.Stream(now, onTerminal, b)
	}
	w.takeEvents(now)
	w.scan(now, false)
	return w.take(now)
}

// Resize follows a change of the window size. It brings nothing new: what is
// painted again was there before.
func (w *Watcher) Resize(now time.Time, cols, rows int) Report {
	now = w.clock(now)
	w.s.Resize(cols, rows)
	w.cache = w.cache[:0]
	w.scan(now, true)
	return w.take(now)
}

// Resync says that bytes were dropped: until the next full repaint the rows
// of the screen may be a mixture, so they make weak findings only.
func (w *Watcher) Resync() {
	w.s.Lost()
	w.screenDesk.wait = nil
}

// Key says that the user's keys reached the agent; enter, that Enter was among
// them. Before the first Enter or turn nothing on the screen is new.
func (w *Watcher) Key(now time.Time, enter bool) {
	now = w.clock(now)
	w.sig.keys = true
	if !enter {
		return
	}
	first := w.unasked()
	w.sig.enter = now
	switch {
	case w.sig.early && !w.sig.dialog:
		w.setActivity(now, Busy) // asked before the start was over
	case w.sig.activity == Unknown, first && w.p.rowTells():
		w.beginTurn(now) // a refusal can be faster than the row that tells of work
	default:
		w.entered()
	}
	w.sig.early = false
}

// Busy takes what the agent's own status file says.
func (w *Watcher) Busy(now time.Time, busy bool) Report {
	now = w.clock(now)
	a := Idle
	if busy {
		a = Busy
	}
	w.setActivity(now, a)
	w.scan(now, true)
	return w.take(now)
}

// Tick is called at Report.Wake.
func (w *Watcher) Tick(now time.Time) Report {
	now = w.clock(now)
	w.scan(now, true)
	w.rereadPipes(now)
	w.checkDrift(now)
	return w.take(now)
}

// take hands out the report and starts the next one.
func (w *Watcher) take(now time.Time) Report {
	r := w.state(now)
	w.rep = Report{}
	return r
}

// Peek looks at the screen as it is now and takes nothing out of the next report.
func (w *Watcher) Peek(now time.Time) Report {
	now = w.clock(now)
	w.scan(now, true)
	return w.state(now)
}

// state is the report so far, with what the signs say now.
func (w *Watcher) state(now time.Time) Report {
	r := w.rep
	r.Activity = w.sig.activity
	r.ComposerEmpty, r.Dialog, r.Continues = w.sig.composerEmpty, w.sig.dialog, w.sig.continues
	r.Model = w.sig.model
	r.Usage = w.usage
	r.Wake = w.wake(now)
	return r
}

// wake is the earliest instant at which time alone changes something.
func (w *Watcher) wake(now time.Time) time.Time {
	var t time.Time
	sooner := func(x time.Time) {
		if !x.After(now) {
			x = now.Add(time.Millisecond)
		}
		if t.IsZero() || x.Before(t) {
			t = x
		}
	}
	switch {
	case w.partial(now):
		sooner(w.dirty.Add(settleMost))
	case !w.dirty.IsZero():
		sooner(w.looked.Add(breath))
	}
	if !w.drift.due.IsZero() {
		sooner(w.drift.due)
	}
	if !w.sig.quiet.IsZero() {
		sooner(w.sig.quiet.Add(quietAfter))
	}
	for _, d := range w.desks() {
		for _, p := range d.wait {
			if at := p.due(w, now); !at.IsZero() {
				sooner(at)
			}
		}
	}
	return t
}

func (w *Watcher) desks() [4]*desk {
	return [4]*desk{&w.screenDesk, &w.pipes[0].desk, &w.pipes[1].desk, &w.pipes[2].desk}
}

// setActivity notes an edge of the agent's activity.
func (w *Watcher) setActivity(now time.Time, a Activity) {
	was := w.sig.activity
	w.sig.activity = a
	switch {
	case a == Busy && was != Busy && !w.sameTurn(now):
		w.beginTurn(now)
	case a == Idle && was == Busy:
		w.sig.idleAt = now
		w.rep.TurnEnded = true
		w.endRetry()
	}
}

func (w *Watcher) beginTurn(now time.Time) {
	w.turn++
	w.answer, w.said = false, 0
	w.sig.began = now
	w.drift.due = time.Time{} // its rows are the last turn's by now
	w.rep.TurnBegan = true
}

// answers notes that the turn in progress has begun to answer. A turn of many
// calls can be refused again after it: that is another event. A retry row that
// only flickers is not.
func (w *Watcher) answers() {
	if w.answer {
		return
	}
	w.answer = true
	w.rep.AnswerBegun = true
	for i := range w.events {
		if e := &w.events[i]; e.turn == w.turn && e.class == finding.Retrying {
			e.turn = pastTurn
		}
	}
}

// NewTry says that the agent tries again within its turn: it was continued. An
// answer then is what it says beyond what stands on the screen already.
func (w *Watcher) NewTry() { w.answer, w.said = false, w.speech() }

func (w *Watcher) endRetry() {
	if !w.retrying {
		return
	}
	w.retrying = false
	w.rep.RetryEnded = true
}

// pastTurn is the turn of an event that is over before its turn is.
const pastTurn = -1

// shortestDay: Google states a retryDelay of up to a minute beside a daily quota
// too (measured with Gemini CLI 0.61.0 -p: 34 s); the quota does not end by then.
const shortestDay = time.Minute

// report hands out a finding unless its event is known and nothing is better.
// All limits of one turn are one event, so are its retries, its warnings and
// its errors of authentication: a redraw or a second row that says the same
// reports nothing.
func (w *Watcher) report(f finding.Finding, key string, each bool) {
	w.refine(&f)
	w.warned(f)
	if !w.o.Lenient && f.Class == finding.Daily && f.ResetSource == finding.Relative && f.Reset.Sub(f.At) < shortestDay {
		f.Reset, f.ResetSource, f.Precision = time.Time{}, "", 0
	}
	if !w.o.Lenient && f.Reset.IsZero() && lasting(f.Class) {
		f.RetryAfter = 0 // a delay that does not end the block: see lies in providers.toml
	}
	for i := range w.events {
		e := &w.events[i]
		if e.turn != w.turn || !sameEvent(e.class, f.Class) {
			continue
		}
		if better(&e.f, f, each) || each {
			w.emit(e.id, e.f)
		}
		return
	}
	if f.Class == finding.Warning && w.warnedBefore(key) {
		return
	}
	w.nextID++
	w.events = append(w.events, event{id: w.nextID, turn: w.turn, class: f.Class, f: f, key: key})
	if len(w.events) > 64 {
		w.events = append(w.events[:0], w.events[32:]...)
	}
	if f.Class == finding.Retrying {
		w.retrying = true
	}
	w.emit(w.nextID, f)
}

// improves reports whether f states a better reset than its event has.
func (w *Watcher) improves(f finding.Finding) bool {
	for i := range w.events {
		if e := &w.events[i]; e.turn == w.turn && sameEvent(e.class, f.Class) {
			return f.ResetSource.Rank() > e.f.ResetSource.Rank()
		}
	}
	return false
}

func (w *Watcher) emit(id uint64, f finding.Finding) {
	if f.Class == finding.Retrying {
		w.NewTry()
	}
	w.rep.Findings = append(w.rep.Findings, f)
	w.rep.Events = append(w.rep.Events, id)
}

// warnedBefore: a warning stands for hours; it is news once, and beside a
// limit it is none. Its key is its words without figures.
func (w *Watcher) warnedBefore(key string) bool {
	for _, e := range w.events {
		if e.class == finding.Warning && e.key == key || e.turn == w.turn && e.class.IsLimit() {
			return true
		}
	}
	return false
}

// lasting reports whether a limit of the class outlives any client's retries.
func lasting(c finding.Class) bool {
	return c == finding.Window || c == finding.Daily || c == finding.Credit || c == finding.Spend
}

func sameEvent(a, b finding.Class) bool {
	return a == b || a.IsLimit() && b.IsLimit()
}

// better improves old by what f says more and reports whether it did. The
// instant at which a time was first read stays, but for another try, which
// counts from its own; each says that f is one.
func better(old *finding.Finding, f finding.Finding, each bool) bool {
	changed := false
	if f.Class == finding.Retrying {
		if f.Attempt > 0 && f.Attempt != old.Attempt || f.Attempt == 0 && each {
			old.Attempt, old.RetryAfter, old.At, changed = f.Attempt, f.RetryAfter, f.At, true
			old.Rows = f.Rows
			if !f.Reset.IsZero() && f.ResetSource.Rank() >= old.ResetSource.Rank() {
				old.Reset, old.ResetSource, old.Precision = f.Reset, f.ResetSource, f.Precision
			}
		}
		if old.Cause == finding.Unknown && f.Cause != finding.Unknown {
			old.Cause, old.Rows, old.Rule, old.Measure, old.Scope, changed = f.Cause, f.Rows, f.Rule, f.Measure, f.Scope, true
		}
	}
	if f.ResetSource.Rank() > old.ResetSource.Rank() {
		old.Reset, old.ResetSource, old.Precision, changed = f.Reset, f.ResetSource, f.Precision, true
	}
	if f.Confidence.Rank() > old.Confidence.Rank() {
		old.Confidence, changed = f.Confidence, true
		if f.Class != old.Class {
			// The surer source names the class too.
			old.Class, old.Rule, old.Rows, old.Measure, old.Scope = f.Class, f.Rule, f.Rows, f.Measure, f.Scope
		}
	}
	return changed
}
