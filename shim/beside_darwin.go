package shim

import (
	"bytes"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openAgain opens the file behind a descriptor anew, for reading, by the name
// that it has now: /dev/fd would give the descriptor itself once more, which is
// for writing only. The caller checks that it is the same file.
func openAgain(fd int) (int, error) {
	name := new([1024]byte) // MAXPATHLEN
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETPATH, int(uintptr(unsafe.Pointer(name))))
	runtime.KeepAlive(name)
	if err != nil {
		return -1, err
	}
	path, _, _ := bytes.Cut(name[:], []byte{0})
	return unix.Open(string(path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
}

// fileWatch becomes readable when one of its files is written to.
type fileWatch struct{ fd int }

func newFileWatch(fds []int) (*fileWatch, error) {
	kq, err := unix.Kqueue()
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(kq)
	var want []unix.Kevent_t
	for _, fd := range fds {
		ev := unix.Kevent_t{Fflags: unix.NOTE_WRITE | unix.NOTE_EXTEND}
		unix.SetKevent(&ev, fd, unix.EVFILT_VNODE, unix.EV_ADD|unix.EV_CLEAR)
		want = append(want, ev)
	}
	if _, err := unix.Kevent(kq, want, nil, nil); err != nil {
		_ = unix.Close(kq)
		return nil, err
	}
	return &fileWatch{fd: kq}, nil
}

// take consumes what made it readable.
func (w *fileWatch) take() {
	var ev [4]unix.Kevent_t
	_, _ = unix.Kevent(w.fd, nil, ev[:], &unix.Timespec{}) // the caller looks at the files themselves
}

// holds is not known: macOS lists the open files of another process only
// through libproc.
func holds(int, fileID) bool { return false }
