package when

import (
	"strings"
	"unicode"
)

// clockTime reads "6:45pm", "6 :45 p.m.", "17:45", "05:35:16", "6 PM" into s.
func (p *parser) clockTime(s *stamp) bool {
	mark := p.i
	h, ok := p.small(1, 2)
	if !ok {
		return false
	}
	if p.clockH(s, h) {
		return true
	}
	if h == 12 && p.oneOf("noon", "midnight") {
		if s.clock = true; p.l[p.i-1] == 'n' {
			s.hour = 12
		}
		return true
	}
	m, sec, ns, colon, seconds, ok := p.minutes()
	if !ok {
		p.i = mark
		return false
	}
	half := p.half()
	switch {
	case !colon && half == 0, // a lone number is no time
		half != 0 && (h < 1 || h > 12),
		h > 24 || h == 24 && (m > 0 || sec > 0), m > 59, sec > 60:
		p.i = mark
		return false
	case half == 'a' && h == 12:
		h = 0
	case half == 'p' && h != 12:
		h += 12
	}
	if half == 0 && h <= 12 && !seconds && p.localisedHalf() {
		p.i = mark
		return false
	}
	s.clock, s.seconds = true, seconds
	s.hour, s.min, s.sec, s.ns = h, m, min(sec, 59), ns
	return true
}

// clockH reads the rest of "18h45", which nobody prints as a length behind "at".
func (p *parser) clockH(s *stamp, h int) bool {
	mark := p.i
	if p.take('h') {
		if m, ok := p.small(2, 2); ok && h < 24 && m < 60 && !p.wordAt() {
			s.clock, s.hour, s.min = true, h, m
			return true
		}
	}
	p.i = mark
	return false
}

// minutes reads ":45" and ":45:16.25". A row break may stand before the colon.
func (p *parser) minutes() (m, sec, ns int, colon, seconds, ok bool) {
	mark := p.i
	p.space()
	if !p.take(':') && !p.dotMinutes() {
		p.i = mark
		return 0, 0, 0, false, false, true
	}
	p.space()
	if m, ok = p.small(2, 2); !ok {
		return 0, 0, 0, true, false, false
	}
	if p.peek() == ':' {
		p.i++
		if sec, ok = p.small(2, 2); !ok {
			return 0, 0, 0, true, false, false
		}
		ns, seconds = p.fraction(), true
	}
	return m, sec, ns, true, seconds, true
}

// dotMinutes takes the full stop of "5.45pm"; without am or pm it is a decimal.
func (p *parser) dotMinutes() bool {
	q := p.at(p.i)
	if !q.take('.') {
		return false
	}
	if _, ok := q.small(2, 2); !ok || q.half() == 0 {
		return false
	}
	p.i++
	return true
}

// fraction reads ".074824224" as nanoseconds, "," too (ISO 8601 allows it).
func (p *parser) fraction() int {
	if c := p.peek(); c != '.' && c != ',' || p.i+1 >= len(p.l) || !isDigit(p.l[p.i+1]) {
		return 0
	}
	p.i++
	d := (p.digits() + "000000000")[:9]
	return atoi(d)
}

// half reads am or pm: 'a', 'p', or 0 for neither. A row break may split it.
func (p *parser) half() byte {
	mark := p.i
	p.space()
	c := p.peek()
	if c != 'a' && c != 'p' {
		p.i = mark
		return 0
	}
	p.i++
	dotted := p.take('.')
	p.space()
	if !p.take('m') || p.wordAt() {
		p.i = mark
		return 0
	}
	if dotted {
		p.take('.')
	}
	return c
}

// localisedHalf reports whether a word follows that may be another language's
// am or pm ("6:45 nachm.", "6:45 de la tarde"): the hour is then unknown.
func (p *parser) localisedHalf() bool {
	q := p.at(p.i)
	if q.space() {
		return false
	}
	switch w := q.word(); w {
	case "":
		return false
	case "nachm", "vorm", "uhr", "de", "da", "du", "h", "tarde", "noche", "ma", "em", "ch", "sa":
		return true
	default:
		return strings.IndexFunc(w, func(r rune) bool { return r > unicode.MaxASCII }) >= 0
	}
}

// unfinished reports whether what follows shows that the reading is wrong: a
// number cut by a row break ("Dec 2nd, 20 / 26"), an impossible offset, or a
// second, foreign date part ("18:52 2. Dez").
func (p *parser) unfinished(s *stamp) bool {
	q := p.at(p.i)
	if q.peek() == ',' {
		q.i++
	}
	broke := q.space()
	if c := q.peek(); c == '+' || c == '-' { // "GMT+99": an offset that is none
		return q.i+1 < len(q.l) && isDigit(q.l[q.i+1])
	}
	if !isDigit(q.peek()) {
		return false
	}
	if !broke {
		return true
	}
	q.digits() // on the next row only an ordinal's tail or a clock shows a cut
	w := q.word()
	return w == "st" || w == "nd" || w == "rd" || w == "th" || !s.clock && q.peek() == ':'
}
