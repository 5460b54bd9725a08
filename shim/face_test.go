//go:build linux

package shim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"qshim/detect"
	profiles "qshim/policies/agents"
)

// fakeStage is a session as a face needs it.
type fakeStage struct {
	terminal bool
	overlays [][2]string
	inserts  []string
	nudges   int
}

func (s *fakeStage) OnTerminal() bool { return s.terminal }
func (s *fakeStage) Overlay(paint, undo []byte) {
	s.overlays = append(s.overlays, [2]string{string(paint), string(undo)})
}
func (s *fakeStage) Insert(total uint64, b []byte) {
	s.inserts = append(s.inserts, fmt.Sprintf("%d %s", total, b))
}
func (s *fakeStage) Nudge() { s.nudges++ }

func (s *fakeStage) last() (paint, undo string) {
	if len(s.overlays) == 0 {
		return "", ""
	}
	o := s.overlays[len(s.overlays)-1]
	return o[0], o[1]
}

type faceBench struct {
	*screenFace
	s   *fakeStage
	err *bytes.Buffer
	now time.Time
}

func newFaceBench(t *testing.T) *faceBench {
	t.Helper()
	raw, _ := profiles.Builtin("generic")
	rules, err := detect.ParseProfile("generic", raw)
	if err != nil {
		t.Fatal(err)
	}
	b := &faceBench{s: &fakeStage{terminal: true}, err: &bytes.Buffer{}, now: time.Unix(1_800_000_000, 0)}
	c := &Config{Title: "Agent", Voice: testVoice{}, Label: func(id string) string { return id }, Stderr: b.err, TitleOn: true, OSC9: true}
	b.screenFace = &screenFace{c: c, stage: b.s, watch: &watch{Watcher: rules.Watch(detect.Options{Mode: detect.TUI, Cols: 60, Rows: 10})}}
	return b
}

// writes: the agent writes to its terminal.
func (b *faceBench) writes(s string) {
	b.watch.Output(b.now, []byte(s))
	b.output(b.total + uint64(len(s)))
}

const altKitty = "\x1b[?1049h\x1b[2J\x1b[>1u\x1b[>5u\x1b[?1000hhello"

// What pops a stack is written once, however often the row is painted; what
// pushes it again stands once in what undoes it.
func TestModesArePutOffOnce(t *testing.T) {
	b := newFaceBench(t)
	b.writes(altKitty)
	b.pausedNow()
	for i := range 5 {
		b.Pause(Pause{Dropped: i})
	}
	all := ""
	for _, o := range b.s.overlays {
		all += o[0]
	}
	if n := strings.Count(all, "\x1b[<2u"); n != 1 || len(b.s.overlays) < 5 {
		t.Errorf("the keyboard's stack was popped %d times in %d paints", n, len(b.s.overlays))
	}
	if _, undo := b.s.last(); strings.Count(undo, "\x1b[>1u\x1b[>5u") != 1 {
		t.Errorf("undone by %q", undo)
	}
	b.writes("x") // by a process that was not stopped: the overlay was taken away
	b.Pause(Pause{Dropped: 9})
	if paint, _ := b.s.last(); !strings.Contains(paint, "\x1b[<2u") {
		t.Errorf("modes stay on: %q", paint)
	}
}

func TestSameRowIsNotPaintedAgain(t *testing.T) {
	b := newFaceBench(t)
	b.writes(altKitty)
	b.pausedNow()
	n := len(b.s.overlays)
	for range 5 {
		b.Pause(b.facts)
	}
	if len(b.s.overlays) != n {
		t.Errorf("%d paints for nothing new", len(b.s.overlays)-n)
	}
}

// New words in the row do not set the title once more.
func TestSameTitleIsNotSetAgain(t *testing.T) {
	b := newFaceBench(t)
	b.writes(altKitty)
	b.pausedNow()
	first := len(b.s.overlays)
	b.Pause(Pause{Keys: 1})
	paint, undo := b.s.last()
	if len(b.s.overlays) == first || strings.Contains(paint, "\x1b]0;") || !strings.Contains(undo, "\x1b]0;") {
		t.Errorf("painted %q, undone by %q", paint, undo)
	}
}

// A terminal that knows no sequence gets one plain line in a pause.
func TestDumbPause(t *testing.T) {
	b := newFaceBench(t)
	b.c.Dumb = true
	b.writes("half a line")
	b.pausedNow()
	b.Pause(Pause{Dropped: 1})
	b.Notify(Notice{Kind: Continued})
	paint, undo := b.s.last()
	if len(b.s.overlays) != 1 || len(b.s.inserts) != 0 || undo != "" || strings.Contains(paint, "\x1b") ||
		!strings.HasPrefix(paint, "\r\n") || !strings.HasSuffix(paint, "\r\n") {
		t.Errorf("%q, %q", b.s.overlays, b.s.inserts)
	}
}

// The terminal's own title is kept where the agent has set none.
func TestTitleComesBack(t *testing.T) {
	b := newFaceBench(t)
	b.writes("\x1b[?1049h\x1b[2J")
	b.pausedNow()
	b.Pause(Pause{Dropped: 1})
	all := b.s.overlays[0][0] + b.s.overlays[1][0]
	if _, undo := b.s.last(); strings.Count(all, "\x1b[22;0t") != 1 || !strings.Contains(undo, "\x1b]0;\x07\x1b[23;0t") {
		t.Errorf("painted %q, undone by %q", all, undo)
	}
	b = newFaceBench(t)
	b.writes("\x1b[?1049h\x1b[2J\x1b]0;mine\x07")
	b.pausedNow()
	if paint, undo := b.s.last(); strings.Contains(paint, "\x1b[22") || !strings.Contains(undo, "\x1b]0;mine\x07") || strings.Contains(undo, "\x1b[23") {
		t.Errorf("painted %q, undone by %q", paint, undo)
	}
}

// After a flood the model does not know what stands under the row.
func TestNoRowOverTheUnknown(t *testing.T) {
	b := newFaceBench(t)
	b.writes("\x1b[?1049h\x1b[2J")
	b.watch.Resync()
	b.writes("rest")
	b.pausedNow()
	paint, _ := b.s.last()
	if strings.Contains(paint, "PAUSED") || !strings.Contains(paint, "suspended title") {
		t.Errorf("painted %q", paint)
	}
}

// An agent that does not finish its sequence gets no row, and no endless nudges.
func TestNudgesAreBounded(t *testing.T) {
	b := newFaceBench(t)
	b.writes("\x1b[?1049h\x1b[2J\x1b[38;5")
	for range 2 * (mostNudges + 1) {
		b.pausedNow()
		b.Pause(Pause{})
	}
	if b.s.nudges != 2*mostNudges || len(b.s.overlays) != 0 {
		t.Errorf("%d nudges, painted %q", b.s.nudges, b.s.overlays)
	}
	b.writes(";1m")
	b.Pause(Pause{})
	if paint, _ := b.s.last(); !strings.Contains(paint, "PAUSED") {
		t.Errorf("painted %q", paint)
	}
}

// A notification that came too late is tried at the next moment, which may be
// at once: an agent may write nothing for hours.
func TestMissedNotification(t *testing.T) {
	b := newFaceBench(t)
	b.writes("abc")
	b.Notify(Notice{Kind: Continued})
	b.writes("de") // the session has shown this before it looked at the order
	b.missed()
	want := []string{"3 \x1b]9;-e notice  continued\x07", "5 \x1b]9;-e notice  continued\x07"}
	if fmt.Sprintf("%q", b.s.inserts) != fmt.Sprintf("%q", want) {
		t.Errorf("ordered %q", b.s.inserts)
	}
	for range 3 * insertTries {
		b.missed()
	}
	if n := len(b.s.inserts); n > insertTries+1 {
		t.Errorf("%d tries", n)
	}
}

func TestNotificationWaitsForTheEndOfASequence(t *testing.T) {
	b := newFaceBench(t)
	b.writes("abc\x1b[3")
	b.Notify(Notice{Kind: NeedsYou})
	if len(b.s.inserts) != 0 {
		t.Errorf("ordered %q in the middle of a sequence", b.s.inserts)
	}
	b.writes("1m")
	if len(b.s.inserts) != 1 || !strings.HasPrefix(b.s.inserts[0], "8 ") {
		t.Errorf("ordered %q", b.s.inserts)
	}
}

func TestTmuxNeedsItsPassthrough(t *testing.T) {
	b := newFaceBench(t)
	b.c.Tmux = true
	if got := string(b.notification("hi\x1b\\there\x07")); got != "\x1bPtmux;\x1b\x1b]9;hi \\there \x07\x1b\\" {
		t.Errorf("%q", got)
	}
}

func TestWarningsSpoilNoScreen(t *testing.T) {
	b := newFaceBench(t)
	for i := range 100 {
		b.Warn(errors.New("same"))
		b.Warn(fmt.Errorf("other %d", i))
	}
	if b.err.Len() != 0 {
		t.Errorf("said %q over the agent's screen", b.err)
	}
	b.end()
	if n := strings.Count(b.err.String(), "\n"); n != mostSaid || strings.Count(b.err.String(), "same") != 1 {
		t.Errorf("said %q", b.err)
	}
	b = newFaceBench(t)
	b.s.terminal = false
	b.Warn(io.ErrUnexpectedEOF)
	b.Notify(Notice{Kind: NeedsYou})
	if got := b.err.String(); got != "WARN unexpected EOF\n-e notice  needs_you\n" {
		t.Errorf("said %q", got)
	}
}

func TestNotifierLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	file := filepath.Join(t.TempDir(), "pids")
	var n notifier
	for range 3 * bellMost {
		if err := n.ring([]string{"/bin/sh", "-c", `echo $$ >>` + file + `; sleep 60 & wait`, "sh"}, "-x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.ring(nil, "x"); err != nil {
		t.Error(err)
	}
	eventually(t, "the programs run", func() bool {
		b, _ := os.ReadFile(file)
		return bytes.Count(b, []byte("\n")) == bellMost
	})
	began := time.Now()
	n.end()
	if d := time.Since(began); d > 5*bellGrace {
		t.Errorf("they held us up for %v", d)
	}
	var none notifier
	if err := none.ring([]string{"/nonexistent/program"}, "x"); err == nil || !strings.Contains(err.Error(), "notify_command") {
		t.Errorf("error %v", err)
	}
	none.end()
}

func TestAnswerToOurOwnQuestion(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"\x1b[12;40R", ""},
		{"ab\x1b[1;1Rcd\x1b[2;2R", "abcd\x1b[2;2R"}, // the second is the agent's
		{"keys", "keys"},
	} {
		var e reportEater
		if got := e.cut([]byte(c.in)); string(got) != c.in {
			t.Errorf("nobody asked, and %q became %q", c.in, got)
		}
		e.expect()
		if got := e.cut([]byte(c.in)); string(got) != c.out {
			t.Errorf("%q became %q, want %q", c.in, got, c.out)
		}
	}
	var e reportEater
	e.expect()
	e.find([]byte("\x1b[3;4R"))
	if got := e.cut([]byte("\x1b[5;6R")); len(got) == 0 {
		t.Error("ate a second answer")
	}
	e.until = time.Now().Add(-time.Second)
	if got := e.cut([]byte("\x1b[5;6R")); len(got) == 0 {
		t.Error("ate a late one")
	}
}
