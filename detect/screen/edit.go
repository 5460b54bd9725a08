package screen

// touch marks a row as changed.
func (s *Screen) touch(r *row) {
	s.version++
	r.version = s.version
}

// fill sets the cells x0 to x1 of a row and marks it if that changes any. Half
// a wide character at either end becomes blank.
func (s *Screen) fill(r *row, x0, x1 int, c cell) {
	if x0 >= x1 {
		return
	}
	s.splitWide(r, x0)
	s.splitWide(r, x1)
	part := r.cells[x0:x1]
	for len(part) > 0 && part[0] == c {
		part = part[1:]
	}
	changed := len(part) > 0
	for i := range part {
		part[i] = c
	}
	if x1 == len(r.cells) && r.wrapped {
		r.wrapped = false
		changed = true
	}
	if changed {
		s.touch(r)
	}
}

// splitWide makes both halves of a wide character blank if a cut before column
// x would go through it.
func (s *Screen) splitWide(r *row, x int) {
	if x <= 0 || x >= len(r.cells) || r.cells[x].w != 0 {
		return
	}
	r.cells[x-1] = blank(r.cells[x-1].style)
	r.cells[x] = blank(r.cells[x].style)
	s.touch(r)
}

func (s *Screen) eraseRows(y0, y1 int, c cell) {
	for _, r := range s.g.rows[y0:y1] {
		s.fill(r, 0, s.cols, c)
	}
}

func (s *Screen) eraseAll() { s.eraseRows(0, s.rows, s.erased()) }

// eraseDisplay is ED.
func (s *Screen) eraseDisplay(what int) {
	c := s.erased()
	r := s.g.rows[s.y]
	switch what {
	case 0:
		s.fill(r, s.x, s.cols, c)
		s.eraseRows(s.y+1, s.rows, c)
		if s.x == 0 && s.y == 0 {
			s.fullRepaint("ED0")
		}
	case 1:
		s.eraseRows(0, s.y, c)
		s.fill(r, 0, min(s.x+1, s.cols), c)
	case 2:
		s.eraseAll()
		s.fullRepaint("ED2")
	case 3:
		s.event(Clear, "")
	}
}

// eraseLine is EL.
func (s *Screen) eraseLine(what int) {
	c := s.erased()
	r := s.g.rows[s.y]
	switch what {
	case 0:
		s.fill(r, s.x, s.cols, c)
	case 1:
		s.fill(r, 0, min(s.x+1, s.cols), c)
	case 2:
		s.fill(r, 0, s.cols, c)
	}
}

// eraseCells is ECH.
func (s *Screen) eraseCells(n int) {
	s.fill(s.g.rows[s.y], s.x, min(s.x+n, s.cols), s.erased())
}

// insertCells is ICH.
func (s *Screen) insertCells(n int) {
	if s.x >= s.cols {
		return
	}
	n = min(n, s.cols-s.x)
	c := s.erased()
	r := s.g.rows[s.y]
	s.splitWide(r, s.x)
	s.splitWide(r, s.cols-n)
	copy(r.cells[s.x+n:], r.cells[s.x:s.cols-n])
	s.refill(r, s.x, s.x+n, c)
}

// deleteCells is DCH.
func (s *Screen) deleteCells(n int) {
	if s.x >= s.cols {
		return
	}
	n = min(n, s.cols-s.x)
	c := s.erased()
	r := s.g.rows[s.y]
	s.splitWide(r, s.x)
	s.splitWide(r, s.x+n)
	copy(r.cells[s.x:], r.cells[s.x+n:])
	s.refill(r, s.cols-n, s.cols, c)
}

// refill sets cells without a look at what copying left in them.
func (s *Screen) refill(r *row, x0, x1 int, c cell) {
	for x := x0; x < x1; x++ {
		r.cells[x] = c
	}
	r.wrapped = false
	s.touch(r)
}

// insertLines is IL, which outside the scroll region does nothing.
func (s *Screen) insertLines(n int) {
	if s.y >= s.top && s.y <= s.bot {
		s.x = min(s.x, s.cols-1)
		s.scrollDown(s.y, s.bot, n, s.erased().style)
	}
}

// deleteLines is DL. The rows are gone, not scrolled off.
func (s *Screen) deleteLines(n int) {
	if s.y >= s.top && s.y <= s.bot {
		s.x = min(s.x, s.cols-1)
		s.moveUp(s.y, s.bot, n, s.erased().style, false)
	}
}

// scrollUp moves the rows top to bot up by n. What leaves the top of the main
// screen is kept for Scrolled.
func (s *Screen) scrollUp(top, bot, n int, style uint16) {
	s.moveUp(top, bot, n, style, top == 0 && s.g == &s.main)
}

func (s *Screen) moveUp(top, bot, n int, style uint16, keep bool) {
	rows := s.g.rows[top : bot+1]
	n = min(n, len(rows))
	for range n {
		out := rows[0]
		copy(rows, rows[1:])
		if keep {
			out = s.recycle(out)
		}
		rows[len(rows)-1] = out
		s.blankRow(out, style)
	}
	s.version++
}

// recycle puts a row into the ring and returns another one to use.
func (s *Screen) recycle(out *row) *row {
	r := s.ring.push(out)
	if r == nil || len(r.cells) != s.cols {
		r = newRow(s.cols)
	}
	return r
}

func (s *Screen) blankRow(r *row, style uint16) {
	c := blank(style)
	for x := range r.cells {
		r.cells[x] = c
	}
	r.wrapped = false
	s.touch(r)
}

func (s *Screen) scrollDown(top, bot, n int, style uint16) {
	rows := s.g.rows[top : bot+1]
	n = min(n, len(rows))
	for range n {
		out := rows[len(rows)-1]
		copy(rows[1:], rows)
		rows[0] = out
		s.blankRow(out, style)
	}
	s.version++
}

// lineFeed goes down one row and scrolls at the region's bottom.
func (s *Screen) lineFeed() {
	s.x = min(s.x, s.cols-1)
	switch {
	case s.y == s.bot:
		s.scrollUp(s.top, s.bot, 1, s.erased().style)
	case s.y < s.rows-1:
		s.y++
	}
}

// reverseIndex goes up one row and scrolls down at the region's top.
func (s *Screen) reverseIndex() {
	s.x = min(s.x, s.cols-1)
	switch {
	case s.y == s.top:
		s.scrollDown(s.top, s.bot, 1, s.erased().style)
	case s.y > 0:
		s.y--
	}
}

func (s *Screen) resetTabs() {
	s.tabs = make([]bool, s.cols)
	for x := 8; x < s.cols; x += 8 {
		s.tabs[x] = true
	}
}

func (s *Screen) tabForward(n int) {
	for ; n > 0 && s.x < s.cols-1; n-- {
		s.x++
		for s.x < s.cols-1 && !s.tabs[s.x] {
			s.x++
		}
	}
}

func (s *Screen) tabBack(n int) {
	s.x = min(s.x, s.cols-1)
	for ; n > 0 && s.x > 0; n-- {
		s.x--
		for s.x > 0 && !s.tabs[s.x] {
			s.x--
		}
	}
}

// clearTabs is TBC: 0 this column's, 3 all.
func (s *Screen) clearTabs(what int) {
	switch {
	case what == 0 && s.x < s.cols:
		s.tabs[s.x] = false
	case what == 3:
		clear(s.tabs)
	}
}
