package door

import (
	"syscall"
	"unsafe"
)

func init() {
	role, ok := syscall.Getenv(Role)
	if !ok {
		return
	}
	switch role {
	case Agent:
		if path, ok := syscall.Getenv(Exec); ok {
			runAgent(path)
		}
	case H:
		runHelper()
	case Z:
		park()
	}
	// Set by somebody else: it means nothing, and it must not travel on.
	_ = syscall.Unsetenv(Role)
}

// runAgent brings H to life in this session and then becomes the agent.
func runAgent(path string) {
	syscall.CloseOnExec(FDControl)
	syscall.CloseOnExec(FDStatus)
	argv, errno := commandLine()
	if errno == 0 {
		startHelper()
		env := agentEnv()
		errno = exec(path, argv, env)
		if errno == syscall.ENOEXEC { // a script without #!: every shell hands it to sh
			errno = exec("/bin/sh", append([]string{"/bin/sh", path}, argv[1:]...), env)
		}
	}
	say(StatusFailed, int(errno))
	exit(127)
}

func exec(path string, argv, env []string) syscall.Errno {
	if errno, ok := syscall.Exec(path, argv, env).(syscall.Errno); ok {
		return errno
	}
	return syscall.EINVAL
}

// startHelper starts H as a child of qshim, not of the agent: an agent that
// waits for any child must not meet one that it never made. Without H there is
// no job control, and nothing else is lost.
func startHelper() {
	back, _ := syscall.Getenv(Back)
	files := []uintptr{FDControl}
	var pipe [2]int
	if back == "1" && syscall.Pipe2(pipe[:], syscall.O_CLOEXEC) == nil {
		files = append(files, uintptr(pipe[1]))
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name}, &syscall.ProcAttr{
		Env:   []string{Role + "=" + H},
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_PARENT},
	})
	if err != nil {
		return
	}
	say(StatusHelper, pid)
	if back == "1" {
		setForeground(0, pid)
	}
	if len(files) > 1 {
		// An agent in the background reads at once, and must be stopped for it:
		// before Z is in its place the kernel would give it an error instead.
		_ = syscall.Close(pipe[1])
		var b [1]byte
		readFull(pipe[0], b[:])
	}
}

// runHelper is H. It ignores every signal (so that Z inherits that from its
// first instruction on), starts Z and obeys orders until qshim is gone.
func runHelper() {
	ignoreSignals()
	setName()
	syscall.CloseOnExec(0)
	syscall.CloseOnExec(1) // open only when the agent waits
	group := getsid()
	z := startParked(group)
	buf := make([]byte, OrderLen)
	buf[0] = AnswerReady
	_, _ = syscall.Write(0, buf[:1]) // qshim may have died: the next read says so
	_ = syscall.Close(1)             // the agent may begin, if it waits for that
	Shed()
	for readFull(0, buf) {
		arg := Int(buf[1:])
		switch buf[0] {
		case OrderForeground:
			withTerminal(func(fd int) { setForeground(fd, arg) })
		case OrderBackground:
			withTerminal(func(fd int) { setForeground(fd, syscall.Getpid()) })
		case OrderQuit:
			reap(z)
			exit(0)
		}
		_, _ = syscall.Write(0, buf[:1]) // qshim may have died: the next read says so
	}
	// qshim is gone without a word. What it stopped must not stay stopped, and
	// what hung on its terminal has lost it. Z keeps the group's number taken.
	_ = syscall.Kill(-group, syscall.SIGHUP)
	_ = syscall.Kill(-group, syscall.SIGCONT)
	reap(z)
	exit(0)
}

// startParked starts Z in the agent's group; 0 when it could not.
func startParked(group int) int {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name}, &syscall.ProcAttr{
		Env: []string{Role + "=" + Z},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0
	}
	return pid
}

// park is Z: it only has to exist. Ignored signals came with it from H, but Go's
// runtime has put its own handlers over most of them.
func park() {
	ignoreSignals()
	setName()
	Shed()
	for {
		_, _, _ = syscall.Syscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

func reap(pid int) {
	if pid <= 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// commandLine reads the argument vector, which only package os could give,
// from the kernel. It is exact: arguments hold no NUL.
func commandLine() ([]string, syscall.Errno) {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, syscall.ENOSYS
	}
	defer syscall.Close(fd)
	var all []byte
	buf := make([]byte, 4096)
	for {
		n, err := syscall.Read(fd, buf)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		all = append(all, buf[:n]...)
	}
	var argv []string
	for from, i := 0, 0; i < len(all); i++ {
		if all[i] == 0 {
			argv = append(argv, string(all[from:i]))
			from = i + 1
		}
	}
	if len(argv) == 0 {
		return nil, syscall.EINVAL
	}
	return argv, 0
}

func agentEnv() []string {
	for _, k := range []string{Role, Exec, Back} {
		_ = syscall.Unsetenv(k)
	}
	return syscall.Environ()
}

func say(what byte, v int) {
	b := [StatusLen]byte{what}
	PutInt(b[1:], v)
	_, _ = syscall.Write(FDStatus, b[:])
}

func readFull(fd int, b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Read(fd, b)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// withTerminal opens the controlling terminal for one call only: a descriptor
// kept open would keep the terminal from ending with the agent.
func withTerminal(f func(fd int)) {
	fd, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f(fd)
	_ = syscall.Close(fd)
}

func setForeground(fd, group int) {
	g := int32(group)
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&g)))
}

func getsid() int {
	sid, _, _ := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
	return int(sid)
}

// ignoreSignals leaves only what cannot be ignored, and SIGCHLD, without which
// H could not wait for Z. A kernel sigaction starts with the handler on every
// architecture that Go calls linux except mips, where this does nothing.
func ignoreSignals() {
	const sigIgn = 1
	var act [32]byte
	*(*uintptr)(unsafe.Pointer(&act)) = sigIgn
	for sig := uintptr(1); sig <= 64; sig++ {
		if sig == uintptr(syscall.SIGCHLD) {
			continue
		}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	}
}

func setName() {
	name := [16]byte{}
	copy(name[:15], Name)
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0)
}

func exit(code int) {
	syscall.Exit(code)
}
