package term

import (
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const (
	getTermios      = unix.TIOCGETA
	setTermios      = unix.TIOCSETA
	setTermiosDrain = unix.TIOCSETAW
)

// reopen opens the controlling terminal, if fd is that one: darwin has no link
// from a descriptor to its device.
func reopen(fd int) (int, error) {
	n, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	a, errA := unix.IoctlGetInt(n, unix.TIOCGPGRP)
	b, errB := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if errA != nil || errB != nil || a != b {
		_ = unix.Close(n) // another terminal: nothing was written
		return -1, fmt.Errorf("descriptor %d is not the controlling terminal", fd)
	}
	return n, nil
}

// OpenPTY makes a pseudo terminal. The master is non-blocking and closes on
// exec. creack/pty leaves it blocking, so it is duplicated.
func OpenPTY() (master, slave int, err error) {
	m, s, err := pty.Open()
	if err != nil {
		return -1, -1, fmt.Errorf("no pseudo terminal: %w", err)
	}
	master, err = dup(m)
	if err == nil {
		err = unix.SetNonblock(master, true)
	}
	if err == nil {
		slave, err = dup(s)
	}
	_, _ = m.Close(), s.Close()
	if err != nil {
		return -1, -1, fmt.Errorf("no pseudo terminal: %w", err)
	}
	return master, slave, nil
}

func dup(f *os.File) (int, error) {
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
}
