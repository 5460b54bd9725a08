package when

import (
	"strings"
	"sync"
	"time"
)

// abbreviations are the zone letters that agents print (Intl en-US prints PST,
// PDT, …, UTC and GMT+N; date(1) and providers the rest), in seconds east. What
// several zones share (CST, IST, BST) has the most used meaning here; the
// machine's own zone is asked first.
var abbreviations = sync.OnceValue(func() map[string]int {
	return map[string]int{
		"utc": 0, "gmt": 0, "z": 0, "wet": 0,
		"pst": -8 * 3600, "pdt": -7 * 3600, "mst": -7 * 3600, "mdt": -6 * 3600,
		"cst": -6 * 3600, "cdt": -5 * 3600, "est": -5 * 3600, "edt": -4 * 3600,
		"akst": -9 * 3600, "akdt": -8 * 3600, "hst": -10 * 3600, "ast": -4 * 3600, "adt": -3 * 3600,
		"nst": -(3*3600 + 1800), "ndt": -(2*3600 + 1800), "brt": -3 * 3600, "art": -3 * 3600, "clt": -4 * 3600,
		"bst": 3600, "west": 3600, "cet": 3600, "cest": 7200, "eet": 7200, "eest": 3 * 3600,
		"msk": 3 * 3600, "trt": 3 * 3600, "sast": 7200, "cat": 7200, "eat": 3 * 3600, "wat": 3600,
		"gst": 4 * 3600, "pkt": 5 * 3600, "ist": 5*3600 + 1800, "npt": 5*3600 + 2700, "wib": 7 * 3600, "ict": 7 * 3600,
		"sgt": 8 * 3600, "hkt": 8 * 3600, "pht": 8 * 3600, "awst": 8 * 3600, "jst": 9 * 3600, "kst": 9 * 3600,
		"acst": 9*3600 + 1800, "acdt": 10*3600 + 1800, "aest": 10 * 3600, "aedt": 11 * 3600,
		"nzst": 12 * 3600, "nzdt": 13 * 3600,
	}
})

// regions are names that mean a zone with its own summer time.
var regions = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"pt": "America/Los_Angeles", "pacific": "America/Los_Angeles",
		"mt": "America/Denver", "mountain": "America/Denver",
		"ct": "America/Chicago", "central": "America/Chicago",
		"et": "America/New_York", "eastern": "America/New_York",
		"beijing": "Asia/Shanghai",
	}
})

// zoneName is the safe charset of a tz database name. Dots and leading slashes
// are not in it, so no name can lead out of the database.
var zoneName = lazily(`^[A-Za-z][A-Za-z0-9_+-]{1,30}(/[A-Za-z][A-Za-z0-9_+-]{0,30}){1,2}$`)

// beijing is the clock that z.ai and Zhipu print without saying so (corpus
// cc-087, cc-088).
var beijing = time.FixedZone("UTC+8", 8*3600)

// database loads a zone of the tz database by name; only names with a slash, so
// that "Local" (this machine's) and "" are never asked for.
func database(name string) (*time.Location, bool) {
	if !zoneName().MatchString(name) {
		return nil, false
	}
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

// zone reads the zone beside a clock time, in brackets or bare. known is false
// when a zone is named that nobody can tell: then loc is nil.
func (p *parser) zone(q question) (loc *time.Location, known, ok bool) {
	mark := p.i
	p.space()
	if p.take('(') || p.take('[') {
		if loc, known, ok = p.bracketZone(q); ok {
			return loc, known, true
		}
		p.i = mark
		return nil, false, false
	}
	if loc, ok = p.bareZone(q); ok {
		return loc, true, true
	}
	p.i = mark
	return nil, false, false
}

// bracketZone reads up to the closing bracket. A row break may stand anywhere
// in a name, so blanks are taken out of names with a slash.
func (p *parser) bracketZone(q question) (loc *time.Location, known, ok bool) {
	rest := p.s[p.i:]
	end := strings.IndexAny(rest, ")]")
	if end < 1 || end > 80 {
		return nil, false, false
	}
	inner := rest[:end]
	if strings.Contains(inner, "/") {
		name := strings.Map(func(r rune) rune {
			if r == ' ' || r == '\n' {
				return -1
			}
			return r
		}, inner)
		loc, known = database(name)
		p.i += end + 1
		return loc, known, true
	}
	if lower(strings.Join(strings.Fields(inner), " ")) == "local time" {
		p.i += end + 1
		return q.loc, true, true
	}
	in := newParser(inner)
	loc, ok = in.bareZone(q)
	if !ok || !in.atEnd() {
		return nil, false, false
	}
	p.i += end + 1
	return loc, true, true
}

// bareZone reads "UTC", "PST", "GMT+5:30", "+02:00", "Z", "Pacific Time" or
// "America/New_York".
func (p *parser) bareZone(q question) (*time.Location, bool) {
	mark := p.i
	p.space()
	if off, ok := p.offset(); ok {
		return time.FixedZone("", off), true
	}
	start := p.i
	for p.i < len(p.s) && isZoneByte(p.s[p.i]) {
		p.i++
	}
	if loc, ok := database(p.s[start:p.i]); ok {
		return loc, true
	}
	p.i = start
	w := p.word()
	original := p.s[start:p.i]
	if loc, ok := p.named(w, original, q); ok {
		return loc, true
	}
	p.i = mark
	return nil, false
}

func isZoneByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_' || c == '/' || c == '-' || c == '+'
}

// named resolves one word. Abbreviations must be in capitals, or "at", "art"
// and "eat" would be zones; utc, gmt and z may be in any case.
func (p *parser) named(w, original string, q question) (*time.Location, bool) {
	capital := original != "" && original == strings.ToUpper(original)
	if w == "coordinated" && p.words("universal", "time") || w == "greenwich" && p.words("mean", "time") {
		return time.UTC, true
	}
	if w == "local" && p.words("time") {
		return q.loc, true
	}
	if region, ok := regions()[w]; ok && (len(w) > 2 || capital) {
		season := p.oneOf("standard", "daylight")
		timeSaid := p.oneOf("time")
		if w == "central" && !season && !timeSaid && !p.zoneEnds() {
			return nil, false // "Central" alone is also a word of names
		}
		return database(region)
	}
	if w == "utc" || w == "gmt" {
		after := p.i
		p.space()
		if off, ok := p.offset(); ok {
			return time.FixedZone("", off), true
		}
		p.i = after
		return time.UTC, true
	}
	off, ok := abbreviations()[w]
	if !ok || !capital {
		return nil, false
	}
	if own, ok := ownAbbreviation(original, q); ok {
		return own, true
	}
	return time.FixedZone(original, off), true
}

// zoneEnds reports whether a clause ends here.
func (p *parser) zoneEnds() bool {
	q := p.at(p.i)
	q.space()
	return !q.wordAt()
}

// ownAbbreviation asks the machine's zone whether it goes by these letters in
// some season: the agent printed its own zone then (IST in Kolkata and Dublin).
func ownAbbreviation(letters string, q question) (*time.Location, bool) {
	for _, shift := range []time.Duration{0, 91 * day, 182 * day, 273 * day} {
		name, off := q.now.Add(shift).In(q.loc).Zone()
		if name == letters {
			return time.FixedZone(name, off), true
		}
	}
	return nil, false
}

// offset reads "+5:30", "-03:00", "+0530", "+8" as seconds east. Real zones lie
// between -12 and +14 hours; anything else is not an offset.
func (p *parser) offset() (int, bool) {
	mark := p.i
	sign := 1
	switch {
	case p.take('+'):
	case p.take('-'):
		sign = -1
	case strings.HasPrefix(p.l[p.i:], "\u2212"): // minus sign, as Intl prints it
		p.i += len("\u2212")
		sign = -1
	default:
		return 0, false
	}
	d := p.digits()
	h, m := 0, 0
	switch len(d) {
	case 1, 2:
		h = atoi(d)
		if p.peek() == ':' {
			p.i++
			d = p.digits()
			if len(d) != 2 {
				p.i = mark
				return 0, false
			}
			m = atoi(d)
		}
	case 4:
		h, m = atoi(d[:2]), atoi(d[2:])
	default:
		p.i = mark
		return 0, false
	}
	off := sign * (h*3600 + m*60)
	if m > 59 || off < -12*3600 || off > 14*3600 || p.wordAt() {
		p.i = mark
		return 0, false
	}
	return off, true
}

// atoi reads a short run of digits.
func atoi(d string) (n int) {
	for _, c := range d {
		n = n*10 + int(c-'0')
	}
	return n
}
