package screen

import "unicode/utf8"

// The parser's states. Ground is between sequences.
const (
	stGround    uint8 = iota
	stEscape          // after ESC
	stEscInter        // ESC and intermediate bytes
	stCSI             // after ESC [
	stString          // inside OSC, DCS, APC, PM, SOS or ESC k
	stStringEsc       // ESC inside a string: a backslash ends it
)

const (
	maxParams = 32    // a sequence's parameters beyond are read and dropped
	maxParam  = 65535 // larger numbers are cut to this
	maxOSC    = 4096  // bytes of an OSC string that are kept
)

// parser is the state between bytes.
type parser struct {
	state   uint8
	private byte // one of < = > ? after ESC [, or 0
	inter   byte // intermediate byte; 0 for none
	bad     bool // more or other bytes than any sequence we know has
	kind    byte // of the string: ']' 'P' '_' '^' 'X' 'k'
	over    bool // the string was longer than maxOSC
	n       int  // index of the current parameter
	params  [maxParams + 1]int32
	colons  uint64 // bit i: parameter i follows a colon
	u       [4]byte
	un      int // bytes of an unfinished UTF-8 character in u
	str     []byte
}

func (p *parser) reset() {
	p.state, p.un = stGround, 0
	p.str = p.str[:0]
}

// count is how many parameters the sequence has, at least one.
func (p *parser) count() int { return min(p.n+1, maxParams) }

// param is parameter i; def stands for one that is missing or empty.
func (p *parser) param(i, def int) int {
	if i > p.n || i >= maxParams || p.params[i] < 0 {
		return def
	}
	return int(p.params[i])
}

// num is parameter i where 0 means 1, as for most counts.
func (p *parser) num(i int) int { return max(1, p.param(i, 1)) }

func (p *parser) joined(i int) bool { return p.colons>>i&1 == 1 }

// Write reads bytes that the agent wrote to its terminal. It always takes all
// of them and the error is always nil.
func (s *Screen) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		switch s.p.state {
		case stGround:
			b = s.ground(b)
		case stCSI:
			b = s.csi(b)
		case stString:
			b = s.stringBytes(b)
		default:
			if s.escape(b[0]) {
				b = b[1:]
			}
		}
	}
	return n, nil
}

// ground prints and obeys controls until a sequence begins or b ends.
func (s *Screen) ground(b []byte) []byte {
	if s.p.un > 0 {
		return s.resumeRune(b)
	}
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c >= 0x20 && c < 0x7f:
			end := i + 1
			for end < len(b) && b[end] >= 0x20 && b[end] < 0x7f {
				end++
			}
			s.printASCII(b[i:end])
			i = end
		case c == 0x1b:
			s.enterEscape()
			return b[i+1:]
		case c < 0x80:
			s.control(c)
			i++
		default:
			n, ok := runeLen(b[i:])
			if n == 0 {
				s.p.un = copy(s.p.u[:], b[i:])
				return nil
			}
			s.printDecoded(b[i:i+n], ok)
			i += n
		}
	}
	return nil
}

func (s *Screen) printDecoded(b []byte, ok bool) {
	r := utf8.RuneError
	if ok {
		r, _ = utf8.DecodeRune(b)
	}
	s.printRune(r)
}

// resumeRune goes on with a character that the last Write left unfinished.
func (s *Screen) resumeRune(b []byte) []byte {
	p := &s.p
	for len(b) > 0 {
		had := p.un
		p.u[p.un] = b[0]
		n, ok := runeLen(p.u[:had+1])
		switch {
		case n == 0:
			p.un++
			b = b[1:]
		case n > had: // complete with this byte
			p.un = 0
			s.printDecoded(p.u[:n], ok)
			return b[1:]
		default: // broken off: this byte begins something else
			p.un = 0
			s.printDecoded(p.u[:n], false)
			return b
		}
	}
	return b
}

// runeLen says how many bytes of b are the first character, and whether it is
// valid. An invalid one is as long as the part that could have begun a valid
// one (as Unicode recommends). 0: b ends inside a character. b[0] >= 0x80.
func runeLen(b []byte) (n int, ok bool) {
	need, lo, hi := 0, byte(0x80), byte(0xBF)
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 2
	case c >= 0xE0 && c <= 0xEF:
		need = 3
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 4
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	default:
		return 1, false
	}
	for i := 1; i < need; i++ {
		if i >= len(b) {
			return 0, false
		}
		if b[i] < lo || b[i] > hi {
			return i, false
		}
		lo, hi = 0x80, 0xBF
	}
	return need, true
}

func (s *Screen) enterEscape() {
	s.p.state = stEscape
	s.p.inter, s.p.bad = 0, false
}

// escape reads one byte after ESC, of an escape sequence with intermediates,
// or after ESC inside a string. False: the byte must be read again in the new
// state.
func (s *Screen) escape(c byte) bool {
	p := &s.p
	if p.state == stStringEsc {
		return s.stringEscape(c)
	}
	switch {
	case c == 0x1b:
		s.enterEscape()
	case c == 0x18 || c == 0x1a:
		p.state = stGround
	case c < 0x20:
		s.control(c)
	case c < 0x30:
		p.bad = p.bad || p.inter != 0
		p.inter = c
		p.state = stEscInter
	case c >= 0x7f:
		// Ignored, as in tmux and in Williams' tables.
	case p.state == stEscape && isStringIntro(c):
		p.state = stString
		p.kind, p.over = c, false
		p.str = p.str[:0]
	case p.state == stEscape && c == '[':
		p.state = stCSI
		p.private, p.n, p.colons = 0, 0, 0
		p.params[0] = -1
	default:
		p.state = stGround
		if !p.bad {
			s.escDispatch(p.inter, c)
		}
	}
	return true
}

func isStringIntro(c byte) bool {
	switch c {
	case ']', 'P', '_', '^', 'X', 'k':
		return true
	}
	return false
}

// csi reads a control sequence up to its final byte or the end of b.
func (s *Screen) csi(b []byte) []byte {
	p := &s.p
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			p.bad = p.bad || p.inter != 0
			p.params[p.n] = min(max(p.params[p.n], 0)*10+int32(c-'0'), maxParam)
		case c == ';' || c == ':':
			p.bad = p.bad || p.inter != 0
			p.next(c == ':')
		case c >= '<' && c <= '?':
			p.bad = p.bad || p.n > 0 || p.params[0] >= 0 || p.private != 0 || p.inter != 0
			p.private = c
		case c >= 0x40 && c < 0x7f:
			p.state = stGround
			if !p.bad {
				s.csiDispatch(c)
			}
			return b[i+1:]
		case c >= 0x20 && c < 0x30:
			p.bad = p.bad || p.inter != 0
			p.inter = c
		case c == 0x1b:
			s.enterEscape()
			return b[i+1:]
		case c == 0x18 || c == 0x1a:
			p.state = stGround
			return b[i+1:]
		case c < 0x20:
			s.control(c)
		}
	}
	return nil
}

func (p *parser) next(colon bool) {
	if p.n < maxParams {
		p.n++
	}
	p.params[p.n] = -1
	if colon {
		p.colons |= 1 << p.n
	}
}

// stringBytes reads a string's content up to what ends it or the end of b.
// Only BEL (for OSC) and ESC \ end one: byte 0x9C may be part of UTF-8.
func (s *Screen) stringBytes(b []byte) []byte {
	p := &s.p
	for i, c := range b {
		switch {
		case c >= 0x20 || c == '\t':
			continue
		case c == 0x1b:
			p.keep(b[:i])
			p.state = stStringEsc
		case c == 0x18 || c == 0x1a:
			p.state = stGround
		case c == 0x07 && p.kind == ']':
			p.keep(b[:i])
			p.state = stGround
			s.oscDispatch()
		default: // other controls are no part of the string
			p.keep(b[:i])
		}
		return b[i+1:]
	}
	p.keep(b)
	return nil
}

// keep adds to the string. Of strings other than OSC only the beginning is
// looked at, so only that is kept.
func (p *parser) keep(b []byte) {
	room := maxOSC - len(p.str)
	if p.kind != ']' {
		room = len(tmuxPassthrough) - len(p.str)
	}
	if len(b) > room {
		p.over = true
		b = b[:room]
	}
	p.str = append(p.str, b...)
}

// tmuxPassthrough begins a DCS in which tmux programs wrap sequences for the
// outer terminal, every ESC doubled.
const tmuxPassthrough = "tmux;"

// stringEscape reads the byte after ESC inside a string. A backslash ends the
// string. Any other byte abandons it and belongs to a new sequence.
func (s *Screen) stringEscape(c byte) bool {
	p := &s.p
	if c == '\\' {
		p.state = stGround
		if p.kind == ']' {
			s.oscDispatch()
		}
		return true
	}
	if c == 0x1b && p.kind == 'P' && string(p.str) == tmuxPassthrough {
		p.state = stString
		return true
	}
	s.enterEscape()
	return false
}
