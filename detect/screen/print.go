package screen

import "unicode/utf8"

const zeroWidthJoiner = '\u200d'

// printASCII prints a run of printable ASCII.
func (s *Screen) printASCII(b []byte) {
	if len(b) == 0 {
		return
	}
	if s.st.insert || s.st.g[s.st.shift] != 'B' || !s.st.wrap {
		for _, c := range b {
			s.printRune(s.drawn(c))
		}
		s.lastRune = rune(b[len(b)-1])
		return
	}
	s.penStyle()
	for len(b) > 0 {
		if s.x >= s.cols {
			s.wrap()
		}
		n := min(len(b), s.cols-s.x)
		s.putASCII(b[:n])
		s.lastRune = rune(b[n-1])
		b = b[n:]
	}
}

// putASCII writes a run that fits into the present row.
func (s *Screen) putASCII(b []byte) {
	r := s.g.rows[s.y]
	cells := r.cells[s.x : s.x+len(b)]
	s.breakWide(r, s.x, s.x+len(b))
	c := cell{style: s.penID, w: 1}
	changed := false
	for i := range cells {
		c.r = rune(b[i])
		if cells[i] != c {
			cells[i] = c
			changed = true
		}
	}
	s.x += len(b)
	s.written(r, changed)
}

// written marks the row after a change and forgets that it went on in the next
// one if its last column is new.
func (s *Screen) written(r *row, changed bool) {
	if s.x >= s.cols && r.wrapped {
		r.wrapped = false
		changed = true
	}
	if changed {
		s.touch(r)
	}
}

// breakWide blanks the halves of wide characters that writing the columns x0
// to x1 leaves outside, in the default style as tmux does.
func (s *Screen) breakWide(r *row, x0, x1 int) {
	if x0 > 0 && r.cells[x0].w == 0 {
		r.cells[x0-1] = blank(0)
		r.cells[x0] = blank(0)
		s.touch(r)
	}
	if x1 < s.cols && r.cells[x1].w == 0 {
		r.cells[x1] = blank(0)
		r.cells[x1-1] = blank(0)
		s.touch(r)
	}
}

// wrap goes on at the beginning of the next row.
func (s *Screen) wrap() {
	r := s.g.rows[s.y]
	if !r.wrapped {
		r.wrapped = true
		s.touch(r)
	}
	s.lineFeed()
	s.penStyle()
	s.x = 0
}

// printRune prints one character, which may join the one before it.
func (s *Screen) printRune(r rune) {
	w := runeWidth(r)
	if w == 0 {
		s.combine(r)
		return
	}
	if s.joins(r) && s.combine(r) {
		return
	}
	s.penStyle()
	s.put(r, w)
	s.lastRune = 0
	if r < utf8.RuneSelf {
		s.lastRune = r
	}
}

// put writes a character of one or two columns at the cursor.
func (s *Screen) put(r rune, w int) {
	if w > s.cols {
		return
	}
	if s.x > s.cols-w {
		if !s.st.wrap {
			if w > 1 && s.x < s.cols {
				return // no room, and it may not wrap
			}
			s.x = s.cols - w
		} else {
			s.wrap()
		}
	}
	if s.st.insert {
		s.insertCells(w)
		s.penStyle()
	}
	row := s.g.rows[s.y]
	s.breakWide(row, s.x, s.x+w)
	changed := s.set(row, s.x, cell{r: r, style: s.penID, w: uint16(w)})
	if w == 2 && s.set(row, s.x+1, cell{style: s.penID}) {
		changed = true
	}
	s.x += w
	s.written(row, changed)
	if !s.st.wrap {
		s.x = min(s.x, s.cols-1)
	}
}

func (s *Screen) set(r *row, x int, c cell) bool {
	if r.cells[x] == c {
		return false
	}
	r.cells[x] = c
	return true
}

// before is the column of the character in front of the cursor, -1 if none.
func (s *Screen) before() int {
	x := min(s.x, s.cols) - 1
	if x > 0 && s.g.rows[s.y].cells[x].w == 0 {
		x--
	}
	return x
}

// joins reports whether r continues the character before it because that ends
// in a zero-width joiner, as tmux 3.3a does. Skin tones, regional indicators
// and variation selectors join nothing there and change no width.
func (s *Screen) joins(r rune) bool {
	x := s.before()
	if x < 0 || r < utf8.RuneSelf {
		return false
	}
	c := s.g.rows[s.y].cells[x]
	if c.r >= 0 {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(s.clusters.list[^c.r])
	return last == zeroWidthJoiner
}

// combine adds r to the character before the cursor; false if it cannot.
func (s *Screen) combine(r rune) bool {
	x := s.before()
	if x < 0 || r >= 0x80 && r < 0xa0 {
		return false
	}
	c := s.g.rows[s.y].cells[x]
	var buf [2 * clusterLen]byte
	text := buf[:0]
	if c.r < 0 {
		text = append(text, s.clusters.list[^c.r]...)
	} else {
		text = utf8.AppendRune(text, c.r)
	}
	text = utf8.AppendRune(text, r)
	if len(text) > clusterLen {
		return false
	}
	id, ok := s.cluster(text)
	if !ok {
		return false
	}
	row := s.g.rows[s.y]
	row.cells[x].r = id
	s.touch(row)
	return true
}

// repeat is REP, cut at the end of the row as in tmux.
func (s *Screen) repeat(r rune, n int) {
	if r == 0 {
		return
	}
	for range min(n, s.cols-s.x) {
		s.printRune(s.drawn(byte(r)))
	}
	s.lastRune = r
}
