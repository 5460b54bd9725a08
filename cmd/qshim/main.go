// A shim's few threads need no share of a container's processors, and to find it
// out is a seventh of a start's CPU (cgroup files, and two descriptors for ever).
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command qshim runs an agent CLI in front of which it stands, so that siblings
// on one account wait together and go on one after another.
package main

import (
	"context"
	"os"
)

func main() {
	a := newApp()
	code := a.run(context.Background(), os.Args)
	a.end.Die()
	os.Exit(code)
}
