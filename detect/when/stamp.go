package when

import (
	"sync"
	"time"
)

// stamp is what a text says of an instant: some of date, weekday, day word,
// clock and zone. resolve makes an instant of it.
type stamp struct {
	year, month, dayOf int  // dayOf 0: no date; year 0: not said
	weekday            int  // 0-6 as time.Weekday, -1: not said
	shift              int  // days from today, -1: not said
	monthStart         int  // 1: the first of next month, 0: not said
	nth                int  // a day of this month or the next ("the 15th"), 0: not said
	swapped            bool // month and day of a date with slashes may stand the other way round
	clock, seconds     bool
	hour, min, sec, ns int
	zone               *time.Location
	zoneSaid           bool
	iso                bool // year first: a machine wrote it
}

var months = sync.OnceValue(func() map[string]int {
	return map[string]int{
		"jan": 1, "january": 1, "feb": 2, "february": 2, "mar": 3, "march": 3, "apr": 4, "april": 4, "may": 5,
		"jun": 6, "june": 6, "jul": 7, "july": 7, "aug": 8, "august": 8, "sep": 9, "sept": 9, "september": 9,
		"oct": 10, "october": 10, "nov": 11, "november": 11, "dec": 12, "december": 12,
	}
})

var weekdays = sync.OnceValue(func() map[string]int {
	return map[string]int{
		"sun": 0, "sunday": 0, "mon": 1, "monday": 1, "tue": 2, "tues": 2, "tuesday": 2, "wed": 3, "wednesday": 3,
		"thu": 4, "thur": 4, "thurs": 4, "thursday": 4, "fri": 5, "friday": 5, "sat": 6, "saturday": 6,
	}
})

func (s *stamp) dated() bool {
	return s.dayOf > 0 || s.shift >= 0 || s.monthStart > 0 || s.weekday >= 0 || s.nth > 0
}

// stamp reads parts of an instant in any order for as long as they fit:
// "Dec 2nd, 2026 12:20 AM", "Thu 3:45pm", "00:00 UTC on the first day of next
// month", "Mon, 30 Nov 2026 07:15:00 GMT".
func (p *parser) stamp(q question) (stamp, bool) {
	s := stamp{weekday: -1, shift: -1}
	for range 12 {
		mark := p.i
		p.glue()
		if !p.part(&s, q) {
			p.i = mark
			break
		}
	}
	if !s.clock && !s.dated() || p.unfinished(&s) {
		return s, false
	}
	return s, true
}

// glue skips what stands between two parts.
func (p *parser) glue() {
	for range 4 {
		p.space()
		if !p.take(',') && !p.take('@') && !p.oneOf("at", "on", "by", "the", "of", "next", "this") {
			return
		}
	}
}

// part reads one part that s does not have yet.
func (p *parser) part(s *stamp, q question) bool {
	switch {
	case s.dayOf == 0 && s.monthStart == 0 && s.nth == 0 && p.date(s):
		return true
	case !s.clock && p.clockTime(s):
		return true
	case s.dayOf > 0 && s.year == 0 && p.lateYear(s):
		return true
	case s.weekday < 0 && p.weekdayName(s):
		return true
	case (s.shift < 0 || !s.clock) && p.dayWord(s): // "tomorrow at noon"
		return true
	case !s.clock && !s.dated():
		return false
	}
	loc, known, ok := p.zone(q)
	if !ok {
		return false
	}
	if s.zone == nil && known { // "GMT+0100 (Central European Time)": the first counts
		s.zone = loc
	}
	s.zoneSaid = true
	return true
}

// date reads what names a day by its number.
func (p *parser) date(s *stamp) bool {
	return p.isoDate(s) || p.slashDate(s) || p.dashDate(s) || p.monthDay(s) || p.nextMonth(s) || p.nthDay(s)
}

// dashDate reads the "12-03" of "12-03 09:25:00 UTC", as Qwen Code prints it:
// month first, and a clock behind it, else it is a range.
func (p *parser) dashDate(s *stamp) bool {
	mark := p.i
	m, ok1 := p.small(2, 2)
	ok1 = ok1 && p.take('-')
	d, ok2 := p.small(2, 2)
	at := p.i
	p.space()
	_, ok3 := p.small(2, 2)
	if !ok1 || !ok2 || !ok3 || at == p.i || p.peek() != ':' || !s.setDate(0, m, d) {
		p.i = mark
		return false
	}
	p.i = at
	return true
}

// isoDate reads 2026-12-01 and 2026/12/01, and the T before a clock.
func (p *parser) isoDate(s *stamp) bool {
	mark := p.i
	y, ok := p.small(4, 4)
	sep := p.peek()
	if !ok || y < 1970 || sep != '-' && sep != '/' {
		p.i = mark
		return false
	}
	p.i++
	m, ok1 := p.small(1, 2)
	ok1 = ok1 && p.take(sep)
	d, ok2 := p.small(1, 2)
	if !ok1 || !ok2 || !s.setDate(y, m, d) {
		p.i = mark
		return false
	}
	s.iso = true
	if p.peek() == 't' && p.i+1 < len(p.l) && isDigit(p.l[p.i+1]) {
		p.i++
	}
	return true
}

// slashDate reads 10/2/2026: month first, as every agent seen prints it (corpus
// case 11), unless only the other order is a date.
func (p *parser) slashDate(s *stamp) bool {
	mark := p.i
	a, ok1 := p.small(1, 2)
	ok1 = ok1 && p.take('/')
	b, ok2 := p.small(1, 2)
	ok2 = ok2 && p.take('/')
	y, ok3 := p.small(2, 4)
	if y < 100 {
		y += 2000
	}
	if !ok1 || !ok2 || !ok3 || !s.setDate(y, a, b) && !s.setDate(y, b, a) {
		p.i = mark
		return false
	}
	s.swapped = s.month == a && a != b && validDate(y, b, a)
	return true
}

// monthDay reads "Dec 2nd, 2026", "2 December 2026" and "Dec 2".
func (p *parser) monthDay(s *stamp) bool {
	mark := p.i
	d, dayFirst := p.ordinal()
	if dayFirst {
		p.oneOf("of")
	}
	p.space()
	m, ok := months()[p.word()]
	p.take('.')
	if ok && !dayFirst {
		p.space()
		p.oneOf("the")
		p.space()
		d, ok = p.ordinal()
	}
	if !ok || !s.setDate(0, m, d) {
		p.i = mark
		return false
	}
	p.lateYear(s)
	return true
}

// ordinal reads a day of the month: "2", "2nd".
func (p *parser) ordinal() (int, bool) {
	mark := p.i
	n, ok := p.small(1, 2)
	if ok {
		at := p.i
		switch p.word() {
		case "", "st", "nd", "rd", "th":
		default:
			p.i = at
			ok = false
		}
	}
	if !ok || n < 1 || n > 31 || p.peek() == ':' {
		p.i = mark
		return 0, false
	}
	return n, true
}

// lateYear reads the year behind a month and day.
func (p *parser) lateYear(s *stamp) bool {
	mark := p.i
	p.space()
	p.take(',')
	p.space()
	y, ok := p.small(4, 4)
	if !ok || p.peek() == ':' || p.wordAt() || y < 1970 || !validDate(y, s.month, s.dayOf) {
		p.i = mark
		return false
	}
	s.year = y
	return true
}

// nthDay reads "the 15th": of this month, or the next.
func (p *parser) nthDay(s *stamp) bool {
	mark := p.i
	n, ok := p.small(1, 2)
	w := p.word()
	if !ok || n < 1 || n > 31 || w != "st" && w != "nd" && w != "rd" && w != "th" {
		p.i = mark
		return false
	}
	s.nth = n
	return true
}

// nextMonth reads "the first day of next month", "the 1st of the month",
// "next month".
func (p *parser) nextMonth(s *stamp) bool {
	mark := p.i
	p.oneOf("the")
	first := p.oneOf("first", "start", "beginning")
	if !first {
		p.space()
		n, ok := p.ordinal()
		first = ok && n == 1
	}
	p.oneOf("day")
	of := p.oneOf("of")
	p.oneOf("the", "each", "every", "your")
	next := p.oneOf("next", "following", "coming")
	next = next || p.before(p.i, "next") // glue has eaten it
	if !p.oneOf("month") || !(first && of || next && !first) {
		p.i = mark
		return p.endOf(s, "month")
	}
	s.monthStart = 1
	return true
}

// before reports whether word stands directly before position i.
func (p *parser) before(i int, word string) bool {
	for i > 0 && (p.l[i-1] == ' ' || p.l[i-1] == '\n') {
		i--
	}
	return i >= len(word) && p.l[i-len(word):i] == word
}

// weekdayName reads a weekday. The full stop is for "Mon.".
func (p *parser) weekdayName(s *stamp) bool {
	mark := p.i
	d, ok := weekdays()[p.word()]
	if !ok {
		p.i = mark
		return false
	}
	p.take('.')
	s.weekday = d
	return true
}

// endOf reads "end of the day" or "end of the month": the midnight after it.
func (p *parser) endOf(s *stamp, period string) bool {
	mark := p.i
	p.oneOf("the")
	if s.clock || !p.words("end", "of") {
		p.i = mark
		return false
	}
	p.oneOf("the", "this", "your", "current")
	p.oneOf("current", "calendar", "billing")
	switch {
	case period == "month" && p.oneOf("month"):
		s.monthStart = 1
	case period == "day" && p.oneOf("day", "today"):
		s.shift = 1
	default:
		p.i = mark
		return false
	}
	s.clock = true
	return true
}

// dayWord reads today, tonight, tomorrow, noon and midnight.
func (p *parser) dayWord(s *stamp) bool {
	if p.endOf(s, "day") {
		return true
	}
	mark := p.i
	switch w := p.word(); {
	case s.shift >= 0 && w != "noon" && w != "midnight":
		p.i = mark
		return false
	case w == "today" || w == "tonight":
		s.shift = 0
		if s.clock && s.hour == 0 && s.min == 0 { // "midnight tonight" ends today
			s.shift = 1
		}
	case w == "tomorrow":
		s.shift = 1
	case w == "midnight" && !s.clock:
		s.clock = true
		if s.shift == 0 {
			s.shift = 1
		}
	case w == "noon" && !s.clock:
		s.clock, s.hour = true, 12
	default:
		p.i = mark
		return false
	}
	return true
}

// setDate sets a date that exists.
func (s *stamp) setDate(y, m, d int) bool {
	if y != 0 && y < 1970 || !validDate(y, m, d) {
		return false
	}
	s.year, s.month, s.dayOf = y, m, d
	return true
}

// validDate reports whether a date exists; year 0 stands for a leap year.
func validDate(y, m, d int) bool {
	if y == 0 {
		y = 2024
	}
	if m < 1 || m > 12 || d < 1 || d > 31 {
		return false
	}
	return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Day() == d
}
