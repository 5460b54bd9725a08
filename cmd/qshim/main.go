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
