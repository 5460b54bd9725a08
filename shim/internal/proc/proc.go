// Package proc starts, stops and continues the agent, and does for qshim what a
// shell does for its jobs. It knows processes and process groups; it knows
// nothing of terminals' contents, limits or the ledger.
package proc

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNoPair says that the helper pair of DESIGN section 10 cannot be made here,
// so that Ctrl-Z in the agent has no effect.
var ErrNoPair = errors.New("job control helpers are not available on this system")

// ErrGone says that the process meant by a Target has ended, or that its number
// belongs to another process by now.
var ErrGone = errors.New("process is gone")

// Target names a process, or a whole process group, beyond reuse of its number.
type Target struct {
	PID   int    // process id; with Group also the group's
	Start uint64 // start time as StartTime reports it
	Group bool   // the whole process group
}

// Signal sends sig to t if t is still the process that it was. A group outlives
// its leader, and as long as it does its number is given to no new process: a
// group without a leader is the one that was meant.
func (t Target) Signal(sig syscall.Signal) error {
	start, err := StartTime(t.PID)
	leaderless := t.Group && err != nil && unix.Kill(t.PID, 0) == unix.ESRCH
	if !leaderless && (err != nil || start != t.Start) {
		return fmt.Errorf("process %d: %w", t.PID, ErrGone)
	}
	err = signalPinned(t, sig, leaderless)
	if errors.Is(err, unix.ESRCH) {
		err = ErrGone
	}
	if err != nil && !errors.Is(err, ErrGone) {
		return fmt.Errorf("signal %v to %d: %w", sig, t.PID, err)
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", t.PID, err)
	}
	return nil
}

// signalByNumber is the signal where the kernel has nothing better: the number
// could be another's since the check a moment ago, if the process ended, was
// waited for, and some 32000 others were started in between.
func signalByNumber(t Target, sig syscall.Signal) error {
	if t.Group {
		return unix.Kill(-t.PID, sig)
	}
	return unix.Kill(t.PID, sig)
}

// Spec says what to start and how.
type Spec struct {
	Path  string   // file to execute
	Argv  []string // with the command's own name first
	Env   []string
	Files [3]uintptr // the agent's 0, 1 and 2

	Terminal   bool // Files[0] is a terminal: the agent leads a session of its own on it
	Pair       bool // with Terminal: make the helper pair, so that job control works
	Background bool // with Pair: start in the background of that terminal

	// KillWithUs (without Terminal, Linux): the agent dies when qshim is killed.
	// A terminal's hangup does that with a terminal. The thread that calls Start
	// must live as long as the agent.
	KillWithUs bool
}

// State is what the kernel said last about the agent.
type State uint8

// The states of a child.
const (
	Running State = iota
	Stopped
	Ended
)

// Change is what happened to a child since it was last looked at.
type Change struct {
	Any       bool           // something did
	Continued bool           // it was continued in between, whatever it is now
	State     State          // what it is now
	Sig       syscall.Signal // Stopped: by which signal
	Status    unix.WaitStatus
}

// Child is a started agent. Its methods may be called from any goroutine.
type Child struct {
	mu      sync.Mutex
	pid     int
	start   uint64
	leader  bool // of its own session and group
	state   State
	sig     syscall.Signal
	status  unix.WaitStatus
	missed  bool // something was collected that Poll has not reported
	helper  int  // process id of H, 0 without a pair
	ready   bool // H has said that Z is in its place
	control int  // our end of H's socket, -1 without a pair
}

// PID is the agent's process id.
func (c *Child) PID() int { return c.pid }

// HasPair reports whether the kernel does job control for this agent.
func (c *Child) HasPair() bool { return c.control >= 0 }

// Target names what Signal and SignalGroup reach.
func (c *Child) Target() Target { return Target{PID: c.pid, Start: c.start, Group: c.leader} }

// Poll collects what wait4 has to tell, to exhaustion: SIGCHLD does not count,
// it only says that there may be something.
func (c *Child) Poll() Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.poll()
}

func (c *Child) poll() Change {
	ch := Change{Any: c.missed}
	c.missed = false
	for c.state != Ended {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(c.pid, &ws, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // ECHILD: somebody reaped it for us; nothing more will come
			c.state, ch.Any = Ended, true
			break
		}
		if pid == 0 {
			break
		}
		ch.Any = true
		switch {
		case ws.Stopped():
			c.state, c.sig = Stopped, ws.StopSignal()
		case ws.Continued():
			c.state, ch.Continued = Running, true
		default:
			c.state, c.status = Ended, ws
		}
	}
	ch.State, ch.Sig, ch.Status = c.state, c.sig, c.status
	return ch
}

// Signal sends sig to the agent's process. Until Poll has seen its end the
// kernel keeps its number for it, so no identity check is needed.
func (c *Child) Signal(sig syscall.Signal) error { return c.kill(c.pid, sig) }

// SignalGroup sends sig to the agent's process group; without a terminal the
// agent has none of its own and ErrNoGroup comes back.
func (c *Child) SignalGroup(sig syscall.Signal) error {
	if !c.leader {
		return ErrNoGroup
	}
	return c.kill(-c.pid, sig)
}

// ErrNoGroup says that the agent shares its process group with qshim.
var ErrNoGroup = errors.New("the agent has no process group of its own")

func (c *Child) kill(pid int, sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Ended {
		return ErrGone
	}
	return unix.Kill(pid, sig)
}

// Continue sends SIGCONT to the group (or, without one, to the process) and
// takes what wait4 then reports, so that a later look finds no stale "was
// continued": the kernel notes it while kill runs.
func (c *Child) Continue() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Ended {
		return ErrGone
	}
	pid := c.pid
	if c.leader {
		pid = -pid
	}
	err := unix.Kill(pid, unix.SIGCONT)
	c.missed = c.poll().Any // the next Poll reports it, without "was continued"
	return err
}

// State is what Poll saw last.
func (c *Child) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// ExitCode is the code a shell would show for ws: the exit code, or 128 + n for
// an end by signal n.
func ExitCode(ws unix.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
