package shim

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"qshim/shim/term"
)

// screenFace shows one session's pauses on the user's terminal, always between
// two sequences of the agent and never where the agent could see it. It is used
// by the governor's goroutine alone.
type screenFace struct {
	c       *Config
	session *Session
	watch   *watch
	paused  bool   // the session is: overlays may be painted
	asked   bool   // for the cursor's place, in this pause
	located bool   // the model knows at which row the agent stands
	total   uint64 // bytes of output that the watcher has seen
	pending []byte // a notification that waits for a moment between sequences
	ordered []byte // the one that the session was told to insert
	tries   int
	facts   Pause
	fresh   bool     // the next paint carries the notification
	said    []string // warnings that would have spoiled the agent's screen
	runs    sync.WaitGroup
}

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

// pausedNow: the stop has taken effect and all output before it is on the screen.
func (f *screenFace) pausedNow() {
	f.paused, f.asked, f.fresh = true, false, true
	f.paint()
}

// over: the agent runs again, or has ended.
func (f *screenFace) over() { f.paused = false }

// paint orders the pause row. On the main screen the model must first learn at
// which row the agent began: the terminal is asked once, and without an answer
// there is no row, only title and notification.
func (f *screenFace) paint() {
	if !f.paused || !f.session.OnTerminal() {
		return
	}
	f.watch.Lock()
	defer f.watch.Unlock()
	s := f.watch.Screen()
	if !s.Ground() {
		return
	}
	m := s.Modes()
	var paint, undo []byte
	paint = append(paint, m.InputOff()...)
	switch {
	case s.Alt() || f.located:
		cols, rows := s.Size()
		on, off := term.Row(s, rows-1, f.c.Voice.PauseRow(f.facts, cols))
		paint, undo = append(paint, on...), append(undo, off...)
	case !f.asked:
		f.asked = true
		paint = append(paint, "\x1b[6n"...)
	}
	paint, undo = f.title(paint, undo, s.Title())
	if f.fresh {
		f.fresh = false
		paint = append(paint, f.notification(f.c.Voice.Notice(Notice{Kind: Suspended, Pause: f.facts}))...)
	}
	f.session.Overlay(paint, append(undo, m.InputOn()...))
}

// title says in the window's title that the agent stands still.
func (f *screenFace) title(paint, undo []byte, agents string) (p, u []byte) {
	if !f.c.TitleOn {
		return paint, undo
	}
	return append(paint, "\x1b]0;"+f.c.Voice.Title(f.facts)+"\x07"...), append(undo, "\x1b]0;"+agents+"\x07"...)
}

// cursorAt takes the terminal's answer to where the cursor is.
func (f *screenFace) cursorAt(row int) {
	if !f.paused || f.located {
		return
	}
	f.watch.Lock()
	f.watch.Screen().CursorAt(row)
	f.watch.Unlock()
	f.located = true
	f.paint()
}

// notification is OSC 9, wrapped for tmux, which swallows what it does not know.
func (f *screenFace) notification(text string) []byte {
	if !f.c.OSC9 || !f.session.OnTerminal() {
		return nil
	}
	b := []byte("\x1b]9;" + text + "\x07")
	if f.c.Tmux {
		b = append([]byte("\x1bPtmux;"), append(bytes.ReplaceAll(b, []byte("\x1b"), []byte("\x1b\x1b")), "\x1b\\"...)...)
	}
	return b
}

// Notify tells a person who is looking elsewhere. That a session was suspended
// is told with the pause row.
func (f *screenFace) Notify(n Notice) {
	n.Pause = f.complete(n.Pause)
	text := f.c.Voice.Notice(n)
	f.command(text)
	if n.Kind == Suspended {
		f.facts = n.Pause
		return
	}
	if b := f.notification(text); b != nil {
		f.pending, f.tries = b, 0
		f.insert()
	}
	if n.Kind == NeedsYou && !f.session.OnTerminal() {
		f.print(text)
	}
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
	f.session.Insert(f.total, f.pending)
	f.pending, f.ordered = nil, f.pending
}

// missed: output had followed; the next moment will do.
func (f *screenFace) missed() {
	if f.tries++; f.tries < insertTries && f.pending == nil {
		f.pending = f.ordered
	}
}

// Warn is said at once where it spoils no screen, else when the agent has ended.
func (f *screenFace) Warn(err error) {
	line := f.c.Voice.Warn(err)
	if f.session.OnTerminal() {
		f.said = append(f.said, line)
		return
	}
	f.print(line)
}

func (f *screenFace) print(line string) {
	_, _ = io.WriteString(f.c.Stderr, line+"\n") // nowhere left to say that stderr is broken
}

// end says what had to wait, and lets notification programs finish.
func (f *screenFace) end() {
	for _, line := range f.said {
		f.print(line)
	}
	f.runs.Wait()
}

// commandTime is how long a notification program may take.
const commandTime = 10 * time.Second

// command runs notify_command with the message as its last argument: no shell
// reads it.
func (f *screenFace) command(text string) {
	argv := f.c.NotifyCommand
	if len(argv) == 0 {
		return
	}
	cmd := exec.Command(argv[0], append(argv[1:len(argv):len(argv)], text)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		f.Warn(fmt.Errorf("notify_command: %w", err))
		return
	}
	f.runs.Go(func() {
		kill := time.AfterFunc(commandTime, func() { _ = cmd.Process.Kill() }) // it may have ended
		_ = cmd.Wait()                                                         // its exit code is its own affair
		kill.Stop()
	})
}
