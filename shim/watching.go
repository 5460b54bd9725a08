package shim

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"qshim/detect"
	"qshim/detect/screen"
	"qshim/lockfile"
	"qshim/lockfile/fault"
	"qshim/policies"
	"qshim/shim/agentlog"
	"qshim/shim/term"
)

// begin makes the rooms of a session that has started.
func (r *runner) begin() {
	cols, rows := r.session.Size()
	mode := detect.TUI
	if r.c.Headless || !r.session.OnTerminal() {
		mode = detect.Headless
	}
	r.watch = &watch{Watcher: r.c.Rules.Watch(detect.Options{
		Mode: mode, Cols: cols, Rows: rows, Zone: r.c.Zone, Started: r.c.Now(), HasLog: r.c.Log != nil, Prompt: r.c.Prompt, Records: r.c.Records,
	})}
	r.face = &screenFace{c: &r.c, stage: r.session, watch: r.watch}
	r.gov = &governor{
		store: r.c.Store, late: r.c.Late, policy: r.c.Policy, self: r.c.Self, now: r.c.Now, rand: r.c.Rand, family: r.c.Family,
		hands: (*sessionHands)(r), face: r.face, failed: r.c.Told, env: r.c.Env,
	}
	if mode == detect.TUI && r.c.Resume.Text != "" {
		r.resume = &resumer{
			set: r.c.Resume, keys: r.session, gov: r.gov, verify: r.c.Policy.C.Resuming.Verify,
			look:  r.peek,
			holds: r.composed,
			tell:  r.tellResume,
		}
		r.gov.resumer = r.resume
	}
}

// peek looks at the screen as it is now. What the watcher finds with that comes
// with its next report, soon.
func (r *runner) peek() detect.Report {
	now := r.c.Now()
	r.gov.watch = earliest(r.gov.watch, now.Add(echoLook))
	return r.locked(func(w *detect.Watcher) detect.Report { return w.Peek(now) })
}

// composed reports whether the agent's composer holds just text.
func (r *runner) composed(text string) bool {
	r.watch.Lock()
	defer r.watch.Unlock()
	return composed(r.watch.Screen(), text)
}

// tellResume tells the user what is, or is not, to become of a broken turn.
func (r *runner) tellResume(k NoticeKind, h lockfile.Hold, limiter string) {
	r.face.Notify(Notice{Kind: k, Pause: Pause{Now: r.c.Now(), Decision: policies.Decision{Limiter: limiter, Hold: h,
		Until: h.Until, Source: h.UntilSource, Reason: policies.Reason{Code: policies.Held, Class: h.Class}}}})
}

// introduce tells the ledger whose session it is. One that is not there yet is
// told with its first change, at the latest when it begins to watch.
func (r *runner) introduce(ctx context.Context) {
	fault.At("introduce")
	id := r.session.Identity()
	tell := func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		if s, ok := l.Sessions[r.c.Self]; ok {
			s.ChildPID, s.ChildStart, s.ChildLeads = id.PID, id.Start, id.Group
			l.Sessions[r.c.Self] = s
		}
		return l, nil
	}
	if r.c.Late.pending() {
		r.gov.owed = append(r.gov.owed, tell)
		return
	}
	r.gov.update(ctx, tell)
}

// sessionHands are the governor's hands on the session.
type sessionHands runner

func (h *sessionHands) Suspend(aside time.Duration, record func([]lockfile.Stopped) error) error {
	h.setRecord(record)
	defer h.setRecord(nil)
	if h.crashed.Load() {
		return ErrUserStopped // nobody would be sure to continue it
	}
	return h.session.Suspend(aside)
}

func (h *sessionHands) setRecord(record func([]lockfile.Stopped) error) {
	h.stop.Lock()
	defer h.stop.Unlock()
	h.stop.record = record
}

func (h *sessionHands) Continue() error         { return h.session.Continue() }
func (h *sessionHands) Held() bool              { return h.session.Held() }
func (h *sessionHands) Quit(sig syscall.Signal) { h.session.End(sig) }

// beforeStop runs within Suspend, on the governor's goroutine; or on the
// session's, when a held agent without a terminal is stopped again after fg:
// then the decision stands, and only what is stopped is recorded.
func (r *runner) beforeStop(what []lockfile.Stopped) error {
	r.stop.Lock()
	record := r.stop.record
	r.stop.Unlock()
	if record != nil {
		return record(what)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockfile.LockWait)
	defer cancel()
	return r.own(ctx, func(s *lockfile.Session) { s.Stopped = what })
}

// loop is the session's one watching goroutine. It has the desk while it works.
func (r *runner) loop(ctx context.Context) {
	r.desk.Lock()
	defer r.desk.Unlock()
	r.introduce(ctx)
	var hint <-chan struct{} // of siblings' news
	opening := time.NewTimer(watchAfter)
	defer opening.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		r.heart.rest()
		if r.stalls.Load() > 0 && r.heart.revive() {
			r.stalls.Store(0)
			r.gov.wake = r.c.Now() // what was let go may have to be held again
		}
		if d, any := r.untilWake(); any {
			timer.Reset(d)
		} else {
			timer.Stop() // an idle session does not tick
		}
		r.desk.Unlock()
		select {
		case <-ctx.Done():
			r.desk.Lock()
			return
		case <-r.c.Tap.Ready():
			r.begins()
			for _, it := range r.c.Tap.Take() {
				if r.take(ctx, it) {
					return
				}
			}
		case it := <-r.items:
			r.begins()
			r.log(ctx, it)
		case _, ok := <-hint:
			r.begins()
			if !ok {
				hint = nil
				break
			}
			r.gov.hinted(ctx)
		case <-opening.C:
			r.begins()
			hint = r.openWatch(ctx)
		case <-r.stirred:
			r.begins()
			r.warmUp()
		case err := <-r.problems:
			r.begins()
			r.gov.warnOnce(err)
		case <-timer.C:
			r.begins()
			r.tick(ctx)
		}
	}
}

// watchAfter is how old a session is when it begins to watch for its siblings'
// news. To end a watch takes the kernel 8 to 20 ms of waiting (inotify waits for
// a grace period; measured, Linux 6), which is longer than everything else about
// a command that is over at once.
const watchAfter = 100 * time.Millisecond

// openWatch begins to watch, and looks at what came before.
func (r *runner) openWatch(ctx context.Context) <-chan struct{} {
	hint, err := r.c.Store.Watch(ctx, func() bool { return r.heard(ctx) })
	if err != nil {
		r.gov.warnOnce(err)
	}
	r.gov.again(ctx)
	return hint
}

// untilWake is how long nothing has to be done; not any: nothing is pending. A
// pause row counts down.
func (r *runner) untilWake() (d time.Duration, any bool) {
	now := r.c.Now()
	if now.Before(r.looked) {
		r.gov.setBack(now)
		r.resume.setBack(now)
	}
	r.looked = now.Round(0) // the wall clock's, which the ledger has
	next := earliest(earliest(r.gov.wake, r.gov.care), earliest(r.gov.watch, r.gov.logAt))
	if r.resume != nil {
		next = earliest(next, r.resume.wake)
	}
	if r.face.showing() {
		next = earliest(next, now.Add(time.Second-time.Duration(now.Nanosecond())))
	}
	if next.IsZero() {
		return 0, false
	}
	return max(next.Sub(now), time.Millisecond), true
}

func (r *runner) tick(ctx context.Context) {
	now := r.c.Now()
	if w := r.gov.watch; !w.IsZero() && !now.Before(w) {
		r.gov.watch = time.Time{}
		r.see(ctx, func(w *detect.Watcher) detect.Report { return w.Tick(now) })
	}
	if w := earliest(r.gov.wake, r.gov.care); !w.IsZero() && !now.Before(w) {
		r.gov.wake, r.gov.care = time.Time{}, time.Time{}
		r.gov.again(ctx)
	}
	if w := r.gov.logAt; !w.IsZero() && !now.Before(w) {
		r.gov.logNow(ctx)
	}
	r.resume.due(ctx, now)
	if r.face.showing() {
		r.gov.show()
	}
}

// see hands something to the watcher and its report to the governor.
func (r *runner) see(ctx context.Context, f func(*detect.Watcher) detect.Report) {
	fault.At("watch")
	rep := r.locked(f)
	r.c.Attempt.seen(rep)
	r.gov.report(ctx, rep)
	r.resume.saw(ctx, rep)
	r.warmUp()
}

// locked: a panic in the watcher must not leave it locked for the hooks.
func (r *runner) locked(f func(*detect.Watcher) detect.Report) detect.Report {
	r.watch.Lock()
	defer r.watch.Unlock()
	return f(r.watch.Watcher)
}

// take handles one item of the tap. True: it was the last.
func (r *runner) take(ctx context.Context, it Item) bool {
	now := r.c.Now()
	r.lean.item(it)
	switch it.Kind {
	case Output:
		r.output(ctx, it, now)
	case Stdout, Stderr:
		r.stream(ctx, it, now)
	case Input:
		r.input(ctx, it, now)
	case Resized:
		r.see(ctx, func(w *detect.Watcher) detect.Report { return w.Resize(now, it.Cols, it.Rows) })
		r.face.resized()
	case Paused:
		r.face.pausedNow()
	case Resumed:
		r.goesOn()
	case RanAnyway:
		r.goesOn()
		r.gov.runAnyway(ctx)
	case UserStop:
		r.backFromUser(ctx, it.Held)
	case Missed:
		r.face.missed()
	case Typed:
		r.locked(func(w *detect.Watcher) (none detect.Report) { w.Key(now, string(it.Data) == "\r"); return })
	case Untyped:
		r.resume.untyped(ctx)
	case Exited:
		r.exited(ctx, it.Code, now)
		return true
	}
	return false
}

// stream takes what went into a pipe, or into a file that is read beside the
// agent. A file that other sessions write into as well says nothing of this one.
func (r *runner) stream(ctx context.Context, it Item, now time.Time) {
	out := detect.Stdout
	if it.Kind == Stderr {
		out = detect.Stderr
	}
	if r.session.Beside(it.Kind) && r.mixed(it.Kind, now) {
		return
	}
	r.gov.loud = now
	r.c.Attempt.hear(out, it.Data)
	r.see(ctx, func(w *detect.Watcher) detect.Report {
		if it.Dropped {
			w.Lost(out)
		}
		return w.Stream(now, out, it.Data)
	})
}

// mixedFor is how long an answer of mixed stands: an agent needs longer than
// that from its start to its first refusal.
const mixedFor = time.Second

// mixed reports whether another session writes into the file that our agent's
// output of a kind goes to. Their own logs and screens still tell of them.
func (r *runner) mixed(k Kind, now time.Time) bool {
	m := &r.mixes[k]
	if age := now.Sub(m.at); age >= 0 && age < mixedFor {
		return m.is
	}
	m.at, m.is = now, false
	l, err := r.c.Store.Read()
	if err != nil {
		return false // who they are is not known: then most likely nobody
	}
	for id, s := range l.Sessions {
		if id != r.c.Self && s.PID != os.Getpid() && r.session.Shares(k, s.PID) {
			m.is = true
		}
	}
	return m.is
}

func (r *runner) output(ctx context.Context, it Item, now time.Time) {
	r.see(ctx, func(w *detect.Watcher) detect.Report {
		if it.Dropped {
			w.Resync()
		}
		rep := w.Output(now, it.Data)
		if r.calm.broken(w.Screen(), now) {
			r.gov.loud = now
		}
		return rep
	})
	r.face.output(it.Total)
}

// input: keys that the agent got tell the watcher of a turn, keys that it did
// not get are the governor's.
func (r *runner) input(ctx context.Context, it Item, now time.Time) {
	keys := r.keys.Decode(it.Data)
	if !it.Held {
		if pressed(keys) > 0 {
			r.gov.keyed(ctx)
		}
		for _, k := range keys {
			if k.Kind != term.Report && k.Kind != term.Cursor {
				r.resume.pressed(ctx)
				r.locked(func(w *detect.Watcher) (none detect.Report) { w.Key(now, k.Kind == term.Enter); return })
			}
		}
		return
	}
	alone := pressed(keys) == 1
	for _, k := range keys {
		switch {
		case k.Kind == term.Report:
		case k.Kind == term.Cursor:
			r.face.cursorAt(k.Row)
		case alone && k.Kind == term.Ctrl && k.Rune == 'z':
			r.session.SuspendByUser()
		default:
			r.gov.key(ctx, pauseKey(k, alone))
		}
	}
}

// pressed counts the keys among what came in one read.
func pressed(keys []term.Key) (n int) {
	for _, k := range keys {
		if k.Kind != term.Report && k.Kind != term.Cursor {
			n++
		}
	}
	return n
}

// pauseKey names the keys that act while an agent is suspended. Several in one
// read are a paste (the agent's bracketed paste is off): none of them is an
// order, save Ctrl-C, which nobody pastes.
func pauseKey(k term.Key, alone bool) Key {
	switch {
	case k.Kind == term.Ctrl && k.Rune == 'c':
		return KeyInterrupt
	case !alone:
		return KeyOther
	case k.Kind == term.Plain && (k.Rune == 'r' || k.Rune == 'R'):
		return KeyRun
	case k.Kind == term.Plain && (k.Rune == 'q' || k.Rune == 'Q'):
		return KeyQuit
	case k.Kind == term.Plain && (k.Rune == 'y' || k.Rune == 'Y'):
		return KeyYes
	}
	return KeyOther
}

func (r *runner) exited(ctx context.Context, code int, now time.Time) {
	fault.At("agent ended")
	r.face.over()
	r.gov.over = true
	r.see(ctx, func(w *detect.Watcher) detect.Report { return w.Exit(now, code) })
	r.c.Attempt.ended(ctx, r, code)
	if a := r.c.Attempt; a != nil && a.Due {
		return // the session goes on waiting for its next run
	}
	if r.c.Late.pending() {
		return // nobody has heard of it
	}
	r.gov.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		return r.c.Policy.Activity(l, r.gov.input(), policies.Activity{Exit: true})
	})
}

// tail follows the agent's own log. The governor's goroutine takes the items.
func (r *runner) tail(ctx context.Context) {
	if r.c.Log == nil {
		return
	}
	fault.At("tail")
	s := *r.c.Log
	s.PID, s.Started, s.Now = r.session.PID(), r.c.Now(), r.c.Now
	err := agentlog.Tail(ctx, s, func(it agentlog.Item) {
		select {
		case r.items <- it:
		case <-ctx.Done():
		}
	})
	if err != nil {
		r.problem(err)
	}
}

func (r *runner) log(ctx context.Context, it agentlog.Item) {
	now := r.c.Now()
	r.c.Attempt.logged(it)
	r.see(ctx, func(w *detect.Watcher) detect.Report {
		if it.Status != "" {
			return w.Busy(now, it.Status == "busy")
		}
		return w.Log(now, it.Line)
	})
	if r.c.DebugLog == nil || it.Source != agentlog.SourceDebug {
		return
	}
	if r.logged += len(it.Line); r.logged >= trimEach {
		r.logged = 0
		if _, err := r.c.DebugLog.Trim(); err != nil {
			r.gov.warnOnce(err)
		}
	}
}

// trimEach is how many bytes of the debug log are read between two looks at its
// size: a small share of lockfile.MaxLog.
const trimEach = 1 << 20

// userSuspend runs on the session's loop, before qshim stops itself: siblings
// must not elect a stopped shim, and the lock must not sleep with us. The
// agent's modes are put off where it could not do that itself.
func (r *runner) userSuspend(held bool) (out []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), lockfile.LockWait)
	defer cancel()
	r.stop.Lock()
	trip := r.returns
	r.stop.Unlock()
	if err := r.own(ctx, func(s *lockfile.Session) { s.UserStopped = true }); err != nil {
		r.problem(err)
	}
	awake := r.c.Store.Still()
	r.stop.Lock()
	if r.returns == trip {
		r.awake, awake = awake, nil
	}
	r.stop.Unlock()
	if awake != nil {
		awake() // the disk was so slow that the user is back already
		return nil
	}
	if !held || r.watch == nil {
		return nil
	}
	return r.watch.modes().Off()
}

// userContinue runs on the session's loop when the user has continued qshim:
// whether the agent may run is read from the ledger as it is now. What has to
// be claimed first is left to the governor, with the agent still stopped.
func (r *runner) userContinue(foreground, held bool) (hold bool, out []byte) {
	r.stop.Lock()
	r.returns++
	awake := r.awake
	r.awake = nil
	r.stop.Unlock()
	if awake != nil {
		awake()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockfile.LockWait)
	defer cancel()
	if err := r.own(ctx, func(s *lockfile.Session) { s.UserStopped = false }); err != nil {
		r.problem(err)
	}
	if !held {
		return false, nil
	}
	if l, err := r.c.Store.Read(); err == nil && !r.crashed.Load() {
		d := r.c.Policy.Decide(l, r.c.Self, r.c.Now())
		hold = d.Action == policies.Suspend || d.Claim
	}
	if !foreground || r.watch == nil {
		return hold, nil
	}
	r.watch.Lock()
	defer r.watch.Unlock()
	return hold, repaint(r.watch.Screen())
}

// repaint puts a terminal that a shell has used in the meantime back to what
// the agent knows. On the main screen what stands there is first scrolled away,
// as the agent's next lines would have done, so that nothing of it is lost.
func repaint(s *screen.Screen) []byte {
	_, rows := s.Size()
	var out []byte
	if !s.Alt() {
		out = fmt.Appendf(out, "\x1b[%d;1H%s", rows, strings.Repeat("\n", rows))
	}
	out = append(out, s.Modes().On()...)
	out = s.AppendOpen(out)
	out = s.AppendRows(out, 0, rows)
	return s.AppendClose(out)
}

// farewellWait bounds how long the last bytes of a killed agent are waited for.
const farewellWait = 200 * time.Millisecond

// farewell puts off what an agent left on that was killed. One that ended by
// itself may mean what it left.
func (r *runner) farewell(code int) []byte {
	if code <= 128 || r.watch == nil || r.crashed.Load() {
		return nil
	}
	select {
	case <-r.over:
	case <-time.After(farewellWait):
	}
	return r.watch.modes().Off()
}

// goesOn: the agent was continued. What it answers now is news.
func (r *runner) goesOn() {
	r.face.over()
	r.locked(func(w *detect.Watcher) (none detect.Report) { w.NewTry(); return })
}

// backFromUser: the user had suspended the session and is back.
func (r *runner) backFromUser(ctx context.Context, held bool) {
	if held {
		r.face.over()
		r.face.pausedNow()
	} else {
		r.goesOn()
		r.gov.pause = nil
	}
	r.gov.decide(ctx)
}

// problem hands an error of another goroutine to the governor's.
func (r *runner) problem(err error) {
	select {
	case r.problems <- err:
	default: // one is waiting to be said already
	}
}
