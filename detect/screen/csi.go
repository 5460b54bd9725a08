package screen

// csiDispatch obeys a complete control sequence.
func (s *Screen) csiDispatch(final byte) {
	last := s.lastRune
	s.lastRune = 0
	p := &s.p
	switch {
	case p.private == 0 && p.inter == 0:
		if final == 'b' {
			s.repeat(last, p.num(0))
			return
		}
		s.csiPlain(final)
	case p.private == '?' && p.inter == 0:
		s.csiPrivate(final)
	case p.private == '>' && p.inter == 0:
		s.csiGreater(final)
	case p.private == '<' && p.inter == 0 && final == 'u':
		s.kitty().pop(p.num(0))
	case p.private == '=' && p.inter == 0 && final == 'u':
		s.kitty().set(uint8(p.param(0, 0)), p.num(1))
	case p.private == 0 && p.inter == ' ' && final == 'q':
		s.st.style = clamp(p.param(0, 0), 0, 6)
	case p.private == 0 && p.inter == '!' && final == 'p':
		s.softReset()
	}
}

func (s *Screen) kitty() *Kitty {
	if s.Alt() {
		return &s.st.kitty[1]
	}
	return &s.st.kitty[0]
}

// csiPlain obeys the sequences without private byte and intermediates.
func (s *Screen) csiPlain(final byte) {
	p := &s.p
	switch final {
	case '@':
		s.insertCells(p.num(0))
	case 'P':
		s.deleteCells(p.num(0))
	case 'X':
		s.eraseCells(p.num(0))
	case 'L':
		s.insertLines(p.num(0))
	case 'M':
		s.deleteLines(p.num(0))
	case 'S':
		s.scrollUp(s.top, s.bot, p.num(0), s.erased().style)
	case 'T':
		if p.n == 0 { // with more parameters it is mouse tracking
			s.scrollDown(s.top, s.bot, p.num(0), s.erased().style)
		}
	case 'J':
		s.eraseDisplay(p.param(0, 0))
	case 'K':
		s.eraseLine(p.param(0, 0))
	case 'm':
		s.sgr()
	case 'r':
		s.margins(p.num(0), p.param(1, s.rows))
	case 'h', 'l':
		s.ansiMode(final == 'h')
	case 's':
		if p.n == 0 && p.params[0] < 0 {
			s.saveCursor()
		}
	case 'u':
		s.restoreCursor(s.saved)
	case 't':
		s.titleStack(p.param(0, 0))
	case 'n':
		if p.param(0, 0) == 6 {
			s.cursorQuery()
		}
	default:
		s.csiMove(final)
	}
}

// csiMove obeys the sequences that only move the cursor.
func (s *Screen) csiMove(final byte) {
	p := &s.p
	n := p.num(0)
	switch final {
	case 'A':
		s.up(n)
	case 'B', 'e':
		s.down(n)
	case 'C', 'a':
		s.x = min(min(s.x, s.cols-1)+n, s.cols-1)
	case 'D':
		s.x = max(min(s.x, s.cols-1)-n, 0)
	case 'E':
		s.down(n)
		s.x = 0
	case 'F':
		s.up(n)
		s.x = 0
	case 'G', '`':
		s.x = min(n, s.cols) - 1
	case 'd':
		s.moveTo(s.x, n-1)
	case 'H', 'f':
		s.moveTo(p.num(1)-1, n-1)
	case 'I':
		s.tabForward(n)
	case 'Z':
		s.tabBack(n)
	case 'g':
		s.clearTabs(p.param(0, 0))
	}
}

// moveTo puts the cursor at column x and row y; the row counts from the scroll
// region's top in origin mode.
func (s *Screen) moveTo(x, y int) {
	if s.st.origin {
		y = min(y+s.top, s.bot)
	}
	s.x, s.y = min(x, s.cols-1), min(y, s.rows-1)
}

// up stops at the scroll region's top, if it begins inside or below it.
func (s *Screen) up(n int) {
	limit := 0
	if s.y >= s.top {
		limit = s.top
	}
	s.y = max(s.y-n, limit)
	s.x = min(s.x, s.cols-1)
}

// down stops at the scroll region's bottom, if it begins inside or above it.
func (s *Screen) down(n int) {
	limit := s.rows - 1
	if s.y <= s.bot {
		limit = s.bot
	}
	s.y = min(s.y+n, limit)
	s.x = min(s.x, s.cols-1)
}

// margins sets the scroll region, rows counted from 1, and goes home. One of
// fewer than two rows is ignored.
func (s *Screen) margins(top, bot int) {
	if bot == 0 {
		bot = s.rows
	}
	top, bot = min(top, s.rows)-1, min(bot, s.rows)-1
	if top >= bot {
		return
	}
	s.top, s.bot = top, bot
	s.moveTo(0, 0)
}

func (s *Screen) ansiMode(on bool) {
	p := &s.p
	for i := range p.count() {
		switch p.param(i, 0) {
		case 4:
			s.st.insert = on
		case 20:
			s.st.newline = on
		}
	}
}

func (s *Screen) titleStack(op int) {
	if s.p.param(1, 0) == 1 { // the icon's name, which nobody shows
		return
	}
	switch op {
	case 22:
		s.st.titles = min(s.st.titles+1, maxTitles)
	case 23:
		s.st.titles = max(s.st.titles-1, 0)
	}
}

func (s *Screen) cursorQuery() {
	x, y := s.Cursor()
	if s.st.origin {
		y = max(y-s.top, 0)
	}
	s.addEvent(Event{Kind: CursorQuery, X: x, Y: y})
}

// csiPrivate obeys CSI ? sequences.
func (s *Screen) csiPrivate(final byte) {
	p := &s.p
	switch final {
	case 'J':
		s.eraseDisplay(p.param(0, 0)) // selective erase: nothing is protected
	case 'K':
		s.eraseLine(p.param(0, 0))
	case 'h', 'l', 's', 'r':
		for i := range p.count() {
			num := p.param(i, 0)
			switch final {
			case 's':
				s.st.saveMode(num)
			case 'r':
				s.setPrivate(num, s.st.savedMode(num))
			default:
				s.setPrivate(num, final == 'h')
			}
		}
	}
}

func (s *Screen) setPrivate(num int, on bool) {
	switch num {
	case 47, 1047, 1049:
		s.setAlt(num, on)
	case 1048:
		if on {
			s.saveCursor()
		} else {
			s.restoreCursor(s.saved)
		}
	case 2026:
		s.synchronise(on)
	}
	if num == 0 || untracked(num) {
		return
	}
	s.st.setPrivate(num, on)
	switch num {
	case 6:
		s.moveTo(0, 0)
	case 7:
		s.x = min(s.x, s.cols-1)
	}
}

// csiGreater obeys CSI > sequences: the kitty stack and XTMODKEYS.
func (s *Screen) csiGreater(final byte) {
	p := &s.p
	switch final {
	case 'u':
		s.kitty().push(uint8(p.param(0, 0)))
	case 'm':
		if p.params[0] < 0 {
			for i := range s.st.modKeys {
				s.st.modKeys[i] = -1
			}
		} else if r := p.param(0, 0); r < modKeyKinds {
			s.st.modKeys[r] = int32(p.param(1, -1))
		}
	case 'n':
		if r := p.param(0, 2); r < modKeyKinds {
			s.st.modKeys[r] = -1
		}
	}
}

// setAlt shows the alternate or the main screen. ?1049 keeps the cursor for
// the way back; the alternate screen is blank when entered, as in tmux and
// with ?1049 everywhere.
func (s *Screen) setAlt(num int, on bool) {
	if on {
		s.enterAlt(num)
		return
	}
	was := s.Alt()
	if was {
		s.g = &s.main
		s.st.altMode = 0
		s.version++
	}
	if c := s.left; num == 1049 && c.set {
		s.x, s.y = min(c.x, s.cols), min(c.y, s.rows-1)
		c.pen.Link = s.pen.Link
		s.pen, s.penOK = c.pen, false
		s.st.g, s.st.shift = c.g, c.shift
	}
	if was {
		s.x = min(s.x, s.cols-1)
		s.event(LeftAlt, "")
	}
}

func (s *Screen) enterAlt(num int) {
	if s.Alt() {
		return
	}
	if num == 1049 {
		s.left = savedCursor{x: s.x, y: s.y, pen: s.pen, g: s.st.g, shift: s.st.shift, set: true}
	}
	if s.alt.rows == nil {
		s.alt.init(s.cols, s.rows)
	}
	s.g = &s.alt
	s.st.altMode = num
	s.eraseRows(0, s.rows, blank(0))
	s.version++
	s.fullRepaint("alt")
}
