package detect

import "time"

// quietAfter is how long the row that only stands while the agent works must be
// gone before its turn counts as ended: agents leave it out of single frames
// (measured, opencode 1.18.33 and qwen 0.15.10 repaint it every 80 to 100 ms).
const quietAfter = 700 * time.Millisecond

// quietly follows an agent that shows that it works by a row alone: no title
// and no OSC 7501. Called after each look at the page.
func (w *Watcher) quietly(now time.Time) {
	s := &w.sig
	counts := s.activity == Busy || s.activity == Unknown && w.unasked() // started, and nothing asked of it
	if s.titlesOrOSC() || !counts || !w.p.rowTells() || !s.composer {
		s.quiet = time.Time{}
		return
	}
	for i := range w.blocks {
		if k := w.blocks[i].kind(); k == busyRow || k == retryRow {
			s.quiet = time.Time{}
			return
		}
	}
	switch {
	case s.quiet.IsZero():
		s.quiet = now
	case now.Sub(s.quiet) >= quietAfter:
		s.quiet = time.Time{}
		w.setActivity(now, Idle)
	}
}

// retryRow is the kind of a row that tells the client's own retry: it works.
const retryRow = "retry"

// rowTells reports whether a row is the agent's only sign of working.
func (p *book) rowTells() bool {
	if p.act.osc || p.act.titleBusy != nil {
		return false
	}
	for _, d := range p.rows {
		if d.name == busyRow {
			return true
		}
	}
	return false
}
