//go:build !linux

package proc

import "syscall"

// CatchesStop says that qshim must not ask to be notified of SIGTSTP: the
// runtime's handler could not be taken away again, and qshim could not stop.
const CatchesStop = false

// defaultAction has nothing to do: SIGTSTP was never caught.
func defaultAction(syscall.Signal) (restore func()) { return func() {} }

// HushStops has nothing to do: a SIGCHLD too many does no harm.
func HushStops() (news func()) { return func() {} }
