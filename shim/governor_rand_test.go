package shim

import (
	"math/rand/v2"
	"time"

	"qshim/detect"
	"qshim/lockfile"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

// randomStep does one thing that can happen to a session.
func randomStep(b *govBench, r *rand.Rand) {
	errs := []error{nil, nil, nil, lockfile.ErrBusy, lockfile.ErrSchema}
	switch r.IntN(10) {
	case 0:
		if b.store.failUpdate == nil {
			b.hit(rateHit(time.Duration(r.IntN(90)) * time.Second))
		}
	case 1:
		b.open()
	case 2:
		b.store.fail(errs[r.IntN(len(errs))], errs[r.IntN(len(errs))])
	case 3:
		b.hands.refuse = []error{nil, nil, nil, ErrUserStopped}[r.IntN(4)]
	case 4:
		b.key(b.ctx, Key(r.IntN(3)))
	case 5:
		b.report(b.ctx, detect.Report{Activity: detect.Activity(r.IntN(3)), TurnBegan: r.IntN(2) == 0, Success: r.IntN(4) == 0})
	case 6:
		if b.hands.held && b.hands.refuse == nil {
			b.hands.held = false // SIGCONT from outside
			b.runAnyway(b.ctx)
		}
	case 7:
		b.decide(b.ctx)
	default:
		b.pass(time.Duration(r.IntN(40000)) * time.Millisecond)
	}
}
