package screen

import (
	"fmt"
	"strings"
	"testing"
)

// statusRow is what qshim does while an agent is stopped: a row of its own
// over row y, and later the agent's again.
func statusRow(s *Screen, y int) string {
	b := s.AppendOpen(nil)
	text := "qshim: waiting"
	b = fmt.Appendf(b, "\x1b[%dH\x1b[7m%s\x1b[m", y+1, text[:min(len(text), s.cols)])
	b = s.AppendClose(b)
	b = s.AppendOpen(b)
	b = s.AppendRows(b, y, y+1)
	return string(s.AppendClose(b))
}

// TestPaintLeavesNoTrace: after a row was painted over and restored, and more
// output came, the screen is as if it had never happened.
func TestPaintLeavesNoTrace(t *testing.T) {
	for seed := range uint64(200) {
		cols, rows := 10+int(seed%4)*7, 3+int(seed%5)
		wide := seed%3 == 2
		ops := randomOps(seed, cols, rows, wide)
		for at := 1; at < len(ops); at += 7 {
			before, later := strings.Join(ops[:at], ""), strings.Join(ops[at:], "")
			s := New(cols, rows)
			_, _ = s.Write([]byte(before))
			want := painted(s)
			paint := statusRow(s, int(seed)%rows)
			_, _ = s.Write([]byte(paint))
			if got := painted(s); got != want {
				t.Fatalf("seed %d after %q, paint %q\n got %s\nwant %s", seed, before, paint, got, want)
			}
			_, _ = s.Write([]byte(later))
			if got, want := painted(s), painted(after2(cols, rows, before+later)); got != want {
				t.Fatalf("seed %d after %q and later %q\n got %s\nwant %s", seed, before, later, got, want)
			}
		}
	}
}

func after2(cols, rows int, in string) *Screen {
	s := New(cols, rows)
	_, _ = s.Write([]byte(in))
	return s
}

// TestPaintInTmux is the same in the real tmux.
func TestPaintInTmux(t *testing.T) {
	tm := startTmux(t, 80, 24)
	for seed := range uint64(60) {
		cols, rows := 10+int(seed%4)*7, 3+int(seed%5)
		ops := randomOps(seed, cols, rows, seed%3 == 2)
		at := len(ops) / 2
		before, later := strings.Join(ops[:at], ""), strings.Join(ops[at:], "")
		paint := statusRow(after2(cols, rows, before), int(seed)%rows)
		tm.reset(cols, rows)
		tm.write([]byte(before + paint + later))
		if d := shootScreen(after2(cols, rows, before+later)).diff(tm.shoot(cols, rows)); d != "" {
			t.Fatalf("seed %d: %q, paint %q, later %q\n%s", seed, before, paint, later, d)
		}
	}
}

// TestFullPaint makes a fresh terminal look like the agent's: after Ctrl-Z and
// fg, say.
func TestFullPaint(t *testing.T) {
	for _, c := range casts(t) {
		for _, n := range []int{len(c.events) / 3, len(c.events) / 2, len(c.events)} {
			part := c
			part.events = c.events[:n]
			s := part.play(whole)
			cols, rows := s.Size()
			b := s.Modes().On()
			b = s.AppendOpen(b)
			b = s.AppendRows(b, 0, rows)
			b = s.AppendClose(b)
			again := New(cols, rows)
			_, _ = again.Write(b)
			if d := shootScreen(s).diff(shootScreen(again)); d != "" {
				t.Errorf("%s after %d events:\n%s", c.name, n, d)
			}
			if s.PendingWrap() != again.PendingWrap() || s.Pen() != again.Pen() {
				t.Errorf("%s after %d events: wrap or pen", c.name, n)
			}
		}
	}
}

// TestPaintStyles writes every kind of style and paints it again.
func TestPaintStyles(t *testing.T) {
	for _, sgr := range append(sgrs, "1;2;3;4;5;7;8;9;53", "4:2", "4:4", "4:5", "38;5;3;48;5;200;58:5:9", "91;101") {
		s := after2(10, 2, "\x1b["+sgr+"mx\x1b[m")
		_, _ = s.Write([]byte("\x1b[" + sgr + "m"))
		b := s.AppendClose(s.AppendRows(s.AppendOpen(nil), 0, 2))
		again := after2(10, 2, string(b))
		if painted(s) != painted(again) {
			t.Errorf("%q painted as %q\n%s%s", sgr, b, painted(s), painted(again))
		}
	}
}
