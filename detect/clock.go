package detect

import "time"

// clockSlack is how far now may lie behind the last now without the clock having
// been set back: an instant that was read before the one that came first.
const clockSlack = time.Second

// clock notes what time it is and returns it without its monotonic part, which
// no record of an agent has. A wall clock that was set back takes all that waits
// with it: by the old clock a row would wait for its second sign, and a failed
// turn for its look, for as long as the step.
func (w *Watcher) clock(now time.Time) time.Time {
	now = now.Round(0)
	if back := now.Sub(w.now); back < -clockSlack && !w.now.IsZero() {
		w.shift(back)
	}
	w.now = now
	return now
}

// shift moves every instant by which something waits.
func (w *Watcher) shift(by time.Duration) {
	s := &w.sig
	all := []*time.Time{&w.dirty, &w.looked, &w.drift.due, &s.idleAt, &s.began, &s.enter, &s.errorAt, &s.quiet, &s.logAt}
	for _, d := range w.desks() {
		for i := range d.wait {
			p := d.wait[i]
			all = append(all, &p.first, &p.still)
		}
	}
	for _, at := range all {
		if !at.IsZero() {
			*at = at.Add(by)
		}
	}
}

// news is the instant before which a record of the agent's log is old: the
// start, or now where the clock was set back behind it.
func (w *Watcher) news(now time.Time) time.Time {
	if now.Before(w.o.Started) {
		return now
	}
	return w.o.Started
}
