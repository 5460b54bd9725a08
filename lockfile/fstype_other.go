//go:build !linux && !darwin

package lockfile

// remoteFS cannot tell on this system.
func remoteFS(int) (string, bool) { return "", false }
