package shim

import (
	"time"

	"golang.org/x/sys/unix"

	"qshim/shim/term"
)

// inputMost is how much of the user's input may wait for an agent that does not
// read, bytes. Beyond it the user's terminal feels the back pressure.
const inputMost = 64 << 10

// inputQueue keeps what the agent's terminal did not take yet.
type inputQueue struct{ b, all []byte }

func (q *inputQueue) room() bool { return len(q.b) < inputMost }

func (q *inputQueue) add(b []byte) {
	if len(q.b) == 0 {
		q.b = q.all[:0]
	}
	q.b = append(q.b, b...)
	q.all = q.b
}

// flush writes what the agent's terminal takes now.
func (q *inputQueue) flush(fd int) {
	for len(q.b) > 0 {
		n, err := writeNow(fd, q.b)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return
		case err != nil: // the agent's terminal is gone: nobody will read this
			q.b = nil
			return
		}
		q.b = q.b[n:]
	}
}

// pump moves one stream on: first what waits, then what comes. It reports
// whether anything moved.
func (s *Session) pump(st *stream, src, dst bool) (moved bool) {
	if before := len(st.pend); dst {
		if !st.write() {
			s.lost(st)
			return false
		}
		moved = len(st.pend) < before
	}
	if !src || len(st.pend) > 0 {
		return moved
	}
	n := st.read()
	if n > 0 {
		s.deliver(st, st.buf[:n])
	}
	if st.down {
		s.noMore(st)
	}
	return moved || n > 0
}

// deliver gives output to the user first, and then to whoever watches.
func (s *Session) deliver(st *stream, b []byte) {
	if len(s.undo) > 0 && st.tty {
		s.takeAway()
	}
	if st.dst >= 0 && !st.keep(b) {
		st.pend = b
		if !st.write() {
			s.lost(st)
		}
	}
	if st.tty {
		s.total += uint64(len(b))
	}
	if s.ended || !s.flood.IsZero() {
		st.lastAt = time.Now()
	}
	if st.beside != nil && st.beside.skipped() {
		s.opt.Tap.drop(st.kind)
	}
	switch s.opt.Tap.output(st.kind, b, s.total) {
	case tapTold:
		s.owed = false
	case tapOwed:
		s.owed = true
	case tapFlood:
		if s.flood.IsZero() {
			st.lastAt = time.Now()
			s.flood = st.lastAt
		}
	}
	if !s.fg {
		s.lookForeground()
	}
}

// lost: the user's end of a stream is gone. A pipe is closed, so that the agent
// gets the SIGPIPE that it would have got; a terminal has hung up.
func (s *Session) lost(st *stream) {
	st.pend, st.dst = nil, -1
	if !st.tty {
		s.closeSrc(st)
		return
	}
	s.hangup()
}

// closeSrc closes a stream's source while the session goes on.
func (s *Session) closeSrc(st *stream) {
	if s.poll != nil && st.src >= 0 {
		s.poll.forget(st.src)
	}
	st.closeSrc()
}

// noMore: a stream's source has no other end now.
func (s *Session) noMore(st *stream) {
	if !st.tty {
		s.closeSrc(st)
		return
	}
	s.lookChild() // most likely it has just ended
}

// hangup: the user's terminal is gone. Closing the agent's does to it what the
// kernel did to ours: SIGHUP, SIGCONT, and errors from then on.
func (s *Session) hangup() {
	if s.gone {
		return
	}
	s.gone, s.hungUp = true, true
	s.held.Store(false)
	for _, st := range s.streams {
		if st.tty {
			st.pend, st.dst = nil, -1
			s.closeSrc(st)
		}
	}
	s.input.b, s.inFD, s.master = nil, -1, -1
	_ = s.child.SignalGroup(unix.SIGHUP) // it may have ended
	_ = s.child.Continue()
}

// readKeys takes what the user typed.
func (s *Session) readKeys() {
	read := unix.Read
	if s.user.Own() {
		read = readNow
	}
	n, err := read(s.stdin, s.keys)
	switch {
	case err == unix.EINTR || err == unix.EAGAIN:
		return
	case err != nil || n == 0:
		if s.lookForeground(); s.fg { // EIO in the background is only an orphaned job that reads
			s.hangup()
		}
		return
	}
	b := s.keys[:n]
	if s.held.Load() {
		s.report.find(b)
		s.opt.Tap.input(b, true)
		return
	}
	if b = s.report.cut(b); len(b) == 0 {
		return
	}
	s.lastKey = b[len(b)-1]
	s.watchKeys(b)
	s.input.add(b)
	s.input.flush(s.inFD)
	s.brisk = briskRounds
	if s.opt.Tap != nil {
		s.opt.Tap.input(b, false)
	}
}

// briskRounds: the echo, and the key after it.
const briskRounds = 2

// syncSize passes the terminal's size on. The kernel tells the agent.
func (s *Session) syncSize() {
	if s.user == nil || s.master < 0 {
		return
	}
	ws, err := s.user.Size()
	if err != nil || ws == s.size {
		return
	}
	s.size = ws
	_ = term.SetSize(s.master, ws) // fails only when the agent's terminal is gone
	s.opt.Tap.event(Item{Kind: Resized, Cols: int(ws.Col), Rows: int(ws.Row)})
}
