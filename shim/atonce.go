package shim

import (
	"context"
	"slices"
	"time"

	"qshim/lockfile"
	"qshim/policies"
)

// What many sessions on one limiter must not all do in the instant in which it
// changes: read each other.
//
//	a hold is told  -> stopAtOnce: stopped by its own record; what it shows, the
//	                   log and a look at the siblings come later (aside)
//	a limiter moved -> hinted: who stands far back in the line looks a moment later

// hinted: a limiter has changed. Whoever stands far back in the line looks a
// moment later, once for several changes: it is not its turn yet, and 200 that
// read 200 sessions each would keep those in front from theirs. So does, in a
// crowd, who runs and may go on by what the limiters say themselves: what is left
// to see is that an older one wants its slot (concurrency.look: such news may be
// seconds old).
func (g *governor) hinted(ctx context.Context) {
	switch {
	case g.hands.Held() && g.last.Place > lineFront:
		g.wake = earliest(g.wake, g.now().Add(time.Duration(min(g.last.Place, 100))*10*time.Millisecond))
	case g.runsInCrowd():
		if !g.stopAtOnce(ctx) {
			g.wake = earliest(g.wake, g.now().Add(time.Duration(g.rand()*float64(g.crowd)*float64(lookShare))))
		}
	default:
		g.again(ctx)
	}
}

// runsInCrowd: it runs among many, nothing is owed or under way, and it waits for
// nothing.
func (g *governor) runsInCrowd() bool {
	waits := g.resumer != nil && g.resumer.at >= waitsTurn
	return g.crowd > crowded && g.last.Action == policies.Run && !g.hands.Held() && !waits && len(g.owed) == 0 && !g.over && g.quits == 0
}

// In a crowd of more than crowded sessions a look for all of them together takes
// longer than lookShare for each of them: on two processors some 1.5 ms.
const (
	crowded   = 20
	lookShare = 5 * time.Millisecond
)

// lineFront is how many of a line look at every change at once.
const lineFront = 4

// stopHere is stopAtOnce where it may not wait for anything: on the goroutine that
// hears of changes.
func (g *governor) stopHere(ctx context.Context) bool {
	return !g.over && g.quits == 0 && len(g.owed) == 0 && g.stopAtOnce(ctx)
}

// stopAtOnce stops the agent where a hold says so by itself: siblings are looked
// at afterwards, not by all in the same instant.
func (g *governor) stopAtOnce(ctx context.Context) bool {
	if g.glanced || g.hands.Held() || g.resumer != nil && g.resumer.at >= waitsTurn {
		return false
	}
	l, err := g.store.Glance()
	if err != nil {
		return false // Read says why
	}
	d, ok := g.policy.MustStop(l, g.input())
	if !ok {
		return false
	}
	g.suspend(ctx, l, d, true)
	g.glanced = true // the next decision looks at them, whatever came of this one
	g.wake = earliest(g.wake, g.now().Add(lookAround+time.Duration(g.rand()*float64(2*lookAround))))
	return true
}

// afterwards is a stop that is still to be recorded.
type afterwards struct {
	limiters map[string]lockfile.Limiter // by which it was decided,
	in       policies.Input              // when
	what     []lockfile.Stopped
}

// stopFirst leaves the record of a stop for afterwards. The agent's group stands in
// the ledger from the start on, so whoever finds this session killed in between
// continues it all the same (lockfile.Session.ChildLeads; and on a terminal of its
// own the kernel does). The record takes half of the time that the stop does, and
// 100 sessions take turns at the directory of their records. False: that is not so.
func (g *governor) stopFirst(l lockfile.Ledger, what []lockfile.Stopped) bool {
	s := l.Sessions[g.self]
	if !s.ChildLeads || len(what) != 1 || what[0] != (lockfile.Stopped{PID: s.ChildPID, Start: s.ChildStart, Group: true}) {
		return false
	}
	g.afterwards = &afterwards{limiters: l.Limiters, in: g.input(), what: what}
	g.logAt = g.afterwards.in.Now.Add(g.aside())
	return true
}

// recordStop records the stop that came first. Where that cannot be done the agent
// goes on, as if nothing had been stopped.
func (g *governor) recordStop(ctx context.Context) {
	a := g.afterwards
	g.afterwards = nil
	if a == nil || !g.hands.Held() { // it goes on again, or has ended
		return
	}
	d, events, err := g.stop(ctx, a.in, a.limiters, a.what)
	g.unlogged = append(g.unlogged, events...)
	switch {
	case err != nil:
		g.goOn()
		g.failOpen(ctx, err)
	case d.Action != policies.Suspend:
		g.act(ctx, d)
	}
}

// lookAround is when a session that was stopped at once looks at its siblings:
// whether one was killed, and where in the line it stands. 200 of them do that
// within two seconds, each taking 3 ms of a processor.
const lookAround = time.Second

// aside is by how much to put off what a stop brings with it and nobody waits for:
// the pause row, and the line in the log. Each costs more than the stop, and with
// 100 sessions on few processors those of the first are in the way of the last
// one's stop.
func (g *governor) aside() time.Duration {
	return asideLeast + time.Duration(g.rand()*float64(asideMost-asideLeast))
}

// A person notices a fifth of a second.
const (
	asideLeast = 80 * time.Millisecond
	asideMost  = 230 * time.Millisecond
)

// logSoon logs what has happened, in a moment: with the next change if there is
// one before.
func (g *governor) logSoon(events []lockfile.Event) {
	if len(events) == 0 {
		return
	}
	g.unlogged = append(g.unlogged, events...)
	g.unlogged = g.unlogged[max(0, len(g.unlogged)-mostOwed):]
	g.logAt = g.now().Add(g.aside())
}

// logNow records and logs what is to be by itself. What cannot be logged is tried
// again.
func (g *governor) logNow(ctx context.Context) {
	g.logAt = time.Time{}
	g.recordStop(ctx)
	if len(g.unlogged) == 0 {
		return
	}
	if err := g.store.Append(g.unlogged...); err != nil {
		g.logAt = g.now().Add(retry)
		g.warnOnce(err)
		return
	}
	g.unlogged = nil
}

// write is the store's Update, with what the log has not heard yet before fn's own
// events.
func (g *governor) write(ctx context.Context, fn change) (lockfile.Ledger, error) {
	g.recordStop(ctx)
	l, err := g.store.Update(ctx, func(old lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		next, events := fn(old)
		return next, append(slices.Clip(g.unlogged), events...)
	})
	if err == nil {
		g.unlogged, g.logAt = nil, time.Time{}
	}
	return l, err
}

// begins takes the desk for what has come. Who has it meanwhile (heard) is waited
// for as for anything else that may not come back.
func (r *runner) begins() {
	r.heart.begin()
	r.desk.Lock()
}

// heard is called on the goroutine that hears of a limiter's change. Where that
// means that the agent must stop it is stopped here: 100 sessions hear of it in the
// same instant, and each change of goroutines, which for a process that was asleep
// is one of threads, puts all of them behind all others. What else there is to do
// is the loop's.
func (r *runner) heard(ctx context.Context) (done bool) {
	if !r.desk.TryLock() {
		return false // it is at work, and looks next
	}
	defer r.desk.Unlock()
	r.guard(func() { done = r.gov.stopHere(ctx) })
	switch {
	case !done:
	case r.gov.hands.Held():
		time.AfterFunc(asideLeast, r.stir) // nothing of it is due before
	default:
		r.stir()
	}
	return done
}

// stir lets the loop see anew what is pending.
func (r *runner) stir() {
	select {
	case r.stirred <- struct{}{}:
	default: // it is about to
	}
}
