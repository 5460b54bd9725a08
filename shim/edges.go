package shim

import (
	"slices"

	"qshim/detect"
	"qshim/detect/finding"
	"qshim/policies"
)

// edges are the steps of a turn that one report tells of, in the order in which
// they happened. What was found stands between before and after.
//
//	a turn, or the first half of one   began | found | ended
//	its client retries                 began, try ended | found
//	it ended, and the next one began   [began] | found | ended well or not, began
//
// The last is what a burst of output shows: a message that waited in the agent's
// queue, or an agent that was continued with much to read.
type edges struct {
	before, after []policies.Activity
}

func (e edges) nothing() bool { return len(e.before)+len(e.after) == 0 }

func (e *edges) add(list *[]policies.Activity, a policies.Activity) {
	if !a.Nothing() {
		*list = append(*list, a)
	}
}

// edges orders what a report tells of a turn's beginning and end.
func (g *governor) edges(r detect.Report) (e edges) {
	began := policies.Activity{TurnBegan: r.TurnBegan}
	ended := policies.Activity{TurnEnded: r.TurnEnded, Success: r.Success, AnswerBegun: r.AnswerBegun, RetryEnded: r.RetryEnded}
	var next policies.Activity
	was := g.activity
	if r.Activity != detect.Unknown && r.Activity != was {
		g.activity = r.Activity
		began.Busy, ended.Idle = r.Activity == detect.Busy, r.Activity == detect.Idle
	}
	switch {
	case r.TurnEnded && r.Activity == detect.Busy:
		// The agent is at work again: to the ledger it never was idle.
		ended.TurnEnded = false
		next = policies.Activity{TurnBegan: true, Busy: true}
		if was == detect.Busy {
			began = policies.Activity{}
		}
	case r.TurnEnded:
		g.activity = detect.Unknown // the ledger has it idle: what the agent does next is news
	}
	if retries(r.Findings) {
		// What ended is the try before this one: the client is retrying now.
		tried := policies.Activity{AnswerBegun: ended.AnswerBegun, RetryEnded: ended.RetryEnded}
		ended.AnswerBegun, ended.RetryEnded = false, false
		if next.Nothing() {
			began.AnswerBegun, began.RetryEnded = tried.AnswerBegun, tried.RetryEnded
		} else {
			tried.Success, ended.Success = ended.Success, false
			e.add(&e.before, began)
			e.add(&e.before, tried)
			began, next = next, policies.Activity{}
		}
	}
	e.add(&e.before, began)
	e.add(&e.after, ended)
	e.add(&e.after, next)
	return e
}

func retries(found []finding.Finding) bool {
	return slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Class == finding.Retrying })
}
