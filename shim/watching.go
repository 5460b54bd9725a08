package shim

import (
	"context"
	"time"

	"qshim/detect"
	"qshim/lockfile"
	"qshim/policies"
	"qshim/shim/agentlog"
	"qshim/shim/term"
)

// begin makes the rooms of a session that has started.
func (r *runner) begin(ctx context.Context) {
	cols, rows := r.session.Size()
	mode := detect.TUI
	if r.c.Headless || !r.session.OnTerminal() {
		mode = detect.Headless
	}
	r.watch = &watch{Watcher: r.c.Rules.Watch(detect.Options{
		Mode: mode, Cols: cols, Rows: rows, Zone: r.c.Zone, Started: r.c.Now(), HasLog: r.c.Log != nil,
	})}
	r.face = &screenFace{c: &r.c, session: r.session, watch: r.watch}
	r.gov = &governor{
		store: r.c.Store, policy: r.c.Policy, self: r.c.Self, now: r.c.Now, rand: r.c.Rand, family: r.c.Family,
		hands: (*sessionHands)(r), face: r.face,
	}
	id := r.session.Identity()
	r.gov.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		if s, ok := l.Sessions[r.c.Self]; ok {
			s.ChildPID, s.ChildStart = id.PID, id.Start
			l.Sessions[r.c.Self] = s
		}
		return l, nil
	})
}

// sessionHands are the governor's hands on the session.
type sessionHands runner

func (h *sessionHands) Suspend(record func([]lockfile.Stopped) error) error {
	h.record = record
	return h.session.Suspend()
}

func (h *sessionHands) Continue() error { return h.session.Continue() }
func (h *sessionHands) Held() bool      { return h.session.Held() }
func (h *sessionHands) Quit()           { h.session.Terminate() }

// beforeStop runs within Suspend, on the governor's goroutine.
func (r *runner) beforeStop(what []lockfile.Stopped) error {
	if r.record == nil {
		return nil
	}
	return r.record(what)
}

// loop is the session's one watching goroutine.
func (r *runner) loop(ctx context.Context) {
	defer close(r.over)
	r.begin(ctx)
	hint, err := r.c.Store.Watch(ctx)
	if err != nil {
		r.gov.warnOnce(err)
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(r.untilWake())
		select {
		case <-ctx.Done():
			return
		case <-r.c.Tap.Ready():
			for _, it := range r.c.Tap.Take() {
				if r.take(ctx, it) {
					return
				}
			}
		case it := <-r.items:
			r.log(ctx, it)
		case _, ok := <-hint:
			if !ok {
				hint = nil
				break
			}
			r.gov.decide(ctx)
		case err := <-r.problems:
			r.gov.warnOnce(err)
		case <-timer.C:
			r.tick(ctx)
		}
	}
}

// untilWake is how long nothing has to be done. A pause row counts down.
func (r *runner) untilWake() time.Duration {
	now := r.c.Now()
	next := earliest(r.gov.wake, r.gov.watch)
	if r.face.paused && r.session.OnTerminal() {
		next = earliest(next, now.Add(time.Second-time.Duration(now.Nanosecond())))
	}
	if next.IsZero() {
		return time.Hour
	}
	return max(next.Sub(now), time.Millisecond)
}

func (r *runner) tick(ctx context.Context) {
	now := r.c.Now()
	if w := r.gov.watch; !w.IsZero() && !now.Before(w) {
		r.see(ctx, func(w *detect.Watcher) detect.Report { return w.Tick(now) })
	}
	if w := r.gov.wake; !w.IsZero() && !now.Before(w) {
		r.gov.decide(ctx)
	}
	if r.face.paused {
		r.gov.show()
	}
}

// see hands something to the watcher and its report to the governor.
func (r *runner) see(ctx context.Context, f func(*detect.Watcher) detect.Report) {
	r.watch.Lock()
	rep := f(r.watch.Watcher)
	r.watch.Unlock()
	r.gov.report(ctx, rep)
}

// take handles one item of the tap. True: it was the last.
func (r *runner) take(ctx context.Context, it Item) bool {
	now := r.c.Now()
	switch it.Kind {
	case Output:
		r.output(ctx, it, now)
	case Stdout, Stderr:
		out := detect.Stdout
		if it.Kind == Stderr {
			out = detect.Stderr
		}
		r.gov.loud = now
		r.see(ctx, func(w *detect.Watcher) detect.Report { return w.Stream(now, out, it.Data) })
	case Input:
		r.input(ctx, it, now)
	case Resized:
		r.see(ctx, func(w *detect.Watcher) detect.Report { return w.Resize(now, it.Cols, it.Rows) })
		r.face.paint()
	case Paused:
		r.face.pausedNow()
	case Resumed:
		r.face.over()
	case RanAnyway:
		r.face.over()
		r.gov.runAnyway(ctx)
	case UserStop:
		r.backFromUser(ctx, it.Held)
	case Missed:
		r.face.missed()
	case Exited:
		r.exited(ctx, it.Code, now)
		return true
	}
	return false
}

func (r *runner) output(ctx context.Context, it Item, now time.Time) {
	r.face.total = it.Total
	r.watch.Lock()
	if it.Dropped {
		r.watch.Resync()
	}
	rep := r.watch.Output(now, it.Data)
	if r.calm.broken(r.watch.Screen(), now) {
		r.gov.loud = now
	}
	r.watch.Unlock()
	r.gov.report(ctx, rep)
	r.face.insert()
}

// input: keys that the agent got tell the watcher of a turn, keys that it did
// not get are the governor's.
func (r *runner) input(ctx context.Context, it Item, now time.Time) {
	for _, k := range r.keys.Decode(it.Data) {
		switch {
		case !it.Held:
			if k.Kind != term.Report && k.Kind != term.Cursor {
				r.watch.Lock()
				r.watch.Key(now, k.Kind == term.Enter)
				r.watch.Unlock()
			}
		case k.Kind == term.Cursor:
			r.face.cursorAt(k.Row)
		case k.Kind == term.Ctrl && k.Rune == 'z':
			r.session.SuspendByUser()
		case k.Kind != term.Report:
			r.gov.key(ctx, pauseKey(k))
		}
	}
}

// pauseKey names the keys that act while an agent is suspended.
func pauseKey(k term.Key) Key {
	switch {
	case k.Kind == term.Ctrl && k.Rune == 'c':
		return KeyInterrupt
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
	r.face.over()
	r.see(ctx, func(w *detect.Watcher) detect.Report { return w.Exit(now, code) })
	r.gov.update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		return r.c.Policy.Activity(l, r.gov.input(), policies.Activity{Exit: true})
	})
}

// tail follows the agent's own log. The governor's goroutine takes the items.
func (r *runner) tail(ctx context.Context) {
	if r.c.Log == nil {
		return
	}
	s := *r.c.Log
	s.PID, s.Started = r.session.PID(), r.c.Now()
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
	r.see(ctx, func(w *detect.Watcher) detect.Report {
		if it.Status != "" {
			return w.Busy(now, it.Status == "busy")
		}
		return w.Log(now, it.Line)
	})
	if r.c.DebugLog != nil && it.Source == agentlog.SourceDebug {
		if _, err := r.c.DebugLog.Trim(); err != nil {
			r.gov.warnOnce(err)
		}
	}
}

// userSuspend runs on the session's loop, before qshim stops itself: siblings
// must not elect a stopped shim, and the lock must not sleep with us. The
// agent's modes are put off where it could not do that itself.
func (r *runner) userSuspend(held bool) (out []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), lockfile.LockWait)
	defer cancel()
	r.setUserStopped(ctx, true)
	r.awake = r.c.Store.Still()
	if !held {
		return nil
	}
	r.watch.Lock()
	defer r.watch.Unlock()
	return r.watch.Screen().Modes().Off()
}

// userContinue runs on the session's loop when the user has continued qshim:
// whether the agent may run is read from the ledger as it is now.
func (r *runner) userContinue(foreground, held bool) (hold bool, out []byte) {
	if r.awake != nil {
		r.awake()
		r.awake = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockfile.LockWait)
	defer cancel()
	r.setUserStopped(ctx, false)
	if !held {
		return false, nil
	}
	if l, err := r.c.Store.Read(); err == nil {
		hold = r.c.Policy.Decide(l, r.c.Self, r.c.Now()).Action == policies.Suspend
	}
	if !foreground {
		return hold, nil
	}
	r.watch.Lock()
	defer r.watch.Unlock()
	s := r.watch.Screen()
	_, rows := s.Size()
	out = s.Modes().On()
	out = s.AppendOpen(out)
	out = s.AppendRows(out, 0, rows)
	return hold, s.AppendClose(out)
}

func (r *runner) setUserStopped(ctx context.Context, on bool) {
	_, err := r.c.Store.Update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		if s, ok := l.Sessions[r.c.Self]; ok {
			s.UserStopped = on
			l.Sessions[r.c.Self] = s
		}
		return l, nil
	})
	if err != nil {
		r.problem(err)
	}
}

// backFromUser: the user had suspended the session and is back.
func (r *runner) backFromUser(ctx context.Context, held bool) {
	r.face.over()
	if held {
		r.face.pausedNow()
	} else if r.gov.pause != nil {
		r.gov.pause = nil
		r.gov.forget(ctx)
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
