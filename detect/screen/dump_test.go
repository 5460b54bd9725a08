package screen

import (
	"fmt"
	"strings"
)

// painted is a dump without what painting does not bring back: that a row goes
// on in the next one, and which cells are part of a hyperlink.
func painted(s *Screen) string { return dumpScreen(s, true) }

// dump is everything that a caller can see of a screen, except the versions.
func dump(s *Screen) string { return dumpScreen(s, false) }

func dumpScreen(s *Screen, painted bool) string {
	var b strings.Builder
	x, y := s.Cursor()
	fmt.Fprintf(&b, "%dx%d cursor %d,%d wrap %v alt %v ground %v title %q\n", s.cols, s.rows, x, y,
		s.PendingWrap(), s.Alt(), s.Ground(), s.Title())
	m := s.Modes()
	m.Private = byNum(m.Private)
	fmt.Fprintf(&b, "%+v %+v %v\n", m, s.Pen(), s.saved)
	for y := range s.rows {
		dumpLine(&b, s.Line(y), painted)
	}
	rows, total := s.Scrolled()
	fmt.Fprintf(&b, "scrolled %d\n", total)
	for _, l := range rows {
		dumpLine(&b, l, painted)
	}
	return b.String()
}

func dumpLine(b *strings.Builder, l Line, painted bool) {
	fmt.Fprintf(b, "%q %v", l.String(), l.Wrapped() && !painted)
	var last Style
	for x := range l.Len() {
		st := l.Cell(x).Style
		st.Link = st.Link && !painted
		if st != last {
			fmt.Fprintf(b, " %d:%v", x, st)
			last = st
		}
	}
	b.WriteByte('\n')
}
