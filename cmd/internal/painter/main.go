package painter

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Main runs a painter in this process, for a hidden subcommand: on a terminal
// when both streams are one, else headless needs -p. It returns the exit status.
func Main(args []string, stdin, stdout *os.File, stderr io.Writer, env func(string) string) int {
	events := make(chan os.Signal, 8)
	signal.Notify(events, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(events)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := World{
		Out: stdout, Err: stderr, Env: env, Signals: forward(ctx, events), Provider: func(o Options) Ask { return OverSocket(o.Provider) },
		Size: func() (int, int) { return size(stdout) },
		Now:  time.Now, Sleep: sleep, Rand: rand.Float64, Tick: 100 * time.Millisecond,
	}
	if fd := int(stdin.Fd()); term.IsTerminal(fd) {
		if old, err := term.MakeRaw(fd); err == nil {
			defer func() { _ = term.Restore(fd, old) }() // the terminal may be gone
		}
		w.In = stdin
	}
	return Run(ctx, args, w)
}

// forward turns the runtime's signals into plain numbers.
func forward(ctx context.Context, from <-chan os.Signal) <-chan syscall.Signal {
	to := make(chan syscall.Signal)
	go func() {
		for {
			select {
			case s := <-from:
				select {
				case to <- s.(syscall.Signal): // on Unix all signals are
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}

// size is the terminal's, or the usual one where there is none.
func size(f *os.File) (cols, rows int) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || cols < 1 || rows < 1 {
		return 80, 24
	}
	return cols, rows
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
