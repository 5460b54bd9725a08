package shim

import (
	"testing"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
	"qshim/lockfile"
)

// An agent that was continued with much to read ends a turn and begins the next
// in one burst of output, and then paints nothing for a while: it is at work. It
// stayed idle in the ledger, neither stopped nor counted.
func TestNextTurnInOneReport(t *testing.T) {
	for name, before := range map[string]detect.Activity{"from work": detect.Busy, "from idle": detect.Idle, "from the start": detect.Unknown} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *govBench) {
				b.report(b.ctx, detect.Report{Activity: before, TurnBegan: before == detect.Busy})
				b.pass(time.Minute)
				now, updates := time.Now(), b.store.updates
				b.report(b.ctx, detect.Report{Activity: detect.Busy, TurnBegan: true, TurnEnded: true, Success: true})
				s := b.store.session(me)
				if s.State != lockfile.Running || !s.TurnBegan.Equal(now) || !s.Answered.Equal(now) {
					t.Errorf("%+v", s)
				}
				if n := b.store.updates - updates; n != 1 {
					t.Errorf("%d updates", n)
				}
				b.report(b.ctx, detect.Report{Activity: detect.Idle, TurnEnded: true})
				if s := b.store.session(me); s.State != lockfile.Idle {
					t.Errorf("idle: %+v", s)
				}
			})
		})
	}
}

// The retry belongs to the turn that began last.
func TestRetryInTheNextTurn(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.report(b.ctx, detect.Report{Activity: detect.Busy, TurnBegan: true})
		b.report(b.ctx, detect.Report{Activity: detect.Busy, TurnBegan: true, TurnEnded: true, Success: true, RetryEnded: true, Findings: []finding.Finding{{
			Class: finding.Retrying, Cause: finding.Rate, Scope: finding.Account, Confidence: finding.Strong, RetryAfter: time.Minute, At: time.Now(), Rule: "r"}}})
		if s := b.store.session(me); s.State != lockfile.Running || !s.Retrying {
			t.Errorf("%+v", s)
		}
	})
}
