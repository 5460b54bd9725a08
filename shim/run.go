package shim

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"qshim/detect"
	"qshim/lockfile"
	"qshim/policies"
	"qshim/shim/agentlog"
	"qshim/shim/term"
)

// Config is everything one session is made of.
type Config struct {
	Options         // what to run; the hooks and the tap are filled in by Run
	Title    string // the agent's name for people
	Rules    *detect.Profile
	Headless bool
	Zone     *time.Location // the machine's
	Log      *agentlog.Spec // nil: the agent has no log that is known
	DebugLog *lockfile.Log  // the debug log that it was asked for; nil: none

	Store  lockfile.Store
	Self   string // the session, which has its lease
	Policy policies.Policy
	Voice  Voice
	Label  func(limiter string) string
	Family func(model string) string
	Now    func() time.Time
	Rand   func() float64
	Stderr io.Writer

	TitleOn       bool     // say in the terminal's title that the session is suspended
	OSC9          bool     // and as a terminal notification
	Tmux          bool     // the terminal is tmux: notifications need its passthrough
	NotifyCommand []string // run with the message as its last argument
	Crash         func(report []byte)
}

// Run starts the agent, governs it to its end, and returns its exit code.
//
//	agent <-> Session (pump, job control) -> Tap ----\
//	agent's own log -> agentlog ----------------------+-> one goroutine:
//	siblings -> Store.Watch --------------------------/   watcher, governor
//	                     Session orders (Suspend, Continue, Overlay, Insert) <-/
func Run(ctx context.Context, c Config) (code int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := newRunner(c)
	r.session, err = Start(r.c.Options)
	if err != nil {
		return 0, err
	}
	var all sync.WaitGroup
	all.Go(func() { r.guard(func() { r.loop(ctx) }) })
	all.Go(func() { r.guard(func() { r.tail(ctx) }) })
	code = r.session.Run()
	// The loop ends with the tap's last item. A ledger that is locked for long
	// must not hold up the user's shell for longer than that.
	select {
	case <-r.over:
	case <-time.After(exitWait):
	}
	cancel()
	all.Wait()
	if r.face != nil {
		r.face.end()
	}
	return code, nil
}

// exitWait bounds how long the ledger may hold up an exit: the lock's own wait.
const exitWait = lockfile.LockWait

// runner is one session's watching side.
type runner struct {
	c        Config
	session  *Session
	watch    *watch
	gov      *governor
	face     *screenFace
	keys     term.Keys
	calm     calm
	items    chan agentlog.Item
	problems chan error                     // of other goroutines
	over     chan struct{}                  // closed when the loop has ended
	record   func([]lockfile.Stopped) error // the stop that is being ordered
	awake    func()                         // lets the store work again after a Ctrl-Z
}

// watch is the watcher, shared with the session's hooks, which look at the
// terminal's modes on another goroutine.
type watch struct {
	sync.Mutex
	*detect.Watcher
}

func newRunner(c Config) *runner {
	r := &runner{c: c, items: make(chan agentlog.Item, 64), problems: make(chan error, 1), over: make(chan struct{})}
	r.c.Tap = NewTap()
	r.c.BeforeStop, r.c.UserSuspend, r.c.UserContinue = r.beforeStop, r.userSuspend, r.userContinue
	return r
}

// guard keeps a panic of ours away from the agent: it is reported, the agent is
// continued, and the session goes on ungoverned.
func (r *runner) guard(f func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		_ = r.session.Continue() // an agent that has ended needs none
		if r.c.Crash != nil {
			r.c.Crash(fmt.Appendf(nil, "panic: %v\n\n%s", p, debug.Stack()))
		}
	}()
	f()
}
