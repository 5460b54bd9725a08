package screen

// The tables of styles and of clusters (characters of several runes) are
// bounded. When one is full, what no cell uses is thrown out (sweep). When
// everything is in use, as only an attack or a photograph does, a new style's
// RGB colours become the nearest of the palette, for which there is a reserve;
// when that is used up too it loses its colours. A new cluster loses its
// combining marks.
const (
	stylesMax   = 8192
	stylesSpare = 8192 // for styles of palette colours alone
	clustersMax = 8192
	clusterLen  = 21 // bytes; tmux 3.3a stops combining there too
	// sweepPause is how many misses a full table answers without a new sweep,
	// so that a table full of live entries does not cost a sweep each.
	sweepPause = 4096
)

// styleTable numbers the styles in use. Number 0 is the zero Style.
type styleTable struct {
	list  []Style
	slots []uint16 // open addressing: number, 0 for free
	pause int
}

func (t *styleTable) reset() {
	t.list = append(t.list[:0], Style{})
	if t.slots == nil {
		t.slots = make([]uint16, 128)
	}
	clear(t.slots)
}

func (st Style) hash() uint32 {
	h := uint32(st.Fg)*0x9E3779B1 ^ uint32(st.Bg)*0x85EBCA77 ^ uint32(st.UnderColor)*0xC2B2AE3D
	h ^= (uint32(st.Attr)<<4 | uint32(st.Line)) * 0x27D4EB2F
	if st.Link {
		h ^= 0x165667B1
	}
	return h ^ h>>15
}

// find is the number of st, or 0 and the free slot where it belongs.
func (t *styleTable) find(st Style) (id uint16, slot int) {
	mask := uint32(len(t.slots) - 1)
	for i := st.hash() & mask; ; i = (i + 1) & mask {
		id := t.slots[i]
		if id == 0 || t.list[id] == st {
			return id, int(i)
		}
	}
}

// add numbers a style that find did not know.
func (t *styleTable) add(st Style, slot int) uint16 {
	id := uint16(len(t.list))
	t.list = append(t.list, st)
	t.slots[slot] = id
	if 2*len(t.list) > len(t.slots) {
		t.grow()
	}
	return id
}

func (t *styleTable) grow() {
	t.slots = make([]uint16, 2*len(t.slots))
	for id := 1; id < len(t.list); id++ {
		_, slot := t.find(t.list[id])
		t.slots[slot] = uint16(id)
	}
}

// styleID is the number of st. It may sweep, which renumbers: take it before
// holding other numbers.
func (s *Screen) styleID(st Style) uint16 {
	if st == (Style{}) {
		return 0
	}
	id, slot := s.styles.find(st)
	if id != 0 {
		return id
	}
	if len(s.styles.list) < stylesMax {
		return s.styles.add(st, slot)
	}
	if s.styles.pause == 0 {
		s.sweep()
		s.styles.pause = sweepPause
		if len(s.styles.list) < stylesMax {
			_, slot = s.styles.find(st)
			return s.styles.add(st, slot)
		}
	}
	s.styles.pause--
	return s.spareID(st)
}

// spareID is the number of st in palette colours, or in none.
func (s *Screen) spareID(st Style) uint16 {
	st.Fg, st.Bg, st.UnderColor = st.Fg.nearest(), st.Bg.nearest(), st.UnderColor.nearest()
	id, slot := s.styles.find(st)
	if id != 0 || st == (Style{}) {
		return id
	}
	if len(s.styles.list) < stylesMax+stylesSpare {
		return s.styles.add(st, slot)
	}
	return s.plainID(st)
}

// nearest is the colour itself, for RGB one of the palette's 6x6x6 cube.
func (c Color) nearest() Color {
	r, g, b, ok := c.RGB()
	if !ok {
		return c
	}
	level := func(v uint8) int { return (int(v)*5 + 127) / 255 }
	return Index(uint8(16 + 36*level(r) + 6*level(g) + level(b)))
}

// plainID is the number of st without its colours: there are so few of these
// that they may go beyond the table's limit.
func (s *Screen) plainID(st Style) uint16 {
	st.Fg, st.Bg, st.UnderColor, st.Line = 0, 0, 0, min(st.Line, 1)
	if st == (Style{}) {
		return 0
	}
	id, slot := s.styles.find(st)
	if id == 0 {
		id = s.styles.add(st, slot)
	}
	return id
}

// penStyle makes penID and eraseID true for the pen.
func (s *Screen) penStyle() {
	if s.penOK {
		return
	}
	s.eraseID = s.styleID(Style{Bg: s.pen.Bg})
	s.penID = s.styleID(s.pen)
	// The second may have swept the first away: ask again, after one sweep there
	// is not another at once.
	s.eraseID = s.styleID(Style{Bg: s.pen.Bg})
	s.penOK = true
}

// erased is the cell that erasing leaves: blank, in the pen's background.
func (s *Screen) erased() cell {
	s.penStyle()
	return blank(s.eraseID)
}

type clusterTable struct {
	list  []string
	ids   map[string]rune
	pause int
}

func (t *clusterTable) reset() {
	t.list = t.list[:0]
	t.ids = nil
}

// cluster numbers the text; ok is false when the table is full of live ones.
func (s *Screen) cluster(text []byte) (r rune, ok bool) {
	t := &s.clusters
	if id, ok := t.ids[string(text)]; ok {
		return ^id, true
	}
	if len(t.list) >= clustersMax {
		if t.pause > 0 {
			t.pause--
			return 0, false
		}
		s.sweep()
		t.pause = sweepPause
		if len(t.list) >= clustersMax {
			return 0, false
		}
	}
	if t.ids == nil {
		t.ids = make(map[string]rune)
	}
	id := rune(len(t.list))
	t.list = append(t.list, string(text))
	t.ids[t.list[id]] = id
	return ^id, true
}

// eachRow calls f for every row that the model holds.
func (s *Screen) eachRow(f func(*row)) {
	for _, r := range s.main.rows {
		f(r)
	}
	for _, r := range s.alt.rows {
		f(r)
	}
	for _, r := range s.ring.rows {
		if r != nil {
			f(r)
		}
	}
}

// sweep throws unused styles and clusters out and renumbers the rest.
func (s *Screen) sweep() {
	oldStyles := append([]Style(nil), s.styles.list...)
	oldClusters := append([]string(nil), s.clusters.list...)
	styleMap := make([]uint16, len(oldStyles))
	clusterMap := make([]rune, len(oldClusters)) // new number + 1
	s.styles.reset()
	s.clusters.reset()
	s.penOK = false
	s.eachRow(func(r *row) {
		for x := range r.cells {
			c := &r.cells[x]
			if c.style != 0 {
				if styleMap[c.style] == 0 {
					st := oldStyles[c.style]
					_, slot := s.styles.find(st)
					styleMap[c.style] = s.styles.add(st, slot)
				}
				c.style = styleMap[c.style]
			}
			if c.r < 0 {
				if clusterMap[^c.r] == 0 {
					clusterMap[^c.r] = s.keepCluster(oldClusters[^c.r]) + 1
				}
				c.r = ^(clusterMap[^c.r] - 1)
			}
		}
	})
}

func (s *Screen) keepCluster(text string) rune {
	t := &s.clusters
	if t.ids == nil {
		t.ids = make(map[string]rune)
	}
	id := rune(len(t.list))
	t.list = append(t.list, text)
	t.ids[text] = id
	return id
}
