package screen

// sgr applies CSI ... m to the pen.
func (s *Screen) sgr() {
	p := &s.p
	s.penOK = false
	n := p.count()
	for i := 0; i < n; i++ {
		end := i + 1 // one behind the parameters that colons join to this one
		for end < n && p.joined(end) {
			end++
		}
		switch v := p.param(i, 0); v {
		case 38, 48, 58:
			if end > i+1 {
				s.setColor(v, p.colonColor(i+1, end))
				break
			}
			c, used := p.semicolonColor(i + 1)
			s.setColor(v, c)
			end += used
		case 4:
			line := 1
			if end > i+1 {
				line = p.param(i+1, 1)
			}
			s.underline(line)
		default:
			if end == i+1 {
				s.sgrPlain(v)
			}
		}
		i = end - 1
	}
}

// noColor marks a colour that could not be read.
const noColor = ^Color(0)

func (s *Screen) setColor(which int, c Color) {
	if c == noColor {
		return
	}
	switch which {
	case 38:
		s.pen.Fg = c
	case 48:
		s.pen.Bg = c
	case 58:
		s.pen.UnderColor = c
	}
}

// semicolonColor reads 5;n or 2;r;g;b from parameter i on.
func (p *parser) semicolonColor(i int) (c Color, used int) {
	switch p.param(i, 0) {
	case 5:
		return paletteColor(p.param(i+1, 0)), 2
	case 2:
		return rgbColor(p.param(i+1, 0), p.param(i+2, 0), p.param(i+3, 0)), 4
	}
	return noColor, 1
}

// colonColor reads 5:n, 2:r:g:b or 2:space:r:g:b from the parameters i to end.
func (p *parser) colonColor(i, end int) Color {
	switch {
	case p.param(i, 0) == 5 && end-i >= 2:
		return paletteColor(p.param(i+1, 0))
	case p.param(i, 0) == 2 && end-i == 4:
		return rgbColor(p.param(i+1, 0), p.param(i+2, 0), p.param(i+3, 0))
	case p.param(i, 0) == 2 && end-i > 4:
		return rgbColor(p.param(i+2, 0), p.param(i+3, 0), p.param(i+4, 0))
	}
	return noColor
}

func paletteColor(i int) Color {
	if i > 255 {
		return noColor
	}
	return Index(uint8(i))
}

func rgbColor(r, g, b int) Color {
	if r > 255 || g > 255 || b > 255 {
		return noColor
	}
	return RGB(uint8(r), uint8(g), uint8(b))
}

func (s *Screen) underline(line int) {
	if line > 5 {
		return
	}
	s.pen.Line = uint8(line)
	s.pen.Attr &^= Underline
	if line > 0 {
		s.pen.Attr |= Underline
	}
}

func (s *Screen) sgrPlain(v int) {
	switch {
	case v >= 30 && v <= 37:
		s.pen.Fg = Index(uint8(v - 30))
	case v >= 40 && v <= 47:
		s.pen.Bg = Index(uint8(v - 40))
	case v >= 90 && v <= 97:
		s.pen.Fg = Index(uint8(v - 90 + 8))
	case v >= 100 && v <= 107:
		s.pen.Bg = Index(uint8(v - 100 + 8))
	case v == 0:
		s.pen = Style{Link: s.pen.Link}
	case v == 21:
		s.underline(2)
	case v == 24:
		s.underline(0)
	case v == 39:
		s.pen.Fg = 0
	case v == 49:
		s.pen.Bg = 0
	case v == 59:
		s.pen.UnderColor = 0
	default:
		s.sgrAttr(v)
	}
}

func (s *Screen) sgrAttr(v int) {
	on, off := Attr(0), Attr(0)
	switch v {
	case 1:
		on = Bold
	case 2:
		on = Dim
	case 3:
		on = Italic
	case 5, 6:
		on = Blink
	case 7:
		on = Reverse
	case 8:
		on = Invisible
	case 9:
		on = Strike
	case 53:
		on = Overline
	case 22:
		off = Bold | Dim
	case 23:
		off = Italic
	case 25:
		off = Blink
	case 27:
		off = Reverse
	case 28:
		off = Invisible
	case 29:
		off = Strike
	case 55:
		off = Overline
	}
	s.pen.Attr = s.pen.Attr&^off | on
}
