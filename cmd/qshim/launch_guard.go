package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"qshim/lockfile"
	"qshim/shim"
)

// What a bug of ours, or a disk that hangs, must not do to a launch: keep the
// agent from running. (Once it runs, shim looks after it.)
//
//	panic before the agent's start      -> reported, the agent is exec'ed
//	a step that does not come back      -> the same, by the guard's goroutine
//	either once the agent has run       -> reported, its output and code are given out

// starter is who may start the agent: the launch, or whoever gives it up.
type starter struct{ who atomic.Int32 }

const (
	byLaunch = iota + 1
	byGuard
)

// take reports whether who may start the agent, now and from now on.
func (s *starter) take(who int32) bool {
	return s.who.CompareAndSwap(0, who) || s.who.Load() == who
}

// mine returns where the agent is ours to start, and else never.
func (l *launch) mine() {
	if !l.starter.take(byLaunch) {
		select {} // the guard's goroutine is about to exec the agent
	}
}

// guarded runs f, a launch from the opening of the state to its end.
func (l *launch) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = l.fell(fmt.Errorf("panic: %v\n\n%s", p, debug.Stack()))
		}
	}()
	return f()
}

// fell ends a launch that met a bug of ours.
func (l *launch) fell(bug error) error {
	began := !l.starter.take(byGuard)
	path := l.reported(bug)
	if !began {
		if w := l.waiting.Load(); w != nil {
			w.LetGo()
		}
		say(l.a.stderr, "%s", l.voice.fell(bug, path))
		return l.exec()
	}
	if path == "" {
		path, _, _ = strings.Cut(bug.Error(), "\n")
	}
	say(l.a.stderr, "%s", l.voice.crashed(path))
	if g := l.task.Load(); g != nil && g.spool != nil {
		_ = g.spool.Flush(1) // there is nothing more to be done for it
	}
	return &exitError{code: int(l.code.Load())}
}

// errLaunchStalled is reported for a launch that did not come back from the
// state directory.
var errLaunchStalled = errors.New("a launch of qshim's did not come back")

// stalled is the guard's goroutine: the launch's own hangs.
func (l *launch) stalled() {
	stacks := make([]byte, 128<<10)
	stacks = stacks[:runtime.Stack(stacks, true)]
	err := l.fell(fmt.Errorf("%w\n\n%s", errLaunchStalled, stacks))
	if text := err.Error(); text != "" {
		say(l.a.stderr, "%s", text)
	}
	os.Exit(exitCode(err))
}

// reported keeps a report of a bug and says where; "" if it could not be kept:
// the disk may be what hangs, the store what panicked.
func (l *launch) reported(bug error) string {
	kept := make(chan string, 1)
	go func() {
		defer close(kept)
		defer func() { _ = recover() }() // as above
		dir, err := l.a.stateDir()
		if err != nil {
			return
		}
		s, err := lockfile.Open(dir, lockfile.Options{Now: l.a.now}) // ours may be what hangs
		if err != nil {
			return
		}
		defer func() { _ = s.Close() }() // as above
		if path, err := s.Crash([]byte(versionLine() + "\n" + bug.Error())); err == nil {
			kept <- path
		}
	}()
	select {
	case path := <-kept:
		return path
	case <-time.After(lockfile.LockWait):
		return ""
	}
}

// guardedStore is the store of a launch that waits: it must not hang there.
type guardedStore struct {
	lockfile.Store
	guard *shim.Guard
}

// Read implements lockfile.Store.
func (s guardedStore) Read() (lockfile.Ledger, error) {
	defer s.guard.Work()()
	return s.Store.Read()
}

// Update implements lockfile.Store.
func (s guardedStore) Update(ctx context.Context, fn func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) (lockfile.Ledger, error) {
	defer s.guard.Work()()
	return s.Store.Update(ctx, fn)
}

// Watch implements lockfile.Store.
func (s guardedStore) Watch(ctx context.Context, atOnce func() bool) (<-chan struct{}, error) {
	defer s.guard.Work()()
	return s.Store.Watch(ctx, atOnce)
}

// guardedCache is the same for what binaries said.
type guardedCache struct {
	probeCache
	guard *shim.Guard
}

// ReadCache implements probeCache.
func (c guardedCache) ReadCache(name string, v any) error {
	defer c.guard.Work()()
	return c.probeCache.ReadCache(name, v)
}

// WriteCache implements probeCache.
func (c guardedCache) WriteCache(name string, v any) error {
	defer c.guard.Work()()
	return c.probeCache.WriteCache(name, v)
}
