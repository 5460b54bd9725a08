package shim

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Spool keeps what a headless agent writes into its standard output where that
// is one document: a run that is done again must not leave half of two. It is
// given to the user when the last run has ended.
//
// Up to SpoolMemory stay in memory, the rest goes to a file that only this user
// can read and that has no name any more, so that nothing is left of it however
// qshim ends. Beyond SpoolMost, or where no file can be made, it gives out what
// it has and keeps nothing any more: then the run cannot be done again.
type Spool struct {
	dir  string // for the file; "": the system's for temporary files
	mem  []byte
	file *os.File
	size int64  // of mem and file
	read int64  // of it, given out
	gone bool   // it keeps nothing any more
	tail []byte // what came since, to be given out last
}

// Bounds of a Spool, bytes.
const (
	SpoolMemory = 1 << 20  // an answer is a few kilobytes
	SpoolMost   = 64 << 20 // more than any answer: whatever it is, it is no answer
)

// NewSpool makes a spool that keeps large documents in dir.
func NewSpool(dir string) *Spool { return &Spool{dir: dir} }

// write keeps b, or at least hands it out in its turn.
func (s *Spool) write(b []byte) {
	switch {
	case s.gone:
		s.tail = append(s.tail, b...)
		return
	case s.size+int64(len(b)) > SpoolMost:
		s.gone, s.tail = true, append(s.tail, b...)
		return
	case s.file == nil && len(s.mem)+len(b) <= SpoolMemory:
		s.mem = append(s.mem, b...)
	default:
		if err := s.toFile(b); err != nil {
			s.gone, s.tail = true, append(s.tail, b...) // a full disk: the user gets it at once
			return
		}
	}
	s.size += int64(len(b))
}

func (s *Spool) toFile(b []byte) error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "qshim-spool-") // made with mode 0600
		if err != nil {
			return err
		}
		_ = os.Remove(f.Name()) // it stays open; a name that stays is only untidy
		s.file = f
	}
	_, err := s.file.WriteAt(b, s.size-int64(len(s.mem)))
	return err
}

// Kept reports whether the whole document is still here.
func (s *Spool) Kept() bool { return !s.gone }

// next returns the next part to give out, valid until the next call; nil: that
// was all.
func (s *Spool) next(buf []byte) []byte {
	if n := int64(len(s.mem)); s.read < n {
		part := s.mem[s.read:min(n, s.read+int64(len(buf)))]
		s.read += int64(len(part))
		return part
	}
	if s.file == nil || s.read >= s.size {
		part := s.tail
		s.tail = nil
		return part
	}
	n, _ := s.file.ReadAt(buf[:min(int64(len(buf)), s.size-s.read)], s.read-int64(len(s.mem))) // a disk that fails: what could be read
	if n == 0 {
		return nil
	}
	s.read += int64(n)
	return buf[:n]
}

// Drop forgets a run that is done again.
func (s *Spool) Drop() {
	s.mem, s.tail, s.size, s.read, s.gone = s.mem[:0], nil, 0, 0, false
	s.Close()
}

// Close gives the file back.
func (s *Spool) Close() {
	if s.file != nil {
		_ = s.file.Close() // it has no name and nobody reads it any more
		s.file = nil
	}
}

// Flush gives everything out that was not yet. It waits for a slow reader; one
// that is gone is no error of anybody's.
func (s *Spool) Flush(fd int) error {
	buf := make([]byte, chunk)
	for part := s.next(buf); part != nil; part = s.next(buf) {
		if err := writeAll(fd, part); errors.Is(err, unix.EPIPE) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// writeAll writes b to a descriptor that may be non-blocking.
func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			_, _ = poll(fds[:], -1) // the next write says what is wrong
		case err != nil:
			return err
		case n == 0:
			return io.ErrShortWrite
		default:
			b = b[n:]
		}
	}
	return nil
}

// Feed gives a headless agent the input that is piped into qshim, and keeps it,
// so that a second run gets it again. Beyond FeedMost it keeps nothing.
type Feed struct {
	src  int
	dst  int // the agent's end; -1: it has none, or reads no more
	kept []byte
	more bool   // there was more than can be kept
	eof  bool   // of src
	pend []byte // for the agent, not yet written: part of kept, or of buf
	buf  []byte
	skip bool // the next run gets nothing of what was kept
	at   int  // place in the poll set, -1 when not in it
}

// FeedMost is how much of the piped input is kept, bytes: more than any model's
// context holds.
const FeedMost = 8 << 20

// NewFeed reads from the descriptor src, a pipe or a socket.
func NewFeed(src int) *Feed { return &Feed{src: src, dst: -1, at: -1, buf: make([]byte, chunk)} }

// Kept reports whether everything that was read is still here.
func (f *Feed) Kept() bool { return !f.more }

// begin gives a new run all input from its start. dst is ours to close.
func (f *Feed) begin(dst int) {
	_ = unix.SetNonblock(dst, true) // a pipe of ours: it cannot fail
	f.dst, f.pend = dst, f.kept
	if f.skip {
		f.pend = nil
	}
}

// Skip says whether the next run gets no input: the session that it continues
// holds it.
func (f *Feed) Skip(on bool) { f.skip = on }

func (f *Feed) end() {
	if f.dst >= 0 {
		_ = unix.Close(f.dst)
		f.dst = -1
	}
	f.pend = nil
}

// addTo waits for room where something is to be written, else for something to
// read, and for the agent to close its end.
func (f *Feed) addTo(fds []unix.PollFd) []unix.PollFd {
	f.at = -1
	if f.dst >= 0 && (f.eof || f.skip) && len(f.pend) == 0 {
		f.end()
	}
	if f.dst < 0 {
		return fds
	}
	f.at = len(fds)
	if len(f.pend) > 0 {
		return append(fds, unix.PollFd{Fd: int32(f.dst), Events: unix.POLLOUT})
	}
	return append(fds, unix.PollFd{Fd: int32(f.dst)}, unix.PollFd{Fd: int32(f.src), Events: unix.POLLIN})
}

// move does what poll says is possible.
func (f *Feed) move(fds []unix.PollFd) {
	if f.at < 0 {
		return
	}
	if fds[f.at].Revents != 0 {
		f.write()
		return
	}
	if len(f.pend) == 0 && fds[f.at+1].Revents != 0 {
		f.readMore()
		f.write()
	}
}

func (f *Feed) readMore() {
	n, err := unix.Read(f.src, f.buf)
	switch {
	case err == unix.EINTR || err == unix.EAGAIN:
		return
	case err != nil || n <= 0:
		f.eof = true
		return
	}
	f.pend = f.buf[:n]
	if f.more {
		return
	}
	if len(f.kept)+n > FeedMost {
		f.more, f.kept = true, nil
		return
	}
	f.kept = append(f.kept, f.pend...)
}

// write gives the agent what it takes. One that has closed its end gets no more,
// and nothing more is read for it.
func (f *Feed) write() {
	if len(f.pend) == 0 {
		f.end()
		return
	}
	for len(f.pend) > 0 {
		n, err := unix.Write(f.dst, f.pend)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return
		case err != nil:
			f.end()
			return
		}
		f.pend = f.pend[n:]
	}
}
