package shim

import (
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile/fault"
	"qshim/shim/internal/proc"
)

// What a bug of ours must not do: hold up the agent's bytes, or leave it stopped.
//
//	panic in the loop      -> reported, the agent continued, the loop goes on;
//	                          after mostPanics only bytes are passed (bare)
//	the loop does not come back -> bare, on the watchdog's goroutine
//	panic, stall elsewhere -> runner.guard, runner.stalled

// mostPanics is how many panics of the loop are survived in full.
const mostPanics = 3

// hookWait bounds a hook of the loop: the ledger's lock, and as much again for a
// slow disk. Beyond it the loop goes on without the answer; the hook's goroutine
// ends when the disk does.
const hookWait = 4 * time.Second

// survive runs f; false: it panicked. The agent goes on then, whoever stopped it.
func (s *Session) survive(f func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.panics.Add(1)
			s.LetGo()
			s.told(p)
		}
	}()
	f()
	return true
}

// told tells of a panic; to fail in that is no second one.
func (s *Session) told(p any) {
	defer func() { _ = recover() }() // there is nobody left to tell
	if s.opt.Panicked != nil {
		s.opt.Panicked(p)
	}
}

// LetGo continues the agent whatever state we are in: it waits for no lock.
func (s *Session) LetGo() {
	if s.jobs.TryLock() {
		defer s.jobs.Unlock()
		if !s.jobs.userStop {
			s.letRun(false)
		}
		return
	}
	s.held.Store(false)
	_ = s.child.Continue() // it may have ended
}

// hook calls f, which may touch the disk, and waits for it within bounds.
func hook[T any](s *Session, f func() T) (v T) {
	got := make(chan T, 1)
	go func() {
		defer close(got)
		s.survive(func() { got <- f() })
	}()
	select {
	case v = <-got:
	case <-time.After(hookWait):
	}
	return v
}

// round is one turn, however it ends; false: nothing more is to be done.
func (s *Session) round() bool {
	if s.dispossessed.Load() {
		select {} // the watchdog's goroutine has the session, and ends the process
	}
	if s.panics.Load() > mostPanics {
		if !s.survive(s.bare) && s.panics.Load() > 2*mostPanics {
			return false
		}
		return true
	}
	s.survive(s.turn)
	s.heart.rest()
	return true
}

// stuck takes the session over from a loop that does not come back.
func (s *Session) stuck() {
	s.dispossessed.Store(true)
	s.LetGo()
	s.told(errStalled)
	s.bare()
	if s.user != nil && !s.gone {
		_ = s.user.Restore() // hung up: nothing to restore
	}
	os.Exit(proc.ExitCode(s.status))
}

// bareTick is how often a bare session looks at its agent and its size.
const bareTick = 100 * time.Millisecond

// bare passes bytes and signals until the agent has ended, with no part of the
// loop that could have been the broken one. A terminal that closes, or a
// SIGTERM, ends the agent as ever.
func (s *Session) bare() {
	buf := make([]byte, chunk)
	for !s.ended {
		s.bareSignals()
		keys := s.stdin
		if s.gone {
			keys = -1
		}
		fds := []unix.PollFd{{Fd: int32(keys), Events: unix.POLLIN}} // -1 is passed over
		for _, st := range s.streams {
			fds = append(fds, unix.PollFd{Fd: int32(st.src), Events: unix.POLLIN})
		}
		_, _ = poll(fds, int(bareTick.Milliseconds())) // an error is a round without anything
		for i, st := range s.streams {
			if fds[i+1].Revents != 0 {
				bareCopy(st.dst, st.src, buf)
			}
		}
		if fds[0].Revents&unix.POLLIN != 0 && s.inFD >= 0 {
			bareCopy(s.inFD, s.stdin, buf)
		}
		if s.user != nil && s.master >= 0 {
			s.syncSize()
		}
		s.bareLook()
	}
	for _, st := range s.streams {
		if st.src >= 0 {
			bareCopy(st.dst, st.src, buf)
		}
	}
}

// bareSignals does what signals does, without what may be broken.
func (s *Session) bareSignals() {
	got := s.wake.take()
	for _, sig := range forwarded {
		if got&bit(sig) != 0 && s.pass(sig) {
			_ = s.child.Continue() // it may have ended
		}
	}
	if s.user != nil && !s.gone && !s.user.Alive() {
		s.hangup()
	}
	if s.user == nil && got&bit(unix.SIGTSTP) != 0 {
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP) // the terminal has stopped the agent, and its shell will continue both
	}
}

// bareLook sees the agent's end. Nobody is there any more who could stop qshim
// with an agent that was stopped on a terminal of its own: it goes on.
func (s *Session) bareLook() {
	switch ch := s.child.Poll(); {
	case ch.State == proc.Ended:
		s.ended, s.status, s.endedAt = true, ch.Status, time.Now()
	case ch.State == proc.Stopped && s.user != nil:
		_ = s.child.Continue() // it may have ended
	}
}

// bareCopy moves what there is.
func bareCopy(dst, src int, buf []byte) {
	n, err := unix.Read(src, buf)
	if err != nil || n <= 0 {
		if err == unix.EIO || n == 0 {
			time.Sleep(bareTick) // its other end is gone: the agent's end will be seen
		}
		return
	}
	for b := buf[:n]; len(b) > 0 && dst >= 0; {
		k, err := unix.Write(dst, b)
		if err == unix.EAGAIN {
			waitWritable(dst, time.Now().Add(drainMost))
		} else if err != nil && err != unix.EINTR {
			return
		}
		b = b[max(0, k):]
	}
}

// heart notices work that does not come back. It costs two additions a beat and
// no timer while nothing happens: a look is due only when something began.
type heart struct {
	seq   atomic.Uint64 // odd while at work
	armed atomic.Bool
	seen  uint64 // by the last look; owned by the looks
	stuck func() // runs once, on a goroutine of its own
}

// heartBeat is the time between two looks. Work that spans two of them, 8 to 16
// seconds, is stuck: three updates that each wait for the lock take 6. Two looks,
// because a process that was stopped meanwhile sees its timers fire at once.
var heartBeat = fault.Fast(8 * time.Second)

// begin is called by one goroutine, as rest is.
func (h *heart) begin() {
	h.seq.Add(1)
	if !h.armed.Load() && h.armed.CompareAndSwap(false, true) {
		time.AfterFunc(heartBeat, h.look)
	}
}

func (h *heart) rest() {
	if h.seq.Load()%2 == 1 {
		h.seq.Add(1)
	}
}

// revive lets it look again after it was stuck; false: it is not armed.
func (h *heart) revive() bool { return h.armed.CompareAndSwap(true, false) }

func (h *heart) look() {
	n := h.seq.Load()
	if n%2 == 1 && n == h.seen {
		h.stuck()
		return
	}
	h.seen = n
	if n%2 == 1 {
		time.AfterFunc(heartBeat, h.look)
		return
	}
	h.armed.Store(false)
	// What began between the two lines above has not armed it.
	if h.seq.Load()%2 == 1 && h.armed.CompareAndSwap(false, true) {
		time.AfterFunc(heartBeat, h.look)
	}
}
