package when

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"qshim/detect/finding"
)

// zaiCode is an error code of z.ai and Zhipu, whose clock is Beijing's.
var zaiCode = lazily(`"code"\s*:\s*"13\d\d"`)

// progress is what makes a row a warning: so much used, so much left.
var progress = lazily(`\d{1,3}%\s+(?:left|used|remaining|of\s)`)

// find reads every anchored statement in one text.
func find(text string, q question) []statement {
	f := &finder{p: newParser(text), q: q, seen: map[int]bool{}}
	f.keyed()
	f.phrased()
	f.scripted()
	return f.out
}

// finder collects the statements of one text.
type finder struct {
	p    *parser
	q    question
	seen map[int]bool // where a value began: no value counts twice
	out  []statement
}

// add keeps s, which began at value, unless that value is spoken for or s is
// beyond belief.
func (f *finder) add(s statement, value int) bool {
	if f.seen[value] || !instant(s.At, f.q) {
		return false
	}
	f.seen[value] = true
	f.out = append(f.out, s)
	return true
}

// phrased follows each phrase to the time that it is tied to.
func (f *finder) phrased() {
	walk := f.p.at(0)
	for range maxStatements * 4 {
		k, at, ok := walk.nextPhrase()
		if !ok || len(f.out) >= maxStatements {
			return
		}
		p := walk.at(walk.i)
		switch k {
		case resetAhead, retryAhead:
			f.ahead(p, at, k == retryAhead)
		case againAhead:
			if p.at(p.i).announces() {
				f.ahead(p, at, false)
			}
		case barAhead:
			p.space()
			if p.take('|') {
				f.ahead(p, at, false)
			}
		case localReset, localRetry:
			f.localAhead(p, at, k == localRetry)
		case delayBehind:
			if p.behindWords() {
				f.delayBefore(at, p.i)
			}
		case delayLeft: // "3h 12m left", but not "3 days left on your trial"
			if p.clauseEnds() && !f.warning(at) {
				f.before(at, func(p *parser) (statement, bool) {
					d, precision, ok := p.duration()
					return relative(f.q, d, precision), ok
				}, p.i)
			}
		}
	}
}

// ahead reads the time behind a phrase that began at.
func (f *finder) ahead(p *parser, at int, retry bool) {
	if retry {
		p.attempts()
	}
	how, ok := p.fillers()
	if !ok || f.seen[p.i] {
		return
	}
	start := p.i
	s, ok := p.value(f.q, how)
	if !ok {
		return
	}
	p.behindHere()
	s.pos, s.end, s.Retry = at, p.i, retry
	s.weak = f.warning(at)
	f.add(s, start)
}

// delayBefore reads the delay that ends at word position at: "2h 3m until
// reset", "2h 3m left until reset".
func (f *finder) delayBefore(at, end int) {
	f.before(at, func(p *parser) (statement, bool) {
		d, precision, ok := p.duration()
		p.oneOf("left", "remaining")
		return relative(f.q, d, precision), ok
	}, end)
}

// clauseEnds reports whether the text or its clause ends here.
func (p *parser) clauseEnds() bool {
	q := p.at(p.i)
	q.space()
	c := q.peek()
	return c == 0 || strings.IndexByte(".,;)]\x1e", c) >= 0 || strings.HasPrefix(q.l[q.i:], "·")
}

// before tries read at each number in front of at, the longest first, until it
// ends there.
func (f *finder) before(at int, read func(*parser) (statement, bool), end int) {
	for start := max(0, at-60); start < at; start++ {
		if !isDigit(f.p.l[start]) || start > 0 && strings.IndexByte("0123456789.-", f.p.l[start-1]) >= 0 {
			continue
		}
		p := f.p.at(start)
		s, ok := read(p)
		p.space()
		if !ok || p.i != at {
			continue
		}
		s.pos, s.end = start, end
		f.add(s, start)
		return
	}
}

// warning reports whether the clause before i counts what is used or left.
func (f *finder) warning(i int) bool {
	clause := f.p.l[max(0, i-80):i]
	if cut := strings.LastIndexAny(clause, "\n.\x1e"); cut >= 0 {
		clause = clause[cut:]
	}
	return strings.Contains(clause, "%") && progress().MatchString(clause)
}

// lead is what the words between a phrase and its time say about it.
type lead uint8

const (
	delayLead   lead = 1 << iota // "in", "for": a delay follows
	eitherLead                   // "after": a delay or an instant
	instantLead                  // "at", "on": no delay
)

// fillerWords may stand between a phrase and its time.
var fillerWords = sync.OnceValue(func() map[string]lead {
	return map[string]lead{
		"in": delayLead, "for": delayLead, "within": delayLead, "another": delayLead,
		"after": eitherLead, "at": instantLead, "on": instantLead, "by": instantLead, "until": instantLead, "from": instantLead,
		"around": 0, "approximately": 0, "approx": 0, "about": 0, "roughly": 0, "automatically": 0, "again": 0, "is": 0,
		"will": 0, "be": 0, "the": 0, "least": 0, "next": 0, "only": 0, "ca": 0, "out": 0, "down": 0,
		"daily": 0, "nightly": 0, "weekly": 0, "monthly": 0,
	}
})

// fillers skips from a phrase to its time. It fails at a sign before a number:
// no limit ends in the past.
func (p *parser) fillers() (how lead, ok bool) {
	for range 10 {
		p.space()
		mark := p.i
		switch c := p.peek(); {
		case c == '-' && p.i+1 < len(p.l) && isDigit(p.l[p.i+1]):
			return how, false
		case c == '(' && !p.at(p.i+1).fillerWord():
			return how, true // "(4s • esc to interrupt)" counts what has passed
		case c != 0 && strings.IndexByte(`:=~("'-`, c) >= 0:
			p.i++
			continue
		case p.skipAny("≈", "—", "–", "…"):
			continue
		case p.each():
			continue
		}
		w := p.word()
		l, filler := fillerWords()[w]
		if !filler || w == "next" && p.at(p.i).oneOf("month") {
			p.i = mark
			return how, true
		}
		if w == "least" {
			how &^= instantLead // "at least 5 minutes"
		}
		how |= l
	}
	return how, true
}

// each skips "every day" and the like; "every 5 hours" is no instant.
func (p *parser) each() bool {
	mark := p.i
	if p.oneOf("every", "each") {
		if p.oneOf("day", "night", "week", "month") {
			return true
		}
		q := p.at(p.i)
		q.space()
		if _, ok := weekdays()[q.word()]; ok {
			return true
		}
	}
	p.i = mark
	return false
}

// fillerWord reports whether one of fillerWords stands here.
func (p *parser) fillerWord() bool {
	_, ok := fillerWords()[p.word()]
	return ok
}

// announces reports whether a word that a time follows stands here, so that
// "again" and "blocked", which are ordinary words, tie a time to a limit.
func (p *parser) announces() bool {
	p.oneOf("out", "down")
	p.space()
	w := p.word()
	_, weekday := weekdays()[w]
	_, month := months()[w]
	return weekday || month || fillerWords()[w] != 0
}

// skipAny consumes one of the given symbols.
func (p *parser) skipAny(symbols ...string) bool {
	for _, s := range symbols {
		if strings.HasPrefix(p.l[p.i:], s) {
			p.i += len(s)
			return true
		}
	}
	return false
}

// value reads the time behind a phrase: an epoch, a delay, or a stamp.
func (p *parser) value(q question, how lead) (statement, bool) {
	if at, ok := p.epoch(); ok {
		return statement{Time: Time{At: at, Source: finding.Epoch}}, instant(at, q)
	}
	if how&(delayLead|instantLead) != instantLead {
		if d, precision, ok := p.duration(); ok {
			s := relative(q, d, precision)
			return s, !p.oneOf("ago") && instant(s.At, q)
		}
	}
	if how&delayLead != 0 {
		if d, ok := p.clockLength(); ok {
			s := relative(q, d, time.Second)
			return s, instant(s.At, q)
		}
		if p.at(p.i).shortLength() {
			return statement{}, false // "in 12:30": minutes or hours, nobody knows
		}
	}
	st, ok := p.stamp(q)
	if !ok {
		return statement{}, false
	}
	t, ok := st.resolve(q)
	return statement{Time: t}, ok
}

// shortLength reports whether "12:30" without am or pm stands here.
func (p *parser) shortLength() bool {
	_, ok1 := p.small(1, 2)
	ok1 = ok1 && p.colon()
	_, ok2 := p.small(2, 2)
	return ok1 && ok2 && p.half() == 0
}

func relative(q question, d, precision time.Duration) statement {
	return statement{Time: Time{
		At: q.now.Add(d), Source: finding.Relative, Precision: precision, After: d, HasAfter: true,
	}}
}

// epoch reads a Unix time of ten digits (seconds, a fraction is allowed) or
// thirteen (milliseconds).
func (p *parser) epoch() (time.Time, bool) {
	mark := p.i
	d := p.digits()
	if len(d) != 10 && len(d) != 13 || d[0] == '0' {
		p.i = mark
		return time.Time{}, false
	}
	ns := 0
	if len(d) == 10 {
		ns = p.fraction()
	}
	if p.wordAt() || p.peek() == ':' || p.peek() == '-' {
		p.i = mark
		return time.Time{}, false
	}
	n, _ := strconv.ParseInt(d, 10, 64) // at most 13 digits: cannot fail
	if len(d) == 13 {
		return time.UnixMilli(n).UTC(), true
	}
	return time.Unix(n, int64(ns)).UTC(), true
}
