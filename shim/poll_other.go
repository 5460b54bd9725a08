//go:build !linux

package shim

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// poll waits for events on fds; timeout in ms, -1 for ever. It uses select:
// darwin's poll does not work on terminals.
func poll(fds []unix.PollFd, timeout int) (int, error) {
	var r, w unix.FdSet
	top := 0
	for i := range fds {
		f := &fds[i]
		f.Revents = 0
		if f.Fd < 0 {
			continue
		}
		if f.Events&unix.POLLIN != 0 {
			r.Set(int(f.Fd))
		}
		if f.Events&unix.POLLOUT != 0 {
			w.Set(int(f.Fd))
		}
		top = max(top, int(f.Fd))
	}
	var tv *unix.Timeval
	if timeout >= 0 {
		t := unix.NsecToTimeval(int64(timeout) * int64(time.Millisecond))
		tv = &t
	}
	n, err := unix.Select(top+1, &r, &w, nil, tv)
	if err != nil {
		return n, err
	}
	for i := range fds {
		f := &fds[i]
		if f.Fd < 0 {
			continue
		}
		if r.IsSet(int(f.Fd)) && f.Events&unix.POLLIN != 0 {
			f.Revents |= unix.POLLIN
		}
		if w.IsSet(int(f.Fd)) && f.Events&unix.POLLOUT != 0 {
			f.Revents |= unix.POLLOUT
		}
	}
	return n, nil
}

// edgeWatch is not available: a job that was moved to the foreground without a
// SIGCONT notices it at the agent's next output.
type edgeWatch struct{ fd int }

var errNoEdges = errors.New("no edge-triggered watch on this system")

func newEdgeWatch(int) (*edgeWatch, error) { return nil, errNoEdges }

func (w *edgeWatch) take()  {}
func (w *edgeWatch) close() {}
