package realagents

import (
	"errors"
	"net"
	"os"
)

// ErrNoNamespace is why the scenarios cannot run here.
var ErrNoNamespace = errors.New("no network namespace can be made here")

// isolatedMark tells the child of Isolate that it is one. Its presence is not
// believed: see Isolated.
const isolatedMark = "QSHIM_TEST_ISOLATED"

// Isolated reports whether this process has no network but loopback. It looks
// at the interfaces, since an agent that reached the real network would call
// real hosts.
func Isolated() bool {
	if os.Getenv(isolatedMark) == "" {
		return false
	}
	all, err := net.Interfaces()
	if err != nil {
		return false
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return false
		}
	}
	return true
}
