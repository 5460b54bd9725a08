package shim

import (
	"time"

	"qshim/detect"
	"qshim/policies"
)

// consumption is what the ledger has been told of the agent's usage.
type consumption struct {
	context, spent int64
	share          detect.Share
}

const (
	// contextStep is the share of a conversation's size by which it has to
	// change to be told by itself.
	contextStep = 0.1
	// shareStep is the same for a window, in percent: what Codex tells.
	shareStep = 1
	// endStep is how far a window's end may wander without being another's.
	endStep = time.Minute
)

// news is what of the agent's usage the ledger should hear now. Small steps are
// told along with something else that is written (also), never by themselves:
// the ledger is not for heartbeats.
func (c *consumption) news(u detect.Usage, also bool) (n policies.Usage) {
	if u.Spent < c.spent {
		c.spent = 0 // the agent was started again, and counts anew
	}
	if u.Context == 0 {
		u.Context = c.context // its conversation is as large as it was
	}
	short, any := shortest(u.Shares)
	moved := any && (short.Window != c.share.Window || abs(short.Used-c.share.Used) >= shareStep ||
		abs(short.Ends.Sub(c.share.Ends).Seconds()) > endStep.Seconds())
	grown := abs(float64(u.Context-c.context)) > contextStep*float64(c.context)
	if !also && !moved && !grown && u.Spent-c.spent < policies.StepTokens {
		return n
	}
	if u.Context != c.context {
		n.Context = u.Context
	}
	n.Spent = u.Spent - c.spent
	if moved {
		n.Told, n.Used, n.Window, n.Ends = true, short.Used, short.Window, short.Ends
		c.share = short
	}
	c.context, c.spent = u.Context, u.Spent
	return n
}

// shortest is the window that fills first.
func shortest(shares []detect.Share) (s detect.Share, any bool) {
	for _, x := range shares {
		if !any || x.Window < s.Window {
			s, any = x, true
		}
	}
	return s, any
}

func abs(x float64) float64 { return max(x, -x) }
