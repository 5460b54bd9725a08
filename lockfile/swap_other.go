//go:build !linux && !darwin

package lockfile

// swapAt does not exist here; the caller renames instead.
func swapAt(int, string, string) error { return ErrUnsupported }
