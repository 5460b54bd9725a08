//go:build linux && (mips || mipsle || mips64 || mips64le)

package door

const (
	stackFirst = false // clone(2) takes the stack before the flags
	sigSetMask = 3     // SIG_SETMASK
)
