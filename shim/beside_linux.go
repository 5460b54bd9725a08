package shim

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// openAgain opens the file behind a descriptor anew, for reading.
func openAgain(fd int) (int, error) {
	return unix.Open(fdPath("self", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
}

func fdPath(pid string, fd int) string { return "/proc/" + pid + "/fd/" + strconv.Itoa(fd) }

// fileWatch becomes readable when one of its files is written to.
type fileWatch struct{ fd int }

func newFileWatch(fds []int) (*fileWatch, error) {
	in, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	for _, fd := range fds {
		if _, err := unix.InotifyAddWatch(in, fdPath("self", fd), unix.IN_MODIFY); err != nil {
			_ = unix.Close(in)
			return nil, err
		}
	}
	return &fileWatch{fd: in}, nil
}

// take consumes what made it readable.
func (w *fileWatch) take() {
	var b [4096]byte
	for {
		if n, err := unix.Read(w.fd, b[:]); err != nil || n < len(b)/2 {
			return // the caller looks at the files themselves
		}
	}
}

// holds reports whether a process has a file for its standard output or error.
func holds(pid int, id fileID) bool {
	for fd := 1; fd <= 2; fd++ {
		var st unix.Stat_t
		if unix.Stat(fdPath(strconv.Itoa(pid), fd), &st) == nil && idOf(&st) == id {
			return true
		}
	}
	return false
}
