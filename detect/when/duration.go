package when

import (
	"math"
	"strconv"
	"sync"
	"time"
)

const day = 24 * time.Hour

// units are the spellings of one unit each. Months are missing on purpose:
// their length depends on which one. Like all tables here it is made when it is
// first asked for: the tables of all packages would be 2 % of each start.
var units = sync.OnceValue(func() map[string]time.Duration {
	return map[string]time.Duration{
		"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond,
		"ms": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond, "millis": time.Millisecond,
		"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
		"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
		"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
		"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
		"d": day, "day": day, "days": day,
		"w": 7 * day, "wk": 7 * day, "wks": 7 * day, "week": 7 * day, "weeks": 7 * day,
	}
})

// counts are numbers that are written out.
var counts = sync.OnceValue(func() map[string]float64 {
	return map[string]float64{
		"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
		"seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
	}
})

// duration reads "2h3m4s", "3 days, 6 hours and 57 minutes", "an hour", "half
// an hour" or "less than a minute", and how coarse it is.
func (p *parser) duration() (d, precision time.Duration, ok bool) {
	return p.durationIn(units())
}

func (p *parser) durationIn(units map[string]time.Duration) (d, precision time.Duration, ok bool) {
	mark := p.i
	if d, precision, ok = p.isoDuration(); ok {
		return d, precision, true
	}
	p.bound()
	last := time.Duration(math.MaxInt64)
	for {
		here := p.i
		if ok {
			p.between()
		}
		n, unit, exact, found := p.component(units)
		if !found || unit >= last {
			p.i = here
			break
		}
		if n*float64(unit) > float64(maxWait) {
			p.i = mark
			return 0, 0, false
		}
		d += time.Duration(math.Round(n * float64(unit)))
		last, precision, ok = unit, unit, true
		if p.words("and", "a", "half") {
			d += unit / 2
			exact = false
		}
		if !exact {
			precision = min(unit, time.Millisecond)
		}
	}
	if !ok || d > maxWait || p.torn() || isDigit(p.peek()) { // "18h45" may be a clock
		p.i = mark
		return 0, 0, false
	}
	return d, precision, true
}

// bound skips words that make a duration an upper bound: it is the safe one.
func (p *parser) bound() {
	switch {
	case p.words("less", "than"), p.words("up", "to"), p.words("at", "most"), p.words("under"):
	}
	p.space()
}

// between skips what may stand between two components.
func (p *parser) between() {
	p.space()
	if p.take(',') {
		p.space()
	}
	p.oneOf("and", "e", "et", "y", "und", "и")
	p.space()
}

// component reads one number and its unit. exact is false for a fraction.
func (p *parser) component(units map[string]time.Duration) (n float64, unit time.Duration, exact, ok bool) {
	n, exact, ok = p.amount()
	if !ok {
		return 0, 0, false, false
	}
	if p.words("and", "a", "half") || p.skipAny("½") {
		n, exact = n+0.5, false
	}
	p.space()
	unit, ok = units[p.unitWord(units)]
	return n, unit, exact, ok
}

// isoUnits are the letters of an ISO 8601 duration, in the order in which they
// come. Years and months are missing: their length depends on which one.
var isoUnits = []struct {
	letter byte
	unit   time.Duration
	clock  bool // behind the T
}{{'w', 7 * day, false}, {'d', day, false}, {'h', time.Hour, true}, {'m', time.Minute, true}, {'s', time.Second, true}}

// isoDuration reads "PT5M30S", "P1DT2H", "PT0.5S".
func (p *parser) isoDuration() (d, precision time.Duration, ok bool) {
	mark := p.i
	defer func() {
		if !ok {
			p.i = mark
		}
	}()
	p.space()
	if !p.take('p') || p.s[p.i-1] != 'P' {
		return 0, 0, false
	}
	clock, count := false, 0
	for _, u := range isoUnits {
		if u.clock && !clock {
			clock = p.take('t')
		}
		at := p.i
		n, exact, found := p.amount()
		if !found || u.clock != clock || !p.take(u.letter) {
			p.i = at
			continue
		}
		if n*float64(u.unit) > float64(maxWait) {
			return 0, 0, false
		}
		d += time.Duration(math.Round(n * float64(u.unit)))
		precision = u.unit
		if !exact {
			precision = min(u.unit, time.Millisecond)
		}
		count++
	}
	return d, precision, count > 0 && d <= maxWait && !p.wordAt()
}

// unitWord reads a unit's name. "2h3m" has no space after a unit and "30分钟后"
// none at all, so the longest known head of the letters is taken where a digit
// or another script follows.
func (p *parser) unitWord(units map[string]time.Duration) string {
	start := p.i
	w := p.word()
	if _, ok := units[w]; ok {
		return w
	}
	for n := min(len(w), 12); n > 0; n-- {
		if _, ok := units[w[:n]]; ok && w[0] >= 0x80 {
			p.i = start + n
			return w[:n]
		}
	}
	return w
}

// amount reads "34", "34.07", "1,013" or "an".
func (p *parser) amount() (n float64, exact, ok bool) {
	mark := p.i
	if !isDigit(p.peek()) {
		half := p.words("half")
		p.space()
		c, found := counts()[p.word()]
		if !found {
			p.i = mark
			return 0, false, false
		}
		if half {
			return c / 2, true, true
		}
		return c, true, true
	}
	text := p.digits()
	for len(text) < maxDigits && p.thousands() {
		text += p.l[p.i+1 : p.i+4]
		p.i += 4
	}
	exact = true
	if p.peek() == '.' && p.i+1 < len(p.l) && isDigit(p.l[p.i+1]) {
		p.i++
		fraction := p.digits()
		text += "." + fraction[:min(len(fraction), maxDigits)]
		exact = false
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) > 2*maxDigits {
		p.i = mark
		return 0, false, false
	}
	return n, exact, true
}

// maxDigits is more than any real number has before or behind its point.
const maxDigits = 20

// thousands reports whether ",013" stands here.
func (p *parser) thousands() bool {
	return p.peek() == ',' && p.i+4 <= len(p.l) &&
		isDigit(p.l[p.i+1]) && isDigit(p.l[p.i+2]) && isDigit(p.l[p.i+3]) &&
		(p.i+4 == len(p.l) || !isDigit(p.l[p.i+4]))
}

// torn reports whether a number that a row break cut in two follows ("16m53.4
// 72s"): the joined reading is then the right one.
func (p *parser) torn() bool {
	q := p.at(p.i)
	q.between()
	if !isDigit(q.peek()) {
		return false
	}
	if _, _, ok := q.amount(); !ok {
		return false
	}
	return q.space() && isDigit(q.peek())
}

// clockLength reads "1:23:45" as a length.
func (p *parser) clockLength() (time.Duration, bool) {
	mark := p.i
	h, ok1 := p.small(1, 3)
	ok1 = ok1 && p.colon()
	m, ok2 := p.small(2, 2)
	ok2 = ok2 && p.colon()
	s, ok3 := p.small(2, 2)
	if !ok1 || !ok2 || !ok3 || m > 59 || s > 59 || p.wordAt() {
		p.i = mark
		return 0, false
	}
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second, true
}

// colon reads a colon; a row break may stand beside it.
func (p *parser) colon() bool {
	p.space()
	ok := p.take(':')
	p.space()
	return ok
}
