package screen

// control obeys a C0 control character.
func (s *Screen) control(c byte) {
	s.lastRune = 0
	switch c {
	case '\a':
		s.event(Bell, "")
	case '\b':
		if s.x > 0 {
			s.x = min(s.x, s.cols) - 1
		}
	case '\t':
		s.tabForward(1)
	case '\n', '\v', '\f':
		s.lineFeed()
		if s.st.newline {
			s.x = 0
		}
	case '\r':
		s.x = 0
	case 0x0e:
		s.st.shift = 1
	case 0x0f:
		s.st.shift = 0
	}
}

// escDispatch obeys ESC, perhaps an intermediate, and a final byte.
func (s *Screen) escDispatch(inter, c byte) {
	s.lastRune = 0
	switch inter {
	case 0:
		s.escPlain(c)
	case '(':
		s.st.g[0] = charset(c)
	case ')':
		s.st.g[1] = charset(c)
	case '#':
		if c == '8' {
			s.alignment()
		}
	}
}

func (s *Screen) escPlain(c byte) {
	switch c {
	case '7':
		s.saveCursor()
	case '8':
		s.restoreCursor(s.saved)
	case 'D':
		s.lineFeed()
	case 'E':
		s.lineFeed()
		s.x = 0
	case 'H':
		if s.x < s.cols {
			s.tabs[s.x] = true
		}
	case 'M':
		s.reverseIndex()
	case 'c':
		s.fullReset()
	case '=':
		s.st.keypad = true
	case '>':
		s.st.keypad = false
	}
}

// charset keeps the one designation that changes what is shown.
func charset(c byte) byte {
	if c == '0' {
		return '0'
	}
	return 'B'
}

// lineDrawing is what the bytes 0x60 to 0x7e show in the DEC special set.
var lineDrawing = [...]rune{
	'◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺',
	'⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
}

// drawn is the character that c shows in the current character set.
func (s *Screen) drawn(c byte) rune {
	if s.st.g[s.st.shift] == '0' && c >= 0x60 && c <= 0x7e {
		return lineDrawing[c-0x60]
	}
	return rune(c)
}

func (s *Screen) saveCursor() {
	s.saved = savedCursor{
		x: s.x, y: s.y, pen: s.pen, g: s.st.g, shift: s.st.shift,
		origin: s.st.private(6), set: true,
	}
}

// restoreCursor goes back to c; to the home position and a plain pen if
// nothing was saved.
func (s *Screen) restoreCursor(c savedCursor) {
	if !c.set {
		c.g = [2]byte{'B', 'B'}
	}
	link := s.pen.Link
	s.x, s.y = min(c.x, s.cols), min(c.y, s.rows-1)
	s.pen, s.penOK = c.pen, false
	s.pen.Link = link
	s.st.g, s.st.shift = c.g, c.shift
	if c.set || s.st.private(6) {
		s.st.setPrivate(6, c.origin)
	}
}

// alignment fills the screen with E, as DECALN does.
func (s *Screen) alignment() {
	s.top, s.bot = 0, s.rows-1
	s.x, s.y = 0, 0
	for _, r := range s.g.rows {
		s.fill(r, 0, s.cols, cell{r: 'E', w: 1})
	}
}

// fullReset is RIS.
func (s *Screen) fullReset() {
	s.g = &s.main
	s.softReset()
	s.st.reset()
	s.x, s.y = 0, 0
	s.pen = Style{}
	s.penOK = false
	s.resetTabs()
	s.eraseAll()
	s.setTitle("")
	s.fullRepaint("RIS")
}

// softReset is DECSTR.
func (s *Screen) softReset() {
	s.top, s.bot = 0, s.rows-1
	s.pen = Style{Link: s.pen.Link}
	s.penOK = false
	s.saved = savedCursor{}
	s.st.soft()
}
