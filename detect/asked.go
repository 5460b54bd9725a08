package detect

import (
	"hash/fnv"
	"slices"
	"time"
)

// asked follows the user's prompts on the page. A turn can be over before the
// agent has painted that it works: refused or answered between two of its
// frames, on a busy machine (measured, Claude Code 2.1.332 on one core: prompt,
// answer and "done" line in one frame, no title). Then an Enter in the composer
// and one prompt more on the page than before tell of it.
//
//	Enter, composer there -> open -> one prompt more: a turn began, and is over
//	                              -> anything else: closed, a history was painted
type asked struct {
	open    bool
	prompts []uint64  // those on the page at the Enter, from the top
	swift   time.Time // when a turn was told of that showed no work
}

// swiftTime is how much later an agent can begin to show the work of a turn
// whose prompt it has painted: it is the same turn then. Claude Code paints both
// within 0.1 s on an idle machine (measured 2.1.332), the rest is for a loaded one.
const swiftTime = 2 * time.Second

// entered notes the page at an Enter of the user's that has begun no turn yet.
func (w *Watcher) entered() {
	s := &w.sig
	w.asked.open = s.composer && !s.dialog && s.activity == Idle
	if w.asked.open {
		w.asked.prompts = w.prompts(w.asked.prompts[:0])
	}
}

// promptPainted begins the turn of a prompt that was painted since the Enter
// without a sign of work, and ends it.
func (w *Watcher) promptPainted(now time.Time) {
	if !w.asked.open {
		return
	}
	if w.sig.dialog || w.sig.activity == Busy {
		w.asked.open = false
		return
	}
	is := w.prompts(nil)
	if slices.Equal(is, w.asked.prompts) {
		return
	}
	w.asked.open = false
	if !oneMore(w.asked.prompts, is) || !w.sig.composerEmpty {
		return
	}
	w.asked.swift = time.Time{} // another prompt is another turn
	w.setActivity(now, Busy)
	w.setActivity(now, Idle)
	w.asked.swift = now
}

// sameTurn reports whether work that begins to show now is that of the prompt
// whose turn was told of already.
func (w *Watcher) sameTurn(now time.Time) bool {
	swift := w.asked.swift
	w.asked.swift = time.Time{}
	return !swift.IsZero() && now.Sub(swift) < swiftTime
}

// oneMore reports whether is holds one prompt after those of was, of which some
// may have left at the top. A part of what was there is a page that was
// scrolled or wound back.
func oneMore(was, is []uint64) bool {
	if len(is) == 0 || holdsRun(was, is) {
		return false
	}
	old := is[:len(is)-1]
	return len(old) <= len(was) && slices.Equal(was[len(was)-len(old):], old)
}

// holdsRun reports whether part stands somewhere in all, in one piece.
func holdsRun(all, part []uint64) bool {
	for i := 0; i+len(part) <= len(all); i++ {
		if slices.Equal(all[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// prompts appends the sums of the prompts on the page.
func (w *Watcher) prompts(out []uint64) []uint64 {
	for i := range w.blocks {
		b := &w.blocks[i]
		if b.kind() != promptRow || b.to > len(w.lines) {
			continue
		}
		h := fnv.New64a()
		writeWords(h, w.lines[b.from:b.to])
		out = append(out, h.Sum64())
	}
	return out
}
