package policies

import (
	"math"
	"slices"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// How many may be busy on a limiter at once, and who. Nobody is counted before
// the first rate hit; then the cap is learned: cut on a hit, one more after each
// quiet while in which all of it was in use, forgotten when it is not needed any
// more. Above the cap the oldest finish first and the others stay suspended:
//
//	hit      k = 0.7 · running          (once in cut_window; overload never)
//	growth   k + 1                      (all k in use, no hit for grow)
//	silence  no cap                     (no hit for forget, fewer than k in use)
//
// An idle agent takes no slot. A nested agent shares that of the session around
// it, so neither can wait for the other.

// Cap returns how many may be busy at once on a limiter; not capped: as many
// as want to.
func (p Policy) Cap(l lockfile.Ledger, id string) (k int, capped bool) {
	lim, ok := l.Limiters[id]
	if !ok {
		return 0, false
	}
	lim.ID = id
	return p.capOf(lim)
}

// StartsCapped reports whether a limiter has a number before anything is known
// of it.
func (p Policy) StartsCapped(id string) bool {
	_, capped := p.capOf(lockfile.Limiter{ID: id})
	return capped
}

func (p Policy) capOf(lim lockfile.Limiter) (k int, capped bool) {
	c := p.at(lim.ID).Concurrency
	if own, set := p.Special[lim.ID]; isSource(lim.ID) {
		// Learned and configured caps are the account's. This machine as a whole
		// has one only where somebody wrote it down for exactly this limiter.
		if !set || own.Concurrency.Cap == 0 {
			return 0, false
		}
		return own.Concurrency.Cap, true
	}
	switch {
	case c.Cap > 0:
		return c.Cap, true
	case lim.Cap != nil && lim.Cap.K > 0:
		return lim.Cap.K, true
	}
	return c.StartCap, c.StartCap > 0
}

// slot is how a session stands among those that want to be busy.
type slot struct {
	over  string // the limiter whose cap leaves it none; empty: it has one
	place int    // among those who wait for one there, 1 = next
}

// slots deals the slots of every capped limiter out, the oldest first. All who
// want to run are dealt with in one order, and one who waits for a slot on one
// limiter takes none on another: so a model's cap delays no other model, and two
// limiters can never wait for each other.
func (v view) slots() map[string]slot {
	if v.memo == nil {
		return v.deal()
	}
	if !v.memo.dealt {
		v.memo.slots, v.memo.dealt = v.deal(), true
	}
	return v.memo.slots
}

// memo keeps what one look at a ledger has worked out already.
type memo struct {
	dealt bool
	slots map[string]slot
}

func (v view) deal() map[string]slot {
	caps := map[string]int{}
	for id, lim := range v.l.Limiters {
		if k, ok := v.p.capOf(lim); ok {
			caps[id] = k
		}
	}
	if len(caps) == 0 {
		return nil
	}
	in := v.lineUp("", func(s lockfile.Session) (int, bool) {
		if v.unchosen(s) {
			return 0, v.wants(s)
		}
		return 1, v.wants(s)
	})
	d := deal{v: v, caps: caps, used: map[string]int{}, taken: map[[2]string]bool{}, queued: map[string]int{}, out: map[string]slot{}}
	for _, x := range in {
		d.give(v.l.Sessions[x.id], x.rank == 0)
	}
	return d.out
}

// deal is the state of one round of slots.
type deal struct {
	v      view
	caps   map[string]int
	used   map[string]int
	taken  map[[2]string]bool // limiter and outermost session: nested ones share
	queued map[string]int
	out    map[string]slot
}

// give deals s a slot, or a place behind those who have one. Who is about to end
// is let end above the cap, and takes no older one's slot for it.
func (d *deal) give(s lockfile.Session, unchosen bool) {
	root := d.v.root(s).ID
	var lims []string
	for id := range d.caps {
		if DrawsOn(s, id) {
			lims = append(lims, id)
		}
	}
	if !unchosen && !d.withParent(s) && !d.v.ending(s) {
		slices.Sort(lims)
		for _, id := range lims {
			if !d.taken[[2]string{id, root}] && d.used[id] >= d.caps[id] {
				d.queued[id]++
				d.out[s.ID] = slot{over: id, place: d.queued[id]}
				return
			}
		}
	}
	d.out[s.ID] = slot{}
	for _, id := range lims {
		if key := [2]string{id, root}; !d.taken[key] {
			d.taken[key] = true
			d.used[id]++
		}
	}
}

// withParent: the session around it is busy and has its slot, and may be
// waiting for this one.
func (d *deal) withParent(s lockfile.Session) bool {
	return d.v.parents(s, func(p lockfile.Session) bool {
		has, ok := d.out[p.ID]
		return ok && has.over == "" && p.State == lockfile.Running
	})
}

// wants: it is busy, or would be if it were let go now. Who is held by a limit
// needs no slot meanwhile.
func (v view) wants(s lockfile.Session) bool {
	switch {
	case !v.alive(s) || s.UserStopped && s.ID != v.self:
		return false
	case s.State == lockfile.Running:
		return !v.gaveUp(s)
	case s.State == lockfile.Suspended, s.State == lockfile.Waiting && sends(s):
		return !s.Observe && !v.heldElsewhereByHold("", s)
	}
	return false
}

// gaveUp: it was refused a moment ago, and is about to be idle or gone.
func (v view) gaveUp(s lockfile.Session) bool {
	if !s.Broken {
		return false
	}
	var hit time.Time
	for _, at := range s.Hits {
		hit = later(hit, at)
	}
	since := v.now.Sub(hit)
	return since < v.p.C.Probe.Start && since > -v.p.C.Probe.Start
}

// unchosen sessions are never suspended by a cap: those that only observe, that
// go first after a hold, whose user types, or whose user said so.
func (v view) unchosen(s lockfile.Session) bool {
	if s.Observe || v.typing(s) {
		return true
	}
	began := later(s.TurnBegan, s.Born)
	for id, lim := range v.l.Limiters {
		if !DrawsOn(s, id) {
			continue
		}
		if v.anyway(s, id, began) || lim.Probe != nil && lim.Probe.Session == s.ID && s.State == lockfile.Running && v.probeLives(lim) {
			return true
		}
	}
	return false
}

// typing: its user pressed a key lately, and is looking at it.
func (v view) typing(s lockfile.Session) bool {
	since := v.now.Sub(s.Typed)
	return !s.Typed.IsZero() && since < v.p.C.Concurrency.Typed && since > -time.Minute
}

// over reports whether a limiter's cap leaves s no slot.
func (v view) over(id string, s lockfile.Session) bool { return v.slots()[s.ID].over == id }

// overElsewhere: another limiter's cap leaves s no slot.
func (v view) overElsewhere(id string, s lockfile.Session) bool {
	at := v.slots()[s.ID].over
	return at != "" && at != id
}

// standCapped: it waits until an older one is done, or until the cap grows.
func (v view) standCapped(st *standing, lim lockfile.Limiter, s lockfile.Session) {
	c := v.p.at(lim.ID)
	st.stop, st.why, st.place = true, Reason{Code: Capped, Class: finding.Rate}, v.slots()[s.ID].place
	if slices.ContainsFunc(lim.Holds, v.ended) {
		if judged, _ := v.judge(lim); judged != pending && judged != passed && len(v.candidates(lim.ID)) == 0 {
			st.claim, st.at = tidy, v.now // nobody with a slot can go first
		}
		return
	}
	at, ok := v.grows(lim)
	switch {
	case !ok:
	case st.place == 1:
		st.claim, st.at = tidy, at
	default:
		st.wake = at.Add(time.Duration(st.place) * c.Probe.Step) // should the first not answer
	}
}

// ended: the hold waits for nothing but a probe, whoever that is.
func (v view) ended(h lockfile.Hold) bool {
	return !h.Blocked && (v.steppedBack(h) || !h.Until.After(v.now))
}

// grows is when a limiter's cap may be raised by one if all of it is in use.
func (v view) grows(lim lockfile.Limiter) (time.Time, bool) {
	c := v.p.at(lim.ID).Concurrency
	if c.Cap > 0 || isSource(lim.ID) || slices.ContainsFunc(lim.Holds, func(h lockfile.Hold) bool { return isTransient(h.Class) }) {
		return time.Time{}, false
	}
	if k, _ := v.p.capOf(lim); v.busy(lim.ID) < k {
		return time.Time{}, false // whoever starts next tells
	}
	last, every := v.past(lim.LastHit), c.Grow
	if k := lim.Cap; k != nil {
		last = later(last, later(v.past(k.Cut), v.past(k.Grown)))
		if k.Hidden {
			every = c.GrowHidden
		}
	}
	if lim.Cap == nil {
		last = later(last, v.lastStart(lim.ID)) // capped from the start: nothing is written down yet
	}
	if last.IsZero() {
		return v.now, true // the clock was set back: nobody knows how long ago the hit was
	}
	return last.Add(every), true
}

// past leaves out what happened in the future: the clock was set back since.
func (v view) past(t time.Time) time.Time {
	if v.future(t) {
		return time.Time{}
	}
	return t
}

// grow allows one more where the caller is the next that waits for a slot.
func (e *edit) grow(id string) {
	v, lim := e.view(), e.l.Limiters[id]
	own := v.slots()[e.s.ID]
	at, ok := v.grows(lim)
	if own.over != id || !ok || at.After(e.in.Now) || !stopped(e.s) && e.s.State != lockfile.Running {
		return
	}
	k, _ := e.p.capOf(lim)
	n := lockfile.Cap{K: k + 1, Grown: e.in.Now}
	if lim.Cap != nil {
		n.Cut, n.Hidden = lim.Cap.Cut, lim.Cap.Hidden
	}
	lim.Cap = &n
	e.put(lim)
}

// cut lowers the cap of a limiter that was hit: so many were too many.
func (e *edit) cut(lim *lockfile.Limiter, class finding.Class, hidden bool) {
	c, now := e.p.at(lim.ID).Concurrency, e.in.Now
	if class != finding.Rate || c.Cap > 0 || isSource(lim.ID) {
		return
	}
	n := lockfile.Cap{K: max(1, int(math.Floor(c.CutTo*float64(e.view().busy(lim.ID))))), Cut: now, Hidden: hidden}
	if old := lim.Cap; old != nil {
		if since := now.Sub(old.Cut); since >= 0 && since < c.CutWindow {
			old.Hidden = hidden
			return
		}
		n.K, n.Was = min(n.K, old.K), old.K
		if !e.view().future(old.Grown) {
			n.Grown = old.Grown
		}
	}
	lim.Cap = &n
}

// uncut is the cap before its last cut; nil: there was none.
func uncut(k lockfile.Cap) *lockfile.Cap {
	if k.Was == 0 {
		return nil
	}
	k.K, k.Was = k.Was, 0
	return &k
}

// busy counts those who are busy on a limiter, nested ones with their parents.
func (v view) busy(id string) int {
	roots := map[string]bool{}
	for _, s := range v.l.Sessions {
		if s.State == lockfile.Running && v.alive(s) && !s.UserStopped && DrawsOn(s, id) {
			roots[v.root(s).ID] = true
		}
	}
	return len(roots)
}

// forget drops the caps that are not needed any more, before the caller takes
// a slot.
func (e *edit) forget() {
	e.sync()
	for _, id := range limitersOf(e.l, e.s) {
		lim := e.l.Limiters[id]
		if lim.Cap == nil {
			continue
		}
		v, last := e.view(), later(lim.LastHit, lim.Cap.Cut)
		if !v.future(last) && v.now.Sub(last) < e.p.at(id).Concurrency.Forget {
			continue
		}
		// Nobody who runs may be left without a slot by the cap from the start.
		if start := e.p.at(id).Concurrency.StartCap; v.busy(id) < lim.Cap.K && (start == 0 || v.busy(id) < start) {
			lim.Cap = nil
			e.put(lim)
		}
	}
}

// nudge tells the siblings where the caller's change has moved a slot to or
// from one of them: only limiters' files are watched.
func (e *edit) nudge(before map[string]slot) {
	after := e.view().slots()
	moved := map[string]bool{}
	for id, s := range e.l.Sessions {
		was, is := before[id].over, after[id].over
		if id != e.s.ID && was != is && (stopped(s) || s.State == lockfile.Running) {
			moved[was], moved[is] = true, true
		}
	}
	for id := range moved {
		e.tell(id)
	}
}

// filled tells those who wait for a slot that the caller has taken one: when
// all are in use, the cap may grow.
func (e *edit) filled() {
	for _, x := range e.view().slots() {
		if x.over != "" && DrawsOn(e.s, x.over) {
			e.tell(x.over)
		}
	}
}

// tell changes a limiter's file where nothing of it has changed but who is busy:
// only these files are watched. In a herd that happens many times a second, so it
// is told once in a while; whoever heard looks again when that is over (moving),
// and so misses nothing that came in between.
func (e *edit) tell(id string) {
	lim, ok := e.l.Limiters[id]
	since := e.in.Now.Sub(lim.Told)
	if !ok || since >= 0 && since < e.p.at(id).Concurrency.Tell {
		return
	}
	lim.Told = e.in.Now
	e.put(lim)
}

// priority orders sessions: interactive ones first. A background session that
// has been there for a while counts like any other, so that it never starves.
func (v view) priority(s lockfile.Session) int {
	began := s.Born
	if !s.Headless {
		began = later(began, s.TurnBegan)
	}
	if s.Priority == lockfile.Background && v.now.Sub(began) < v.p.C.Concurrency.Age {
		return 1
	}
	return 0
}
