package proc

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"qshim/shim/internal/door"
)

// Start starts the agent. An error is a syscall.Errno from the exec, as
// execve(2) gives it.
//
// With Spec.Pair the first process in the new session is this binary again
// (package door): only a member of the session can give birth to H, and H must
// be there before the agent is. That process then execs the agent, so the agent
// still leads its session, still is our child, and has no child that it did not
// make.
//
//	qshim ── agent (leads session and group A)
//	     └── H (same session, group H) ── Z (group A)
//
// Group A now has a member, Z, whose parent is in the session and in another
// group. So A is not orphaned, and the kernel stops it for Ctrl-Z as under a
// shell.
func Start(spec Spec) (*Child, error) {
	if spec.Terminal && spec.Pair {
		return startPair(spec)
	}
	attr := &syscall.ProcAttr{Env: spec.Env, Files: spec.Files[:], Sys: &syscall.SysProcAttr{}}
	if spec.Terminal {
		attr.Sys.Setsid, attr.Sys.Setctty = true, true
	} else if spec.KillWithUs {
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	pid, err := syscall.ForkExec(spec.Path, spec.Argv, attr)
	if err == syscall.ENOEXEC { // a script without #!: every shell hands it to sh
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"/bin/sh", spec.Path}, spec.Argv[1:]...), attr)
	}
	if err != nil {
		return nil, err
	}
	return newChild(pid, spec.Terminal), nil
}

func newChild(pid int, leader bool) *Child {
	c := &Child{pid: pid, leader: leader, control: -1}
	c.start, _ = StartTime(pid) // our own unreaped child: it is there
	return c
}

func startPair(spec Spec) (*Child, error) {
	sock, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		closeAll(sock[0], sock[1])
		return nil, err
	}
	env := append(append(make([]string, 0, len(spec.Env)+3), spec.Env...), door.Role+"="+door.Agent, door.Exec+"="+spec.Path)
	if spec.Background {
		env = append(env, door.Back+"=1")
	}
	files := []uintptr{spec.Files[0], spec.Files[1], spec.Files[2], door.FDControl: uintptr(sock[1]), door.FDStatus: uintptr(pipe[1])}
	files, kept := keep(files, inherited)
	if kept != "" {
		env = append(env, door.Kept+"="+kept)
	}
	pid, err := syscall.ForkExec("/proc/self/exe", spec.Argv, &syscall.ProcAttr{
		Env:   env,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: true},
	})
	closeAll(sock[1], pipe[1])
	if err != nil {
		closeAll(sock[0], pipe[0])
		return nil, err
	}
	c := newChild(pid, true)
	failed := c.readStatus(pipe[0])
	closeAll(pipe[0])
	c.control = sock[0]
	if c.helper == 0 {
		closeAll(sock[0])
		c.control = -1
	}
	if failed != 0 {
		c.Close()
		_, _ = wait(pid)
		return nil, failed
	}
	return c, nil
}

// keep makes room for what the user has opened as descriptors 3 and 4 for the
// agent: behind files, at numbers that no other descriptor of the user's has,
// which kept names as door.Kept has it. Mostly there is none.
func keep(files []uintptr, inherited func(fd int) bool) (all []uintptr, kept string) {
	all = files
	for _, fd := range []int{door.FDControl, door.FDStatus} {
		at := 0
		if inherited(fd) {
			for inherited(len(all)) {
				all = append(all, uintptr(len(all))) // itself
			}
			at = len(all)
			all = append(all, uintptr(fd))
		}
		kept += "," + strconv.Itoa(at)
	}
	if len(all) == len(files) {
		return files, ""
	}
	return all, kept[1:]
}

// inherited reports whether fd is open and goes to children: what qshim opens
// itself does not.
func inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// readStatus reads until the exec has closed the pipe.
func (c *Child) readStatus(fd int) (failed syscall.Errno) {
	var b [door.StatusLen]byte
	for readFull(fd, b[:]) {
		switch b[0] {
		case door.StatusHelper:
			c.helper = door.Int(b[1:])
		case door.StatusFailed:
			failed = syscall.Errno(door.Int(b[1:]))
		}
	}
	return failed
}

// Foreground makes group the foreground group of the agent's terminal; 0 means
// the agent's own. It returns when that is done.
func (c *Child) Foreground(group int) {
	if group == 0 {
		group = c.pid
	}
	c.order(door.OrderForeground, group)
}

// Background puts whatever runs on the agent's terminal into its background, as
// a shell does with a job that it does not wait for.
func (c *Child) Background() { c.order(door.OrderBackground, 0) }

// helperPatience bounds the wait for an answer of H, which takes some 20 µs.
// H can be stopped or killed from outside; the terminal must not hang on that.
const helperPatience = 200 * time.Millisecond

func (c *Child) order(what byte, arg int) {
	if c.control < 0 {
		return
	}
	b := [door.OrderLen]byte{what}
	door.PutInt(b[1:], arg)
	if err := unix.Send(c.control, b[:], unix.MSG_NOSIGNAL); err != nil {
		return
	}
	for end := time.Now().Add(helperPatience); time.Now().Before(end); {
		if c.hear() == what {
			return
		}
		fds := []unix.PollFd{{Fd: int32(c.control), Events: unix.POLLIN}}
		_, _ = unix.Poll(fds, int(time.Until(end).Milliseconds())+1) // the loop looks itself
	}
}

// hear takes what H has said: the last byte, 0 when there is none.
func (c *Child) hear() (last byte) {
	var b [1]byte
	for {
		n, _, err := unix.Recvfrom(c.control, b[:], unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return last
		}
		last = b[0]
		c.ready = c.ready || last == door.AnswerReady
	}
}

// Close ends the pair. The agent has ended, or never was. A pair that is not
// complete yet, because the agent was very short, is not waited for: Z dies
// with H.
func (c *Child) Close() {
	if c.control < 0 {
		return
	}
	if c.hear(); c.ready {
		b := [door.OrderLen]byte{door.OrderQuit}
		_ = unix.Send(c.control, b[:], unix.MSG_NOSIGNAL) // if H is gone already, wait says so
	} else {
		_ = unix.Kill(c.helper, unix.SIGKILL) // our own unreaped child
	}
	_, _ = wait(c.helper)
	closeAll(c.control)
	c.control = -1
}

func wait(pid int) (unix.WaitStatus, error) {
	var ws unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &ws, 0, nil); err != unix.EINTR {
			return ws, err
		}
	}
}

func readFull(fd int, b []byte) bool {
	for len(b) > 0 {
		n, err := unix.Read(fd, b)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // nothing was buffered
	}
}

// CanPair reports whether the pair can be made: it needs the binary again.
func CanPair() bool {
	_, err := os.Readlink("/proc/self/exe")
	return err == nil
}
