//go:build !linux && !darwin

package proc

import "errors"

// ErrUnsupported says that qshim does not know how to look at processes here.
var ErrUnsupported = errors.New("qshim runs on Linux and macOS only")

// StartTime is not known here.
func StartTime(int) (uint64, error) { return 0, ErrUnsupported }

// PendingStop is not known here.
func PendingStop(int) bool { return false }

// Tree is not known here.
func Tree(int, int) []Target { return nil }

func parentOf(int) (int, error) { return 0, ErrUnsupported }
