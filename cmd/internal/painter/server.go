package painter

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Serve answers painters on a new socket until stop is called, each question on
// a goroutine of its own; ctx ends when the painter hangs up or on stop.
func Serve(path string, reply Ask) (stop func(), err error) {
	l, err := listenOn(path)
	if err != nil {
		return nil, err
	}
	s := &server{reply: reply, l: l}
	ctx, cancel := context.WithCancel(context.Background())
	s.busy.Go(func() { s.accept(ctx) })
	return func() {
		cancel()
		_ = l.Close() // ends accept
		s.busy.Wait()
	}, nil
}

// server is a provider that painters ask.
type server struct {
	reply Ask
	l     *os.File
	busy  sync.WaitGroup
}

// accept takes painters until the listener is closed.
func (s *server) accept(ctx context.Context) {
	raw, err := s.l.SyscallConn()
	if err != nil {
		return // closed before it began
	}
	for {
		var fd int
		var errno error
		closed := raw.Read(func(l uintptr) (done bool) {
			fd, _, errno = unix.Accept(int(l))
			return errno != unix.EAGAIN
		})
		switch {
		case closed != nil:
			return
		case errno == unix.EINTR || errno == unix.ECONNABORTED:
		case errno != nil:
			return // no descriptor is left: who waits is hung up on when the listener is closed
		default:
			unix.CloseOnExec(fd)
			s.busy.Go(func() { s.handle(ctx, file(fd, "painter")) })
		}
	}
}

// handle answers one question.
func (s *server) handle(ctx context.Context, conn *os.File) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxMessage)
	var q question
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &q) != nil {
		return
	}
	s.busy.Go(func() { // the painter says no more: what ends the read is its end
		lines.Scan()
		cancel()
	})
	say := json.NewEncoder(conn)
	err := s.reply(ctx, q.Prompt, func(text string) { _ = say.Encode(answer{Part: text}) }) // a painter that has gone is seen above
	if r, refused := err.(*Refusal); refused {
		_ = say.Encode(answer{Refusal: r}) // as above
	} else if err == nil {
		_ = say.Encode(answer{End: true}) // as above
	}
}
