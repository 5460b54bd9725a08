// Command qshim runs an agent CLI so that siblings on one account wait together.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"qshim/shim"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: qshim AGENT [args...]")
		os.Exit(2)
	}
	path, err := exec.LookPath(os.Args[1])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		fmt.Fprintf(os.Stderr, "qshim: %s: not found\n", os.Args[1])
		os.Exit(127)
	}
	s, err := shim.Start(shim.Options{Path: path, Argv: os.Args[1:], Env: os.Environ(), Streams: true})
	if err != nil {
		fmt.Fprintf(os.Stderr, "qshim: %v\n", err)
		code := 126
		if e := (*shim.StartError)(nil); errors.As(err, &e) {
			code = e.Code
		}
		os.Exit(code)
	}
	os.Exit(s.Run())
}
