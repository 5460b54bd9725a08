package term

import (
	"github.com/clipperhouse/displaywidth"

	"qshim/detect/screen"
)

// Row returns the bytes that paint text over row y of the terminal that s
// models, in reverse video across its whole width, and those that put back what
// was there. Both leave cursor, pen and modes as the agent has them. The model
// must be in ground state: the terminal then is too.
func Row(s *screen.Screen, y int, text string) (paint, undo []byte) {
	cols, _ := s.Size()
	paint = s.AppendOpen(nil)
	paint = appendMove(paint, y)
	paint = append(paint, "\x1b[7m"...)
	paint = append(paint, fit(text, cols)...)
	paint = append(paint, "\x1b[0m"...)
	paint = s.AppendClose(paint)

	undo = s.AppendOpen(nil)
	undo = s.AppendRows(undo, y, y+1)
	undo = s.AppendClose(undo)
	return paint, undo
}

// fit cuts or pads text to cols cells.
func fit(text string, cols int) string {
	if displaywidth.String(text) > cols {
		text = displaywidth.TruncateString(text, cols, "…")
	}
	b := []byte(text)
	for n := displaywidth.String(text); n < cols; n++ {
		b = append(b, ' ')
	}
	return string(b)
}

func appendMove(b []byte, y int) []byte {
	b = append(b, "\x1b["...)
	b = appendInt(b, y+1)
	return append(b, ";1H"...)
}

func appendInt(b []byte, n int) []byte {
	if n >= 10 {
		b = appendInt(b, n/10)
	}
	return append(b, byte('0'+n%10))
}
