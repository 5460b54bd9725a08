package proc

import (
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

func sigaction(sig syscall.Signal, act, old *[64]byte) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(act)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	return errno
}
