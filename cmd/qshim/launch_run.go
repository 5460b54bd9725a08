package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"qshim/detect"
	"qshim/lockfile"
	"qshim/policies"
	"qshim/policies/account"
	"qshim/policies/agents"
	"qshim/policies/config"
	"qshim/shim"
	"qshim/shim/agentlog"
	"qshim/shim/term"
)

// launch is one call of an agent on its way to being a session.
//
//	words -> resolve the file and the profile -> QSHIM=off or no session? exec
//	      -> identify the limiters -> lease -> launch wait -> adjust -> shim.Run
//	                               \-> nothing to wait for: late -/
//
// Until shim.Run, whatever does not work means that the agent is exec'ed as if
// qshim were not there, and one line says why.
type launch struct {
	a      *app
	t      launchTarget
	rules  *detect.Profile
	back   bool                // this process is the agent of the qshim above, which has a session
	env    func(string) string // as the agent will see it
	call   agents.Call
	id     account.Identity
	set    config.Settings
	store  *lockfile.Dir
	self   string         // the session
	lease  lockfile.Lease // its; nil: late has it
	late   *shim.Late     // the store, where the session is announced after its start; nil: before
	parent string
	labels map[string]string
	broken error // why the state directory did not take the launch
	voice  voice

	caught  *shim.Caught           // the session's signals; nil: none are caught yet
	told    string                 // what was said of the state directory, so that it is said once
	crashed atomic.Pointer[string] // the report of a bug of our own

	notices notices
	guard   *shim.Guard
	starter starter
	waiting atomic.Pointer[shim.LaunchWait]
	task    atomic.Pointer[again]
	code    atomic.Int32 // the agent's last one
}

// runAgent runs an agent and ends with its exit code.
func (a *app) runAgent(ctx context.Context, words []string) error {
	off := a.getenv("QSHIM") == "off"
	if !off {
		if err := a.load(); err != nil {
			return err
		}
	}
	l := &launch{a: a, voice: voice{p: paletteFor(a.stderr, a.getenv)}}
	l.notices.to = a.stderr
	if err := l.resolve(words, off); err != nil {
		return err
	}
	if off || l.back || !l.call.Session {
		return l.exec()
	}
	if !l.call.Headless { // that may become a session after this one
		l.caught = shim.CatchSignals()
	}
	l.guard = shim.NewGuard(l.stalled)
	return l.guarded(func() error { return l.govern(ctx) })
}

// govern is a launch that may become a session.
func (l *launch) govern(ctx context.Context) error {
	a := l.a
	if err := l.open(); err != nil {
		say(a.stderr, "%s", l.voice.steppedAside(err))
		return l.exec()
	}
	defer l.close()
	if code, ok := l.wait(ctx); !ok {
		return &exitError{code: code}
	}
	if l.broken != nil {
		say(a.stderr, "%s", l.voice.steppedAside(l.broken))
		return l.exec()
	}
	return l.run(ctx)
}

func (l *launch) resolve(words []string, off bool) error {
	if err := checkDepth(l.a.getenv, words[0]); err != nil {
		return asExit(err)
	}
	forced, known := "", profiles{}
	if !off {
		if err := l.a.profileErrors(); err != nil {
			return err
		}
		forced, known = l.a.config.Profile, l.a.profiles()
	}
	find := newFinder(l.a.getenv("PATH"))
	l.back = find.past(cameBack(l.a.getenv, os.Getpid(), os.Getppid()), words[0])
	t, err := resolveLaunch(words, forced, known, find)
	if err != nil {
		return asExit(err)
	}
	if l.rules, err = rulesOf(t.Profile); err != nil {
		return usagef("%v", err)
	}
	l.voice.look = t.Profile.Look
	l.t, l.env = t, agentEnv(l.a.environ(), t.Inv)
	l.call = t.Profile.ClassifyOn(t.Args(), agents.Setting{StdinTTY: term.IsTerminal(0), StdoutTTY: term.IsTerminal(1), Env: l.env})
	return nil
}

func asExit(err error) error {
	if e := (*launchError)(nil); errors.As(err, &e) {
		return &exitError{e.Code, e.Msg}
	}
	return err
}

// exec replaces qshim by the agent.
func (l *launch) exec() error {
	if l.starter.who.Load() != byGuard {
		l.mine()
	}
	l.caught.Release()
	env := childEnv(l.a.environ(), "", l.t.Path, depth(l.a.getenv), nil)
	err := unix.Exec(l.t.Path, l.t.Argv, env)
	return &exitError{exitNotStarted, l.t.Path + ": " + err.Error()}
}

// open finds out whose allowance the session draws on and makes it known.
func (l *launch) open() error {
	defer l.guard.Work()()
	store, err := l.a.openStoreTelling(l.notices.tell)
	if err != nil {
		return err
	}
	l.store = store
	if err := l.begin(); err != nil {
		_ = store.Close() // the first error says what is wrong
		return err
	}
	return nil
}

func (l *launch) begin() error {
	var salt []byte
	if account.Salted(l.t.Profile) {
		var err error
		if salt, err = l.store.Salt(); err != nil {
			return err
		}
	}
	cwd, _ := os.Getwd() // a directory that is gone: identity and status do without
	l.id = account.Identify(account.Launch{
		Profile: l.t.Profile, Command: l.t.Command, Args: l.t.Args(), Env: l.env, Home: l.env("HOME"), Cwd: cwd,
		FS: agentFiles{}, Salt: salt, Headless: l.call.Headless, Override: l.a.config.Limiter, Aliases: l.a.config.Aliases,
	})
	l.set = l.a.config.For(l.limiters())
	l.labels = map[string]string{}
	for _, m := range l.id.Limiters {
		l.labels[m.ID] = m.Label
	}
	if marker := l.a.getenv(envSession); marker != "" {
		led, err := l.store.Read()
		if err != nil {
			return err
		}
		l.parent = parentSession(marker, l.a.getenv(envStarted), led, ancestorsOf(os.Getpid(), parentOf))
	}
	return l.announce(l.session(cwd))
}

// announce brings the session into the ledger, or leaves that for after the
// agent's start where nothing could hold it up: no prompt to send, nothing
// around it, and nothing known of its limiters.
func (l *launch) announce(s lockfile.Session) (err error) {
	free := !s.Headless && !s.Prompt && l.a.getenv(envSession) == "" && !l.capped() && l.store.Free(s.Limiters)
	if free {
		l.self, err = l.store.NewID()
		s.ID = l.self
		l.late = shim.NewLate(l.store, func() (lockfile.Lease, error) { return l.launched(s) })
		return err
	}
	if l.lease, err = l.store.Lease(s); err == nil {
		l.self = l.lease.ID()
	}
	return err
}

// capped reports a number that may be busy at once without anything learned.
func (l *launch) capped() bool {
	return slices.ContainsFunc(l.limiters(), l.a.policy.StartsCapped)
}

// launched announces a session whose agent runs.
func (l *launch) launched(s lockfile.Session) (lockfile.Lease, error) {
	if l.store.Strays() {
		if err := l.recover(); err != nil {
			return nil, err
		}
	}
	lease, err := l.store.Lease(s)
	if err != nil {
		return nil, err
	}
	_, err = l.store.Update(context.Background(), func(led lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		l.name(led)
		return l.a.policy.Launched(led, policies.Input{Now: l.a.now(), Self: s.ID, Rand: l.a.rand, Family: l.id.Family})
	})
	if err != nil {
		return nil, errors.Join(err, lease.Close())
	}
	return lease, nil
}

// ledger is the store as the session uses it.
func (l *launch) ledger() lockfile.Store {
	if l.late != nil {
		return l.late
	}
	return l.store
}

// warn says what does not work on the state directory.
func (l *launch) warn(err error) {
	l.told = shim.Fault(err)
	_, _ = fmt.Fprintln(l.a.stderr, l.voice.Warn(err)) // nowhere left to say that stderr is broken
}

// name puts the labels of this session's limiters beside their IDs.
func (l *launch) name(led lockfile.Ledger) {
	for _, m := range l.id.Limiters {
		if lim := led.Limiters[m.ID]; lim.Label != m.Label || lim.ID == "" {
			lim.ID, lim.Label = m.ID, m.Label
			led.Limiters[m.ID] = lim
		}
	}
}

func (l *launch) recover() error {
	_, err := l.store.Recover(shim.ContinueOrphan)
	return err
}

func (l *launch) limiters() []string {
	ids := make([]string, len(l.id.Limiters))
	for i, m := range l.id.Limiters {
		ids[i] = m.ID
	}
	return ids
}

func (l *launch) session(cwd string) lockfile.Session {
	now := l.a.now()
	priority := lockfile.Priority(l.set.Priority)
	if priority == "" {
		priority = lockfile.Background
		if term.IsTerminal(0) {
			priority = lockfile.Interactive
		}
	}
	return lockfile.Session{
		PID: os.Getpid(), Agent: l.t.Profile.Name, Cwd: cwd, Limiters: l.limiters(), Family: l.id.Family, Parent: l.parent,
		Priority: priority, Headless: l.headless(), Prompt: l.call.Prompt, Observe: l.set.Observe(),
		Continues: l.t.Profile.Resume.SelfContinues, State: lockfile.Waiting, Since: now, Born: now,
	}
}

// headless: a call that shows no screen, or an agent without a terminal of its
// own. It is busy from its start to its end.
func (l *launch) headless() bool {
	return l.call.Headless || !term.IsTerminal(0) || !term.IsTerminal(1)
}

// close does not wait for a disk that hangs: a session file that stays is dead,
// and the next qshim drops it.
func (l *launch) close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if l.lease != nil {
			_ = l.lease.Close() // as above
		}
		if l.late != nil {
			_ = l.late.End() // as above
		}
		_ = l.store.Close() // nothing is written any more
	}()
	select {
	case <-done:
	case <-time.After(lockfile.LockWait):
	}
	if report := l.crashed.Load(); report != nil {
		say(l.a.stderr, "%s", l.voice.crashed(*report))
	}
}

// crash keeps a report of our own bug. The state may be what crashed: then
// there is none.
func (l *launch) crash(report []byte) {
	if path, err := l.store.Crash(append([]byte(versionLine()+"\n"), report...)); err == nil {
		l.crashed.Store(&path)
	}
}

func (l *launch) label(id string) string {
	if s := l.labels[id]; s != "" {
		return s
	}
	base, family, _ := strings.Cut(id, "#")
	if s := l.labels[base]; s != "" {
		return s + " " + family
	}
	return id
}

// wait delays the launch as the policy says. Not ok: qshim ends with the code.
func (l *launch) wait(ctx context.Context) (code int, ok bool) {
	if l.late != nil {
		return 0, true
	}
	w := l.launchWait()
	w.Prepare, w.Strays = l.name, l.store.Strays
	w.Recover = func() error {
		defer l.guard.Work()()
		return l.recover()
	}
	l.waiting.Store(w)
	defer l.waiting.Store(nil)
	v, sig := w.OnTerminal(ctx)
	l.broken, l.told = w.Broken, w.Told
	switch v {
	case shim.Launch:
		return 0, true
	case shim.TooLong:
		return exitTempFail, false
	}
	l.a.end.Signal = sig // 0: no signal ended the wait
	if v == shim.Abandoned {
		return exitGaveUp, false
	}
	return 128 + int(sig), false
}

func (l *launch) launchWait() *shim.LaunchWait {
	return &shim.LaunchWait{
		Store: guardedStore{l.store, l.guard}, Policy: l.a.policy, Self: l.self, Family: l.id.Family, Agent: l.t.Profile.Title,
		Label: l.label, Voice: l.voice, Out: l.a.stderr, Now: l.a.now, Rand: l.a.rand, Skip: l.set.Now, Dumb: l.a.getenv("TERM") == "dumb",
		Told: l.told, Caught: l.caught,
	}
}

// run starts the agent and stays with it. An agent that refuses what we added
// is run once more as it was typed.
func (l *launch) run(ctx context.Context) error {
	applied, again := l.adjustments(l.t.Args()), l.again()
	l.task.Store(again)
	began := l.a.now()
	code, err := l.start(ctx, applied, l.t.Args(), again)
	if err == nil && runUnadjusted(applied, code, l.a.now().Sub(began)) {
		say(l.a.stderr, "%s", l.voice.unadjusted(applied.Names))
		if again != nil && again.spool != nil {
			again.spool.Drop()
		}
		code, err = l.start(ctx, agents.Applied{}, l.t.Args(), again)
	}
	code, err = l.runAgain(ctx, again, code, err)
	if e := (*shim.StartError)(nil); errors.As(err, &e) {
		return &exitError{e.Code, e.Error()}
	}
	if err != nil {
		return err
	}
	return &exitError{code: code}
}

// known reads the binary's --help where an adjustment depends on it.
func (l *launch) known() agents.Known {
	if !l.t.Profile.NeedsProbe(l.t.Args(), l.call, l.env) {
		return agents.Known{}
	}
	p := prober{cache: guardedCache{l.store, l.guard}, stat: os.Stat, run: runProbe, env: l.a.environ()}
	return p.known(&l.t)
}

func (l *launch) start(ctx context.Context, applied agents.Applied, args []string, again *again) (int, error) {
	var log *lockfile.Log
	path := ""
	if needsLog(applied) {
		var err error
		if log, err = l.newLog(); err == nil {
			path = log.Path()
		} else {
			l.warn(err)
			applied.Env, applied.Args = withoutLog(applied)
		}
	}
	argv, set := l.t.adjusted(applied, args, newIn(path, l.a.rand))
	c := shim.Config{
		Options: shim.Options{
			Path: l.t.Path, Argv: argv, Env: childEnv(l.a.environ(), l.self, l.t.Path, depth(l.a.getenv), set),
			Streams: l.headless() && l.rules.HasStreams(), Errors: l.call.Headless && l.rules.HasStreams(), Caught: l.caught,
		},
		Title: l.t.Profile.Title, Rules: l.rules, Headless: l.call.Headless, Prompt: l.call.Prompt, Zone: time.Local,
		Records: l.call.StreamFormat != "" && l.call.StreamFormat != "text" && l.call.StreamFormat != "default",
		Log:     l.logSpec(argv, set), DebugLog: log, Store: l.ledger(), Late: l.late, Self: l.self, Policy: l.a.policy, Voice: l.voice, Label: l.label,
		Family: l.t.Profile.Family, Now: l.a.now, Rand: l.a.rand, Stderr: l.a.stderr,
		TitleOn: l.set.Title, OSC9: l.set.OSC9, Tmux: l.a.getenv("TMUX") != "", Dumb: l.a.getenv("TERM") == "dumb", NotifyCommand: l.set.NotifyCommand,
		Crash: l.crash, Told: l.told,
	}
	if mode := l.a.config.Resume(l.t.Profile.Name, false); !l.headless() && mode != "never" && !l.set.Observe() {
		r := l.t.Profile.Resume
		c.Resume = shim.ResumeTUI{Once: mode == "once", Text: r.Text, Pause: time.Duration(r.PauseMS) * time.Millisecond}
	}
	if again != nil {
		c.Attempt, c.Spool, c.Feed = again.attempt, again.spool, again.feed
		c.Attempt.Restart()
	}
	l.mine()
	if term.IsTerminal(0) && term.IsTerminal(1) {
		l.notices.hold() // the screen is the agent's
		defer l.notices.giveOut()
	}
	l.code.Store(exitFailed)
	var err error
	l.a.end, err = shim.Run(ctx, c)
	l.code.Store(int32(l.a.end.Code))
	return l.a.end.Code, err
}

// newLog makes the debug log that the agent is asked for.
func (l *launch) newLog() (*lockfile.Log, error) {
	defer l.guard.Work()()
	if l.late != nil {
		if err := l.late.Announce(); err != nil { // a log of no session would be swept
			return nil, err
		}
	}
	return l.store.NewLog(l.self, l.t.Profile.Name)
}

func needsLog(a agents.Applied) bool {
	return slices.ContainsFunc(slices.AppendSeq(slices.Clone(a.Args), maps.Values(a.Env)), hasLog)
}

func hasLog(s string) bool { return strings.Contains(s, "{log}") }

// withoutLog is what is left of an adjustment where no log could be made.
func withoutLog(a agents.Applied) (env map[string]string, args []string) {
	env, args = maps.Clone(a.Env), slices.DeleteFunc(slices.Clone(a.Args), hasLog)
	maps.DeleteFunc(env, func(_, v string) bool { return hasLog(v) })
	return env, args
}

// logSpec says where the agent writes its own log; nil where it keeps none
// that qshim knows. set is what an adjustment put into its environment, argv
// the line that the agent is started with.
func (l *launch) logSpec(argv []string, set map[string]string) *agentlog.Spec {
	spec := l.t.Profile.Log
	if spec.Kind == "" || spec.Headless && !l.call.Headless {
		return nil
	}
	home := spec.Dir(l.env)
	cwd, err := os.Getwd()
	if err != nil || !filepath.IsAbs(home) {
		return nil // without these nothing of the agent's can be found
	}
	out := &agentlog.Spec{Kind: spec.Kind, Home: home, Cwd: cwd, Session: l.t.Profile.SessionID(argv[l.t.Inv.At+1:])}
	named := ""
	if l.call.Headless { // the screen tells what it tells
		named = l.t.Profile.DebugFile(argv[l.t.Inv.At+1:])
	}
	if named != "" && !filepath.IsAbs(named) {
		named = filepath.Join(cwd, named)
	}
	for _, file := range []string{named, set[spec.DebugEnv], l.env(spec.DebugEnv)} {
		if filepath.IsAbs(file) {
			out.Files = []string{file}
			break
		}
	}
	return out
}
