package screen

import (
	"unicode/utf8"
)

// cell is one position of the grid, eight bytes, comparable.
type cell struct {
	r     rune   // a rune, or ^index into the clusters
	style uint16 // index into the styles
	w     uint16 // columns: 1, 2, or 0 for the second half of a wide one; no padding, so that cells compare as one word
}

func blank(style uint16) cell { return cell{r: ' ', style: style, w: 1} }

type row struct {
	cells   []cell
	version uint64
	wrapped bool
}

type grid struct{ rows []*row }

func (g *grid) init(cols, rows int) {
	g.rows = make([]*row, rows)
	for y := range g.rows {
		g.rows[y] = newRow(cols)
	}
}

func newRow(cols int) *row {
	r := &row{cells: make([]cell, cols)}
	for x := range r.cells {
		r.cells[x] = blank(0)
	}
	return r
}

// Cell is one position of the screen as a caller sees it.
type Cell struct {
	Text  string // the whole grapheme; " " when blank, "" for the second half of a wide one
	Rune  rune   // the first rune of Text, 0 for ""
	Width int    // columns: 1, 2, or 0 for the second half of a wide one
	Style Style
}

// Blank reports whether the cell shows no glyph (its background may show).
func (c Cell) Blank() bool { return c.Rune == ' ' && len(c.Text) == 1 }

// Line is a view of one row, valid until the next Write or Resize.
type Line struct {
	s *Screen
	r *row
}

// Line is the visible row y.
func (s *Screen) Line(y int) Line {
	if y < 0 || y >= s.rows {
		return Line{}
	}
	return Line{s, s.g.rows[y]}
}

// Len is the row's width in columns.
func (l Line) Len() int {
	if l.r == nil {
		return 0
	}
	return len(l.r.cells)
}

// Wrapped is as Screen.Wrapped.
func (l Line) Wrapped() bool { return l.r != nil && l.r.wrapped }

// Version is as Screen.RowVersion.
func (l Line) Version() uint64 {
	if l.r == nil {
		return 0
	}
	return l.r.version
}

// Cell is the cell in column x, the zero Cell outside the row.
func (l Line) Cell(x int) Cell {
	if l.r == nil || x < 0 || x >= len(l.r.cells) {
		return Cell{}
	}
	c := l.r.cells[x]
	out := Cell{Width: int(c.w), Style: l.s.styles.list[c.style]}
	if c.w == 0 {
		return out
	}
	out.Text = l.s.text(c.r)
	out.Rune = c.r
	if c.r < 0 {
		out.Rune, _ = utf8.DecodeRuneInString(out.Text)
	}
	return out
}

// Append appends the row's text without trailing blanks. A no-break space is
// kept, also at the end.
func (l Line) Append(b []byte) []byte {
	if l.r == nil {
		return b
	}
	cells := l.r.cells
	n := len(cells)
	for n > 0 && cells[n-1].r == ' ' && cells[n-1].w == 1 {
		n--
	}
	for _, c := range cells[:n] {
		switch {
		case c.w == 0:
		case c.r < 0:
			b = append(b, l.s.clusters.list[^c.r]...)
		default:
			b = utf8.AppendRune(b, c.r)
		}
	}
	return b
}

// String is the row's text as Append gives it.
func (l Line) String() string { return string(l.Append(nil)) }

// Cell is the cell at column x, row y, counted from 0.
func (s *Screen) Cell(x, y int) Cell { return s.Line(y).Cell(x) }

// Row is the text of row y without trailing blanks; no-break spaces are kept.
func (s *Screen) Row(y int) string { return s.Line(y).String() }

// AppendRow appends the text of row y as Row gives it.
func (s *Screen) AppendRow(b []byte, y int) []byte { return s.Line(y).Append(b) }

const textsKept = 1024 // one-rune strings kept for Cell, so that it rarely allocates

func (s *Screen) text(r rune) string {
	if r < 0 {
		return s.clusters.list[^r]
	}
	if r < utf8.RuneSelf {
		return string(r) // does not allocate
	}
	if t, ok := s.texts[r]; ok {
		return t
	}
	if s.texts == nil || len(s.texts) >= textsKept {
		s.texts = make(map[rune]string)
	}
	t := string(r)
	s.texts[r] = t
	return t
}

// Scrolled returns the rows that left the top of the main screen, oldest
// first, at most 200, and how many have left in all. A caller that saw total t
// before finds what is new in the last min(len(rows), total-t) rows. Rows that
// a taller window brings back are no longer listed, and count again when they
// leave again. The slice and its lines are valid until the next Write, Resize
// or Scrolled.
func (s *Screen) Scrolled() (rows []Line, total uint64) {
	s.lineBuf = s.lineBuf[:0]
	for i := range s.ring.n {
		s.lineBuf = append(s.lineBuf, Line{s, s.ring.at(i)})
	}
	return s.lineBuf, s.ring.total
}

// ScrolledTotal is the total of Scrolled.
func (s *Screen) ScrolledTotal() uint64 { return s.ring.total }

// ring holds the rows that scrolled off, the oldest first.
type ring struct {
	rows  []*row
	first int
	n     int
	total uint64
}

func (r *ring) at(i int) *row { return r.rows[(r.first+i)%len(r.rows)] }

// push takes a row and gives back one to use again, or nil.
func (r *ring) push(in *row) (out *row) {
	r.total++
	if r.rows == nil {
		r.rows = make([]*row, scrolledRows)
	}
	at := (r.first + r.n) % len(r.rows)
	out = r.rows[at]
	r.rows[at] = in
	if r.n < len(r.rows) {
		r.n++
	} else {
		r.first = (r.first + 1) % len(r.rows)
	}
	return out
}

// pop takes the newest row back, or nil.
func (r *ring) pop() *row {
	if r.n == 0 {
		return nil
	}
	r.n--
	at := (r.first + r.n) % len(r.rows)
	out := r.rows[at]
	r.rows[at] = nil
	return out
}
