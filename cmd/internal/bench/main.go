// Command bench compares qshim with the other ways to run a command on a
// terminal of its own: none at all, the least that a wrapper in Go can be (the
// bare loop), script and tmux. All are measured in turn within each round, and
// ratios are taken within a round, because a machine that others use is slower
// in one minute than in the next.
//
//	go run ./cmd/internal/bench ./qshim
//
// It needs nothing but the binary, keeps its state in a directory of its own,
// and ends everything that it started.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && part(os.Args[1:]) {
		return
	}
	o := options{}
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of everything")
	flag.IntVar(&o.keys, "keys", 300, "keys a round")
	flag.IntVar(&o.mib, "mib", 32, "MiB of each kind of output a round")
	flag.DurationVar(&o.window, "window", 2*time.Second, "how long an idle and a painting command are watched")
	flag.DurationVar(&o.most, "most", 5*time.Minute, "after this everything is ended and what was measured is printed")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: bench [flags] QSHIM")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || o.rounds < 1 || o.keys < 1 || o.mib < 1 || o.window <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := bench(ctx, flag.Arg(0), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are how much is measured.
type options struct {
	rounds, keys, mib int
	window, most      time.Duration
}

// bench measures, prints, and leaves nothing behind.
func bench(ctx context.Context, qshim string, o options) (err error) {
	qshim, err = filepath.Abs(qshim)
	if err != nil {
		return err
	}
	if _, err := os.Stat(qshim); err != nil {
		return fmt.Errorf("%w: build it first (make build)", err)
	}
	dir, err := os.MkdirTemp("", "qshim-bench")
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, os.RemoveAll(dir)) }()
	bounded, cancel := context.WithTimeout(ctx, o.most)
	defer cancel()
	h, err := newHarness(bounded, dir)
	if err != nil {
		return err
	}
	if qshim, err = installed(qshim, dir); err != nil {
		return err
	}
	all, err := wrappers(h.self, qshim, dir)
	if err != nil {
		return err
	}
	t := measure(h, all, o)
	t.print(os.Stdout)
	return ctx.Err()
}

// installed copies a program into dir. What a linker has written lies page by page
// in the kernel's cache until the machine needs the room, and each start maps those
// pages one at a time (1 ms for qshim's 11 MB, 0.2 for a bare loop's 3); a file that
// was copied, as an installation does, lies there in large pieces.
func installed(file, dir string) (string, error) {
	from, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = from.Close() }() // only read
	name := filepath.Join(dir, filepath.Base(file))
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	return name, firstOf(err, to.Close())
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
