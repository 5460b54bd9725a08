package shim

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"qshim/shim/internal/proc"
	"qshim/shim/term"
)

// Job control. The kernel does it in the agent's session (proc.Start says how);
// qshim only mirrors stops that really happened. No key is parsed and no
// terminal setting guessed.

// lookChild asks the kernel about the agent.
func (s *Session) lookChild() {
	ch := s.child.Poll()
	if !ch.Any {
		return
	}
	s.stopped.Store(ch.State == proc.Stopped)
	if ch.State == proc.Ended {
		s.ended, s.status, s.endedAt = true, ch.Status, time.Now()
		s.held.Store(false)
		return
	}
	if ch.Continued && s.held.Load() {
		s.continuedByOthers(ch.State)
	}
	if ch.State == proc.Stopped {
		s.agentStopped(ch.Sig)
	} else {
		s.paused.Store(false)
	}
}

// continuedByOthers: a held agent was continued, not by us (Continue collects
// its own report). That counts as "run anyway" — except without a terminal of
// its own, where our group's SIGCONT (fg) reaches the agent too: see continued.
func (s *Session) continuedByOthers(now proc.State) {
	if s.user == nil && s.wake.sigs.Load()&bit(unix.SIGCONT) != 0 {
		return
	}
	if now == proc.Stopped {
		return // continued and stopped again before we looked: it still is held
	}
	s.held.Store(false)
	s.opt.Tap.event(Item{Kind: RanAnyway})
}

// agentStopped mirrors a stop, if qshim did not order it.
func (s *Session) agentStopped(sig syscall.Signal) {
	// Without a terminal of its own the agent is in our group: what the terminal
	// sent to it, it has sent to us, and following both would stop us once more
	// after fg. Only a SIGSTOP can have been meant for the agent alone.
	shared := s.user == nil && sig != unix.SIGSTOP
	if !s.held.Load() {
		if !shared {
			s.follow(sig)
		}
		return
	}
	s.announcePause()
	if s.user == nil {
		return
	}
	// A user's Ctrl-Z and our stop may have crossed: either order is theirs too.
	if sig != unix.SIGSTOP {
		s.follow(sig)
	} else if proc.PendingStop(s.child.PID()) {
		s.follow(unix.SIGTSTP)
	}
}

// announcePause tells the tap of the pause once everything that the agent wrote
// before it has been shown.
func (s *Session) announcePause() {
	if s.paused.Load() {
		return
	}
	s.drain()
	s.paused.Store(true)
	s.opt.Tap.event(Item{Kind: Paused})
}

// drainMost bounds the wait for a terminal that takes nothing (Ctrl-S).
const drainMost = time.Second

// drain shows what the agent's terminal still holds.
func (s *Session) drain() {
	for end := time.Now().Add(drainMost); time.Now().Before(end); {
		moved := false
		for _, st := range s.streams {
			if len(st.pend) > 0 {
				waitWritable(st.dst, end)
			}
			if st.src >= 0 && !st.down && s.pump(st, true, len(st.pend) > 0) {
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

func waitWritable(fd int, end time.Time) {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	_, _ = poll(fds[:], int(time.Until(end).Milliseconds())) // the caller looks itself
}

// follow stops qshim as the agent was stopped, so that the shell sees its job
// stop. Where no shell would see it (our group is orphaned) nothing is done.
func (s *Session) follow(sig syscall.Signal) {
	if proc.Orphaned() {
		s.opt.Tap.event(Item{Kind: AgentStop})
		return
	}
	if s.toEnd(sig) || s.wentOn() {
		s.wake.add(unix.SIGCHLD) // see signals
		return
	}
	s.suspend(sig)
}

// wentOn reports that the agent's stop is over already: it was continued to get a
// signal that ends it, and nobody would continue us.
func (s *Session) wentOn() bool {
	stopped, known := s.stoppedNow()
	return known && !stopped
}

// endGrace: of two signals that came together, such as a shell's SIGTERM and
// SIGCONT, Go tells on several threads, in any order. The agent has stopped by then:
// only the shell hears later.
const endGrace = 100 * time.Millisecond

// toEnd reports whether a signal that is to end the agent has come, and for a
// stop of a job in the background, which may follow its SIGCONT at once, waits for
// one that came with that.
func (s *Session) toEnd(sig syscall.Signal) bool {
	if sig != unix.SIGTTIN && sig != unix.SIGTTOU {
		return s.wake.sigs.Load()&endings != 0
	}
	fds := [1]unix.PollFd{{Fd: int32(s.wake.r), Events: unix.POLLIN}}
	for end := time.Now().Add(endGrace); s.wake.sigs.Load()&endings == 0 && time.Now().Before(end); s.wake.clear() {
		_, _ = poll(fds[:], int(time.Until(end).Milliseconds())+1) // the loop looks itself
	}
	s.wake.wake() // the bits are still there
	return s.wake.sigs.Load()&endings != 0
}

// askedToStop: somebody sent SIGTSTP to qshim. With a terminal of its own the
// agent gets it instead, and if it stops we follow. Without one the sender was
// the terminal, and the agent has it already.
func (s *Session) askedToStop() {
	switch {
	case s.user == nil:
		s.suspend(unix.SIGTSTP)
	case s.held.Load():
		s.follow(unix.SIGTSTP)
	default:
		_ = s.child.SignalGroup(unix.SIGTSTP) // it may have ended
	}
}

// suspend stops qshim, and returns when it was continued. The order matters:
// siblings must know first, since a stopped shim still holds its lease; output
// must be out before the terminal changes hands; the terminal must be the
// user's again before the shell looks at it.
func (s *Session) suspend(sig syscall.Signal) {
	s.jobs.Lock()
	s.jobs.userStop = true
	held := s.held.Load()
	s.jobs.Unlock()
	var out []byte
	if s.opt.UserSuspend != nil {
		out = hook(s, func() []byte { return s.opt.UserSuspend(held) })
	}
	s.drain()
	s.takeAway()
	s.say(out)
	if s.user != nil && s.fg {
		_ = s.user.Restore() // hung up: the loop will see it
	}
	s.wake.forget(unix.SIGCONT)
	switch {
	case s.user == nil:
		proc.StopSelf(sig, s.awaitContinue)
	case (sig == unix.SIGTTIN || sig == unix.SIGTTOU) && s.user.Foreground():
		// The shell has given us the terminal since the agent asked for it, and
		// believes that we run: stopping now would take the terminal away again.
	default:
		proc.StopGroup(sig, s.awaitContinue)
	}
	s.wake.forget(unix.SIGCONT, unix.SIGTSTP)
	s.resume(held)
}

// stopMost is for the case that the kernel dropped our stop signal, because the
// shell ended in that instant and orphaned us.
const stopMost = time.Second

func (s *Session) awaitContinue() {
	fds := [1]unix.PollFd{{Fd: int32(s.wake.r), Events: unix.POLLIN}}
	for end := time.Now().Add(stopMost); time.Now().Before(end); {
		if s.wake.sigs.Load()&bit(unix.SIGCONT) != 0 {
			return
		}
		if n, _ := poll(fds[:], int(time.Until(end).Milliseconds())+1); n == 1 {
			s.wake.clear()
		}
	}
}

// userAnswer is what UserContinue answers.
type userAnswer struct {
	hold bool
	out  []byte
}

// resume undoes suspend: the terminal first, then the decision whether the
// agent may run, then the agent.
func (s *Session) resume(held bool) {
	s.adoptForeground()
	hold := held
	var out []byte
	if s.opt.UserContinue != nil {
		fg := s.fg
		a := hook(s, func() (a userAnswer) { a.hold, a.out = s.opt.UserContinue(fg, held); return a })
		hold, out = a.hold, a.out
	}
	if s.fg {
		s.say(out)
	}
	s.jobs.Lock()
	s.jobs.userStop = false
	if hold {
		s.held.Store(true)
	} else {
		s.letRun(false) // a Ctrl-Z that crossed our stop is why we were suspended
	}
	s.jobs.Unlock()
	if hold && s.user == nil {
		s.stopAgain()
	}
	s.opt.Tap.event(Item{Kind: UserStop, Held: hold})
	s.wake.add(unix.SIGCHLD) // look what became of it meanwhile
	s.wake.add(unix.SIGWINCH)
}

// continued: qshim got a SIGCONT that did not end a suspension of ours: it was
// stopped by SIGSTOP or by the terminal itself, or is told to go on.
func (s *Session) continued() {
	s.wake.forget(unix.SIGTSTP)
	if s.user != nil {
		s.adoptForeground()
	}
	switch {
	case s.held.Load() && s.user == nil:
		s.stopAgain()
	case !s.held.Load() && s.stopped.Load():
		_ = s.child.Continue() // it may have ended
		s.stopped.Store(s.child.State() == proc.Stopped)
	}
}

// adoptForeground takes the terminal if it is ours now, and leaves it alone if
// it is not: a job in the background touches no settings and reads no keys, and
// then neither does the agent (its own terminal has it in the background too).
func (s *Session) adoptForeground() {
	if s.user == nil || s.gone {
		return
	}
	s.fg = s.user.Foreground()
	if !s.fg {
		s.watchEdges()
		if !s.taken && s.child.HasPair() {
			s.inner, s.taken = s.innerGroup(), true
			s.child.Background()
		}
		return
	}
	if s.edges != nil {
		s.poll.forget(s.edges.fd)
		s.edges.close()
		s.edges = nil
	}
	_ = s.user.MakeRaw() // hung up: the loop will see it
	s.syncSize()
	s.adoptSettings()
	if s.taken {
		s.taken = false
		s.child.Foreground(s.inner)
	}
}

// adoptSettings gives the agent's terminal the user's settings again, the first
// time that we are in the foreground: a job that starts in the background finds
// the terminal as the shell's line editor has it.
func (s *Session) adoptSettings() {
	first := s.firstSettings
	s.firstSettings = nil
	if first == nil {
		return
	}
	if now, err := term.State(s.master); err == nil && now == *first {
		saved := s.user.Saved()
		_ = term.SetState(s.master, &saved) // as at the start
	}
}

// innerGroup is the foreground group of the agent's terminal; 0 if not known.
func (s *Session) innerGroup() int {
	pgrp, err := unix.IoctlGetInt(s.master, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return pgrp
}

// lookForeground notices a job that changed places without a signal: bash and
// zsh send no SIGCONT when fg takes a running background job.
func (s *Session) lookForeground() {
	if s.user == nil || s.gone || s.user.Foreground() == s.fg {
		return
	}
	s.adoptForeground()
	if s.fg && !s.held.Load() && s.stopped.Load() {
		_ = s.child.Continue() // it may have ended
		s.stopped.Store(s.child.State() == proc.Stopped)
	}
}

func (s *Session) watchEdges() {
	if s.edges != nil {
		return
	}
	if w, err := newEdgeWatch(s.user.FD()); err == nil {
		s.edges = w
	}
}

// say writes to the user's terminal, when nothing of the agent's is on its way.
func (s *Session) say(b []byte) {
	if len(b) == 0 || s.user == nil || s.gone || !s.fg {
		return
	}
	for end := time.Now().Add(drainMost); len(b) > 0 && time.Now().Before(end); {
		n, err := unix.Write(s.streams[0].dst, b)
		if err == unix.EAGAIN {
			waitWritable(s.streams[0].dst, end)
		} else if err != nil && err != unix.EINTR {
			return
		}
		b = b[max(0, n):]
	}
}
