package shim

import (
	"runtime/debug"
	"sync"
	"time"

	"qshim/shim/internal/door"
)

const (
	// leanStart is when what only the start needed is given back.
	leanStart = time.Second

	// leanFlood is how much output makes it worth while to give memory back
	// again: a flood takes 7 MiB more, of program pages and of buffers.
	leanFlood = 4 << 20

	// leanQuiet is how long an agent that flooded must have shown nothing.
	leanQuiet = 2 * time.Second

	// leanGC is the garbage collector's percentage for a session: its first
	// collection then comes at 2 MiB of new objects, not at 4. During the start
	// none is wanted.
	leanGC = 50
)

// lean gives memory back when a start or a flood is over: a machine runs many
// sessions, most of them idle. It ticks only while a flood goes on.
type lean struct {
	mu    sync.Mutex
	give  func()
	seen  uint64 // bytes of output
	given uint64 // seen when memory was last given back
	timer *time.Timer
	over  bool
}

// newLean begins; give is what gives memory back.
func newLean(give func()) *lean {
	l := &lean{give: give}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(leanStart, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now()
	})
	return l
}

// item counts output that the agent wrote.
func (l *lean) item(it Item) {
	if l == nil || it.Kind > Stderr {
		return
	}
	n := len(it.Data)
	if it.Dropped {
		n += leanFlood + 1 // what was dropped was a flood
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen += uint64(n)
	if l.timer == nil && !l.over && l.seen-l.given > leanFlood {
		l.wait()
	}
}

// wait looks again after a while; the caller holds mu.
func (l *lean) wait() {
	before := l.seen
	l.timer = time.AfterFunc(leanQuiet, func() { l.done(before) })
}

// done gives memory back, unless more was written since before.
func (l *lean) done(before uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen != before && !l.over {
		l.wait()
		return
	}
	l.now()
}

// now gives memory back; the caller holds mu.
func (l *lean) now() {
	if l.over {
		return
	}
	l.timer, l.given = nil, l.seen
	l.give()
}

// end: the session is over, and soon the process.
func (l *lean) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// giveBack gives back what the process does not use now.
func (r *runner) giveBack() {
	r.c.Tap.shrink()
	debug.SetGCPercent(leanGC)
	debug.FreeOSMemory()
	door.Shed()
	r.cold.Store(true)
	r.stir()
}
