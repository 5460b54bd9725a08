package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"qshim/detect"
	"qshim/detect/screen"
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
	Records  bool           // headless: its output is JSON records, asked for by the launch
	Prompt   bool           // the launch carries a prompt
	Zone     *time.Location // the machine's
	Log      *agentlog.Spec // nil: the agent has no log that is known
	DebugLog *lockfile.Log  // the debug log that it was asked for; nil: none

	Store  lockfile.Store
	Late   *Late  // the same, where the session is not in the ledger yet; nil: it is
	Self   string // the session
	Policy policies.Policy
	Voice  Voice
	Label  func(limiter string) string
	Family func(model string) string
	Now    func() time.Time
	Rand   func() float64
	Stderr io.Writer

	TitleOn       bool      // say in the terminal's title that the session is suspended
	OSC9          bool      // and as a terminal notification
	Dumb          bool      // the terminal knows no sequences (TERM=dumb): a plain line is all
	Tmux          bool      // the terminal is tmux: notifications need its passthrough
	NotifyCommand []string  // run with the message as its last argument
	Resume        ResumeTUI // of turns on a screen that a limit broke; without a text: nothing is done about them
	Attempt       *Attempt  // a headless run that may be done again; nil: it may not
	Crash         func(report []byte)
	Told          string // the Fault of the state directory that the user knows of already
}

// Run starts the agent, governs it to its end, and returns how it ended.
//
//	agent <-> Session (pump, job control) -> Tap ----\
//	agent's own log -> agentlog ----------------------+-> one goroutine:
//	siblings -> Store.Watch --------------------------/   watcher, governor
//	                     Session orders (Suspend, Continue, Overlay, Insert) <-/
func Run(ctx context.Context, c Config) (end End, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := newRunner(c)
	r.session, err = Start(r.c.Options)
	if err != nil {
		return End{}, err
	}
	r.guard(r.begin) // before the session's loop, whose hooks use what it makes
	r.lean = newLean(r.giveBack)
	defer r.lean.end()
	var all sync.WaitGroup
	all.Go(func() {
		defer close(r.over)
		r.guard(func() { r.loop(ctx) })
	})
	all.Go(func() { r.guardTail(func() { r.tail(ctx) }) })
	end = r.session.Run()
	// The loop ends with the tap's last item. A ledger that is locked for long
	// must not hold up the user's shell for longer than that.
	select {
	case <-r.over:
	case <-time.After(exitWait):
	}
	cancel()
	within(exitWait, all.Wait) // a goroutine that hangs on a disk must not hang the user's shell
	if r.face != nil {
		r.face.end()
	}
	return end, nil
}

// within waits for f, but not for long.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
	}
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
	resume   *resumer  // nil: nothing is resumed
	looked   time.Time // when the loop last asked what is pending
	keys     term.Keys
	calm     calm
	lean     *lean
	cold     atomic.Bool // see warmUp
	prepared bool
	items    chan agentlog.Item
	problems chan error           // of other goroutines
	stirred  chan struct{}        // see stir
	desk     sync.Mutex           // gov, face and all that is the loop's: held by who works with it
	over     chan struct{}        // closed when the loop has ended
	awake    func()               // lets the store work again after a Ctrl-Z
	mixes    [Stderr + 1]struct { // by kind: see mixed
		at time.Time
		is bool
	}
	logged  int         // bytes of the debug log since it was last trimmed
	crashed atomic.Bool // a panic of ours: the session is governed no more
	heart   heart       // of the governing goroutine
	stalls  atomic.Int32
	returns int // how often the user has come back; guarded by stop

	stop struct { // the stop that is being ordered
		sync.Mutex
		record func([]lockfile.Stopped) error
	}
}

// watch is the watcher, shared with the session's hooks, which look at the
// terminal's modes on another goroutine. Whoever holds it waits for nothing.
type watch struct {
	sync.Mutex
	*detect.Watcher
}

// modes are the terminal's, as the agent has set them.
func (w *watch) modes() screen.Modes {
	w.Lock()
	defer w.Unlock()
	return w.Screen().Modes()
}

func newRunner(c Config) *runner {
	r := &runner{c: c, items: make(chan agentlog.Item, 64), problems: make(chan error, 1), stirred: make(chan struct{}, 1), over: make(chan struct{})}
	r.c.Tap = NewTap()
	r.heart.stuck = r.stalled
	r.c.Panicked = r.panicked
	r.c.BeforeStop, r.c.UserSuspend, r.c.UserContinue, r.c.Farewell = r.beforeStop, r.userSuspend, r.userContinue, r.farewell
	return r
}

// guard keeps a panic of ours away from the agent: it is reported, the agent is
// continued, and the session goes on ungoverned.
func (r *runner) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			r.crashed.Store(true)
			r.letGo()
			r.crash(p)
		}
	}()
	if !r.crashed.Load() {
		f()
	}
}

// letGo continues the agent and takes the session out of the policy's hands:
// siblings must not wait for what it does no more.
func (r *runner) letGo() {
	_ = r.session.Continue()         // its user may have stopped it: then userContinue lets it go
	defer func() { _ = recover() }() // the ledger may be what made us panic
	ctx, cancel := context.WithTimeout(context.Background(), lockfile.LockWait)
	defer cancel()
	_ = r.own(ctx, func(s *lockfile.Session) { // a session whose record stays is cleaned up after its end
		s.Stopped, s.Observe = nil, true
		if s.State == lockfile.Suspended {
			s.State, s.Since = lockfile.Running, r.c.Now()
		}
	})
}

// panicked: the session's loop has, and goes on with the agent continued.
func (r *runner) panicked(p any) {
	r.crashed.Store(true)
	r.crash(p)
	go func() { // the ledger may be locked, and the loop is needed
		defer func() { _ = recover() }() // as in letGo
		r.letGo()
	}()
}

// errStalled is reported for a goroutine of ours that did not come back.
var errStalled = errors.New("a goroutine of qshim's did not come back")

// stalled: the governing goroutine did not come back from something, most likely
// a disk that hangs. The agent does not wait for it. When it does come back it
// governs again.
func (r *runner) stalled() {
	r.stalls.Add(1)
	r.session.LetGo()
	r.crash(fmt.Errorf("%w\n\n%s", errStalled, allStacks()))
}

func allStacks() []byte {
	b := make([]byte, 128<<10)
	return b[:runtime.Stack(b, true)]
}

// guardTail: without the agent's log the session is still governed.
func (r *runner) guardTail(f func()) {
	defer func() {
		if p := recover(); p != nil {
			r.crash(p)
		}
	}()
	f()
}

func (r *runner) crash(p any) {
	if r.c.Crash != nil {
		r.c.Crash(fmt.Appendf(nil, "panic: %v\n\n%s", p, debug.Stack()))
	}
}

// own changes this session's own record in the ledger.
func (r *runner) own(ctx context.Context, fn func(*lockfile.Session)) error {
	_, err := r.c.Store.UpdateOwn(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		if s, ok := l.Sessions[r.c.Self]; ok {
			fn(&s)
			l.Sessions[r.c.Self] = s
		}
		return l, nil
	})
	return err
}
