//go:build linux && !s390x && !mips && !mipsle && !mips64 && !mips64le

package door

const (
	stackFirst = false // clone(2) takes the stack before the flags
	sigSetMask = 2     // SIG_SETMASK
)
