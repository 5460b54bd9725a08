//go:build linux && s390x

package door

const (
	stackFirst = true // clone(2) takes the stack before the flags
	sigSetMask = 2    // SIG_SETMASK
)
