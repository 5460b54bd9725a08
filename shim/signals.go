package shim

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"qshim/shim/internal/proc"
)

// forwarded are the signals that the agent gets as if they had been sent to it.
var forwarded = []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2}

// endings are those of them that are meant to end it.
var endings = bit(unix.SIGHUP) | bit(unix.SIGINT) | bit(unix.SIGQUIT) | bit(unix.SIGTERM)

// waker makes the loop's poll return, from any goroutine. Signals are a set:
// which ones came, not how often.
type waker struct {
	r, w    int
	pending atomic.Bool
	sigs    atomic.Uint64
	caught  *Caught
	own     bool // caught is
	done    chan struct{}
}

func newWaker() (*waker, error) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return nil, err
	}
	for _, fd := range p {
		unix.CloseOnExec(fd)
		_ = unix.SetNonblock(fd, true) // a pipe of ours: it cannot fail
	}
	return &waker{r: p[0], w: p[1], done: make(chan struct{})}, nil
}

// Caught are the signals that a session wants, caught before it starts. To ask
// for one costs two changes of thread, for ten of them more time than all else
// that a start waits for; so it is done beside the rest of the start, and an
// agent starts as soon as those are caught that would end us. What the others
// would have told in that millisecond is looked up when they are (see
// watchSignals); a USR1 or USR2 would have met an agent that is not there yet.
type Caught struct {
	ch       chan os.Signal
	ready    chan struct{} // closed when those are caught that would end us
	all      chan struct{} // closed when all are
	released bool
}

// CatchSignals begins to catch. What comes before the session starts is the
// agent's as soon as it runs. A signal that was ignored stays so, for us and
// for the agent (nohup): to be notified of it would undo that.
func CatchSignals() *Caught {
	c := &Caught{ch: make(chan os.Signal, 64), ready: make(chan struct{}), all: make(chan struct{})}
	var first []os.Signal
	rest := []os.Signal{unix.SIGCHLD, unix.SIGCONT, unix.SIGWINCH}
	for _, sig := range forwarded {
		switch {
		case signal.Ignored(sig):
		case sig == unix.SIGUSR1 || sig == unix.SIGUSR2: // Go lets nobody die of them
			rest = append(rest, sig)
		default:
			first = append(first, sig)
		}
	}
	if proc.CatchesStop && !signal.Ignored(unix.SIGTSTP) {
		rest = append(rest, unix.SIGTSTP)
	}
	go func() {
		if len(first) > 0 { // none would mean every signal there is
			signal.Notify(c.ch, first...)
		}
		close(c.ready)
		signal.Notify(c.ch, rest...)
		close(c.all)
	}()
	return c
}

// Release catches no more, because there will be no session or it has to wait.
// What came meanwhile comes again, for whoever is there.
func (c *Caught) Release() {
	if c == nil || c.released {
		return
	}
	<-c.all
	c.released = true
	signal.Stop(c.ch)
	for {
		select {
		case s := <-c.ch:
			if s != unix.SIGCHLD {
				_ = unix.Kill(os.Getpid(), s.(syscall.Signal)) // ourselves: we may
			}
		default:
			return
		}
	}
}

// wake makes poll return once.
func (w *waker) wake() {
	if w.pending.CompareAndSwap(false, true) {
		_, _ = writeNow(w.w, []byte{0}) // full: then it wakes anyway
	}
}

// clear is called by the loop before it looks at what woke it.
func (w *waker) clear() {
	var b [16]byte
	_, _ = readNow(w.r, b[:])
	w.pending.Store(false)
}

// watchSignals must run before the terminal is made raw. The signals of caught
// stay caught after the session, since the process ends with it; nil: they are
// the session's own.
func (w *waker) watchSignals(caught *Caught) {
	w.caught = caught
	if caught == nil || caught.released {
		w.caught = CatchSignals()
		w.own = true
	}
	<-w.caught.ready
	go func() {
		all := w.caught.all
		for {
			select {
			case s := <-w.caught.ch:
				w.add(s.(syscall.Signal))
			case <-all: // a child that ended before, a terminal that was resized
				all = nil
				w.add(unix.SIGCHLD)
				w.add(unix.SIGWINCH)
			case <-w.done:
				return
			}
		}
	}()
}

// putOff lets the loop hear only after d that children stopped or continued.
func (w *waker) putOff(d time.Duration) {
	if d <= 0 {
		return
	}
	news := proc.HushStops()
	time.AfterFunc(d, func() {
		news()
		w.add(unix.SIGCHLD)
	})
}

func (w *waker) add(sig syscall.Signal) {
	w.sigs.Or(bit(sig))
	w.wake()
}

// take returns the signals that came and forgets them.
func (w *waker) take() uint64 { return w.sigs.Swap(0) }

// forget drops signals that came and were not looked at.
func (w *waker) forget(sigs ...syscall.Signal) {
	for _, s := range sigs {
		w.sigs.And(^bit(s))
	}
}

func (w *waker) close() {
	if w.own {
		signal.Stop(w.caught.ch)
	}
	close(w.done)
	// The descriptors stay: a late wake may still write. The process ends soon.
}

func bit(sig syscall.Signal) uint64 { return 1 << uint(sig) }
