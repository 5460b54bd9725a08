package door

import (
	"syscall"
	"unsafe"
)

// H and Z are forked, not executed: they live as long as the agent, and a Go
// program of their own would take 2.5 MiB and 2.4 ms of a processor each, while
// the agent waits for them. What a fork of a Go program may do is little: the
// runtime's other threads are not there, and its locks stay as they were at that
// instant. So everything below is system calls on what was made before, without
// allocation, growth of the stack (nosplit) or a call into the runtime, as in
// syscall.forkAndExecInChild.

// helper is what H is told by the process that forks it.
type helper struct {
	group         uintptr // the agent's process group, which is its session too
	ready         uintptr // written to when Z is in its place
	args, argsEnd uintptr // memory of the command line
}

// fork brings H to life. It returns H's process id, 0 if there is none.
//
//go:norace
//go:nosplit
//go:noinline
func (h *helper) fork() int {
	// A signal in H would run a handler of Go's without Go's threads.
	var all, mask uint64 = ^uint64(0), 0
	sigmask(uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&mask)))
	pid := clone(syscall.CLONE_PARENT | uintptr(syscall.SIGCHLD))
	if pid == 0 {
		h.run()
	}
	sigmask(uintptr(unsafe.Pointer(&mask)), 0)
	if int(pid) < 0 {
		return 0
	}
	return int(pid)
}

// run is H. It ignores every signal, starts Z, and obeys orders until qshim is
// gone. It does not return.
//
//go:norace
//go:nosplit
func (h *helper) run() {
	call(syscall.SYS_SETPGID, 0, 0, 0)
	ignoreSignals()
	h.rename()
	h.closeOthers()
	z := h.startParked()
	b := [OrderLen]byte{AnswerReady}
	at := uintptr(unsafe.Pointer(&b))
	call(syscall.SYS_WRITE, FDControl, at, 1) // qshim may have died: the next read says so
	call(syscall.SYS_CLOSE, h.ready, 0, 0)
	for readAll(FDControl, at, OrderLen) {
		arg := uintptr(b[1]) | uintptr(b[2])<<8 | uintptr(b[3])<<16 | uintptr(b[4])<<24
		switch b[0] {
		case OrderForeground:
			terminalGroup(arg)
		case OrderBackground:
			terminalGroup(call(syscall.SYS_GETPID, 0, 0, 0))
		case OrderQuit:
			quit(z)
		}
		call(syscall.SYS_WRITE, FDControl, at, 1) // as above
	}
	// qshim is gone without a word. What it stopped must not stay stopped, and
	// what hung on its terminal has lost it. Z keeps the group's number taken.
	call(syscall.SYS_KILL, -h.group, uintptr(syscall.SIGHUP), 0)
	call(syscall.SYS_KILL, -h.group, uintptr(syscall.SIGCONT), 0)
	quit(z)
}

// startParked starts Z in the agent's group. Z only has to exist: it dies with H.
//
//go:norace
//go:nosplit
func (h *helper) startParked() uintptr {
	self := call(syscall.SYS_GETPID, 0, 0, 0)
	z := clone(uintptr(syscall.SIGCHLD))
	if z != 0 {
		return z
	}
	call(syscall.SYS_SETPGID, 0, h.group, 0)
	call(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0)
	b := [1]byte{}
	if call(syscall.SYS_GETPPID, 0, 0, 0) == self { // else H died before
		call(syscall.SYS_WRITE, h.ready, uintptr(unsafe.Pointer(&b)), 1)
		call(syscall.SYS_CLOSE, h.ready, 0, 0)
		call(syscall.SYS_CLOSE, FDControl, 0, 0)
		for {
			call(syscall.SYS_PPOLL, 0, 0, 0)
		}
	}
	end(0)
	return 0
}

// quit ends H and Z.
//
//go:norace
//go:nosplit
func quit(z uintptr) {
	if int(z) > 0 {
		call(syscall.SYS_KILL, z, uintptr(syscall.SIGKILL), 0)
		for int(call(syscall.SYS_WAIT4, z, 0, 0)) == -int(syscall.EINTR) {
		}
	}
	end(0)
}

// rename makes ps show H and Z by their own name: they must not look like the
// agent, whose command line this process has.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (h *helper) rename() {
	var name [16]byte
	for i := range len(Name) {
		name[i] = Name[i]
	}
	call(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0)
	for p := h.args; p < h.argsEnd; p++ {
		b := byte(0)
		if i := p - h.args; i < uintptr(len(Name)) && p+1 < h.argsEnd {
			b = name[i]
		}
		// The kernel's own memory of this process: no object of Go's is there.
		*(*byte)(unsafe.Add(unsafe.Pointer(nil), p)) = b
	}
}

// closeOthers closes all descriptors but the two that H needs: one of the
// terminal, or of a pipe that the user opened for the agent, must end with it.
//
//go:norace
//go:nosplit
func (h *helper) closeOthers() {
	for fd := uintptr(0); fd < FDControl; fd++ {
		call(syscall.SYS_CLOSE, fd, 0, 0)
	}
	call(syscall.SYS_CLOSE, FDStatus, 0, 0)
	const closeRange = 436 // close_range(2), Linux 5.9; everywhere but on alpha
	if call(closeRange, h.ready+1, 1<<31-1, 0) == 0 {
		call(closeRange, FDStatus+1, h.ready-1, 0)
		return
	}
	for fd := uintptr(FDStatus + 1); fd < 256; fd++ {
		if fd != h.ready {
			call(syscall.SYS_CLOSE, fd, 0, 0)
		}
	}
}

// terminalGroup sets the foreground group of the controlling terminal, which is
// open for this one call only.
//
//go:norace
//go:nosplit
func terminalGroup(group uintptr) {
	path := [...]byte{'/', 'd', 'e', 'v', '/', 't', 't', 'y', 0}
	const atCWD = ^uintptr(99) // AT_FDCWD, -100
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, atCWD, uintptr(unsafe.Pointer(&path)), syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno == 0 {
		setForeground(fd, group)
		call(syscall.SYS_CLOSE, fd, 0, 0)
	}
}

//go:norace
//go:nosplit
func setForeground(fd, group uintptr) {
	g := int32(group)
	call(syscall.SYS_IOCTL, fd, syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&g)))
}

// readAll reads n bytes to memory at; false: the other end is closed.
//
//go:norace
//go:nosplit
func readAll(fd, at, n uintptr) bool {
	for n > 0 {
		got := call(syscall.SYS_READ, fd, at, n)
		if int(got) == -int(syscall.EINTR) {
			continue
		}
		if int(got) <= 0 {
			return false
		}
		at, n = at+got, n-got
	}
	return true
}

// ignoreSignals leaves only what cannot be ignored, and SIGCHLD, without which
// H could not wait for Z. A kernel sigaction starts with the handler on every
// architecture that Go calls linux except mips, where this does nothing: there
// and everywhere the mask of fork keeps signals away too.
//
//go:norace
//go:nosplit
func ignoreSignals() {
	const sigIgn = 1
	var act [32]byte
	*(*uintptr)(unsafe.Pointer(&act)) = sigIgn
	for sig := uintptr(1); sig <= 64; sig++ {
		if sig != uintptr(syscall.SIGCHLD) {
			sigaction(sig, uintptr(unsafe.Pointer(&act)))
		}
	}
}

//go:norace
//go:nosplit
func sigaction(sig, act uintptr) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, act, 0, 8, 0, 0)
}

//go:norace
//go:nosplit
func sigmask(set, old uintptr) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetMask, set, old, 8, 0, 0)
}

// clone is fork(2) with flags: 0 in the new process, its id in the old one,
// negative if there is none.
//
//go:norace
//go:nosplit
func clone(flags uintptr) uintptr {
	a, b := flags, uintptr(0)
	if stackFirst {
		a, b = b, a
	}
	return call(syscall.SYS_CLONE, a, b, 0)
}

// call is a system call; a failure is the negative errno.
//
//go:norace
//go:nosplit
func call(nr, a, b, c uintptr) uintptr {
	r, _, errno := syscall.RawSyscall6(nr, a, b, c, 0, 0, 0)
	if errno != 0 {
		return -uintptr(errno)
	}
	return r
}

//go:norace
//go:nosplit
func end(code uintptr) {
	for {
		call(syscall.SYS_EXIT_GROUP, code, 0, 0)
	}
}
