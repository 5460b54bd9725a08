package screen

import (
	"strconv"
	"unicode/utf8"
)

// AppendOpen appends the bytes that make the terminal paint plainly, for a row
// of one's own or for AppendRows: default style, ASCII, no insert, no origin
// mode, and autowrap (without it a combining mark in the last column joins the
// one before). It moves the cursor; AppendClose puts everything back.
func (s *Screen) AppendOpen(b []byte) []byte {
	if !s.st.wrap {
		b = private(b, 7, true)
	}
	if s.st.insert {
		b = append(b, "\x1b[4l"...)
	}
	if s.st.origin {
		b = private(b, 6, false)
	}
	if s.st.g[0] != 'B' {
		b = append(b, "\x1b(B"...)
	}
	if s.st.shift != 0 {
		b = append(b, 0x0f)
	}
	if s.pen.Link {
		b = osc(b, 8, ";")
	}
	return append(b, "\x1b[0m"...)
}

// AppendRows appends the bytes that paint the rows y0 up to, not including, y1
// exactly as they are: cells and styles, not hyperlinks. The terminal must be
// as AppendOpen left it, and is again afterwards.
func (s *Screen) AppendRows(b []byte, y0, y1 int) []byte {
	for y := max(y0, 0); y < min(y1, s.rows); y++ {
		b = csi2(b, y+1, 1, 'H')
		b = s.appendCells(b, s.g.rows[y])
	}
	return b
}

// appendCells paints one row from its first column. What is blank in the
// default style at the end is erased, not printed.
func (s *Screen) appendCells(b []byte, r *row) []byte {
	n := len(r.cells)
	for n > 0 && r.cells[n-1] == blank(0) {
		n--
	}
	style := uint16(0)
	for _, c := range r.cells[:n] {
		if c.w == 0 {
			continue
		}
		if c.style != style {
			style = c.style
			b = appendSGR(b, s.styles.list[style])
		}
		b = s.appendGlyph(b, c)
	}
	if style != 0 {
		b = append(b, "\x1b[0m"...)
	}
	if n < len(r.cells) {
		b = append(b, "\x1b[K"...)
	}
	return b
}

func (s *Screen) appendGlyph(b []byte, c cell) []byte {
	if c.r < 0 {
		return append(b, s.clusters.list[^c.r]...)
	}
	return utf8.AppendRune(b, c.r)
}

// AppendClose appends the bytes that undo AppendOpen: modes, cursor (also one
// that waits to wrap) and pen are again as the agent left them.
func (s *Screen) AppendClose(b []byte) []byte {
	row := s.y + 1
	if !s.st.wrap {
		b = private(b, 7, false)
	}
	if s.st.origin {
		b = private(b, 6, true)
		row = max(s.y-s.top, 0) + 1
	}
	b = s.appendCursor(b, row)
	b = Modes{Charset: s.st.g, Shift: s.st.shift}.charsetOn(b)
	if s.st.insert {
		b = append(b, "\x1b[4h"...)
	}
	if len(s.st.link) > 0 {
		b = osc(b, 8, string(s.st.link))
	}
	return appendSGR(b, s.pen)
}

// appendCursor goes to the cursor's place. Behind the last column only
// printing that column again leads.
func (s *Screen) appendCursor(b []byte, row int) []byte {
	if s.x < s.cols {
		return csi2(b, row, s.x+1, 'H')
	}
	x := s.before()
	c := s.g.rows[s.y].cells[x]
	b = csi2(b, row, x+1, 'H')
	b = appendSGR(b, s.styles.list[c.style])
	return s.appendGlyph(b, c)
}

// sgrCodes are the attributes' SGR numbers in the order of their bits.
var sgrCodes = [...]int{1, 2, 3, 4, 5, 7, 8, 9, 53}

// appendSGR appends the sequence that sets exactly this style, whatever was set
// before. A link is not part of it.
func appendSGR(b []byte, st Style) []byte {
	b = append(b, "\x1b[0"...)
	for i, code := range sgrCodes {
		if st.Attr>>i&1 == 0 {
			continue
		}
		b = append(b, ';')
		b = strconv.AppendInt(b, int64(code), 10)
		if code == 4 && st.Line > 1 {
			b = append(b, ':', '0'+st.Line)
		}
	}
	b = appendColor(b, 30, st.Fg)
	b = appendColor(b, 40, st.Bg)
	if !st.UnderColor.Default() {
		b = appendColor(b, 50, st.UnderColor)
	}
	return append(b, 'm')
}

// appendColor appends a colour of the group base: 30 text, 40 background, 50
// underline (which has no short forms).
func appendColor(b []byte, base int, c Color) []byte {
	if i, ok := c.Index(); ok {
		switch {
		case base != 50 && i < 8:
			return appendCodes(b, base+int(i))
		case base != 50 && i < 16:
			return appendCodes(b, base+60+int(i)-8)
		}
		return appendCodes(b, base+8, 5, int(i))
	}
	if r, g, bl, ok := c.RGB(); ok {
		return appendCodes(b, base+8, 2, int(r), int(g), int(bl))
	}
	return b
}

func appendCodes(b []byte, codes ...int) []byte {
	for _, c := range codes {
		b = append(b, ';')
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return b
}
