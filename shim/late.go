package shim

import (
	"context"
	"errors"
	"sync"

	"qshim/lockfile"
)

// Late is the store of a session that is not in the ledger yet. Where nothing
// could hold up the launch, there is nothing to agree on with siblings before
// the agent starts, and a command that is over at once tells nobody of itself.
//
//	launch:  nothing known of its limiters -> start, without a write
//	0.1 s, or whatever needs the ledger before -> announced, then as any session
//
// Whoever is not in the ledger is never suspended, and so leaves nothing behind
// when it is killed.
type Late struct {
	lockfile.Store
	announce func() (lockfile.Lease, error)

	mu     sync.Mutex
	lease  lockfile.Lease
	closed bool
}

// NewLate makes the store of a session that announce brings into the ledger.
// It is called again where it failed, each time the ledger is needed.
func NewLate(s lockfile.Store, announce func() (lockfile.Lease, error)) *Late {
	return &Late{Store: s, announce: announce}
}

// errLateOver is the error of what comes after the session's end.
var errLateOver = errors.New("the session has ended")

// Announce brings the session into the ledger unless it is there.
func (l *Late) Announce() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != nil {
		return nil
	}
	if l.closed {
		return errLateOver
	}
	lease, err := l.announce()
	if err != nil {
		return err
	}
	l.lease = lease
	return nil
}

// pending reports that the session is not in the ledger; of nil it is.
func (l *Late) pending() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease == nil
}

// End ends the session, if it was announced. It is not announced any more.
func (l *Late) End() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.lease == nil {
		return nil
	}
	return l.lease.Close()
}

// Read implements lockfile.Store.
func (l *Late) Read() (lockfile.Ledger, error) {
	if err := l.Announce(); err != nil {
		return lockfile.Ledger{}, err
	}
	return l.Store.Read()
}

// Glance implements lockfile.Store.
func (l *Late) Glance() (lockfile.Ledger, error) {
	if err := l.Announce(); err != nil {
		return lockfile.Ledger{}, err
	}
	return l.Store.Glance()
}

// Update implements lockfile.Store.
func (l *Late) Update(ctx context.Context, fn func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) (lockfile.Ledger, error) {
	if err := l.Announce(); err != nil {
		return lockfile.Ledger{}, err
	}
	return l.Store.Update(ctx, fn)
}

// Record implements lockfile.Store.
func (l *Late) Record(id string, fn func(*lockfile.Session)) error {
	if err := l.Announce(); err != nil {
		return err
	}
	return l.Store.Record(id, fn)
}

// UpdateOwn implements lockfile.Store.
func (l *Late) UpdateOwn(ctx context.Context, fn func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) (lockfile.Ledger, error) {
	if err := l.Announce(); err != nil {
		return lockfile.Ledger{}, err
	}
	return l.Store.UpdateOwn(ctx, fn)
}
