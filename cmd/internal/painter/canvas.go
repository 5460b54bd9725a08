package painter

import "strconv"

// style is an SGR parameter list; empty: the default pen. The colours are Claude
// Code 2.1.332's dark theme [claude 1, measured].
type style string

const (
	plain  style = ""
	bold   style = "1"
	grey   style = "38;2;153;153;153"
	red    style = "38;2;255;107;128"
	amber  style = "38;2;255;193;7"
	white  style = "38;2;255;255;255"
	orange style = "38;2;215;119;87"
	ruler  style = "38;2;136;136;136"
	dim    style = "2"
)

// cell is one character. All that a painter draws is one column wide.
type cell struct {
	r rune
	s style
}

var blank = cell{' ', plain}

// span is a run of text in one style; a row is a list of them.
type span struct {
	text string
	s    style
}

// canvas remembers what the terminal shows, so that only changes are written.
type canvas struct {
	cols, rows int
	shown      []cell
	stale      bool // the terminal's content is unknown: draw everything
}

// clear forgets what is shown, for a new size or after a stop.
func (c *canvas) clear(cols, rows int) {
	c.cols, c.rows = max(cols, 1), max(rows, 1)
	c.shown = make([]cell, c.cols*c.rows)
	for i := range c.shown {
		c.shown[i] = blank
	}
	c.stale = true
}

// paint appends what turns the shown rows into the wanted ones. Cells that are
// equal are jumped over, as the real clients do, so the stream is full of holes
// where blanks stood.
func (c *canvas) paint(out []byte, rows [][]span) []byte {
	if c.stale {
		out = append(out, "\x1b[m\x1b[2J\x1b[H"...)
		c.stale = false
	}
	pen := plain
	for y := range c.rows {
		want := c.line(rows, y)
		x := 0
		for x < c.cols {
			if want[x] == c.shown[y*c.cols+x] {
				x++
				continue
			}
			out = append(out, "\x1b["...)
			out = strconv.AppendInt(out, int64(y+1), 10)
			out = append(out, ';')
			out = strconv.AppendInt(out, int64(x+1), 10)
			out = append(out, 'H')
			for ; x < c.cols && want[x] != c.shown[y*c.cols+x]; x++ {
				if want[x].s != pen {
					pen = want[x].s
					out = append(out, "\x1b[0"...)
					if pen != plain {
						out = append(append(out, ';'), pen...)
					}
					out = append(out, 'm')
				}
				out = append(out, string(want[x].r)...)
				c.shown[y*c.cols+x] = want[x]
			}
		}
	}
	if pen != plain {
		out = append(out, "\x1b[m"...)
	}
	return out
}

// line lays row y out in cells, cut at the width.
func (c *canvas) line(rows [][]span, y int) []cell {
	out := make([]cell, c.cols)
	for i := range out {
		out[i] = blank
	}
	if y >= len(rows) {
		return out
	}
	x := 0
	for _, s := range rows[y] {
		for _, r := range s.text {
			if x >= c.cols {
				return out
			}
			out[x] = cell{r, s.s}
			x++
		}
	}
	return out
}
