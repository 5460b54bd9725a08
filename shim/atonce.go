package shim

import (
	"context"
	"time"
)

// What many sessions on one limiter must not all do in the instant in which it
// changes: read each other.
//
//	a hold is told  -> stopAtOnce: stopped by its own record, siblings looked at later
//	a limiter moved -> hinted: who stands far back in the line looks a moment later

// hinted: a limiter has changed. Whoever stands far back in the line looks a
// moment later, once for several changes: it is not its turn yet, and 200 that
// read 200 sessions each would keep those in front from theirs.
func (g *governor) hinted(ctx context.Context) {
	if g.hands.Held() && g.last.Place > lineFront {
		g.wake = earliest(g.wake, g.now().Add(time.Duration(min(g.last.Place, 100))*10*time.Millisecond))
		return
	}
	g.again(ctx)
}

// lineFront is how many of a line look at every change at once.
const lineFront = 4

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
	g.suspend(ctx, l, d)
	g.glanced = true // the next decision looks at them, whatever came of this one
	g.wake = earliest(g.wake, g.now().Add(lookAround+time.Duration(g.rand()*float64(2*lookAround))))
	return true
}

// lookAround is when a session that was stopped at once looks at its siblings:
// whether one was killed, and where in the line it stands. 200 of them do that
// within two seconds, each taking 3 ms of a processor.
const lookAround = time.Second
