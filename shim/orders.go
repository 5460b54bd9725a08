package shim

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
	"qshim/lockfile/fault"
	"qshim/shim/internal/proc"
)

// Errors of the orders.
var (
	// ErrUserStopped: the user has suspended the session; ask again when the
	// tap says UserStop.
	ErrUserStopped = errors.New("the user has suspended this session")
	// ErrEnded: the agent has ended.
	ErrEnded = errors.New("the agent has ended")
)

// PID is the agent's process id.
func (s *Session) PID() int { return s.child.PID() }

// Identity names the agent for the ledger: its process, with Group the leader of a
// group of its own.
func (s *Session) Identity() lockfile.Stopped { return lockfile.Stopped(s.child.Target()) }

// OnTerminal reports whether the agent has a terminal of its own.
func (s *Session) OnTerminal() bool { return s.user != nil }

// Size is the terminal's size when the session began; later ones come as Resized.
func (s *Session) Size() (cols, rows int) { return s.firstCols, s.firstRows }

// Held reports whether qshim ordered the agent to stop. It says nothing about
// whether it did: see Stopped.
func (s *Session) Held() bool { return s.held.Load() }

// Stopped reports whether the kernel says that the agent is stopped, by whomever.
func (s *Session) Stopped() bool { return s.stopped.Load() }

// Suspend stops the agent: its process group, or, where it shares ours, it and
// its descendants in the group, one by one. Options.BeforeStop hears first what
// will be stopped, and its error means that nothing is. From the return on,
// keys go to the tap. The tap says Paused when the stop has taken effect, but not
// within aside: what follows then may wait so long. It is no error if the agent is
// held already.
func (s *Session) Suspend(aside time.Duration) error {
	s.jobs.Lock()
	err := s.mayStop()
	s.jobs.Unlock()
	if err != nil || s.held.Load() {
		return err
	}
	s.wake.putOff(aside) // now: the kernel's SIGCHLD comes with the stop
	if s.user == nil {
		err = s.stopTree()
	} else {
		err = s.stopGroup()
	}
	if aside <= 0 {
		s.wake.add(unix.SIGCHLD)
	}
	return err
}

// mayStop must be called with jobs held, which is never held while the ledger
// is told: a disk that hangs must not hang the loop, which takes it too.
func (s *Session) mayStop() error {
	switch {
	case s.jobs.userStop:
		return ErrUserStopped
	case s.child.State() == proc.Ended:
		return ErrEnded
	}
	return nil
}

// stopGroup stops an agent on a terminal of its own.
func (s *Session) stopGroup() error {
	t := s.child.Target()
	if err := s.announce([]proc.Target{t}); err != nil {
		return err
	}
	s.jobs.Lock()
	defer s.jobs.Unlock()
	if err := s.mayStop(); err != nil {
		return err // on the record, but not done: the next decision clears it
	}
	s.jobs.targets = []proc.Target{t}
	s.held.Store(true)
	fault.At("SIGSTOP")
	_ = s.child.SignalGroup(unix.SIGSTOP) // ended meanwhile: the tap will say so
	fault.At("SIGSTOP sent")
	return nil
}

// stopRounds bounds stopTree. A stopped parent forks no more, so a second round
// that finds nobody new is the rule.
const stopRounds = 5

// stopTree stops an agent that shares our process group. What its processes
// forked while we stopped them is found in the next round.
func (s *Session) stopTree() error {
	known := map[proc.Target]bool{}
	for range stopRounds {
		var fresh []proc.Target
		for _, t := range proc.Tree(s.child.PID(), unix.Getpgrp()) {
			if !known[t] {
				fresh = append(fresh, t)
			}
		}
		if len(fresh) == 0 {
			return nil
		}
		s.jobs.Lock()
		all := append(slices.Clone(fresh), s.jobs.targets...)
		s.jobs.Unlock()
		if err := s.announce(all); err != nil {
			return err
		}
		if err := s.stopThese(fresh); err != nil {
			return err
		}
		for _, t := range fresh {
			known[t] = true
		}
	}
	return nil
}

func (s *Session) stopThese(fresh []proc.Target) error {
	s.jobs.Lock()
	defer s.jobs.Unlock()
	if err := s.mayStop(); err != nil {
		return err
	}
	s.held.Store(true)
	for _, t := range fresh {
		fault.At("SIGSTOP")
		_ = t.Signal(unix.SIGSTOP) // ended meanwhile
		fault.At("SIGSTOP sent")
	}
	s.jobs.targets = append(s.jobs.targets, fresh...)
	return nil
}

func (s *Session) announce(targets []proc.Target) error {
	if s.opt.BeforeStop == nil {
		return nil
	}
	list := make([]lockfile.Stopped, len(targets))
	for i, t := range targets {
		list[i] = lockfile.Stopped(t)
	}
	return s.opt.BeforeStop(list)
}

// stopAgain stops what a SIGCONT to our whole group has continued. Most of it
// is in the ledger already.
func (s *Session) stopAgain() {
	s.jobs.Lock()
	none := len(s.jobs.targets) == 0
	if !none {
		s.stopTargets()
	}
	s.jobs.Unlock()
	if none {
		// The ledger refuses: it runs, and the next decision tries again.
		hook(s, s.stopTree)
	}
}

// Continue lets a held agent run. An overlay is taken away first. It is no
// error if the agent is not held.
func (s *Session) Continue() error {
	s.jobs.Lock()
	defer s.jobs.Unlock()
	if s.jobs.userStop {
		return ErrUserStopped
	}
	if !s.held.Load() {
		return nil
	}
	s.letRun(true)
	s.opt.Tap.event(Item{Kind: Resumed})
	return nil
}

// nudgeTime is enough for an agent to finish the write that our stop cut in two:
// a terminal's buffer is 4 KiB, a frame seldom over 100 KiB.
const nudgeTime = 20 * time.Millisecond

// Nudge lets a held agent run for a moment (20 ms) and stops it again, for a
// pause that began in the middle of a sequence or of a synchronised update. The
// tap says Paused once more. The agent is held all the while, so its keys are
// still ours.
func (s *Session) Nudge() {
	s.jobs.Lock()
	defer s.jobs.Unlock()
	if s.jobs.userStop || !s.held.Load() || !s.paused.Swap(false) {
		return
	}
	s.stopped.Store(false)
	_ = s.child.Continue() // ended meanwhile: the loop will see it
	time.AfterFunc(nudgeTime, func() {
		s.jobs.Lock()
		defer s.jobs.Unlock()
		if s.held.Load() && !s.jobs.userStop {
			s.stopTargets()
		}
	})
}

// stopTargets stops what is held. It must be called with jobs held.
func (s *Session) stopTargets() {
	if s.user != nil {
		_ = s.child.SignalGroup(unix.SIGSTOP) // ended meanwhile
	}
	for _, t := range s.jobs.targets {
		if s.user == nil {
			_ = t.Signal(unix.SIGSTOP) // ended meanwhile
		}
	}
	s.wake.add(unix.SIGCHLD)
}

// letRun must be called with jobs held. A user's Ctrl-Z that crossed our stop
// waits behind it, and SIGCONT would discard it: with keep it is sent again.
func (s *Session) letRun(keep bool) {
	crossed := keep && s.user != nil && proc.PendingStop(s.child.PID())
	s.held.Store(false)
	s.paused.Store(false)
	s.stopped.Store(false)
	for i := len(s.jobs.targets) - 1; i >= 0; i-- { // children first: a parent may look at them at once
		if t := s.jobs.targets[i]; t.PID != s.child.PID() {
			fault.At("SIGCONT")
			_ = t.Signal(unix.SIGCONT) // ended meanwhile
		}
	}
	s.jobs.targets = nil
	fault.At("SIGCONT")
	_ = s.child.Continue() // ended meanwhile: the loop will see it
	fault.At("SIGCONT sent")
	if crossed {
		_ = s.child.SignalGroup(unix.SIGTSTP)
	}
	s.wake.add(unix.SIGCHLD)
}

// release lets the agent run, held or not, for a signal that is to end it.
func (s *Session) release() {
	s.jobs.Lock()
	defer s.jobs.Unlock()
	s.letRun(false)
}

// End ends the agent: with SIGTERM as one to qshim would, else by the signal
// itself. A held agent is continued, so that it can act on it.
func (s *Session) End(sig syscall.Signal) {
	if sig == unix.SIGTERM {
		s.wake.add(unix.SIGTERM)
		return
	}
	_ = s.child.Signal(sig) // it may have ended just now
	s.release()
}

// SuspendByUser does what Ctrl-Z does, for a user whose key the held agent did
// not get: qshim stops itself and leaves the agent stopped. Without a shell to
// return to nothing happens.
func (s *Session) SuspendByUser() { s.order(func() { s.orders.suspend = true }) }

// Overlay writes paint to the user's terminal while the agent is held and
// stopped, and remembers undo, which is written before anything else of the
// agent's reaches the user, whoever continues it. A later Overlay replaces both.
// Both must leave the terminal's cursor, pen and modes as they were. It is
// dropped, undo and all, unless the session is paused.
func (s *Session) Overlay(paint, undo []byte) {
	s.order(func() { s.orders.overlay = append(s.orders.overlay, overlay{paint, undo}) })
}

// Insert writes b, a complete sequence that shows nothing (a title, a
// notification), between two sequences of the agent: only if exactly total
// bytes of its output have been shown, which the caller has seen to end between
// sequences (Item.Total). Otherwise it is dropped and the tap says Missed.
func (s *Session) Insert(total uint64, b []byte) {
	s.order(func() { s.orders.insert = append(s.orders.insert, insertion{total, b}) })
}

type overlay struct{ paint, undo []byte }

type insertion struct {
	total uint64
	b     []byte
}

func (s *Session) order(set func()) {
	s.orders.Lock()
	set()
	s.orders.Unlock()
	s.orders.any.Store(true)
	s.wake.wake()
}

// obey carries out what was ordered, on the loop's goroutine.
func (s *Session) obey() {
	if !s.orders.any.Swap(false) {
		return
	}
	s.orders.Lock()
	overlays, inserts, typed, suspend := s.orders.overlay, s.orders.insert, s.orders.typed, s.orders.suspend
	s.orders.overlay, s.orders.insert, s.orders.typed, s.orders.suspend = nil, nil, nil, false
	s.orders.Unlock()
	for _, o := range overlays {
		if s.paused.Load() && s.held.Load() {
			s.say(o.paint)
			s.undo = o.undo
			if bytes.Contains(o.paint, askCursor) {
				s.report.expect()
			}
		}
	}
	for _, in := range inserts {
		if s.user != nil && in.total == s.total && len(s.streams[0].pend) == 0 {
			s.say(in.b)
		} else {
			s.opt.Tap.event(Item{Kind: Missed})
		}
	}
	for _, b := range typed {
		s.typeNow(b)
	}
	if suspend && s.held.Load() && s.user != nil {
		s.follow(unix.SIGTSTP)
	}
}

// takeAway undoes the overlay.
func (s *Session) takeAway() {
	if len(s.undo) == 0 {
		return
	}
	undo := s.undo
	s.undo = nil
	s.say(undo)
}

// GoesOn reports that the agent of a session that is on the record as suspended
// runs all the same: its shim has continued it and could not say so, on a full
// disk for example.
func GoesOn(s lockfile.Session) bool {
	if s.State != lockfile.Suspended || s.ChildPID == 0 {
		return false
	}
	stopped, known := proc.IsStopped(s.ChildPID, s.ChildStart)
	return known && !stopped
}

// ContinueOrphan sends SIGCONT to what a session has recorded as stopped, if
// it is still the same process. It is for sessions whose shim has died. What is
// gone needs nothing, and is no error.
func ContinueOrphan(t lockfile.Stopped) error {
	if err := proc.Target(t).Signal(unix.SIGCONT); !errors.Is(err, proc.ErrGone) {
		return err
	}
	return nil
}
