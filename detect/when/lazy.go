package when

import (
	"regexp"
	"sync"
)

// lazily compiles a pattern at its first use: each start of qshim would pay for
// all of them (0.8 ms), and most sessions never meet a time.
func lazily(src string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(src) })
}
