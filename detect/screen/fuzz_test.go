package screen

import (
	"testing"
)

// checkInvariants holds for every screen at any time.
func checkInvariants(t testing.TB, s *Screen) {
	t.Helper()
	if s.x < 0 || s.x > s.cols || s.y < 0 || s.y >= s.rows {
		t.Fatalf("cursor %d,%d in %dx%d", s.x, s.y, s.cols, s.rows)
	}
	if s.top < 0 || s.top > s.bot || s.bot >= s.rows || (s.rows > 1 && s.top == s.bot) {
		t.Fatalf("region %d-%d of %d", s.top, s.bot, s.rows)
	}
	for y, r := range s.g.rows {
		if len(r.cells) != s.cols {
			t.Fatalf("row %d has %d cells of %d", y, len(r.cells), s.cols)
		}
		checkRow(t, s, y, r)
	}
	if len(s.g.rows) != s.rows || len(s.tabs) != s.cols {
		t.Fatalf("%d rows, %d tabs in %dx%d", len(s.g.rows), len(s.tabs), s.cols, s.rows)
	}
	if n := len(s.styles.list); n > stylesMax+stylesSpare+2048 {
		t.Fatalf("%d styles", n)
	}
	if n := len(s.clusters.list); n > clustersMax {
		t.Fatalf("%d clusters", n)
	}
}

func checkRow(t testing.TB, s *Screen, y int, r *row) {
	t.Helper()
	for x, c := range r.cells {
		wideBefore := x > 0 && r.cells[x-1].w == 2
		switch {
		case c.w > 2, (c.w == 0) != wideBefore, c.w == 2 && x == len(r.cells)-1:
			t.Fatalf("row %d column %d: width %d after wide %v", y, x, c.w, wideBefore)
		case int(c.style) >= len(s.styles.list), c.r < 0 && int(^c.r) >= len(s.clusters.list):
			t.Fatalf("row %d column %d: number out of its table: %+v", y, x, c)
		}
	}
}

// FuzzScreen: no panic, the invariants, one write is as good as many, a row
// whose cells changed has a new version, and painting changes nothing.
func FuzzScreen(f *testing.F) {
	for _, c := range rowCases {
		f.Add([]byte(c.in), uint8(c.cols), uint8(c.rows), uint8(3))
	}
	for _, c := range casts(f) {
		f.Add([]byte(c.events[0].data), uint8(c.cols), uint8(c.rows), uint8(50))
	}
	f.Add([]byte(claudeStart+"\x1b[2000000000b\x1b]0;\x9c✳\x1b"), uint8(80), uint8(24), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, cols, rows, cut uint8) {
		cols, rows, in = cols%130, rows%50, in[:min(len(in), 2000)] // the checks cost cells times bytes
		one := New(int(cols), int(rows))
		_, _ = one.Write(in)
		checkInvariants(t, one)
		many := New(int(cols), int(rows))
		for i := 0; i < len(in); {
			n := min(1+(i*7+int(cut))%9, len(in)-i)
			part := in[i : i+n]
			i += n
			if len(in) > 200 {
				_, _ = many.Write(part)
				continue
			}
			before, versions := shootScreen(many), rowVersions(many)
			_, _ = many.Write(part)
			checkVersions(t, many, before, versions)
		}
		if a, b := dump(one), dump(many); a != b {
			t.Fatalf("cut differently:\n%s%s", a, b)
		}
		if one.Ground() {
			before := painted(one)
			_, _ = one.Write([]byte(statusRow(one, int(cut)%one.rows)))
			if now := painted(one); now != before {
				t.Fatalf("painting left a trace:\n%s%s", before, now)
			}
		}
		one.Resize(int(rows), int(cut))
		checkInvariants(t, one)
		one.CursorAt(int(cols))
		checkInvariants(t, one)
		_, _ = one.Write(in)
		checkInvariants(t, one)
		_, _ = one.Write(one.Modes().Off())
	})
}

func rowVersions(s *Screen) []uint64 {
	var v []uint64
	for y := range s.rows {
		v = append(v, s.RowVersion(y))
	}
	return v
}

func checkVersions(t *testing.T, s *Screen, before shot, versions []uint64) {
	t.Helper()
	for y := range s.rows {
		if s.RowVersion(y) != versions[y] {
			continue
		}
		for x := range s.cols {
			if c := s.Cell(x, y); c != before.cell[y][x] {
				t.Fatalf("cell %d,%d was %+v, is %+v, but the row has the version it had", x, y, before.cell[y][x], c)
			}
		}
	}
}
