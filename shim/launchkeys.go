package shim

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
	"qshim/shim/internal/proc"
	"qshim/shim/term"
)

// OnTerminal is Await with the keyboard where there is one: standard input and
// standard error are terminals and qshim is in the foreground. It returns the
// signal that ended the wait: with Terminated, or, with Abandoned, SIGINT for Ctrl-C.
//
// The wait is an ordinary job: Ctrl-Z stops qshim, fg brings the line back.
func (w *LaunchWait) OnTerminal(ctx context.Context) (Verdict, syscall.Signal) {
	if !w.Again {
		if v, done := w.First(ctx); done {
			return v, 0
		}
	}
	w.Caught.Release()
	ctx, cancel := context.WithCancel(ctx)
	sigs := make(chan os.Signal, 4)
	watch := []os.Signal{unix.SIGTERM}
	for _, s := range []syscall.Signal{unix.SIGHUP, unix.SIGINT} {
		if !signal.Ignored(s) { // nohup: stays ignored
			watch = append(watch, s)
		}
	}
	k := openKeyboard()
	if k != nil {
		defer k.close()
		w.Keys, w.Cols = k, k.cols
		watch = append(watch, unix.SIGTSTP, unix.SIGCONT)
	}
	signal.Notify(sigs, watch...)
	var last atomic.Int32
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-sigs:
				if s == unix.SIGTSTP {
					w.stopJob(ctx, k, sigs)
				} else if !k.take(s) {
					last.Store(int32(s.(syscall.Signal)))
					cancel()
				}
			}
		}
	})
	v := w.Await(ctx)
	cancel()
	ended.Wait()
	v = w.late(v, k, sigs, &last)
	if v == Abandoned && k != nil && k.interrupted.Load() {
		return v, unix.SIGINT
	}
	return v, syscall.Signal(last.Load())
}

// late ends the catching of signals. One that came while the launch was being
// decided ends it all the same: the agent was not there to get it, and would run
// on a terminal that has closed.
func (w *LaunchWait) late(v Verdict, k *keyboard, sigs chan os.Signal, last *atomic.Int32) Verdict {
	signal.Stop(sigs)
	for more := true; more; {
		select {
		case s := <-sigs:
			if s != unix.SIGTSTP && !k.take(s) {
				last.Store(int32(s.(syscall.Signal)))
			}
		default:
			more = false
		}
	}
	if v == Launch && last.Load() != 0 {
		return w.end(Terminated)
	}
	return v
}

// keyboard reads single keys from the user's terminal during a launch wait.
type keyboard struct {
	t           *term.Terminal
	keys        chan byte
	more        chan struct{} // the next key is wanted
	interrupts  chan struct{}
	resumed     chan struct{}
	foreground  atomic.Bool
	interrupted atomic.Bool   // there was a Ctrl-C
	stop        [2]*os.File   // a pipe: closing its writing end wakes the reader …
	closed      chan struct{} // … and so does this
	done        chan struct{} // the reader has ended
}

func (k *keyboard) Keys() <-chan byte           { return k.keys }
func (k *keyboard) More()                       { poke(k.more) }
func (k *keyboard) Interrupts() <-chan struct{} { return k.interrupts }
func (k *keyboard) Resumed() <-chan struct{}    { return k.resumed }

func openKeyboard() *keyboard {
	if !term.IsTerminal(0) || !term.IsTerminal(2) {
		return nil
	}
	t, err := term.Open(0)
	if err != nil {
		return nil
	}
	k := &keyboard{t: t, keys: make(chan byte), more: make(chan struct{}, 1), interrupts: make(chan struct{}, 1), resumed: make(chan struct{}, 1),
		closed: make(chan struct{}), done: make(chan struct{})}
	if k.stop[0], k.stop[1], err = os.Pipe(); err != nil {
		_ = t.Close()
		return nil
	}
	if !t.Foreground() || t.MakeCbreak() != nil {
		_, _, _ = k.stop[0].Close(), k.stop[1].Close(), t.Close()
		return nil
	}
	k.foreground.Store(true)
	go k.read()
	return k
}

// read ends when stop's writing end is closed. What is typed ahead stays in the
// terminal: it takes one key, and the next only after More.
func (k *keyboard) read() {
	defer close(k.done)
	for {
		wait := -1
		if !k.foreground.Load() {
			wait = int(time.Second.Milliseconds()) // back in the foreground without a SIGCONT
		}
		switch k.poll(wait, k.foreground.Load()) {
		case pollStopped:
			return
		case pollNothing:
			k.look()
			continue
		}
		var b [1]byte
		n, err := unix.Read(k.t.FD(), b[:])
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			k.foreground.Store(false) // hung up, or moved to the background between poll and read
			continue
		}
		if !k.give(b[0]) {
			return
		}
	}
}

// polled is what a poll found.
type polled int

const (
	pollNothing polled = iota
	pollKey            // the terminal has a key
	pollStopped        // close was called
)

// poll waits for milliseconds, -1 for ever.
func (k *keyboard) poll(wait int, terminal bool) polled {
	fds := []unix.PollFd{{Fd: int32(k.stop[0].Fd()), Events: unix.POLLIN}}
	if terminal {
		fds = append(fds, unix.PollFd{Fd: int32(k.t.FD()), Events: unix.POLLIN})
	}
	for {
		_, err := unix.Poll(fds, wait)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || fds[0].Revents != 0:
			return pollStopped
		case terminal && fds[1].Revents != 0:
			return pollKey
		}
		return pollNothing
	}
}

// give hands a key over and waits until the next is wanted. False: close was called.
func (k *keyboard) give(b byte) bool {
	select {
	case k.keys <- b:
	case <-k.closed:
		return false
	}
	select {
	case <-k.more:
		return true
	case <-k.closed:
		return false
	}
}

// look takes the terminal again when qshim is back in the foreground.
func (k *keyboard) look() {
	if k.t.Foreground() && !k.foreground.Load() {
		if k.t.MakeCbreak() == nil {
			k.foreground.Store(true)
		}
		poke(k.resumed)
	}
}

// stopJob is Ctrl-Z: the whole job stops, as the terminal's own would make it.
// Siblings must not elect a launch that sleeps, nor may it take the ledger's
// lock into its sleep. Where no shell could continue us nothing happens.
func (w *LaunchWait) stopJob(ctx context.Context, k *keyboard, sigs chan os.Signal) {
	if proc.Orphaned() {
		return
	}
	w.setUserStopped(true)
	awake := w.Store.Still()
	if k.foreground.Swap(false) {
		_ = k.t.Restore() // hung up meanwhile: nothing to restore
	}
	_ = unix.Kill(0, unix.SIGSTOP)
	awaitCont(ctx, sigs)
	k.look()
	awake()
	w.setUserStopped(false)
}

// awaitCont returns when we have been continued. kill(2) returns before the stop
// takes effect on every thread: one that went on at once could take the
// ledger's lock and be stopped with it (seen under the race detector). Other
// signals keep their place.
func awaitCont(ctx context.Context, sigs chan os.Signal) {
	var others []os.Signal
	for waiting := true; waiting; {
		select {
		case <-ctx.Done():
			waiting = false
		case s := <-sigs:
			if waiting = s != unix.SIGCONT; waiting {
				others = append(others, s)
			}
		}
	}
	for _, s := range others {
		select {
		case sigs <- s:
		default: // as many of the same are waiting
		}
	}
}

func (w *LaunchWait) setUserStopped(on bool) {
	ctx, cancel := context.WithTimeout(context.Background(), lockfile.LockWait)
	defer cancel()
	_, _ = w.Store.UpdateOwn(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) { // Await says what is wrong with it
		if s, ok := l.Sessions[w.Self]; ok {
			s.UserStopped = on
			l.Sessions[w.Self] = s
		}
		return l, nil
	})
}

// take handles a signal of the launch wait. False: it ends the wait.
func (k *keyboard) take(s os.Signal) bool {
	if k == nil {
		return false
	}
	switch s {
	case unix.SIGINT:
		k.interrupted.Store(true)
		poke(k.interrupts)
	case unix.SIGCONT:
		k.look()
	default:
		return false
	}
	return true
}

func (k *keyboard) cols() int {
	ws, err := k.t.Size()
	if err != nil {
		return 0
	}
	return int(ws.Col)
}

func (k *keyboard) close() {
	close(k.closed)
	_ = k.stop[1].Close()
	<-k.done
	_ = k.stop[0].Close()
	if k.foreground.Load() {
		_ = k.t.Restore() // hung up meanwhile: nothing to restore
	}
	_ = k.t.Close()
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
