package shim

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for the session's descriptors through Go's own poller. A
// goroutine that sleeps in poll(2) costs the runtime two to ten wake-ups of its
// monitor thread each time, until that has taken the processor away from the
// sleeping thread; one that is parked costs none. An epoll set of our own stands
// between the two, because the runtime is told each change of interest, and
// reads only one direction at a time.
type poller struct {
	file *os.File // the epoll set; nil: plain poll
	ep   int      // its descriptor
	raw  syscall.RawConn
	look func(ep uintptr) bool // made once: a closure a round would be garbage a round
	n    int                   // what look found
	once bool                  // look must not wait
	set  []interest            // what is in it
	want []interest            // what is to be, this round
	ev   [8]unix.EpollEvent
	due  bool // a deadline is set
}

type interest struct {
	fd     int32
	events uint32
}

// newPoller makes the set. Where that fails poll(2) does as well.
func newPoller() *poller {
	p := &poller{}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return p
	}
	_ = unix.SetNonblock(ep, true) // only what os.NewFile looks at: reading is not what is done with it
	f := os.NewFile(uintptr(ep), "epoll")
	if f.SetReadDeadline(time.Time{}) != nil { // not in Go's poller
		_ = f.Close()
		return p
	}
	raw, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return p
	}
	p.file, p.ep, p.raw = f, ep, raw
	p.look = func(uintptr) bool {
		p.n = p.take()
		return p.n != 0 || p.once
	}
	return p
}

// wait is poll. It is for one goroutine.
func (p *poller) wait(fds []unix.PollFd, timeout int) (int, error) {
	if p.file == nil {
		return poll(fds, timeout)
	}
	if !p.sync(fds) { // a descriptor that cannot be waited for in this way
		p.close()
		return poll(fds, timeout)
	}
	if timeout > 0 || p.due {
		p.due = timeout > 0
		var at time.Time
		if p.due {
			at = time.Now().Add(time.Duration(timeout) * time.Millisecond)
		}
		_ = p.file.SetReadDeadline(at) // fails only on a closed file
	}
	p.n, p.once = 0, timeout == 0
	err := p.raw.Read(p.look)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		p.n = p.take() // a late look is a look
	case err != nil:
		return 0, err
	}
	if p.n < 0 {
		return 0, unix.EINTR
	}
	return p.spread(fds, p.n), nil
}

// waitHere is wait for at most a millisecond, in the call itself: what comes
// as soon as that comes without a change of threads.
func (p *poller) waitHere(fds []unix.PollFd) int {
	if p.file == nil || !p.sync(fds) {
		return 0
	}
	n, err := unix.EpollWait(p.ep, p.ev[:], 1)
	if err != nil {
		return 0
	}
	return p.spread(fds, n)
}

// sync brings the set in line with fds.
func (p *poller) sync(fds []unix.PollFd) bool {
	p.want = p.want[:0]
	for _, f := range fds {
		if i := find(p.want, f.Fd); i >= 0 {
			p.want[i].events |= uint32(f.Events)
		} else {
			p.want = append(p.want, interest{f.Fd, uint32(f.Events)}) // EPOLLIN and EPOLLOUT are POLLIN and POLLOUT
		}
	}
	for _, old := range p.set {
		if find(p.want, old.fd) < 0 {
			_ = p.control(unix.EPOLL_CTL_DEL, old) // closed: then it is out already
		}
	}
	for _, w := range p.want {
		op := unix.EPOLL_CTL_ADD
		if i := find(p.set, w.fd); i >= 0 {
			if p.set[i].events == w.events {
				continue
			}
			op = unix.EPOLL_CTL_MOD
		}
		if p.control(op, w) != 0 {
			return false
		}
	}
	p.set, p.want = p.want, p.set
	return true
}

func find(set []interest, fd int32) int {
	for i := range set {
		if set[i].fd == fd {
			return i
		}
	}
	return -1
}

func (p *poller) control(op int, i interest) syscall.Errno {
	ev := unix.EpollEvent{Events: i.events, Fd: i.fd}
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.ep), uintptr(op), uintptr(i.fd), uintptr(unsafe.Pointer(&ev)), 0, 0)
	return errno
}

// take asks the set without waiting; -1: interrupted.
func (p *poller) take() int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.ep), uintptr(unsafe.Pointer(&p.ev)), uintptr(len(p.ev)), 0, 0, 0)
	if errno != 0 {
		return -1
	}
	return int(n)
}

// spread gives the events to whoever waits for them.
func (p *poller) spread(fds []unix.PollFd, n int) (ready int) {
	for i := range fds {
		f := &fds[i]
		f.Revents = 0
		for _, ev := range p.ev[:n] {
			if ev.Fd == f.Fd {
				f.Revents = int16(ev.Events) & (f.Events | unix.POLLERR | unix.POLLHUP)
			}
		}
		if f.Revents != 0 {
			ready++
		}
	}
	return ready
}

// forget must be called before one of the descriptors is closed while the
// session goes on: another may get its number.
func (p *poller) forget(fd int) {
	if i := find(p.set, int32(fd)); i >= 0 && p.file != nil {
		_ = p.control(unix.EPOLL_CTL_DEL, p.set[i])
		p.set = append(p.set[:i], p.set[i+1:]...)
	}
}

func (p *poller) close() {
	if p.file != nil {
		_ = p.file.Close() // nothing to lose
		p.file = nil
	}
}

// readNow and writeNow are for non-blocking descriptors: without a word to Go's
// scheduler, which would wake its monitor for a call that never waits.
func readNow(fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return now(unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))))
}

func writeNow(fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return now(unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))))
}

func now(n, _ uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
