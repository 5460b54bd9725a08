// Package screen is the terminal model: it reads what an agent writes to its
// terminal and holds the cells, styles and modes that a real terminal would
// then show. It never answers a query (the real terminal does), has no clock
// and touches nothing outside itself.
//
// The parser is Paul Williams' state machine with UTF-8 in front. Whatever the
// input, every count is clamped, every string capped and every table bounded;
// in steady state Write allocates nothing.
//
// Where terminals disagree the model does as xterm, xterm.js and VTE do when
// these agree, else as tmux 3.3a does, because that is the one the tests run
// against. The divergences are listed in tmux_test.go.
package screen

// Limits of every size in the model. They bound its memory: two grids of at
// most maxCols x maxRows cells of eight bytes, and scrolledRows rows.
const (
	maxCols      = 1000
	maxRows      = 500
	scrolledRows = 200 // rows kept after they left the top of the main screen
)

// Screen is the model of one terminal. It is not safe for concurrent use.
type Screen struct {
	cols, rows int
	main, alt  grid // alt.rows is nil until the alternate screen is first used
	g          *grid
	x, y       int // x == cols: the next character wraps first
	top, bot   int // scroll region, inclusive
	tabs       []bool
	lastRune   rune // what REP repeats; 0: nothing

	pen     Style
	penID   uint16
	eraseID uint16
	penOK   bool // penID and eraseID belong to pen

	saved savedCursor // DECSC
	left  savedCursor // where ?1049 left the cursor

	st       modeState
	styles   styleTable
	clusters clusterTable
	ring     ring
	p        parser
	version  uint64
	frame    frame
	ev       events
	title    string
	texts    map[rune]string
	lineBuf  []Line
	lost     bool
}

type savedCursor struct {
	x, y   int
	pen    Style
	g      [2]byte
	shift  uint8
	origin bool
	set    bool
}

// New returns a blank screen. Sizes are clamped to 1..1000 columns and 1..500
// rows.
func New(cols, rows int) *Screen {
	s := &Screen{cols: clamp(cols, 1, maxCols), rows: clamp(rows, 1, maxRows)}
	s.main.init(s.cols, s.rows)
	s.g = &s.main
	s.bot = s.rows - 1
	s.resetTabs()
	s.st.reset()
	s.styles.reset()
	s.clusters.reset()
	s.p.reset()
	return s
}

// Size is the width and height in cells.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// Cursor is the cursor's position, counted from 0. A cursor that waits behind
// the last column to wrap is reported in the last column; see PendingWrap.
func (s *Screen) Cursor() (x, y int) { return min(s.x, s.cols-1), s.y }

// PendingWrap reports whether the last column was just written and the next
// character goes to the next row.
func (s *Screen) PendingWrap() bool { return s.x >= s.cols }

// Version changes whenever any visible cell changes, rows move, the size
// changes or the other screen is shown.
func (s *Screen) Version() uint64 { return s.version }

// RowVersion changes whenever the content of row y changes, be it by writing
// or because another row moved there. Writing what already stands there is no
// change. Equal values mean equal rows, within one Screen.
func (s *Screen) RowVersion(y int) uint64 {
	if y < 0 || y >= s.rows {
		return 0
	}
	return s.g.rows[y].version
}

// Wrapped reports whether the text of row y goes on in row y+1 because it
// reached the last column, not because the agent began a new row.
func (s *Screen) Wrapped(y int) bool {
	return y >= 0 && y < s.rows && s.g.rows[y].wrapped
}

// Alt reports whether the alternate screen is shown.
func (s *Screen) Alt() bool { return s.g == &s.alt }

// Synchronised reports whether the agent is inside a synchronised update
// (?2026h): the real terminal does not show what is written until it ends.
func (s *Screen) Synchronised() bool { return s.st.private(2026) }

// Framed reports whether what row y shows was painted inside a synchronised
// update that has ended: then the agent has painted all of it that it is going to
// paint at once. False where that cannot be told.
func (s *Screen) Framed(y int) bool {
	v := s.RowVersion(y)
	return v > s.frame.loose && v <= s.frame.end
}

// frame tells rows that were painted in synchronised updates from others, by their
// versions.
type frame struct {
	end   uint64 // the version when the last update ended
	loose uint64 // the last version that may have come about outside of one
}

// synchronise begins or ends an update.
func (s *Screen) synchronise(on bool) {
	switch {
	case on == s.Synchronised():
	case !on:
		s.frame.end = s.version
	case s.version > s.frame.end:
		s.frame.loose = s.version
	}
}

// Ground reports whether the last Write ended between sequences and not inside
// a UTF-8 character, so that other bytes may be put into the stream here. (Only
// a REP that follows at once would then repeat another character.)
func (s *Screen) Ground() bool { return s.p.state == stGround && s.p.un == 0 }

// Title is the last window title that the agent set, at most 4 KB.
func (s *Screen) Title() string { return s.title }

// Pen is the style of the next character.
func (s *Screen) Pen() Style { return s.pen }

// Lost says that bytes were dropped before the next Write: the parser goes
// back to ground and Trusted is false until the next full repaint.
func (s *Screen) Lost() {
	s.p.reset()
	s.lost = true
}

// Trusted is false from Lost until the screen was next erased whole (see
// FullRepaint): what Cell and Row say in between may never have been shown.
func (s *Screen) Trusted() bool { return !s.lost }

// CursorAt tells the model at which row (from 0) the real cursor stands, as a
// cursor report says. The model begins at the top, an agent on the main screen
// where the shell left the cursor: the content moves by the difference, with
// blank rows above it. On the alternate screen it does nothing.
func (s *Screen) CursorAt(y int) {
	d := clamp(y, 0, s.rows-1) - s.y
	if s.Alt() || d == 0 {
		return
	}
	if d > 0 {
		s.scrollDown(0, s.rows-1, d, 0)
	} else {
		s.scrollUp(0, s.rows-1, -d, 0)
	}
	s.y += d
	if s.saved.set {
		s.saved.y = clamp(s.saved.y+d, 0, s.rows-1)
	}
}

func clamp(v, lo, hi int) int { return max(lo, min(v, hi)) }
