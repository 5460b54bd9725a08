//go:build linux

package shim

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"qshim/shim/internal/proc"
	"qshim/shim/term"
)

// patience is how long a test waits for something that must come. It is long
// because a loaded machine is no failure; nothing waits for it to pass.
const patience = 30 * time.Second

// desk plays the user: a terminal, and one program started on it.
type desk struct {
	t      *testing.T
	master *os.File
	ref    unix.Termios // the terminal's state before anything ran
	pid    int

	mu     sync.Mutex
	cond   *sync.Cond
	out    []byte
	eof    bool
	exited bool
	status unix.WaitStatus
	reads  chan struct{} // closed when reading may begin
	ctl    *ctlServer
}

type deskOpt struct {
	cols, rows int
	env        []string
	dir        string
	lazy       bool // do not read before startReading
	ctl        bool
	files      [3]*os.File // instead of the terminal
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// agent is the command line of a test agent, wrapped that of one under qshim.
func agent(t *testing.T, a ...string) []string { return append([]string{self(t), agentArg}, a...) }
func wrapped(t *testing.T, a ...string) []string {
	return append([]string{self(t), wrapArg}, agent(t, a...)...)
}

func newDesk(t *testing.T, o deskOpt, argv ...string) *desk {
	t.Helper()
	if o.cols == 0 {
		o.cols, o.rows = 100, 30
	}
	master, slave, err := term.OpenPTY()
	if err != nil {
		t.Fatal(err)
	}
	if err := term.SetSize(master, unix.Winsize{Col: uint16(o.cols), Row: uint16(o.rows)}); err != nil {
		t.Fatal(err)
	}
	ref, err := unix.IoctlGetTermios(slave, unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, master: os.NewFile(uintptr(master), "desk"), ref: *ref, reads: make(chan struct{})}
	d.cond = sync.NewCond(&d.mu)
	env := append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor")
	if o.ctl {
		d.ctl = newCtlServer(t)
		env = append(env, ctlEnv+"="+d.ctl.path)
	}
	files := []uintptr{uintptr(slave), uintptr(slave), uintptr(slave)}
	ctty := -1
	for i, f := range o.files {
		if f != nil {
			files[i] = f.Fd()
		} else if ctty < 0 {
			ctty = i
		}
	}
	attr := &syscall.ProcAttr{Dir: o.dir, Env: append(env, o.env...), Files: files, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: ctty >= 0, Ctty: max(0, ctty)}}
	d.pid, err = syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		t.Fatal(err)
	}
	// With a slave of ours the terminal would never end; but it must exist
	// until the program has one.
	if err := unix.Close(slave); err != nil {
		t.Fatal(err)
	}
	go d.waitChild()
	go d.read()
	if !o.lazy {
		d.startReading()
	}
	t.Cleanup(d.end)
	return d
}

func (d *desk) startReading() { close(d.reads) }

func (d *desk) read() {
	<-d.reads
	b := make([]byte, 64<<10)
	for {
		n, err := d.master.Read(b)
		d.mu.Lock()
		d.out = append(d.out, b[:n]...)
		d.eof = d.eof || err != nil
		d.cond.Broadcast()
		d.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (d *desk) waitChild() {
	var ws unix.WaitStatus
	for {
		if _, err := unix.Wait4(d.pid, &ws, 0, nil); err != unix.EINTR {
			break
		}
	}
	d.mu.Lock()
	d.exited, d.status = true, ws
	d.cond.Broadcast()
	d.mu.Unlock()
}

// wait waits until f says yes about what has happened so far.
func (d *desk) wait(what string, f func() bool) {
	d.t.Helper()
	timer := time.AfterFunc(patience, func() { d.mu.Lock(); d.cond.Broadcast(); d.mu.Unlock() })
	defer timer.Stop()
	end := time.Now().Add(patience)
	d.mu.Lock()
	defer d.mu.Unlock()
	for !f() {
		if time.Now().After(end) {
			tail := d.out[max(0, len(d.out)-600):]
			d.t.Fatalf("waited in vain for %s; exited=%v eof=%v; last output %q", what, d.exited, d.eof, tail)
		}
		d.cond.Wait()
	}
}

// expect waits for s in the output and forgets everything up to its end.
func (d *desk) expect(s string) {
	d.t.Helper()
	d.wait(fmt.Sprintf("%q", s), func() bool { return bytes.Contains(d.out, []byte(s)) })
	d.mu.Lock()
	d.out = d.out[bytes.Index(d.out, []byte(s))+len(s):]
	d.mu.Unlock()
}

func (d *desk) output() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.out)
}

func (d *desk) send(s string) {
	d.t.Helper()
	if _, err := d.master.WriteString(s); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) resize(cols, rows int) {
	d.t.Helper()
	rc, err := d.master.SyscallConn()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := rc.Control(func(fd uintptr) {
		err := term.SetSize(int(fd), unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
		if err != nil {
			d.t.Error(err)
		}
	}); err != nil {
		d.t.Fatal(err)
	}
}

// termios reads the terminal's state. Without a slave open it is still there.
func (d *desk) termios() (tio unix.Termios) {
	d.t.Helper()
	rc, err := d.master.SyscallConn()
	if err != nil {
		d.t.Fatal(err)
	}
	_ = rc.Control(func(fd uintptr) {
		p, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		if err != nil {
			d.t.Error(err)
			return
		}
		tio = *p
	})
	return tio
}

// code waits for the program's end and gives its exit code as a shell would.
func (d *desk) code() int {
	d.t.Helper()
	d.wait("exit", func() bool { return d.exited })
	return proc.ExitCode(d.status)
}

// all waits for the end and returns everything not yet expected.
func (d *desk) all() string {
	d.t.Helper()
	d.wait("end of output", func() bool { return d.exited && d.eof })
	return d.output()
}

// end leaves nothing behind: the terminal hangs up, and what survives that is
// killed by its place in the family, never by name.
func (d *desk) end() {
	_ = d.master.Close()
	select {
	case <-d.reads:
	default:
		d.startReading()
	}
	for _, pid := range descendants(d.pid) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	_ = unix.Kill(d.pid, unix.SIGKILL)
	d.wait("the end", func() bool { return d.exited })
	if d.ctl != nil {
		d.ctl.close()
	}
	for _, pid := range leftovers() {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
}

// leftovers lists our own living children. Zombies are collected on the way.
func leftovers() (out []int) {
	for _, pid := range kids(os.Getpid()) {
		var ws unix.WaitStatus
		if got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil); err == nil && got == 0 {
			out = append(out, pid)
		}
	}
	return out
}

func kids(pid int) (out []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, w := range strings.Fields(string(b)) {
			n, _ := strconv.Atoi(w)
			out = append(out, n)
		}
	}
	return out
}

func descendants(pid int) (out []int) {
	for _, k := range kids(pid) {
		out = append(append(out, descendants(k)...), k)
	}
	return out
}

// state is the letter that ps shows, 0 when there is no such process. It is T
// only when every thread is stopped: not before is the parent told.
func state(pid int) (letter byte) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if err != nil {
			continue
		}
		if c := b[bytes.LastIndexByte(b, ')')+2]; letter == 0 || c != 'T' {
			letter = c
		}
	}
	return letter
}

// ctlServer is the test's end of a wrapper's socket.
type ctlServer struct {
	t    *testing.T
	path string
	l    net.Listener

	mu    sync.Mutex
	cond  *sync.Cond
	conn  net.Conn
	lines []string
}

func newCtlServer(t *testing.T) *ctlServer {
	t.Helper()
	dir, err := os.MkdirTemp("", "qshim") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &ctlServer{t: t, path: filepath.Join(dir, "ctl")}
	c.cond = sync.NewCond(&c.mu)
	if c.l, err = net.Listen("unix", c.path); err != nil {
		t.Fatal(err)
	}
	go c.serve()
	return c
}

func (c *ctlServer) serve() {
	conn, err := c.l.Accept()
	if err != nil {
		return
	}
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	for sc := bufio.NewScanner(conn); sc.Scan(); {
		c.mu.Lock()
		c.lines = append(c.lines, sc.Text())
		c.cond.Broadcast()
		c.mu.Unlock()
	}
}

func (c *ctlServer) close() {
	_ = c.l.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// order sends an order and waits until the wrapper has taken it.
func (c *ctlServer) order(s string) string {
	c.t.Helper()
	c.mu.Lock()
	_, err := fmt.Fprintln(c.conn, s)
	c.mu.Unlock()
	if err != nil {
		c.t.Fatal(err)
	}
	return c.expect("did " + strings.Fields(s)[0] + " ")
}

// send sends an order and does not wait.
func (c *ctlServer) send(s string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintln(c.conn, s); err != nil {
		c.t.Fatal(err)
	}
}

// forget drops what came and was not expected.
func (c *ctlServer) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = nil
}

// eventually waits for what only the process table tells.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); <-time.After(2 * time.Millisecond) { // a spinning test takes its sessions' processor
		if time.Now().After(end) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// expect waits for a line that begins with s, after the last one expected.
func (c *ctlServer) expect(s string) string {
	c.t.Helper()
	timer := time.AfterFunc(patience, func() { c.mu.Lock(); c.cond.Broadcast(); c.mu.Unlock() })
	defer timer.Stop()
	end := time.Now().Add(patience)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for i := 0; i < len(c.lines); i++ {
			if strings.HasPrefix(c.lines[i], s) {
				line := c.lines[i]
				c.lines = append(c.lines[:i:i], c.lines[i+1:]...)
				return line
			}
		}
		if time.Now().After(end) {
			c.t.Fatalf("waited in vain for %q; got %q", s, c.lines)
		}
		c.cond.Wait()
	}
}

// has reports whether such a line came and was not yet expected.
func (c *ctlServer) has(s string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		if strings.HasPrefix(l, s) {
			return true
		}
	}
	return false
}

// front is the foreground group of the desk's terminal.
func (d *desk) front() (pgrp int) {
	rc, err := d.master.SyscallConn()
	if err != nil {
		return 0
	}
	_ = rc.Control(func(fd uintptr) { pgrp, _ = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	return pgrp
}

func readProc(pid int, name string) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(b), err
}

// hasSoon waits for a line that begins with one of these, takes it, and says
// which came.
func (c *ctlServer) hasSoon(any ...string) string {
	c.t.Helper()
	timer := time.AfterFunc(patience, func() { c.mu.Lock(); c.cond.Broadcast(); c.mu.Unlock() })
	defer timer.Stop()
	end := time.Now().Add(patience)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for i, l := range c.lines {
			for _, s := range any {
				if strings.HasPrefix(l, s) {
					c.lines = append(c.lines[:i:i], c.lines[i+1:]...)
					return s
				}
			}
		}
		if time.Now().After(end) {
			c.t.Fatalf("waited in vain for one of %q; got %q", any, c.lines)
		}
		c.cond.Wait()
	}
}
