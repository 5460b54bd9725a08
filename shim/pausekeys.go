package shim

import "time"

// Keys of a suspended session (DESIGN section 4.9). Only these act; what else
// is typed never reaches the agent and is counted.
const (
	settle = time.Second // keys act only after the row has stood so long without a key
	twice  = time.Second // a second Ctrl-C within quits
)

// Key is a key as far as a suspended session cares.
type Key int

// The keys.
const (
	KeyOther     Key = iota
	KeyRun           // r: run anyway
	KeyQuit          // q: quit, asks first
	KeyYes           // y: yes, quit
	KeyInterrupt     // Ctrl-C: shows the keys, twice quits
)

// order is what a key asks for.
type order int

const (
	nothing order = iota
	runAnyway
	quit
	redraw // the row's text changed
)

// pauseKeys turns keys into orders. Somebody who was typing when the agent was
// stopped must not trigger anything: hence settle.
type pauseKeys struct {
	last      time.Time // when the row appeared or the last key came
	interrupt time.Time // last Ctrl-C
	confirm   bool      // q was pressed
	dropped   int
}

func newPauseKeys(now time.Time) *pauseKeys { return &pauseKeys{last: now} }

func (p *pauseKeys) hint(now time.Time) Hint {
	switch {
	case p.confirm:
		return HintQuit
	case !p.interrupt.IsZero() && now.Sub(p.interrupt) <= twice:
		return HintAgain
	}
	return HintKeys
}

func (p *pauseKeys) press(k Key, now time.Time) order {
	settled := now.Sub(p.last) >= settle
	p.last = now
	if k == KeyInterrupt {
		again := !p.interrupt.IsZero() && now.Sub(p.interrupt) <= twice
		p.interrupt = now
		if again {
			return quit
		}
		p.confirm = false
		return redraw
	}
	if p.confirm {
		// The question is on the row: its answer need not wait.
		p.confirm = false
		if k == KeyYes {
			return quit
		}
		return redraw
	}
	switch {
	case k == KeyRun && settled:
		return runAnyway
	case k == KeyQuit && settled:
		p.confirm = true
		return redraw
	}
	p.dropped++
	return redraw
}
