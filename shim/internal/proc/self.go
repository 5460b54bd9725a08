package proc

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Orphaned reports whether qshim's own process group is orphaned: no member has
// a parent in the session but outside the group. The kernel then drops Ctrl-Z,
// and nobody is there to continue us. It climbs our own line of parents; in a
// pipeline the other members' parent is ours too.
func Orphaned() bool {
	sid, err := unix.Getsid(0)
	if err != nil {
		return true
	}
	group := unix.Getpgrp()
	for pid := unix.Getppid(); pid > 0; { // 1 may be the shell, in a container
		psid, err := unix.Getsid(pid)
		if err != nil || psid != sid {
			return true
		}
		pgrp, err := unix.Getpgid(pid)
		if err != nil {
			return true
		}
		if pgrp != group {
			return false
		}
		if pid, err = parentOf(pid); err != nil {
			return true
		}
	}
	return true
}

// StopGroup stops qshim's own process group with sig as the terminal would. It
// may return before the stop: another thread may be the one that takes the
// signal. until must wait for the SIGCONT (or give up, if the kernel dropped the
// stop); only then may the signal's handler come back.
func StopGroup(sig syscall.Signal, until func()) { stopWith(0, sig, until) }

// StopSelf stops qshim alone: without a terminal of its own the agent is in
// qshim's group and the terminal has reached it already.
func StopSelf(sig syscall.Signal, until func()) { stopWith(unix.Getpid(), sig, until) }

// dieMost is for a kernel that drops the signal: it does for the first process of
// a container.
const dieMost = time.Second

// Die ends qshim by sig, as the agent ended: a shell goes by that, not by the exit
// code, when it ends a loop (SIGINT) or says "Terminated". all: the whole process
// group gets it, as from the terminal. No second core is written. It returns
// where the kernel, or this system's Go, does not end us so.
func Die(sig syscall.Signal, all bool) {
	if !dies(sig) {
		return
	}
	pid := unix.Getpid()
	if all {
		pid = 0
	}
	_ = unix.Kill(pid, sig) // our own group: it exists, and we may
	time.Sleep(dieMost)
}

func stopWith(pid int, sig syscall.Signal, until func()) {
	restore := defaultAction(sig)
	defer restore()
	_ = unix.Kill(pid, sig) // our own group: it exists, and we may
	until()
}
