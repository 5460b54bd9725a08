package screen

import (
	"fmt"
	"strings"
)

// painted is a dump without what only the agent's own writing can show: that a
// row goes on in the next one.
func painted(s *Screen) string {
	return strings.NewReplacer("\" true", "\" false").Replace(dump(s))
}

// dump is everything that a caller can see of a screen, except the versions.
func dump(s *Screen) string {
	var b strings.Builder
	x, y := s.Cursor()
	fmt.Fprintf(&b, "%dx%d cursor %d,%d wrap %v alt %v ground %v title %q\n", s.cols, s.rows, x, y,
		s.PendingWrap(), s.Alt(), s.Ground(), s.Title())
	m := s.Modes()
	m.Private = byNum(m.Private)
	fmt.Fprintf(&b, "%+v %+v %v\n", m, s.Pen(), s.saved)
	for y := range s.rows {
		dumpLine(&b, s.Line(y))
	}
	rows, total := s.Scrolled()
	fmt.Fprintf(&b, "scrolled %d\n", total)
	for _, l := range rows {
		dumpLine(&b, l)
	}
	return b.String()
}

func dumpLine(b *strings.Builder, l Line) {
	fmt.Fprintf(b, "%q %v", l.String(), l.Wrapped())
	var last Style
	for x := range l.Len() {
		if c := l.Cell(x); c.Style != last {
			fmt.Fprintf(b, " %d:%v", x, c.Style)
			last = c.Style
		}
	}
	b.WriteByte('\n')
}
