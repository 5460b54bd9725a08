package when

import (
	"time"

	"qshim/detect/finding"
)

// resolve makes an instant of a stamp, or says that it is not to be believed.
func (s *stamp) resolve(q question) (Time, bool) {
	t := Time{Source: finding.Local, Precision: s.precision()}
	zone := q.loc
	if s.zone != nil {
		zone, t.Source = s.zone, finding.Zoned
		if s.iso && s.seconds || s.seconds && s.year > 0 {
			t.Source = finding.Epoch
		}
	}
	if s.zone == nil && s.iso && s.clock {
		if at, ok := s.foreign(q); ok {
			t.At, t.Source = at, finding.Zoned
			return t, true
		}
	}
	at, ok := pick(s.candidates(q.now.In(zone)), q, s.horizon())
	if s.swapped && (!ok || at.Before(q.now.Add(-grace))) {
		// 01/12/2026 in November: not ten months ago.
		other := *s
		other.month, other.dayOf = s.dayOf, s.month
		if alt, okAlt := pick(other.candidates(q.now.In(zone)), q, s.horizon()); okAlt && alt.After(q.now) {
			at, ok = alt, true
		}
	}
	t.At = at
	return t, ok
}

// foreign reads a timestamp without a zone as Beijing's when that is the only
// believable reading, or when the message is z.ai's.
func (s *stamp) foreign(q question) (time.Time, bool) {
	if q.within == 0 && !q.zai {
		return time.Time{}, false
	}
	at, ok := pick(s.candidates(q.now.In(beijing)), q, s.horizon())
	if !ok || at.Before(q.now.Add(-grace)) {
		return time.Time{}, false
	}
	own, ok := pick(s.candidates(q.now.In(q.loc)), q, s.horizon())
	return at, q.zai || !ok || own.Before(q.now.Add(-grace))
}

func (s *stamp) precision() time.Duration {
	switch {
	case !s.clock:
		return day
	case s.seconds:
		return 0
	}
	return time.Minute
}

// horizon is how far ahead a statement of this form can lie when the window is
// not known. A date without a year is in the near half of the year.
func (s *stamp) horizon() time.Duration {
	switch {
	case s.year > 0:
		return maxWait
	case s.dayOf > 0:
		return 183 * day
	case s.monthStart > 0, s.nth > 0:
		return 32 * day
	case s.weekday >= 0 && s.shift < 0:
		return 8 * day
	}
	return 2*day + time.Hour // clock time or day word; 25 h days happen
}

// reading is one calendar reading of a stamp: the two instants of a clock time
// that happens twice, the same one twice otherwise.
type reading struct{ early, late time.Time }

// candidates are the calendar readings around now, which is in the stamp's zone.
func (s *stamp) candidates(now time.Time) []reading {
	y, m, d := now.Date()
	var out []reading
	add := func(y int, m time.Month, d int) {
		out = append(out, s.on(y, m, d, now.Location()))
	}
	switch {
	case s.year > 0:
		add(s.year, time.Month(s.month), s.dayOf)
	case s.dayOf > 0:
		for dy := -1; dy <= 1; dy++ {
			if validDate(y+dy, s.month, s.dayOf) {
				add(y+dy, time.Month(s.month), s.dayOf)
			}
		}
	case s.monthStart > 0:
		add(y, m+1, 1)
	case s.nth > 0:
		for dm := time.Month(-1); dm <= 2; dm++ {
			if first := time.Date(y, m+dm, 1, 0, 0, 0, 0, time.UTC); validDate(first.Year(), int(first.Month()), s.nth) {
				add(first.Year(), first.Month(), s.nth)
			}
		}
	case s.shift >= 0:
		add(y, m, d+s.shift)
	default:
		for dd := -8; dd <= 8; dd++ {
			wd := time.Date(y, m, d+dd, 0, 0, 0, 0, time.UTC).Weekday()
			if s.weekday < 0 && dd >= -1 && dd <= 2 || int(wd) == s.weekday {
				add(y, m, d+dd)
			}
		}
	}
	return out
}

// on is the stamp's clock time on one day. In the gap of a DST change neither
// offset gives the time back; the later instant is the clock before the change.
func (s *stamp) on(y int, m time.Month, d int, zone *time.Location) reading {
	wall := time.Date(y, m, d, s.hour, s.min, s.sec, s.ns, time.UTC)
	_, before := wall.Add(-day).In(zone).Zone()
	_, after := wall.Add(day).In(zone).Zone()
	a := wall.Add(-time.Duration(before) * time.Second)
	b := wall.Add(-time.Duration(after) * time.Second)
	if a.After(b) {
		a, b = b, a
	}
	okA, okB := shows(a, wall, zone), shows(b, wall, zone)
	switch {
	case okA && !okB:
		return reading{a, a}
	case okA:
		return reading{a, b}
	}
	return reading{b, b}
}

// shows reports whether the zone's clock shows wall at instant t.
func shows(t, wall time.Time, zone *time.Location) bool {
	_, off := t.In(zone).Zone()
	return t.Add(time.Duration(off) * time.Second).Equal(wall)
}

// pick chooses the nearest reading ahead, unless one has just elapsed or the
// one ahead is beyond what the window allows; then the last one behind, if that
// is nearer. Nothing, if neither can be meant.
func pick(all []reading, q question, horizon time.Duration) (time.Time, bool) {
	limit := horizon
	if q.within > 0 {
		limit = min(limit, q.within+grace)
	}
	var past, future time.Time
	for _, r := range all {
		at := r.late
		if r.early.After(q.now) && r.late.Sub(q.now) > limit {
			at = r.early
		}
		switch {
		case at.After(q.now) && (future.IsZero() || at.Before(future)):
			future = at
		case !at.After(q.now) && (past.IsZero() || at.After(past)):
			past = at
		}
	}
	ahead, age := future.Sub(q.now), q.now.Sub(past)
	switch {
	case !past.IsZero() && age <= grace:
		return past, true
	case !future.IsZero() && ahead <= limit:
		return future, true
	case !past.IsZero() && age <= maxWait && (future.IsZero() || age <= ahead):
		return past, true
	}
	return time.Time{}, false
}

// instant checks an absolute instant against now and the window.
func instant(at time.Time, q question) bool {
	ahead := at.Sub(q.now)
	limit := maxWait
	if q.within > 0 {
		limit = min(limit, q.within+grace)
	}
	return ahead <= limit && ahead >= -maxWait
}
