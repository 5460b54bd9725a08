package when

import (
	"strconv"
	"strings"
	"time"

	"qshim/detect/finding"
)

// nextKey finds the first key at or behind the position that speaks of
// resetting or retrying: of JSON, of a Go map, or of an HTTP header. The parser
// then stands at its value; at is where the key begins.
func (p *parser) nextKey() (key string, at int, ok bool) {
	for {
		next := p.stem()
		if next < 0 {
			return "", 0, false
		}
		start, end := next, next
		for start > 0 && isKeyByte(p.l[start-1]) {
			start--
		}
		for end < len(p.l) && isKeyByte(p.l[end]) {
			end++
		}
		p.i = end
		if strings.IndexByte("\"'", p.peek()) >= 0 && p.peek() != 0 {
			p.i++
		}
		p.space()
		if !p.take(':') && !p.take('=') {
			p.i = end
			continue
		}
		p.space()
		if strings.IndexByte("\"'", p.peek()) >= 0 && p.peek() != 0 {
			p.i++
		}
		return p.l[start:end], start, true
	}
}

// stems are what the keys that speak of a limit's end have in them.
var stems = []string{"reset", "retry", "resume", "renew", "refill", "available", "until", "unblock"}

// stem finds the next of stems, -1 if there is none.
func (p *parser) stem() int {
	for i := p.i; i < len(p.l); i++ {
		switch p.l[i] {
		case 'r', 'a', 'u':
			for _, s := range stems {
				if strings.HasPrefix(p.l[i:], s) {
					return i
				}
			}
		}
	}
	return -1
}

func isKeyByte(c byte) bool { return c >= 'a' && c <= 'z' || isDigit(c) || c == '_' || c == '-' }

// Units of a bare number behind a key.
type keyUnit int

const (
	noKey       keyUnit = iota // no time of ours
	auto                       // epoch in s or ms, by its size; a small number is no time
	autoSeconds                // the same, a small number is seconds from now
	inSeconds                  // seconds from now
	inMillis                   // milliseconds from now
)

var flatten = strings.NewReplacer("-", "", "_", "")

// absoluteKeys are the ends of keys that name an instant.
var absoluteKeys = []string{
	"retryat", "nextretry", "resumeat", "resumesat", "renewat", "renewsat", "refillat", "availableat", "unblockat", "unblockedat",
	"blockeduntil", "limiteduntil", "pauseduntil", "throttleduntil", "cooldownuntil", "exhausteduntil", "disableduntil",
}

// unitOf says what a key's number means. The names are those of the corpus:
// resetsAt (Claude), resets_at and resets_in_seconds (Codex), retryDelay,
// quotaResetDelay, quotaResetTimeStamp and retryDelayMs (Gemini),
// retry_delay_ms (Claude stream-json), retry-after(-ms), x-ratelimit-reset*,
// anthropic-ratelimit-*-reset, x-codex-*-reset-at (headers).
func unitOf(key string) keyUnit {
	flat := flatten.Replace(key)
	reset := strings.Contains(flat, "reset")
	switch {
	case strings.Contains(flat, "count") || strings.Contains(flat, "max") || strings.Contains(flat, "should") ||
		strings.Contains(flat, "type") || strings.Contains(flat, "policy"):
		return noKey
	case strings.HasSuffix(flat, "ms") || strings.HasSuffix(flat, "millis") || strings.HasSuffix(flat, "milliseconds"):
		return inMillis
	case strings.HasSuffix(flat, "seconds") || strings.HasSuffix(flat, "secs"):
		return inSeconds
	case strings.HasSuffix(flat, "retryafter") || strings.HasSuffix(flat, "retrydelay") || strings.HasSuffix(flat, "retryin"):
		return autoSeconds
	case reset && (strings.Contains(flat, "ratelimit") || strings.HasSuffix(flat, "in") ||
		strings.HasSuffix(flat, "after") || strings.HasSuffix(flat, "delay")):
		return autoSeconds
	case reset:
		return auto
	}
	for _, end := range absoluteKeys {
		if strings.HasSuffix(flat, end) {
			return auto
		}
	}
	return noKey
}

// keyed reads the values of keys.
func (f *finder) keyed() {
	walk := f.p.at(0)
	for range maxStatements * 4 {
		key, at, ok := walk.nextKey()
		if !ok || len(f.out) >= maxStatements {
			return
		}
		unit, start := unitOf(key), walk.i
		if unit == noKey {
			continue
		}
		p := walk.at(start)
		s, ok := p.keyValue(f.q, unit)
		if !ok && !digitsOnly(p.at(start)) {
			s, ok = p.value(f.q, 0)
		}
		if ok {
			s.pos, s.end, s.Retry = at, p.i, key == "retry_delay_ms" // Claude's api_retry event: its own next try
			s.keyed, s.spare = true, f.spare(key, at)
			f.add(s, start)
		}
		f.seen[start] = true // a number that the key explains is no other's
	}
}

// digitsOnly reports whether a plain number stands here, which only the key can
// explain.
func digitsOnly(p *parser) bool {
	_, _, ok := p.amount()
	return ok && !p.wordAt() && p.peek() != ':' && p.peek() != '-' && p.peek() != '/'
}

// keyValue reads a bare number in the key's unit.
func (p *parser) keyValue(q question, unit keyUnit) (statement, bool) {
	if at, ok := p.epoch(); ok {
		if unit == auto || unit == autoSeconds {
			return statement{Time: Time{At: at, Source: finding.Epoch}}, true
		}
		return statement{}, false
	}
	mark := p.i
	n, exact, ok := p.amount()
	if !ok || unit == auto || p.wordAt() || strings.IndexByte(":-/", p.peek()) >= 0 && p.peek() != 0 || n < 0 {
		p.i = mark
		return statement{}, false
	}
	scale, precision := time.Second, time.Second
	if unit == inMillis {
		scale, precision = time.Millisecond, time.Millisecond
	}
	if !exact {
		precision = time.Millisecond
	}
	if n*float64(scale) > float64(maxWait) {
		return statement{}, false
	}
	return relative(q, time.Duration(n*float64(scale)), precision), true
}

var (
	statusField  = lazily(`"status"\s*:\s*"([a-z_]+)"`)
	percentField = lazily(`"used_percent(?:age)?"\s*:\s*([0-9.]+)`)
	shareField   = lazily(`"utilization"\s*:\s*([0-9.]+)`)
)

// usedUp is the share from which an allowance counts as used up: agents round.
const usedUp = 99

// spare reports whether the key speaks of an allowance that is not used up: of
// two resetsAt the exhausted one counts, of two reset headers the one whose
// remaining is 0 (corpus case 8).
func (f *finder) spare(key string, at int) bool {
	if f.spareHeader(key) {
		return true
	}
	obj := enclosing(f.p.l, at)
	if m := statusField().FindStringSubmatch(obj); m != nil {
		return strings.HasPrefix(m[1], "allowed")
	}
	if m := percentField().FindStringSubmatch(obj); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		return err == nil && n < usedUp
	}
	if m := shareField().FindStringSubmatch(obj); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		return err == nil && n*100 < usedUp
	}
	return false
}

// spareHeader looks for the sister header of a reset header.
func (f *finder) spareHeader(key string) bool {
	cut := strings.Index(key, "reset")
	if cut <= 0 || !strings.Contains(key, "-") {
		return false
	}
	base, tail := key[:cut], key[cut+len("reset"):]
	if n, ok := f.header(base + "remaining" + tail); ok && n > 0 {
		return true
	}
	n, ok := f.header(base + "used-percent")
	if ok && n < usedUp {
		return true
	}
	return strings.Contains(f.p.l, base+"status: allowed")
}

// header reads a header's number.
func (f *finder) header(name string) (float64, bool) {
	at := strings.Index(f.p.l, name)
	if at < 0 {
		return 0, false
	}
	p := f.p.at(at + len(name))
	for strings.IndexByte("\"' :=\n", p.peek()) >= 0 && p.peek() != 0 {
		p.i++
	}
	if !isDigit(p.peek()) {
		return 0, false
	}
	n, _, ok := p.amount()
	return n, ok
}

// enclosing is the JSON object around position at, without the objects inside
// it. Torn and cut objects end where the text does.
func enclosing(l string, at int) string {
	const reach = 4 << 10
	depth, start := 0, max(0, at-reach)
	for i := at - 1; i >= start; i-- {
		if l[i] == '}' {
			depth++
		} else if l[i] == '{' {
			if depth == 0 {
				return flat(l[i+1 : min(len(l), at+reach)])
			}
			depth--
		}
	}
	return ""
}

// flat is an object's own text up to its closing brace, nested ones left out.
func flat(s string) string {
	var b strings.Builder
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			if depth == 0 {
				b.WriteString(s[from:i])
			}
			depth++
		case '}':
			if depth == 0 {
				return b.String() + s[from:i]
			}
			depth--
			from = i + 1
		}
	}
	if depth == 0 {
		b.WriteString(s[from:])
	}
	return b.String()
}
