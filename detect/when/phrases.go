package when

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// kind is what a phrase announces.
type kind uint8

const (
	resetAhead  kind = iota // a reset's time follows
	againAhead              // the same, if a word such as "at" or "for" stands between
	retryAhead              // a client's own next try follows
	barAhead                // a Unix time behind a bar follows
	localReset              // a localised delay follows, until a reset
	localRetry              // a localised delay follows, until the next try
	delayBehind             // stands behind its delay, before words of resetting
	delayLeft               // stands behind its delay and ends the clause
)

// phraseTable is every phrase that ties a time to a limit. A space stands for
// any blank, row break or hyphen. Longer phrases win over their heads.
//
// What says how long something has been going on is not in it: "retried",
// "waiting", "brewed for", "timed out after".
var phraseTable = sync.OnceValue(func() map[kind]string {
	return map[kind]string{
		resetAhead: `reset, resets, resetting, reset time, resets time, reset date, try again, trying again, retry again,
		retry, retry after, regain access, regains access, regained access, available, available again, accessible,
		accessible again, usable, usable again, come back, check back, be back, renew, renews, renewed, renewal,
		refresh, refreshes, refreshed, replenish, replenishes, replenished, refill, refills, restored, restores,
		unlock, unlocks, unlocked, unblock, unblocks, unblocked, lifts, lifted, wait, blocked until, paused until,
		limited until, unavailable until, locked until, throttled until, suspended until, exhausted until,
		disabled until, continue, continues, continuing, continue automatically, continues automatically,
		continuing automatically, resume, resumes, resuming, cycle ends, period ends, window ends, limit ends,
		quota ends, block ends, ban ends, limit expires, block expires, ban expires, limit clears, cooldown,
		cool down`,
		againAhead: `again, allowed, possible, permitted, blocked, locked, banned, limited, throttled, suspended, paused,
		unavailable, cooling, restricted`,
		retryAhead: `retrying, retrying attempt, will retry, will auto retry, will automatically retry, next retry,
		next attempt, next try, retries in`,
		barAhead: `limit reached`,
		localReset: `réessayez dans, réessayer dans, inténtalo de nuevo en, vuelve a intentarlo en, tente novamente em,
		tente de novo em, versuchen sie es in, versuche es in, versuchen sie es erneut in, riprova tra, riprova fra,
		попробуйте снова через, повторите попытку через`,
		localRetry: `nouvelle tentative dans, nouvel essai dans, reintentando en, reintento en, tentando novamente em,
		repetindo em, erneuter versuch in, neuer versuch in, wiederholung in, nuovo tentativo tra, nuovo tentativo fra,
		повторная попытка через, повтор через, إعادة المحاولة خلال, إعادة المحاولة بعد, 将于, 将在`,
		delayBehind: `until, till, before, for`,
		delayLeft:   `left, remaining, to go`,
	}
})

type phrase struct {
	rest []string // the words after the first
	kind kind
}

// phrases holds the table by first word, longest first.
var phrases = sync.OnceValue(func() map[string][]phrase {
	m := map[string][]phrase{}
	for k, list := range phraseTable() {
		for text := range strings.SplitSeq(list, ",") {
			words := strings.Fields(text)
			m[words[0]] = append(m[words[0]], phrase{words[1:], k})
		}
	}
	for _, list := range m {
		slices.SortFunc(list, func(a, b phrase) int { return len(b.rest) - len(a.rest) })
	}
	return m
})

// nextPhrase finds the first phrase at or behind the position; the parser then
// stands behind it. at is where it begins.
func (p *parser) nextPhrase() (k kind, at int, ok bool) {
	for p.i < len(p.l) {
		r, n := utf8.DecodeRuneInString(p.l[p.i:])
		if !unicode.IsLetter(r) {
			p.i += n
			continue
		}
		at = p.i
		w := p.word()
		if at > 0 && (isDigit(p.l[at-1]) || p.l[at-1] == '_') || p.peek() == '_' {
			continue // a part of an identifier
		}
		if w[0] >= utf8.RuneSelf {
			w = strings.ToLower(w)
		}
		for _, ph := range phrases()[w] {
			if p.rest(ph.rest) {
				return ph.kind, at, true
			}
		}
	}
	return 0, 0, false
}

// rest consumes the remaining words of a phrase, or nothing.
func (p *parser) rest(words []string) bool {
	mark := p.i
	for _, want := range words {
		if !p.take('-') {
			p.space()
		}
		if w := p.word(); w != want && strings.ToLower(w) != want {
			p.i = mark
			return false
		}
	}
	return true
}

// behindWords reads what follows until, before or for: "until your limit
// resets", "before trying again". It consumes nothing else.
func (p *parser) behindWords() bool {
	mark := p.i
	for range 3 {
		if !p.oneOf("the", "your", "next", "limit", "usage", "quota", "window", "it") {
			break
		}
	}
	p.oneOf("to")
	if p.oneOf("reset", "resets", "retrying", "refresh", "refreshes") || p.words("trying", "again") {
		return true
	}
	p.i = mark
	return false
}

// behindHere skips such words where a time has just been read, so that the
// statement's end is theirs.
func (p *parser) behindHere() {
	mark := p.i
	if !p.oneOf("until", "till", "before", "for") || !p.behindWords() {
		p.i = mark
	}
}

// attempts skips the counter of a retry row: "1/5", "attempt 3 of 10",
// "#2", and the rest of "Retrying after rate limit · attempt 2/3 · 1.2s" (Kimi).
func (p *parser) attempts() {
	mark := p.i
	row := p.l[p.i:min(len(p.l), p.i+80)]
	if dot := strings.Index(row, "·"); dot >= 0 && !strings.ContainsAny(row[:dot], "0123456789") {
		p.i += dot + len("·")
		if p.oneOf("attempt") && p.counter() {
			p.space()
			if p.skipAny("·") {
				return
			}
		}
		p.i = mark
	}
	p.counter()
}

// counter reads "2/3", "#2" or "2 of 3".
func (p *parser) counter() bool {
	mark := p.i
	p.space()
	hash := p.take('#')
	_, ok := p.small(1, 4)
	if ok && !hash {
		p.space()
		ok = p.take('/') || p.oneOf("of")
		p.space()
		if ok {
			_, ok = p.small(1, 4)
		}
	}
	if !ok {
		p.i = mark
	}
	return ok
}
