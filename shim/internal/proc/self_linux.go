package proc

import (
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CatchesStop says that qshim may be notified of SIGTSTP: defaultAction can
// take the runtime's handler away for a while and give it back.
const CatchesStop = true

// defaultAction sets sig to SIG_DFL in the kernel and returns what undoes it.
// signal.Reset does not do that for SIGTSTP (Go 1.26: the runtime installs no
// handler for it at start, so it does not remove one either). The kernel's
// sigaction is at most 32 bytes; it is opaque here, and zeroed it is SIG_DFL
// without flags on every architecture.
func defaultAction(sig syscall.Signal) (restore func()) {
	if sig == unix.SIGSTOP {
		return func() {}
	}
	var dfl, old [64]byte
	if sigaction(sig, &dfl, &old) != 0 {
		return func() {}
	}
	return func() { sigaction(sig, &old, nil) }
}

// dies makes sig one that ends us. Where cores go into a program, only a process
// that must not be dumped writes none (core(5)).
func dies(sig syscall.Signal) bool {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // at worst there is one core too many
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	defaultAction(sig)
	return true
}

func sigaction(sig syscall.Signal, act, old *[64]byte) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(act)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	return errno
}

// noStopNews is SA_NOCLDSTOP, 1 on every architecture.
const noStopNews = 1

// HushStops lets the kernel say nothing of children that stop or continue until
// news is called; wait4 tells of them all the same, and of an end it still does. A
// SIGCHLD costs a process four changes of thread, at the moment at which 100 of
// them stop their agents.
func HushStops() (news func()) {
	if strings.HasPrefix(runtime.GOARCH, "mips") { // has the flags elsewhere
		return func() {}
	}
	set := func(bits func(flags uintptr) uintptr) {
		var act [64]byte
		if sigaction(unix.SIGCHLD, nil, &act) != 0 {
			return
		}
		flags := (*uintptr)(unsafe.Pointer(&act[unsafe.Sizeof(uintptr(0))])) // behind the handler
		*flags = bits(*flags)
		sigaction(unix.SIGCHLD, &act, nil)
	}
	set(func(flags uintptr) uintptr { return flags | noStopNews })
	return func() { set(func(flags uintptr) uintptr { return flags &^ noStopNews }) }
}
