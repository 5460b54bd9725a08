//go:build !linux

package realagents

// Isolate is for Linux: nothing else has network namespaces.
func Isolate() (status int, err error) { return 0, ErrNoNamespace }

// Loopback is for Linux, as Isolate is.
func Loopback() error { return ErrNoNamespace }
