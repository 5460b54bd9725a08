//go:build !linux

package proc

import "syscall"

func signalPinned(t Target, sig syscall.Signal, _ bool) error { return signalByNumber(t, sig) }

// IsStopped knows nothing here.
func IsStopped(int, uint64) (stopped, known bool) { return false, false }
