//go:build !faults

package fault

// Err is nil.
func Err(string) error { return nil }

// At does nothing.
func At(string) {}
