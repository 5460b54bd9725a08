package shim

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"qshim/shim/internal/proc"
	"qshim/shim/term"
)

// startOnPipes starts the agent without a terminal of its own, in our process
// group: the keys of whatever terminal the pipeline stands on reach it without
// our help. stdin is the caller's own descriptor. stdout and stderr are too,
// unless they are pipes and the profile can read them: then they are pipes of
// ours, one if both are the same open file, so that 2>&1 keeps its order. So is
// a file on stdout whose document is spooled. Other files are read beside the
// agent.
func (s *Session) startOnPipes() error {
	files := [3]uintptr{0, 1, 2}
	var ends pipeEnds
	defer ends.close()
	if s.opt.Streams {
		same := term.Same(1, 2)
		for fd := 1; fd <= 2; fd++ {
			spooled := fd == 1 && s.opt.Spool != nil
			if !isPipe(fd) && !(spooled || s.opt.Spool != nil && same) {
				continue
			}
			if fd == 2 && same {
				files[2] = files[1]
				continue
			}
			st, err := s.ownPipe(fd, &files, &ends)
			if err != nil {
				return errors.Join(err, s.closeStreams())
			}
			if spooled {
				st.spool = s.opt.Spool
			}
		}
		s.readFiles(files, 1)
	}
	var err error
	if s.opt.Feed != nil {
		var p [2]int
		if err = unix.Pipe(p[:]); err != nil {
			return errors.Join(err, s.closeStreams())
		}
		unix.CloseOnExec(p[0])
		unix.CloseOnExec(p[1])
		files[0], ends = uintptr(p[0]), append(ends, p[0])
		s.opt.Feed.begin(p[1])
	}
	err = s.exec(proc.Spec{Path: s.opt.Path, Argv: s.opt.Argv, Env: s.opt.Env, Files: files, KillWithUs: true})
	if err != nil {
		if s.opt.Feed != nil {
			s.opt.Feed.end()
		}
		return errors.Join(err, s.closeStreams())
	}
	return nil
}

// pipeEnds are the agent's ends of our pipes, ours to close once it has them.
type pipeEnds []int

func (e *pipeEnds) close() {
	for _, fd := range *e {
		_ = unix.Close(fd)
	}
}

// ownPipe gives the agent a pipe of ours in the place of the caller's fd.
func (s *Session) ownPipe(fd int, files *[3]uintptr, ends *pipeEnds) (*stream, error) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return nil, err
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	_ = unix.SetNonblock(p[0], true) // a pipe of ours: it cannot fail
	files[fd], *ends = uintptr(p[1]), append(*ends, p[1])
	st := pipeStream(fd, p[0])
	s.streams = append(s.streams, st)
	return st, nil
}

func (s *Session) closeStreams() error {
	for _, st := range s.streams {
		st.closeSrc()
		if st.beside != nil {
			_ = unix.Close(st.beside.fd)
		}
	}
	s.streams = nil
	return nil
}

// isPipe reports whether fd is a pipe, a FIFO or a socket.
func isPipe(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	mode := st.Mode & unix.S_IFMT
	return mode == unix.S_IFIFO || mode == unix.S_IFSOCK
}

func kindOf(fd int) Kind {
	if fd == 2 {
		return Stderr
	}
	return Stdout
}

// pipeStream copies from src to the caller's fd without ever waiting in write:
// by a non-blocking open file of our own where the system has a link to it, by
// MSG_DONTWAIT into a socket, else a little at a time.
func pipeStream(fd, src int) *stream {
	st := newStream(kindOf(fd), src, fd, false)
	st.dstKind = dstShared
	if !isPipe(fd) {
		return st // a file: an open file of our own would begin at its start
	}
	if own, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0); err == nil {
		st.dst, st.dstKind = own, dstNonblock
		return st
	}
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err == nil {
		st.dstKind = dstSocket
	}
	return st
}
