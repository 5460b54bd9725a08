// Package when reads the time at which a provider's limit ends out of what an
// agent shows: text + now + zone -> instant. It has no clock, no environment
// and no memory: the same (text, now, zone, window) always gives the same
// answer, so an instant that is anchored when its row is first seen never
// slides.
//
// Three rules decide everything else:
//
//   - Only a number tied to a word of resetting, retrying or waiting counts.
//     Elapsed counters ("(4s • esc to interrupt)", "Brewed for 1h 14m") are not.
//   - What cannot be read for certain (a localised date, a zone that
//     contradicts itself, a time beyond the named window) is unknown, never
//     guessed: the policy has a ladder for the unknown and none for the wrong.
//   - Where two readings are left (a clock time that happens twice in the night
//     of a DST change), the later one is taken: too early costs a refusal that
//     counts against the limit.
package when

import (
	"slices"
	"strings"
	"time"

	_ "time/tzdata" // zone names must resolve on machines without zoneinfo files

	"qshim/detect/finding"
)

const (
	// grace is how late a stated time may be read and still mean "just
	// elapsed" instead of "tomorrow" (corpus README, case 5), and by how much
	// a time may pass the named window: clocks differ and agents round.
	grace = 10 * time.Minute
	// maxWait bounds every instant, in the past and in the future. The longest
	// real wait is a monthly cap; a yearly plan with slack is still below it.
	maxWait = 400 * 24 * time.Hour
	// maxText bounds the work on one text; the end is kept, being the newest.
	maxText = 64 << 10
	// maxStatements bounds how many anchors of one text are followed.
	maxStatements = 64
)

// Time is one stated instant.
type Time struct {
	// At is the instant in UTC. For a relative delay it is now + delay.
	At time.Time
	// Source is how At was stated: Epoch (Unix time or timestamp with seconds
	// and offset), Zoned (clock time with its zone), Local (clock time read in
	// the machine's zone) or Relative.
	Source finding.ResetSource
	// Precision is how coarse the statement is: 0 for epochs and timestamps
	// with seconds, a minute for clock times, a day for dates, for relative
	// delays the smallest unit named.
	Precision time.Duration
	// After is the relative delay in the text, when HasAfter: the client's own
	// next try if it names one, else the server's delay.
	After    time.Duration
	HasAfter bool
	// Elapsed says that At is not after now: the block is over, probe at once.
	Elapsed bool
	// Retry says that the text names only a client's own next try ("retrying
	// in 6s"): At is that try, not the end of a limit.
	Retry bool
}

// question is what one call of Parse asks.
type question struct {
	now    time.Time
	loc    *time.Location
	within time.Duration // longest believable wait; 0 unknown
	zai    bool          // the text carries a z.ai error code: its clock is Beijing's
}

// Parse finds the best statement of a reset time in text. Rows may be joined
// by newlines; a row break inside a word or a number is mended. now is when the
// text was first seen, loc the machine's zone (nil: UTC), within the longest
// believable wait for the window that the text names (5 h, 7 d; 0 when unknown;
// see Window). Among several statements the best provenance wins, then the later
// instant. A text that is nothing but a time ("6:45pm (UTC)", "2h3m4s",
// "1754298000") needs no words around it.
func Parse(text string, now time.Time, loc *time.Location, within time.Duration) (Time, bool) {
	if loc == nil {
		loc = time.UTC
	}
	text = clean(text)
	q := question{now: now.UTC().Round(0), loc: loc, within: within}
	for _, rows := range readings(text) {
		q.zai = q.zai || strings.Contains(rows, `"13`) && zaiCode().MatchString(rows)
	}
	if t, ok := choose(statements(text, q), q); ok {
		return t, true
	}
	return bare(text, q)
}

// Duration reads a text that is one duration: "2h3m4s", "34.074824224s",
// "900ms", "58 hours", "3 days 6 hours 57 minutes", "~1 day", "less than a
// minute" (its upper bound). False for anything else, for negative and for
// absurd ones (over 400 days).
func Duration(text string) (time.Duration, bool) {
	p := newParser(clean(text))
	if _, ok := p.fillers(); !ok {
		return 0, false
	}
	d, _, ok := p.duration()
	if !ok || !p.atEnd() {
		return 0, false
	}
	return d, true
}

// statement is one anchored time in a text.
type statement struct {
	Time
	pos, end int  // from its anchor to the end of its time
	weak     bool // stated beside what is used or left: a warning's
	keyed    bool // behind a key of JSON or a header
	spare    bool // of an allowance that is not used up: no block, never chosen
}

// choose picks among statements: blocks before warnings, resets
// before a client's own retries, then provenance, then the later instant.
func choose(all []statement, q question) (Time, bool) {
	best := -1
	all = slices.DeleteFunc(all, func(s statement) bool { return s.spare })
	for i, s := range all {
		if best < 0 || better(s, all[best]) {
			best = i
		}
	}
	if best < 0 {
		return Time{}, false
	}
	t := all[best].Time
	t.After, t.HasAfter = delay(all)
	t.Elapsed = !t.At.After(q.now)
	return t, true
}

func better(a, b statement) bool {
	switch {
	case a.weak != b.weak:
		return b.weak
	case a.Retry != b.Retry:
		return b.Retry
	case a.Retry:
		return a.pos > b.pos // stacked retry rows: the last is the live one
	case a.Source.Rank() != b.Source.Rank():
		return a.Source.Rank() > b.Source.Rank()
	}
	return a.At.After(b.At)
}

// delay is the relative delay that the text names: the client's own next try
// first, since that is what it will really do.
func delay(all []statement) (time.Duration, bool) {
	best := -1
	for i, s := range all {
		if !s.HasAfter {
			continue
		}
		if best < 0 || s.Retry && (!all[best].Retry || s.pos > all[best].pos) ||
			s.Retry == all[best].Retry && !s.Retry && better(s, all[best]) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	return all[best].After, true
}

// bare reads a text that is a time and nothing else: a rule captured it.
func bare(text string, q question) (Time, bool) {
	for _, rows := range readings(text) {
		p := newParser(strings.Trim(rows, " \t\n"))
		how, ok := p.fillers()
		if !ok {
			continue
		}
		s, ok := p.value(q, how)
		if ok && p.atEnd() {
			return choose([]statement{s}, q)
		}
	}
	return Time{}, false
}
