package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// The terminal that everything runs on.
const (
	rows = 40
	cols = 120
)

// limit bounds one run of one command; then all its processes are killed.
const limit = 30 * time.Second

// endWait is how long processes that outlive the command may take to end by
// themselves: tmux's server does.
const endWait = 2 * time.Second

// harness starts commands and ends them.
type harness struct {
	ctx  context.Context
	self string
	env  []string
}

// newHarness prepares an environment in which nothing of the user's is touched.
func newHarness(ctx context.Context, dir string) (*harness, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if self, err = installed(self, dir); err != nil {
		return nil, err
	}
	h := &harness{ctx: ctx, self: self}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if name == "TMUX" || name == "HOME" || name == "TERM" || strings.HasPrefix(name, "QSHIM") || strings.HasPrefix(name, "XDG_") {
			continue
		}
		h.env = append(h.env, e)
	}
	h.env = append(h.env, "HOME="+dir, "QSHIM_STATE_DIR="+dir+"/state", "TERM=xterm-256color")
	return h, adopt()
}

// run is one command on a terminal whose other end is ours.
type run struct {
	h       *harness
	cmd     *exec.Cmd
	tty     *os.File
	fd      int
	began   time.Time
	over    chan struct{}
	cut     chan struct{} // closed when it took too long
	watcher sync.WaitGroup
	buf     []byte
}

var errCut = errors.New("took too long and was killed")

// start runs words under w.
func (h *harness) start(w wrapper, words ...string) (*run, error) {
	if err := h.ctx.Err(); err != nil {
		return nil, err
	}
	line := w.line(words)
	r := &run{h: h, cmd: exec.Command(line[0], line[1:]...), over: make(chan struct{}), cut: make(chan struct{}), buf: make([]byte, 64<<10)}
	r.cmd.Env = h.env
	r.began = time.Now()
	var err error
	if r.tty, err = pty.StartWithSize(r.cmd, &pty.Winsize{Rows: rows, Cols: cols}); err != nil {
		return nil, err
	}
	r.fd = int(r.tty.Fd()) // blocking from here on: Go's poller would be measured too
	r.watcher.Go(r.watch)
	return r, nil
}

// watch kills what takes too long, until that is gone.
func (r *run) watch() {
	most := time.NewTimer(limit)
	defer most.Stop()
	select {
	case <-r.over:
		return
	case <-most.C:
	case <-r.h.ctx.Done():
	}
	close(r.cut)
	for {
		_ = r.cmd.Process.Kill() // it may have ended
		killChildren()
		select {
		case <-r.over:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// read returns what came next; an error when the terminal has ended.
func (r *run) read() ([]byte, error) {
	for {
		n, err := unix.Read(r.fd, r.buf)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case n == 0:
			return nil, unix.EIO
		default:
			return r.buf[:n], nil
		}
	}
}

// until reads up to a mark.
func (r *run) until(mark byte) error {
	for {
		b, err := r.read()
		if err != nil {
			return fmt.Errorf("ended before %q: %w", mark, r.why(err))
		}
		if bytes.IndexByte(b, mark) >= 0 {
			return nil
		}
	}
}

// drain reads until nothing came for a while.
func (r *run) drain(quiet time.Duration) error {
	for {
		fds := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(quiet.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		if _, err := r.read(); err != nil {
			return r.why(err)
		}
	}
}

func (r *run) why(err error) error {
	select {
	case <-r.cut:
		return errCut
	default:
		return err
	}
}

func (r *run) press(keys string) error {
	_, err := unix.Write(r.fd, []byte(keys))
	return err
}

// toEnd reads everything and waits for the command; how many bytes and how long.
func (r *run) toEnd() (n int, took time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		b, err := r.read()
		if err != nil {
			break // EIO: the terminal has no other end any more
		}
		n += len(b)
	}
	_ = r.cmd.Wait() // its code says nothing here: tmux tells that its server ended
	return n, time.Since(r.began), r.why(nil)
}

// end asks the workload to end, and sees to it that everything has ended.
func (r *run) end() {
	_ = r.press("q") // it may have ended
	if r.cmd.ProcessState == nil {
		_, _, _ = r.toEnd() // bounded by watch
	}
	_ = r.tty.Close()
	close(r.over)
	r.watcher.Wait()
	reapAll(endWait)
}
