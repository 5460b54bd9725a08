package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestResize(t *testing.T) {
	s := after2(6, 4, "one\r\ntwo\r\nthree\r\nfour")
	s.Resize(6, 2)
	if got := rowsOf(s); got != "three|four" {
		t.Errorf("lower: %s", got)
	}
	if rows, total := s.Scrolled(); total != 2 || rows[0].String() != "one" || rows[1].String() != "two" {
		t.Errorf("scrolled off: %v %d", rows, total)
	}
	s.Resize(4, 3)
	if got := rowsOf(s); got != "two|thre|four" {
		t.Errorf("higher and narrower: %s", got)
	}
	if rows, total := s.Scrolled(); total != 2 || len(rows) != 1 {
		t.Errorf("brought back: %d rows of %d", len(rows), total)
	}
	s.Resize(8, 5)
	if got := rowsOf(s); got != "one|two|thre|four|" {
		t.Errorf("higher than its history: %s", got)
	}
	if x, y := s.Cursor(); x != 3 || y != 3 {
		t.Errorf("cursor %d,%d", x, y)
	}
}

func TestResizeCutsWide(t *testing.T) {
	s := after2(7, 1, "abc世界")
	s.Resize(4, 1)
	if got := rowsOf(s); got != "abc" {
		t.Errorf("%q", got)
	}
	checkInvariants(t, s)
}

func rowsOf(s *Screen) string {
	var rows []string
	for y := range s.rows {
		rows = append(rows, s.Row(y))
	}
	return strings.Join(rows, "|")
}

// TestResizeAgainstTmux changes the height of the main screen and both sizes of
// the alternate one. (tmux reflows the main screen when its width changes.)
func TestResizeAgainstTmux(t *testing.T) {
	tm := startTmux(t, 80, 24)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		cols, rows := 30, 4+r.IntN(5)
		alt := seed%2 == 1
		s := New(cols, rows)
		tm.reset(cols, rows)
		both := func(in string) {
			_, _ = s.Write([]byte(in))
			tm.write([]byte(in))
		}
		if alt {
			both("main\r\n\x1b[?1049h")
		}
		log := ""
		for step := range 6 {
			in := fmt.Sprintf("\x1b[%d;%dH", 1+r.IntN(rows), 1+r.IntN(cols))
			if !alt || r.IntN(2) == 0 {
				in = "\r\n"
			}
			in += fmt.Sprintf("row %d", step)
			both(in)
			rows = 2 + r.IntN(9)
			if alt {
				cols = min(cols, 10+r.IntN(30)) // tmux keeps cells that were cut and shows them again
			}
			log += fmt.Sprintf(" %q -> %dx%d", in, cols, rows)
			s.Resize(cols, rows)
			tm.run("resize-window", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows))
			if d := shootScreen(s).diff(tm.shoot(cols, rows)); d != "" {
				t.Fatalf("seed %d%s\nmodel, then tmux:\n%s", seed, log, d)
			}
		}
	}
}
