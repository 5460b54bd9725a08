// Package shim wires one session: one agent between its user and the rooms that
// watch it.
//
//	 user's terminal ──keys──► in queue ──► master ─┐
//	        ▲                     │                 │ pseudo terminal
//	        │ bytes first         └─(held)─► tap    │ of the agent
//	        └──────── stream ◄──────────── master ◄─┘
//	                    └─► tap ─► detect, policies (the caller's goroutine)
//
//	signals ─► waker ─► loop ─► forwarded to the agent | size | stop and continue
//	orders (Suspend, Continue, Overlay, …) ─► agent, waker ─► loop
//
// Without two terminals on 0 and 1 there is no pseudo terminal: stdin is the
// caller's own descriptor, a piped stdout or stderr is a pipe of ours and a
// stream; the loop is the same.
//
// One goroutine runs the loop: a poll(2) over at most six descriptors. It never
// waits for anything but that poll, takes no lock that anybody holds while
// waiting, and hands everything to the tap after the user has it.
package shim

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
	"qshim/lockfile/fault"
	"qshim/shim/internal/proc"
	"qshim/shim/term"
)

// Options say what to run and who wants to know. The hooks run on the loop's
// goroutine unless it says otherwise, while the agent is stopped: they may take
// the ledger's lock (2 s at most) but must not wait for the session.
type Options struct {
	Path    string   // file to execute
	Argv    []string // the agent's arguments, its own name first
	Env     []string
	Streams bool   // the profile has rules for piped output: watch it on pipes of ours, and in files
	Errors  bool   // with a terminal: watch a stderr that is none
	Tap     *Tap   // told everything; nil: nobody watches
	Spool   *Spool // without a terminal: keeps standard output; nil: it goes to the user as it comes
	Feed    *Feed  // without a terminal: gives standard input; nil: the agent has the caller's own

	// BeforeStop is called in Suspend, on its caller's goroutine, before
	// anything is stopped: the ledger must know first. An error means no stop.
	BeforeStop func(targets []lockfile.Stopped) error

	// UserSuspend is called before qshim stops itself because the user
	// suspended the agent. held: qshim had stopped the agent before, so the
	// agent could not put its modes off; out is written to the terminal last.
	UserSuspend func(held bool) (out []byte)

	// UserContinue is called when the user has continued qshim, before the
	// agent is. hold: the agent stays stopped and counts as held. out is
	// written first, only in the foreground. nil: held stays as it was.
	UserContinue func(foreground, held bool) (hold bool, out []byte)

	// Caught are the signals that were caught before, for the last session of
	// the process; nil: the session catches its own.
	Caught *Caught

	// Farewell is called when the agent has ended and the tap has had the last
	// item. out is written before the terminal's settings are restored: what
	// puts off the modes that the agent left on.
	Farewell func(code int) (out []byte)

	// Panicked is told of a panic in the loop, which goes on. nil: nobody is.
	Panicked func(p any)
}

// StartError is why the agent could not be started; Code is what a shell would
// exit with: 127 not found, 126 found but not executable.
type StartError struct {
	Path string
	Err  error
	Code int
}

func (e *StartError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// Session is one running agent.
type Session struct {
	opt   Options
	child *proc.Child
	wake  *waker
	user  *term.Terminal // nil without a pseudo terminal
	stdin int            // what the user's keys are read from, -1 none

	master  int // -1 none
	streams []*stream
	input   inputQueue
	inFD    int // where the input queue goes
	size    unix.Winsize
	fg      bool // our group is in the terminal's foreground
	edges   *edgeWatch
	files   [Stderr + 1]fileID // read beside the agent, by kind
	changes *fileWatch         // of them; nil: none, or nobody tells
	inner   int                // the agent's terminal's foreground group before we took it
	taken   bool               // we took it
	gone    bool               // the user's terminal has hung up
	hungUp  bool               // SIGHUP was passed on
	ended   bool
	status  unix.WaitStatus
	endedAt time.Time
	flood   time.Time // when the tap's flood must be settled; zero none
	owed    bool      // the tap's reader must still be woken
	total   uint64    // bytes of terminal output shown
	undo    []byte    // takes the overlay away
	report  reportEater
	fds     []unix.PollFd
	poll    *poller
	keys    []byte // read buffer of the user's keys
	lastKey byte   // the last that the agent got
	brisk   int    // so many rounds may wait in the call: a key was passed on, and its echo is near

	firstCols, firstRows int
	firstSettings        *unix.Termios // of the agent's terminal, when it started in the background

	heart        heart // of the loop
	panics       atomic.Int32
	dispossessed atomic.Bool // the loop is stuck, and the watchdog has the session
	armed        atomic.Bool // a key of the user's matters: see Arm
	disturbed    atomic.Bool // there was one
	armedKeys    term.Keys

	held    atomic.Bool // qshim ordered the stop
	stopped atomic.Bool // wait4 says so
	paused  atomic.Bool // held, stopped, all output shown, and the tap knows
	jobs    struct {    // serialises stopping and continuing
		sync.Mutex
		userStop bool // the user has suspended us, or is just doing so
		targets  []proc.Target
	}
	orders struct {
		any atomic.Bool
		sync.Mutex
		overlay []overlay
		insert  []insertion
		typed   [][]byte
		suspend bool
	}
}

// Start starts the agent and returns at once; Run does the rest.
func Start(opt Options) (*Session, error) {
	s := &Session{opt: opt, stdin: -1, master: -1, fg: true, inFD: -1, keys: make([]byte, 4096)}
	s.heart.stuck = s.stuck
	var err error
	if s.wake, err = newWaker(); err != nil {
		return nil, err
	}
	if term.IsTerminal(0) && term.IsTerminal(1) {
		err = s.startOnTerminal()
	} else {
		err = s.startOnPipes()
	}
	if err != nil {
		s.wake.close()
		return nil, startError(opt.Path, err)
	}
	return s, nil
}

// exec starts the agent, and not before the signals are caught that would end
// us: what comes from then on is the agent's, and a terminal that is raw is left
// as it was.
func (s *Session) exec(spec proc.Spec) (err error) {
	s.wake.watchSignals(s.opt.Caught)
	s.child, err = proc.Start(spec)
	return err
}

func startError(path string, err error) error {
	code := 126
	if errors.Is(err, unix.ENOENT) {
		code = 127
		if _, statErr := os.Stat(path); statErr == nil { // a script whose interpreter is missing
			code = 126
		}
	}
	return &StartError{Path: path, Err: err, Code: code}
}

// startOnTerminal gives the agent a terminal of its own that looks like the
// user's.
func (s *Session) startOnTerminal() error {
	user, err := term.Open(0)
	if err != nil {
		return err
	}
	s.user, s.stdin = user, user.FD()
	master, slave, err := term.OpenPTY()
	if err != nil {
		return errors.Join(err, user.Close())
	}
	saved := user.Saved()
	_ = term.SetState(slave, &saved) // a terminal that takes not every bit is still a terminal
	s.size, _ = user.Size()
	s.firstCols, s.firstRows = int(s.size.Col), int(s.size.Row)
	_ = term.SetSize(slave, s.size) // 0x0 where the user's has no size either
	s.fg = user.Foreground()
	files := [3]uintptr{uintptr(slave), uintptr(slave), uintptr(slave)}
	var ends pipeEnds
	defer ends.close()
	if !term.IsTerminal(2) {
		files[2] = 2
		if s.opt.Errors && isPipe(2) {
			if _, err := s.ownPipe(2, &files, &ends); err != nil {
				return errors.Join(err, unix.Close(slave), unix.Close(master), user.Close())
			}
		} else if s.opt.Errors {
			s.readFiles(files, 2)
		}
	}
	err = s.exec(proc.Spec{
		Path: s.opt.Path, Argv: s.opt.Argv, Env: s.opt.Env, Files: files, Terminal: true,
		Pair: proc.CanPair() && !proc.Orphaned(), Background: !s.fg,
	})
	_ = unix.Close(slave) // the agent has its own; ours would keep the terminal from ending
	if err != nil {
		_ = unix.Close(master)
		return errors.Join(err, s.closeStreams(), user.Close())
	}
	s.master, s.inFD = master, master
	s.poll = newPoller()
	s.streams = append([]*stream{s.newOutput(master)}, s.streams...) // the terminal is the first
	s.taken = !s.fg && s.child.HasPair()
	if s.fg {
		_ = user.MakeRaw() // hung up meanwhile: the loop will see it
		s.syncSize()
	} else {
		s.watchEdges()
		if now, err := term.State(master); err == nil {
			s.firstSettings = &now
		}
	}
	return nil
}

// newOutput is the stream to the terminal behind 1, by our own open file, which
// does if it is the one behind 0.
func (s *Session) newOutput(master int) *stream {
	st := newStream(Output, master, 1, true)
	out := s.user
	if !term.Same(0, 1) {
		var err error
		if out, err = term.Open(1); err != nil {
			return st
		}
	}
	st.dst = out.FD()
	if out.Own() {
		st.dstKind = dstOurs
	}
	return st
}

// End is how an agent ended.
type End struct {
	Code   int            // what a shell says: its own, or 128 + the signal
	Signal syscall.Signal // that ended it; 0: it exited
	Typed  bool           // by a key: without qshim our whole process group had got the signal
}

// Die ends qshim as the agent ended, by the same signal; it returns if there was
// none, or where that cannot be (see proc.Die).
func (e End) Die() {
	if e.Signal != 0 {
		proc.Die(e.Signal, e.Typed)
	}
}

// end is how the agent ended. A terminal sends the signal of a key to the whole
// foreground group, and ours, where qshim is called by a script for example,
// heard nothing of it: only the agent's own terminal had the key.
func (s *Session) end() End {
	e := End{Code: proc.ExitCode(s.status)}
	if !s.status.Signaled() {
		return e
	}
	e.Signal = s.status.Signal()
	var key byte
	switch {
	case s.user == nil:
	case e.Signal == unix.SIGINT:
		key = s.user.Saved().Cc[unix.VINTR]
	case e.Signal == unix.SIGQUIT:
		key = s.user.Saved().Cc[unix.VQUIT]
	}
	e.Typed = key != 0 && s.fg && s.lastKey == key
	return e
}

// Run passes everything until the agent has ended, leaves the terminal as it
// was, and returns how it ended.
func (s *Session) Run() End {
	if s.user == nil {
		// The agent dies with the thread that started it (proc.Spec.KillWithUs).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	defer s.finish()
	for !s.done() && s.round() {
	}
	end := s.end()
	s.survive(s.readRest)
	s.survive(s.takeAway)
	s.opt.Tap.event(Item{Kind: Exited, Code: end.Code})
	if s.opt.Farewell != nil {
		s.say(s.opt.Farewell(end.Code))
	}
	return end
}

// finish also runs when the loop panics: whatever happens, nothing stays
// stopped and the terminal is usable.
func (s *Session) finish() {
	if !s.ended {
		_ = s.child.Continue() // it may have ended: then there is nothing to continue
	}
	s.held.Store(false)
	if s.user != nil && s.fg && !s.gone {
		_ = s.user.Restore() // hung up in this instant: nothing to restore
	}
	if s.opt.Feed != nil {
		s.opt.Feed.end()
	}
	s.child.Close()
	if s.poll != nil {
		s.poll.close()
	}
	s.wake.close()
}

// turn is one round of the loop.
func (s *Session) turn() {
	fds := append(s.fds[:0], unix.PollFd{Fd: int32(s.wake.r), Events: unix.POLLIN})
	for _, st := range s.streams {
		fds = st.addTo(fds)
	}
	if s.opt.Feed != nil {
		fds = s.opt.Feed.addTo(fds)
	}
	inAt, keyAt, edgeAt, fileAt := -1, -1, -1, -1
	if len(s.input.b) > 0 && s.inFD >= 0 {
		inAt = len(fds)
		fds = append(fds, unix.PollFd{Fd: int32(s.inFD), Events: unix.POLLOUT})
	}
	if s.stdin >= 0 && s.fg && !s.gone && s.input.room() {
		keyAt = len(fds)
		fds = append(fds, unix.PollFd{Fd: int32(s.stdin), Events: unix.POLLIN})
	}
	if s.edges != nil {
		edgeAt = len(fds)
		fds = append(fds, unix.PollFd{Fd: int32(s.edges.fd), Events: unix.POLLIN})
	}
	if s.changes != nil {
		fileAt = len(fds)
		fds = append(fds, unix.PollFd{Fd: int32(s.changes.fd), Events: unix.POLLIN})
	}
	s.fds = fds
	n, err := s.wait(fds)
	if err != nil && err != unix.EINTR {
		panic(fmt.Sprintf("poll: %v", err)) // a descriptor of ours was closed by somebody: nothing sane is left
	}
	s.heart.begin()
	fault.At("turn")
	ready := func(i int) bool { return n > 0 && i >= 0 && fds[i].Revents != 0 }
	if ready(0) {
		s.wake.clear()
		s.signals()
	}
	s.obey() // in every round: an overlay's end must not come after the agent's next output
	if len(s.undo) > 0 && !s.held.Load() {
		s.takeAway() // an agent that goes on may write nothing for long
	}
	if ready(fileAt) {
		s.changes.take()
	}
	for _, st := range s.streams {
		if st.idle && ready(st.dstAt) { // the pipe's reader went away
			s.lost(st)
			continue
		}
		// What waited may be gone already: a pause of this round has drained it.
		s.pump(st, ready(st.srcAt) || st.beside != nil, ready(st.dstAt))
	}
	if s.opt.Feed != nil && n > 0 {
		s.opt.Feed.move(fds)
	}
	if ready(inAt) {
		s.input.flush(s.inFD)
	}
	if ready(keyAt) {
		s.readKeys()
	}
	if ready(edgeAt) && s.edges != nil { // a signal of this round may have closed it
		s.edges.take()
		s.lookForeground()
	}
	s.timers(n == 0)
}

// wait is poll. Without a terminal the loop's thread must stay as it is (see
// Run), and then Go's poller would only cost a change of threads.
func (s *Session) wait(fds []unix.PollFd) (int, error) {
	if s.poll == nil {
		return poll(fds, s.timeout())
	}
	if s.brisk > 0 {
		s.brisk--
		if n := s.poll.waitHere(fds); n > 0 {
			return n, nil
		}
	}
	return s.poll.wait(fds, s.timeout())
}

// silence is how long the agent's terminal must be quiet after the agent's end
// before a grandchild that keeps it open no longer holds us up.
const silence = 50 * time.Millisecond

// floodPause ends a tap's flood when the output pauses, floodMost when it never
// does: the screen is then right again five times a second.
const (
	floodPause = 10 * time.Millisecond
	floodMost  = 200 * time.Millisecond
)

// timeout is for poll, in ms; -1 in the normal case: nothing wakes an idle loop.
func (s *Session) timeout() int {
	ms := -1
	if !s.flood.IsZero() || s.owed {
		ms = int(floodPause.Milliseconds())
	}
	for _, st := range s.streams {
		switch {
		case s.ended && !st.closed() && len(st.pend) == 0:
			ms = int(silence.Milliseconds())
		case !s.ended && st.down && st.tty:
			ms = int(silence.Milliseconds()) // every slave is closed, but the agent lives and may open it again
		}
	}
	return s.besideTimeout(ms)
}

// timers does what is due; timeout says that nothing happened until then.
func (s *Session) timers(timeout bool) {
	if s.owed && timeout {
		s.owed = false
		s.opt.Tap.tell()
	}
	if !s.flood.IsZero() && (time.Since(s.flood) > floodMost || s.quietFor(floodPause)) {
		s.flood = time.Time{}
		s.opt.Tap.settle()
	}
	if s.ended {
		return
	}
	for _, st := range s.streams {
		if st.down && st.tty {
			st.down = false // look again
		}
	}
}

// quietFor reports that no stream had anything for d.
func (s *Session) quietFor(d time.Duration) bool {
	for _, st := range s.streams {
		if time.Since(st.lastAt) < d {
			return false
		}
	}
	return true
}

func (s *Session) done() bool {
	if !s.ended {
		return false
	}
	for _, st := range s.streams {
		if !st.closed() && (len(st.pend) > 0 || time.Since(later(st.lastAt, s.endedAt)) < silence) {
			return false
		}
	}
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// signals acts on what came since the last look.
func (s *Session) signals() {
	got := s.wake.take()
	if got == 0 {
		return
	}
	// Before its stop is looked at, for which we would stop too: kill of a stopped
	// job continues it to be ended, and in the background it may stop once more.
	for _, sig := range forwarded {
		if got&bit(sig) != 0 {
			s.forward(sig)
		}
	}
	if got&bit(unix.SIGCONT) != 0 {
		s.continued()
	}
	if got&bit(unix.SIGCHLD) != 0 {
		s.lookChild()
	}
	if got&bit(unix.SIGWINCH) != 0 {
		s.syncSize()
	}
	if got&bit(unix.SIGTSTP) != 0 {
		s.askedToStop()
	}
}

// forward passes a signal on that was sent to qshim. An agent that we stopped
// could not act on it, so it is continued.
func (s *Session) forward(sig syscall.Signal) {
	if s.pass(sig) {
		if now, _ := s.stoppedNow(); now || s.stopped.Load() || s.held.Load() {
			s.release()
		}
	}
	if sig == unix.SIGHUP && s.user != nil && !s.user.Alive() {
		s.hangup()
	}
}

// stoppedNow asks the kernel, whose SIGCHLD may be on its way; not known: the agent
// is gone.
func (s *Session) stoppedNow() (stopped, known bool) {
	t := s.child.Target()
	return proc.IsStopped(t.PID, t.Start)
}

// pass hands a signal to the agent; true: it is meant to end it. It takes no lock.
func (s *Session) pass(sig syscall.Signal) (ending bool) {
	if s.user == nil && (sig == unix.SIGINT || sig == unix.SIGQUIT) && foregroundOfSession() {
		return false // typed: the terminal has sent it to the whole group, the agent included
	}
	if sig == unix.SIGHUP {
		if s.hungUp {
			return false
		}
		s.hungUp = true
	}
	_ = s.child.Signal(sig) // it may have ended just now
	return sig != unix.SIGUSR1 && sig != unix.SIGUSR2
}

// foregroundOfSession reports whether our group is in the foreground of the
// controlling terminal, whatever 0 and 1 are.
func foregroundOfSession() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	pgrp, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && pgrp == unix.Getpgrp()
}
