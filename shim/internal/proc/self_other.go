//go:build !linux

package proc

import (
	"os/signal"
	"syscall"
)

// CatchesStop says that qshim must not ask to be notified of SIGTSTP: the
// runtime's handler could not be taken away again, and qshim could not stop.
const CatchesStop = false

// defaultAction has nothing to do: SIGTSTP was never caught.
func defaultAction(syscall.Signal) (restore func()) { return func() {} }

// dies makes sig one that ends us. The runtime passes only these on to the kernel;
// of the others it makes a crash, or nothing.
func dies(sig syscall.Signal) bool {
	signal.Reset(sig)
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGKILL
}

// HushStops has nothing to do: a SIGCHLD too many does no harm.
func HushStops() (news func()) { return func() {} }
