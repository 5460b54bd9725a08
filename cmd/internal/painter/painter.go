package painter

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

// World is what a painter is given of the outside. Main fills it from the
// process; tests bring their own.
type World struct {
	In   io.Reader // keys; nil: none will come
	Out  io.Writer
	Err  io.Writer
	Env  func(string) string
	Size func() (cols, rows int)
	// Signals delivers SIGWINCH, SIGCONT and the ones that end it.
	Signals  <-chan syscall.Signal
	Provider func(Options) Ask
	Now      func() time.Time
	Sleep    func(context.Context, time.Duration) error
	Rand     func() float64
	Tick     time.Duration // between two frames of the spinner
}

// The exit statuses: those of claude -p, a shell's for usage and signals.
const (
	exitOK     = 0
	exitFailed = 1 // the task failed
	exitUsage  = 2
)

// Run does what the arguments say and returns the exit status: 0 the task is
// done, 1 it failed, 2 usage, 128+n ended by signal n.
func Run(ctx context.Context, args []string, w World) int {
	o, err := parse(args, w.Env, w.Err)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(w.Err, "painter:", err)
		return exitUsage
	}
	if o.Headless {
		return headless(ctx, o, w)
	}
	return newTUI(ctx, o, w).loop()
}

// headless prints the answers, or the error in their place, on standard output.
func headless(ctx context.Context, o Options, w World) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	status, done := exitOK, make(chan struct{})
	c := w.client(o, func(u update) {
		switch u.kind {
		case partCame:
			fmt.Fprint(w.Out, u.text)
		case callDone:
			fmt.Fprintln(w.Out)
		case taskFailed:
			fmt.Fprintln(w.Out, u.text)
			status = exitFailed
		}
	})
	go func() {
		defer close(done)
		c.run(ctx, 0)
	}()
	for {
		select {
		case <-done:
			return status
		case s := <-w.Signals:
			if ends(s) {
				stop()
				<-done
				return 128 + int(s)
			}
		}
	}
}

func (w World) client(o Options, tell func(update)) *client {
	return &client{o: o, provider: w.Provider(o), now: w.Now, sleep: w.Sleep, rand: w.Rand, tell: tell}
}

func ends(s syscall.Signal) bool {
	return s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGINT
}

// tui is the painter on a terminal. One goroutine owns it: loop.
type tui struct {
	o       Options
	w       World
	m       model
	c       canvas
	titled  string
	ctx     context.Context
	stop    context.CancelFunc
	updates chan update
	ended   chan int // the call that the client stopped at
	keys    chan []byte
	next    int  // call to begin with at the next turn
	running bool // the client
	failed  bool
	tasks   sync.WaitGroup
}

func newTUI(ctx context.Context, o Options, w World) *tui {
	t := &tui{o: o, w: w, m: model{o: o}, updates: make(chan update), ended: make(chan int, 1), keys: make(chan []byte)}
	t.ctx, t.stop = context.WithCancel(ctx)
	return t
}

// The modes that Claude Code 2.1.332 sets in its full-screen renderer, and how
// it leaves them [claude 7].
const (
	enter = "\x1b[?1049h\x1b[?2004h\x1b[?25l"
	leave = "\x1b[?25h\x1b[?2004l\x1b[?1049l"
)

// loop runs until the task is over (or, with Stay, the user leaves).
func (t *tui) loop() int {
	t.write([]byte(enter))
	defer func() {
		t.stop()
		t.drain()
		t.write([]byte(leave + "\x1b]0;\x07"))
	}()
	t.c.clear(t.w.Size())
	if t.w.In != nil {
		go t.readKeys()
	}
	t.begin(t.o.Name)
	tick := time.NewTicker(t.w.Tick)
	defer tick.Stop()
	var leaving <-chan time.Time
	for {
		t.paint()
		ticks := tick.C
		if !t.m.busy {
			ticks = nil // an idle screen does not change
		}
		select {
		case u := <-t.updates:
			t.m.take(u, t.w.Now())
			t.failed = u.kind == taskFailed
		case t.next = <-t.ended:
			t.running = false
			if !t.o.Stay {
				// A picture that is gone at once could be read by nobody.
				leaving = time.After(t.o.Linger)
			}
		case <-leaving:
			return t.status()
		case k := <-t.keys:
			if code, over := t.press(k); over {
				return code
			}
		case s := <-t.w.Signals:
			if ends(s) {
				return 128 + int(s)
			}
			t.again(s)
		case <-ticks:
			t.m.frame++
		case <-t.ctx.Done():
			return 128 + int(syscall.SIGTERM)
		}
	}
}

func (t *tui) status() int {
	if t.failed {
		return exitFailed
	}
	return exitOK
}

// begin starts a turn that does the calls which are left.
func (t *tui) begin(prompt string) {
	if t.next >= t.o.Calls {
		t.next = 0
	}
	t.m.begin(prompt, t.w.Now())
	t.running = true
	from := t.next
	c := t.w.client(t.o, func(u update) {
		select {
		case t.updates <- u:
		case <-t.ctx.Done():
		}
	})
	t.tasks.Go(func() { t.ended <- c.run(t.ctx, from) })
}

// drain waits for the client to give up.
func (t *tui) drain() {
	t.tasks.Wait()
}

func (t *tui) readKeys() {
	buf := make([]byte, 4096)
	for {
		n, err := t.w.In.Read(buf)
		if n > 0 {
			select {
			case t.keys <- append([]byte(nil), buf[:n]...):
			case <-t.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// press takes keys: text and Enter send a prompt when idle, Ctrl-C and Ctrl-D
// leave. Typed text stays in the input while a turn runs, as in the real one.
func (t *tui) press(keys []byte) (status int, over bool) {
	for _, r := range string(keys) {
		switch {
		case r == 3 || r == 4:
			if t.running {
				return 128 + int(syscall.SIGINT), true
			}
			return t.status(), true
		case r == '\r' && !t.m.busy && !t.running:
			prompt := t.m.input
			if prompt == "" {
				prompt = t.o.Name
			}
			t.begin(prompt)
		case r == 127:
			if in := []rune(t.m.input); len(in) > 0 {
				t.m.input = string(in[:len(in)-1])
			}
		case r >= ' ' && len(t.m.input) < 1000:
			t.m.input += string(r)
		}
	}
	return 0, false
}

// again draws anew after a change of size, and enters the screen anew after a
// stop: whoever stopped it may have shown something else.
func (t *tui) again(s syscall.Signal) {
	if s == syscall.SIGCONT {
		t.write([]byte(enter))
		t.titled = ""
	}
	t.c.clear(t.w.Size())
}

func (t *tui) paint() {
	out := []byte(nil)
	if title := t.m.title(); title != t.titled {
		t.titled = title
		out = append(append(append(out, "\x1b]0;"...), title...), 7)
	}
	rows := t.m.rows(t.c.cols, t.c.rows, t.w.Now())
	t.write(t.c.paint(out, rows))
}

func (t *tui) write(b []byte) {
	if len(b) > 0 {
		_, _ = t.w.Out.Write(b) // the terminal is gone: the hangup signal follows
	}
}
