package shim

import (
	"time"

	"golang.org/x/sys/unix"
)

// chunk is the most that is read before it is written on, bytes. A terminal
// gives at most 4095 at a time; a flood is gathered up to chunk so that it
// costs fewer writes.
const chunk = 32 << 10

// stream is one way that the agent's output goes: from its terminal or its pipe
// to the user's.
type stream struct {
	kind    Kind
	src     int // -1 when closed
	dst     int // -1 when gone
	dstKind dstKind
	tty     bool    // src is a terminal's master
	spool   *Spool  // takes what dst would
	beside  *beside // src is a file that the agent writes to by itself; nil: it is not
	buf     []byte
	pend    []byte // read and not yet written: a part of buf
	down    bool   // src has no other end now (EIO)
	srcAt   int    // places in the poll set, -1 when not in it
	dstAt   int
	idle    bool      // dst is in the poll set only to hear that its reader is gone
	lastAt  time.Time // when data came last; only kept after the agent's end
}

func newStream(kind Kind, src, dst int, tty bool) *stream {
	return &stream{kind: kind, src: src, dst: dst, tty: tty, buf: make([]byte, chunk)}
}

// closed reports that nothing more will come and all that came went out.
func (s *stream) closed() bool {
	if s.beside != nil {
		return true // readRest takes what is left
	}
	return (s.src < 0 || s.down) && len(s.pend) == 0 && (s.spool == nil || !s.spool.gone)
}

// addTo puts the stream's descriptors into a poll set. While output waits for
// the user's terminal nothing more is read: the agent feels the back pressure
// that it would feel without us.
func (s *stream) addTo(fds []unix.PollFd) []unix.PollFd {
	s.srcAt, s.dstAt, s.idle = -1, -1, false
	if s.spool != nil && s.spool.gone && len(s.pend) == 0 {
		if s.pend = s.spool.next(s.buf); s.pend == nil {
			s.spool = nil // all that it had is out: from here on it goes as it comes
		}
	}
	if len(s.pend) > 0 {
		s.dstAt = len(fds)
		return append(fds, unix.PollFd{Fd: int32(s.dst), Events: unix.POLLOUT})
	}
	if s.src >= 0 && !s.down {
		s.srcAt = len(fds)
		fds = append(fds, unix.PollFd{Fd: int32(s.src), Events: unix.POLLIN})
		if !s.tty && s.dst >= 0 { // a pipe's reader may go away meanwhile
			s.dstAt, s.idle = len(fds), true
			fds = append(fds, unix.PollFd{Fd: int32(s.dst)})
		}
	}
	return fds
}

// keep takes output of a run that may be done again; false: it is for the user now.
func (s *stream) keep(b []byte) bool {
	if s.spool == nil {
		return false
	}
	s.spool.write(b)
	return true
}

// read fills buf with what there is.
func (s *stream) read() (n int) {
	if s.beside != nil {
		return s.beside.read(s.buf)
	}
	for n < len(s.buf) {
		k, err := s.readSome(s.buf[n:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return n
		case err != nil || k == 0: // EIO: no slave is open
			s.down = true
			return n
		}
		n += k
		if k < 2048 { // a terminal's buffer that was not full: most likely all there was
			return n
		}
	}
	return n
}

func (s *stream) readSome(b []byte) (int, error) {
	if s.tty {
		return readNow(s.src, b)
	}
	return unix.Read(s.src, b)
}

// write sends pend to the user. ok is false when the user's end is gone.
func (s *stream) write() (ok bool) {
	for len(s.pend) > 0 {
		n, err := s.put(s.pend)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return true
		case err != nil:
			return false
		}
		s.pend = s.pend[n:]
	}
	return true
}

// dstKind says how to write to the user's end without ever waiting in write.
type dstKind uint8

const (
	dstNonblock dstKind = iota // a pipe or file opened by us, non-blocking
	dstOurs                    // a terminal opened by us, non-blocking
	dstSocket                  // the caller's socket: MSG_DONTWAIT
	dstShared                  // the caller's open file, maybe blocking: only when poll says so, and little
)

func (s *stream) put(b []byte) (int, error) {
	switch s.dstKind {
	case dstOurs:
		return writeNow(s.dst, b)
	case dstSocket:
		return sendNow(s.dst, b)
	case dstShared:
		fds := [1]unix.PollFd{{Fd: int32(s.dst), Events: unix.POLLOUT}}
		if n, err := poll(fds[:], 0); err != nil || n == 0 {
			return 0, unix.EAGAIN
		}
		return unix.Write(s.dst, b[:min(len(b), pipeBuf)])
	}
	return unix.Write(s.dst, b)
}

// pipeBuf is PIPE_BUF on Linux (512 on darwin is what POSIX promises, 4096 in
// fact): so much a pipe takes at once when poll calls it writable.
const pipeBuf = 4096

func sendNow(fd int, b []byte) (int, error) {
	return unix.SendmsgN(fd, b, nil, nil, unix.MSG_DONTWAIT)
}

func (s *stream) closeSrc() {
	if s.src >= 0 {
		_ = unix.Close(s.src)
		s.src = -1
	}
}
