package main

import (
	"fmt"
	"io"

	"qshim/lockfile"
)

func printReleased(w io.Writer, l lockfile.Ledger, ids []string) {
	if len(ids) == 0 {
		_, _ = fmt.Fprintln(w, "No limiter is held.")
	}
	for _, id := range ids {
		_, _ = fmt.Fprintf(w, "Released %s (%s). Sessions that wait go on one after another.\n", limiterName(l.Limiters[id]), printable(id))
	}
}

func printContinued(w io.Writer, n int) {
	switch n {
	case 0:
		_, _ = fmt.Fprintln(w, "Nothing is suspended.")
	case 1:
		_, _ = fmt.Fprintln(w, "Continued 1 session. It runs until the hold that stopped it ends.")
	default:
		_, _ = fmt.Fprintf(w, "Continued %d sessions. They run until the holds that stopped them end.\n", n)
	}
}
