package when

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// parser reads one cleaned text from position i. l is s with ASCII letters
// lowered, so both have the same offsets; s is needed for zone names.
type parser struct {
	s, l string
	i    int
}

func newParser(text string) *parser { return &parser{s: text, l: lower(text)} }

// lower lowers ASCII only: full case folding changes lengths.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// at makes a reader of the same text at another position.
func (p *parser) at(i int) *parser { return &parser{s: p.s, l: p.l, i: i} }

// peek is the byte at the position, 0 at the end.
func (p *parser) peek() byte {
	if p.i < len(p.l) {
		return p.l[p.i]
	}
	return 0
}

// space skips blanks and row breaks and says whether it skipped a row break.
func (p *parser) space() (broke bool) {
	for p.i < len(p.l) && (p.l[p.i] == ' ' || p.l[p.i] == '\n') {
		broke = broke || p.l[p.i] == '\n'
		p.i++
	}
	return broke
}

// take consumes c.
func (p *parser) take(c byte) bool {
	if p.peek() == c && c != 0 {
		p.i++
		return true
	}
	return false
}

// word consumes a run of letters, of any script, and returns it lowered.
func (p *parser) word() string {
	start := p.i
	for p.i < len(p.l) {
		r, n := utf8.DecodeRuneInString(p.l[p.i:])
		if !unicode.IsLetter(r) {
			break
		}
		p.i += n
	}
	return p.l[start:p.i]
}

// oneOf consumes the next word, after spaces, if it is one of words.
func (p *parser) oneOf(words ...string) bool {
	mark := p.i
	p.space()
	w := p.word()
	for _, want := range words {
		if w == want {
			return true
		}
	}
	p.i = mark
	return false
}

// words consumes a sequence of words separated by spaces, or nothing.
func (p *parser) words(seq ...string) bool {
	mark := p.i
	for _, w := range seq {
		if !p.oneOf(w) {
			p.i = mark
			return false
		}
	}
	return true
}

// digits consumes a run of ASCII digits.
func (p *parser) digits() string {
	start := p.i
	for isDigit(p.peek()) {
		p.i++
	}
	return p.l[start:p.i]
}

// small consumes a number of lo to hi digits and nothing if it is longer.
func (p *parser) small(lo, hi int) (n int, ok bool) {
	mark := p.i
	d := p.digits()
	if len(d) < lo || len(d) > hi {
		p.i = mark
		return 0, false
	}
	for _, c := range d {
		n = n*10 + int(c-'0')
	}
	return n, true
}

// atEnd reports whether nothing but closing punctuation is left.
func (p *parser) atEnd() bool {
	return strings.Trim(p.l[p.i:], " \n.,;:!)]}\"'…") == ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// wordAt reports whether a letter or digit follows the position, which would
// make what was just read the head of something longer.
func (p *parser) wordAt() bool {
	r, _ := utf8.DecodeRuneInString(p.l[p.i:])
	return p.i < len(p.l) && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
