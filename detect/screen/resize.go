package screen

// Resize changes the size, clamped as in New.
//
// Columns: rows are cut or made longer at the right, on both screens. Nothing
// is reflowed: xterm does not either, every agent we know repaints at a size
// change, and reflow would move rows that the agent then addresses.
//
// Rows, as tmux does: a lower screen first gives up the rows below the cursor,
// then rows at the top, which on the main screen count as scrolled
// off. A higher main screen brings those back, the alternate one gets blank
// rows at the bottom. The scroll region becomes the whole screen.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = clamp(cols, 1, maxCols), clamp(rows, 1, maxRows)
	if cols == s.cols && rows == s.rows {
		return
	}
	mainY, altY := s.left.y, s.y
	if !s.Alt() {
		mainY, altY = s.y, 0
	}
	widthChanged := cols != s.cols
	s.cols = cols
	mainD := s.resizeGrid(&s.main, rows, mainY, true)
	altD := 0
	if s.alt.rows != nil {
		altD = s.resizeGrid(&s.alt, rows, altY, false)
	}
	s.rows = rows
	s.left.y = clamp(s.left.y+mainD, 0, rows-1)
	s.left.x = min(s.left.x, cols)
	if s.Alt() {
		s.y += altD
	} else {
		s.y += mainD
	}
	s.x, s.y = min(s.x, cols-1), clamp(s.y, 0, rows-1)
	s.top, s.bot = 0, rows-1
	if widthChanged {
		s.resetTabs()
	}
	s.version++
}

// resizeGrid gives g s.cols columns and the wanted rows, and says how far its
// content moved down. y is the cursor's row there.
func (s *Screen) resizeGrid(g *grid, rows, y int, keep bool) (moved int) {
	if d := len(g.rows) - rows; d > 0 {
		blank := min(d, len(g.rows)-1-y)
		g.rows = g.rows[:len(g.rows)-blank]
		d -= blank
		for _, r := range g.rows[:d] {
			if keep {
				s.ring.push(r)
			}
		}
		g.rows = append([]*row(nil), g.rows[d:]...)
		moved = -d
	} else if d < 0 {
		var back []*row
		for ; keep && d < 0 && s.ring.n > 0; d++ {
			back = append([]*row{s.ring.pop()}, back...)
		}
		moved = len(back)
		g.rows = append(back, g.rows...)
		for ; d < 0; d++ {
			g.rows = append(g.rows, newRow(s.cols))
		}
	}
	for _, r := range g.rows {
		s.setWidth(r)
	}
	return moved
}

// setWidth cuts or lengthens a row to s.cols columns.
func (s *Screen) setWidth(r *row) {
	switch n := len(r.cells); {
	case s.cols < n:
		s.splitWide(r, s.cols)
		r.cells = append([]cell(nil), r.cells[:s.cols]...)
		r.wrapped = false
	case s.cols > n:
		cells := make([]cell, s.cols)
		for x := copy(cells, r.cells); x < s.cols; x++ {
			cells[x] = blank(0)
		}
		r.cells = cells
	}
	s.touch(r)
}
