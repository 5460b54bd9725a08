package shim

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"

	"qshim/detect/screen"
	"qshim/shim/term"
)

// screenFace shows one session's pauses on the user's terminal, always between
// two sequences of the agent and never where the agent could see it. It is used
// by the governor's goroutine alone.
//
//	Paused -> between sequences? no: nudge, at most mostNudges times
//	       -> agent's input modes off, title, notification
//	       -> alternate screen: the row
//	          main screen: CSI 6 n -> the answer places the model -> the row
type screenFace struct {
	c       *Config
	stage   stage
	watch   *watch
	paused  bool // the session is: overlays may be painted
	nudges  int  // in this pause
	nudged  bool // the session will say Paused once more
	asked   bool // for the cursor's place, in this pause
	located bool // the model's rows are the terminal's, in this pause
	whole   bool // the size changed in this pause: rows stand elsewhere now
	laid    bool // the session has our undo, and the terminal what it undoes
	row     string
	titled  string // the title that the overlay has set
	facts   Pause
	fresh   bool // the next paint carries the notification

	total   uint64 // bytes of output that the watcher has seen
	pending []byte // a notification that waits for a moment between sequences
	ordered []byte // the one that the session was told to insert
	tries   int

	said []string // warnings that would have spoiled the agent's screen
	told []string // the fault of each
	bell notifier
}

// stage is what a face needs of its session.
type stage interface {
	OnTerminal() bool
	Overlay(paint, undo []byte)
	Insert(total uint64, b []byte)
	Nudge()
}

// mostNudges bounds how often a pause in mid-sequence is nudged on.
const mostNudges = 3

// Pause shows the pause row, or paints it again with new words.
func (f *screenFace) Pause(p Pause) {
	f.facts = f.complete(p)
	f.paint()
}

// complete adds what only the session knows.
func (f *screenFace) complete(p Pause) Pause {
	p.Agent, p.Label = f.c.Title, f.c.Label(p.Decision.Limiter)
	return p
}

// showing reports whether there is a countdown on the user's terminal.
func (f *screenFace) showing() bool { return f.paused && f.stage.OnTerminal() }

// pausedNow: the stop has taken effect and all output before it is on the
// screen. Where it cut a sequence or a synchronised update in two, the agent is
// first allowed to finish that.
func (f *screenFace) pausedNow() {
	if !f.nudged {
		f.nudges, f.fresh = 0, true
	}
	f.nudged = false
	f.paused, f.asked, f.located, f.whole, f.laid = true, false, false, false, false
	if f.nudges < mostNudges && f.stage.OnTerminal() && f.inMiddle() {
		f.nudges++
		f.nudged, f.paused = true, false
		f.stage.Nudge()
		return
	}
	f.paint()
}

func (f *screenFace) inMiddle() bool {
	f.watch.Lock()
	defer f.watch.Unlock()
	s := f.watch.Screen()
	return !s.Ground() || s.Synchronised()
}

// over: the agent runs again, or has ended.
func (f *screenFace) over() { f.paused, f.nudged = false, false }

// resized: what stood on the terminal stands elsewhere now, our row included.
func (f *screenFace) resized() {
	f.whole, f.asked, f.located, f.row = true, false, false, ""
	f.paint()
}

// output: something was written to the terminal, if only by a process that was
// not stopped, and took the overlay away.
func (f *screenFace) output(total uint64) {
	f.total, f.laid = total, false
	f.insert()
}

// paint orders the pause row. On the main screen the model must first learn at
// which row the agent stands: the terminal is asked once, and without an answer
// there is no row, only title and notification.
func (f *screenFace) paint() {
	if !f.showing() {
		return
	}
	f.watch.Lock()
	defer f.watch.Unlock()
	s := f.watch.Screen()
	if !s.Ground() {
		return
	}
	cols, _ := s.Size()
	row := clean(f.c.Voice.PauseRow(f.facts, cols))
	if f.laid && row == f.row {
		return
	}
	if f.c.Dumb {
		f.line(s, row)
		return
	}
	var paint, undo []byte
	if !f.laid { // only once: some of these pop what the agent pushed
		paint = s.Modes().InputOff()
	}
	switch {
	case !s.Trusted(): // what stands under the row is not known
	case s.Alt() || f.located:
		paint, undo = f.lay(s, row, paint, undo)
	case !f.asked:
		f.asked = true
		paint = append(paint, askCursor...)
	}
	paint, undo = f.title(paint, undo, s.Title())
	if f.fresh {
		f.fresh = false
		paint = append(paint, f.notification(f.c.Voice.Notice(Notice{Kind: Suspended, Pause: f.facts}))...)
	}
	f.laid, f.row = true, row
	f.stage.Overlay(paint, append(undo, s.Modes().InputOn()...))
}

// line says once in a pause, on a terminal that knows no sequence, what the row
// would: a line like the agent's own, which stays.
func (f *screenFace) line(s *screen.Screen, text string) {
	if !f.fresh {
		return
	}
	f.fresh = false
	text = strings.TrimSpace(text)
	if x, _ := s.Cursor(); x > 0 {
		text = "\r\n" + text
	}
	f.stage.Overlay([]byte(text+"\r\n"), nil)
}

// lay paints the row over the last one of the screen.
func (f *screenFace) lay(s *screen.Screen, row string, paint, undo []byte) (p, u []byte) {
	_, rows := s.Size()
	if f.whole {
		whole := s.AppendRows(s.AppendOpen(nil), firstRow(s), rows)
		whole = s.AppendClose(whole)
		paint, undo = append(paint, whole...), append(undo, whole...)
	}
	on, off := term.Row(s, rows-1, row)
	return append(paint, on...), append(undo, off...)
}

// title says in the window's title that the agent stands still. The agent's own
// comes back; where it has set none the terminal's does, if it keeps titles, and
// is left empty for the shell to set if it does not.
func (f *screenFace) title(paint, undo []byte, agents string) (p, u []byte) {
	if !f.c.TitleOn {
		return paint, undo
	}
	if agents == "" && !f.laid {
		paint = append(paint, "\x1b[22;0t"...)
	}
	if text := clean(f.c.Voice.Title(f.facts)); !f.laid || text != f.titled { // a swallowed key changes the row alone
		paint = append(paint, "\x1b]0;"+text+"\x07"...)
		f.titled = text
	}
	undo = append(undo, "\x1b]0;"+agents+"\x07"...)
	if agents == "" {
		undo = append(undo, "\x1b[23;0t"...)
	}
	return paint, undo
}

// firstRow is the first one that may be repainted. On the main screen the model
// has blank rows where the shell wrote before the agent began.
func firstRow(s *screen.Screen) (y int) {
	if s.Alt() {
		return 0
	}
	for _, last := s.Cursor(); y < last && s.Row(y) == ""; {
		y++
	}
	return y
}

// cursorAt takes the terminal's answer to where the cursor is.
func (f *screenFace) cursorAt(row int) {
	if !f.paused || f.located || !f.asked {
		return
	}
	f.watch.Lock()
	f.watch.Screen().CursorAt(row)
	f.watch.Unlock()
	f.row, f.located = "", true
	f.paint()
}

// Notify tells a person who is looking elsewhere. That a session was suspended
// is told with the pause row.
func (f *screenFace) Notify(n Notice) {
	n.Pause = f.complete(n.Pause)
	text := clean(f.c.Voice.Notice(n))
	if err := f.bell.ring(f.c.NotifyCommand, text); err != nil {
		f.Warn(err)
	}
	if n.Kind == Suspended {
		f.facts = n.Pause
		return
	}
	if b := f.notification(text); b != nil {
		f.pending, f.tries = b, 0
		f.insert()
	}
	if n.Kind == NeedsYou && !f.stage.OnTerminal() {
		f.print(text)
	}
}

// notification is OSC 9, wrapped for tmux, which swallows what it does not know.
func (f *screenFace) notification(text string) []byte {
	if !f.c.OSC9 || f.c.Dumb || !f.stage.OnTerminal() {
		return nil
	}
	b := []byte("\x1b]9;" + clean(text) + "\x07")
	if f.c.Tmux {
		b = append([]byte("\x1bPtmux;"), append(bytes.ReplaceAll(b, []byte("\x1b"), []byte("\x1b\x1b")), "\x1b\\"...)...)
	}
	return b
}

// insertTries bounds the wait of a notification for a moment between two
// sequences; an agent that paints without a pause is being watched anyway.
const insertTries = 50

// insert orders the pending notification if the output now ends between sequences.
func (f *screenFace) insert() {
	if f.pending == nil {
		return
	}
	f.watch.Lock()
	ground := f.watch.Screen().Ground()
	f.watch.Unlock()
	if !ground {
		return
	}
	f.stage.Insert(f.total, f.pending)
	f.pending, f.ordered = nil, f.pending
}

// missed: output had followed. The watcher may have seen it by now, and then
// this is the next moment; else its Output item is.
func (f *screenFace) missed() {
	if f.tries++; f.tries < insertTries && f.pending == nil {
		f.pending = f.ordered
		f.insert()
	}
}

// mostSaid bounds the warnings that are kept for the end.
const mostSaid = 20

// Warn is said at once where it spoils no screen, else when the agent has ended.
func (f *screenFace) Warn(err error) {
	fault := Fault(err)
	if fault == f.c.Told {
		return // said before the agent began
	}
	line := f.c.Voice.Warn(err)
	if !f.stage.OnTerminal() {
		f.print(line)
		return
	}
	if len(f.said) < mostSaid && !slices.Contains(f.told, fault) {
		f.said, f.told = append(f.said, line), append(f.told, fault)
	}
}

// Fault is what a failure comes down to: the same disk that is full at another
// step is no news. Failures are said once by it.
func Fault(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return err.Error()
}

func (f *screenFace) print(line string) {
	_, _ = io.WriteString(f.c.Stderr, line+"\n") // nowhere left to say that stderr is broken
}

// end says what had to wait, and gives notification programs a moment.
func (f *screenFace) end() {
	for _, line := range f.said {
		f.print(line)
	}
	f.bell.end()
}

// clean makes sure that a text cannot end the sequence or the row that it
// stands in: labels come from files and from other programs.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}
