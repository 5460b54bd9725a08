//go:build !linux

package proc

import (
	"syscall"
)

// Start starts the agent. Spec.Pair gives ErrNoPair: without clone's
// CLONE_PARENT a helper would be the agent's child, and the agent could wait
// for it. Ctrl-Z then does what it does under every other PTY wrapper: nothing.
// An error is otherwise a syscall.Errno as execve(2) gives it.
func Start(spec Spec) (*Child, error) {
	if spec.Pair {
		return nil, ErrNoPair
	}
	attr := &syscall.ProcAttr{Env: spec.Env, Files: spec.Files[:], Sys: &syscall.SysProcAttr{}}
	if spec.Terminal {
		attr.Sys.Setsid, attr.Sys.Setctty = true, true
	}
	pid, err := syscall.ForkExec(spec.Path, spec.Argv, attr)
	if err == syscall.ENOEXEC { // a script without #!: every shell hands it to sh
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"/bin/sh", spec.Path}, spec.Argv[1:]...), attr)
	}
	if err != nil {
		return nil, err
	}
	c := &Child{pid: pid, leader: spec.Terminal, control: -1}
	c.start, _ = StartTime(pid) // our own unreaped child: it is there
	return c, nil
}

// CanPair reports whether the pair can be made.
func CanPair() bool { return false }

// Foreground does nothing without a pair.
func (c *Child) Foreground(int) {}

// Background does nothing without a pair.
func (c *Child) Background() {}

// Close does nothing without a pair.
func (c *Child) Close() {}
