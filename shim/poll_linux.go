package shim

import "golang.org/x/sys/unix"

// poll waits for events on fds; timeout in ms, -1 for ever.
func poll(fds []unix.PollFd, timeout int) (int, error) { return unix.Poll(fds, timeout) }

// edgeWatch becomes readable when something happens on a terminal that we must
// not read: a level-triggered poll would spin on keys that are the shell's.
type edgeWatch struct{ fd int }

func newEdgeWatch(terminal int) (*edgeWatch, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLET, Fd: int32(terminal)}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, terminal, &ev); err != nil {
		_ = unix.Close(ep)
		return nil, err
	}
	return &edgeWatch{fd: ep}, nil
}

// take consumes the edge.
func (w *edgeWatch) take() {
	var ev [1]unix.EpollEvent
	_, _ = unix.EpollWait(w.fd, ev[:], 0) // what happened does not matter: the caller looks
}

func (w *edgeWatch) close() { _ = unix.Close(w.fd) }
