package term

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	getTermios      = unix.TCGETS
	setTermios      = unix.TCSETS
	setTermiosDrain = unix.TCSETSW
)

const openFlags = unix.O_RDWR | unix.O_NOCTTY | unix.O_NONBLOCK | unix.O_CLOEXEC

// reopen opens the terminal behind fd anew. /proc's link leads to the device
// even where its name does not exist in this mount namespace; /dev/tty opens
// even where the device belongs to another user, but may be another terminal.
func reopen(fd int) (int, error) {
	n, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), openFlags, 0)
	if err == nil {
		return n, nil
	}
	n, err2 := unix.Open("/dev/tty", openFlags, 0)
	if err2 != nil {
		return -1, err
	}
	if a, b := device(n), device(fd); a < 0 || a != b {
		_ = unix.Close(n) // another terminal: nothing was written
		return -1, err
	}
	return n, nil
}

// device is the number of the real device behind a terminal descriptor
// (TIOCGDEV, Linux 2.6.37), -1 if it is not known.
func device(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.TIOCGDEV)
	if err != nil {
		return -1
	}
	return n
}

// OpenPTY makes a pseudo terminal. The master is non-blocking and closes on
// exec; so does the slave, which is the agent's only as its 0, 1 and 2.
func OpenPTY() (master, slave int, err error) {
	master, err = unix.Open("/dev/ptmx", openFlags, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("no pseudo terminal: %w", err)
	}
	if err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err == nil {
		slave, err = openSlave(master)
	}
	if err != nil {
		_ = unix.Close(master)
		return -1, -1, fmt.Errorf("no pseudo terminal: %w", err)
	}
	return master, slave, nil
}

// openSlave asks the master for its other end (Linux 4.13); before that there
// is only the name, which can be wrong in a container.
func openSlave(master int) (int, error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	r, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, flags)
	if errno == 0 {
		return int(r), nil
	}
	n, err := unix.IoctlGetUint32(master, unix.TIOCGPTN)
	if err != nil {
		return -1, err
	}
	return unix.Open("/dev/pts/"+strconv.Itoa(int(n)), flags, 0)
}
