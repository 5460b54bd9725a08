package proc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// pidfdGroup is PIDFD_SIGNAL_PROCESS_GROUP (Linux 6.9).
const pidfdGroup = 1 << 2

// signalPinned signals through a descriptor of the process, whose identity is
// checked again once it is open: the signal then cannot reach another that got
// the number meanwhile. A group needs Linux 6.9 for that; one without its leader
// has nothing to open, but then its number cannot be given away.
func signalPinned(t Target, sig syscall.Signal, leaderless bool) error {
	if leaderless {
		return signalByNumber(t, sig)
	}
	fd, err := unix.PidfdOpen(t.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	if err != nil { // no such call (before Linux 5.3), or forbidden
		return signalByNumber(t, sig)
	}
	defer unix.Close(fd)
	if start, err := StartTime(t.PID); err != nil || start != t.Start {
		return ErrGone
	}
	flags := 0
	if t.Group {
		flags = pidfdGroup
	}
	err = unix.PidfdSendSignal(fd, sig, nil, flags)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return signalByNumber(t, sig)
	}
	return err
}

// IsStopped reports whether the process that had this identity is stopped; not
// known: it is gone.
func IsStopped(pid int, start uint64) (stopped, known bool) {
	s, err := readStat(pid)
	if err != nil || s.start != start {
		return false, false
	}
	return s.state == 'T', true
}
