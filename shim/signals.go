package shim

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"qshim/shim/internal/proc"
)

// forwarded are the signals that the agent gets as if they had been sent to it.
var forwarded = []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2}

// waker makes the loop's poll return, from any goroutine. Signals are a set:
// which ones came, not how often.
type waker struct {
	r, w    int
	pending atomic.Bool
	sigs    atomic.Uint64
	ch      chan os.Signal
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
	return &waker{r: p[0], w: p[1], ch: make(chan os.Signal, 64), done: make(chan struct{})}, nil
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

// watchSignals must run before the terminal is made raw. A signal that was
// ignored at the start stays so, for us and for the agent (nohup): Notify would
// undo that.
func (w *waker) watchSignals() {
	set := []os.Signal{unix.SIGCHLD, unix.SIGCONT, unix.SIGWINCH}
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			set = append(set, sig)
		}
	}
	if proc.CatchesStop && !signal.Ignored(unix.SIGTSTP) {
		set = append(set, unix.SIGTSTP)
	}
	signal.Notify(w.ch, set...)
	go func() {
		for {
			select {
			case s := <-w.ch:
				w.add(s.(syscall.Signal))
			case <-w.done:
				return
			}
		}
	}()
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
	signal.Stop(w.ch)
	close(w.done)
	// The descriptors stay: a late wake may still write. The process ends soon.
}

func bit(sig syscall.Signal) uint64 { return 1 << uint(sig) }
