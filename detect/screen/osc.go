package screen

import "bytes"

// oscDispatch obeys a complete OSC string. One that was cut at 4 KB is
// dropped, except a hyperlink, of which only the presence counts.
func (s *Screen) oscDispatch() {
	str := s.p.str
	num, rest, _ := bytes.Cut(str, []byte{';'})
	n := oscNumber(num)
	if s.p.over && n != 8 {
		return
	}
	switch n {
	case 0, 2:
		s.setTitle(s.ev.intern(rest))
	case 8:
		s.setLink(rest)
	case 9:
		s.osc9(rest)
	case 4:
		s.st.palette = s.st.palette || !bytes.HasSuffix(rest, []byte("?"))
	case 104:
		s.st.palette = s.st.palette && len(rest) > 0
	case 10, 11, 12:
		s.st.setColour(n-10, rest)
	case 110, 111, 112:
		s.st.colours[n-110] = ""
	case 7501:
		s.event(OSC7501, s.ev.intern(rest))
	}
}

// setLink begins a hyperlink or ends it: rest is "parameters;address".
func (s *Screen) setLink(rest []byte) {
	_, uri, _ := bytes.Cut(rest, []byte{';'})
	s.st.link = s.st.link[:0]
	if !s.p.over && len(uri) > 0 {
		s.st.link = append(s.st.link, rest...)
	}
	if on := len(uri) > 0; on != s.pen.Link {
		s.pen.Link = on
		s.penOK = false
	}
}

// oscNumber is the number before the first semicolon, -1 if it is none.
func oscNumber(b []byte) int {
	if len(b) == 0 || len(b) > 5 {
		return -1
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func (s *Screen) setTitle(t string) {
	s.st.title = t
	if t == s.title {
		return
	}
	s.title = t
	s.event(Title, t)
}

// osc9 is a notification, or with 4; a progress indicator that stays until
// it is taken away.
func (s *Screen) osc9(rest []byte) {
	if bytes.HasPrefix(rest, []byte("4;")) {
		s.st.progress = len(rest) > 2 && rest[2] != '0'
	}
	s.event(OSC9, s.ev.intern(rest))
}
