package shim

import (
	"golang.org/x/sys/unix"

	"qshim/shim/term"
)

// beside reads a regular file that the caller gave the agent for its standard
// output or error. The agent goes on writing into it itself, so that what it
// can ask of the descriptor, the order of its bytes and an error like a full
// disk are what they would be without us; we read along, through an open file
// of our own, from where the agent begins.
type beside struct {
	fd   int // our own open file, for reading
	at   int64
	more bool // the last read filled its buffer
	skip bool // bytes were left out, and the reader has not been told
	id   fileID
}

// fileID tells a file from every other one.
type fileID struct{ dev, ino uint64 }

// besideMost is how far the reader may be behind, bytes: beyond it, it goes on
// near the end, as a tap does that is flooded.
const besideMost = tapSize

// readBeside begins to read the file behind a descriptor of the caller's. Not
// ok: it is no regular file, or the system gives us no open file of our own.
func readBeside(fd int) (*beside, bool) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, false
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil, false
	}
	at := st.Size
	if flags&unix.O_APPEND == 0 { // else it is where the next write goes, whoever wrote before
		if at, err = unix.Seek(fd, 0, 1); err != nil {
			return nil, false
		}
	}
	own, err := openAgain(fd)
	if err != nil {
		return nil, false
	}
	b := &beside{fd: own, at: at, id: idOf(&st)}
	if id, ok := b.now(); !ok || id != b.id {
		_ = unix.Close(own) // another file has taken its name
		return nil, false
	}
	return b, true
}

func idOf(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

func (b *beside) now() (fileID, bool) {
	var st unix.Stat_t
	err := unix.Fstat(b.fd, &st)
	return idOf(&st), err == nil
}

// read takes what is new, at most len(buf).
func (b *beside) read(buf []byte) int {
	b.more = false
	var st unix.Stat_t
	if unix.Fstat(b.fd, &st) != nil {
		return 0
	}
	switch behind := st.Size - b.at; {
	case behind == 0:
		return 0
	case behind < 0: // it was cut, and what is written now is new
		b.at, b.skip = 0, true
	case behind > besideMost:
		b.at, b.skip = st.Size-tapTail, true
	}
	for {
		n, err := unix.Pread(b.fd, buf, b.at)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return 0
		}
		b.at += int64(n)
		b.more = n == len(buf)
		return n
	}
}

// skipped reports once that bytes were left out.
func (b *beside) skipped() bool {
	s := b.skip
	b.skip = false
	return s
}

// besideStream is a stream that only the watcher gets.
func besideStream(kind Kind, b *beside) *stream {
	st := newStream(kind, -1, -1, false)
	st.beside = b
	return st
}

// readFiles reads beside the agent what it writes into the caller's files, from
// a descriptor on. One file behind both is read once.
func (s *Session) readFiles(files [3]uintptr, from int) {
	var fds []int
	for fd := from; fd <= 2; fd++ {
		if files[fd] != uintptr(fd) || fd == 2 && from == 1 && term.Same(1, 2) {
			continue
		}
		if b, ok := readBeside(fd); ok {
			s.streams = append(s.streams, besideStream(kindOf(fd), b))
			s.files[kindOf(fd)], fds = b.id, append(fds, b.fd)
		}
	}
	if fds != nil {
		s.changes, _ = newFileWatch(fds) // an error is the user's limit of instances: then we look each second
	}
}

// readRest takes what the agent wrote last. It has ended, and a write into a
// file is there when it returns.
func (s *Session) readRest() {
	for _, st := range s.streams {
		for st.beside != nil && s.pump(st, true, false) {
		}
	}
}

// lookEach is how often files are looked at whose changes nobody tells, ms.
const lookEach = 1000

// besideTimeout is how long poll may wait as far as files are concerned, ms.
func (s *Session) besideTimeout(ms int) int {
	for _, st := range s.streams {
		switch {
		case st.beside == nil || s.ended:
		case st.beside.more:
			return 0
		case s.changes == nil && (ms < 0 || ms > lookEach):
			ms = lookEach
		}
	}
	return ms
}

// Beside reports whether output of a kind is read beside the agent.
func (s *Session) Beside(k Kind) bool { return s.files[k] != fileID{} }

// Shares reports whether another process has the file that output of a kind
// goes to for its own: then nobody knows whose words are whose.
func (s *Session) Shares(k Kind, pid int) bool { return holds(pid, s.files[k]) }
