package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// locked runs fn under the lock of the whole directory, with any change that a
// dead process left half done completed first. wait bounds the time to get the
// lock; 0 means only if it is free now.
func (d *Dir) locked(ctx context.Context, wait time.Duration, fn func(*rooms) error) error {
	late := time.NewTimer(wait)
	defer late.Stop()
	if wait > 0 {
		select {
		case <-d.turn:
		case <-ctx.Done():
			return d.wrap(ctx.Err())
		case <-late.C:
			return d.wrap(ErrBusy)
		}
	} else {
		select {
		case <-d.turn:
		default:
			return d.wrap(ErrBusy)
		}
	}
	defer func() { d.turn <- struct{}{} }()
	r, err := d.enter()
	if err != nil {
		return err
	}
	defer d.leave(r)
	fd, err := d.flock(ctx, r, wait, late.C)
	if err != nil {
		return d.wrap(err)
	}
	// Closing the descriptor is the release: it was opened for this one use.
	defer closeFD(fd)
	if err := stampLock(fd); err != nil {
		return d.wrap(err)
	}
	if err := d.settle(r); err != nil {
		return d.wrap(err)
	}
	return d.wrap(fn(r))
}

// flock takes the lock and returns its descriptor. Somebody may remove the
// file while we wait: a lock on an unlinked file excludes nobody, so look again.
func (d *Dir) flock(ctx context.Context, r *rooms, wait time.Duration, late <-chan time.Time) (int, error) {
	for {
		fd, err := d.flockOnce(ctx, r, wait, late)
		if err != nil {
			return -1, err
		}
		locked, err1 := statFD(fd)
		named, err2 := statAt(r.top, lockName)
		if err1 == nil && err2 == nil && locked.ino == named.ino {
			return fd, nil
		}
		closeFD(fd)
		if err2 != nil && !errors.Is(err2, fs.ErrNotExist) {
			return -1, err2
		}
	}
}

func (d *Dir) flockOnce(ctx context.Context, r *rooms, wait time.Duration, late <-chan time.Time) (int, error) {
	fd, err := openLock(r.top)
	if err != nil {
		return -1, err
	}
	err = flock(fd, exclusNB)
	if err == nil {
		return fd, nil
	}
	if !isBusy(err) {
		closeFD(fd)
		if isNoLocks(err) {
			err = ErrNoFlock
		}
		return -1, err
	}
	if wait == 0 {
		closeFD(fd)
		return -1, ErrBusy
	}
	// The kernel queues blocked flocks in order, which keeps the worst wait of
	// 200 closed-loop writers near the mean; trying again now and then does not.
	if d.wait == nil || !d.wait.adopt() {
		d.wait = newWaiter(fd)
	} else {
		closeFD(fd)
	}
	w := d.wait
	select {
	case err := <-w.got:
		d.wait = nil
		return w.fd, err
	case <-ctx.Done():
		w.abandon()
		return -1, ctx.Err()
	case <-late:
		w.abandon()
		return -1, ErrBusy
	}
}

func openLock(top int) (int, error) {
	fd, err := openAt(top, lockName, forLock)
	if errors.Is(err, fs.ErrPermission) && chmodAt(top, lockName, 0o600) == nil {
		fd, err = openAt(top, lockName, forLock)
	}
	return fd, err
}

// stampLock reads the schema of the whole directory from the lock file, which
// the first holder writes there.
func stampLock(fd int) error {
	var buf [64]byte
	n, _ := descriptor(fd).ReadAt(buf[:], 0) // an empty file is EOF; anything else fails below
	if n > 0 {
		err := checkSchema(buf[:n])
		if errors.Is(err, ErrSchema) {
			return err
		}
		if err == nil {
			return nil
		}
	}
	line, err := encode(struct {
		Schema int `json:"schema"`
	}{Schema})
	if err != nil {
		return err
	}
	if err := errors.Join(private(fd), truncate(fd, 0)); err != nil {
		return err
	}
	_, err = descriptor(fd).Write(line)
	return err
}

// checkFlock fails where flock does not exclude: two descriptors of one file
// must not both get it. A lock that somebody else holds is proof enough.
func checkFlock(top int) error {
	a, err := openLock(top)
	if err != nil {
		return err
	}
	defer closeFD(a)
	var buf [64]byte
	if n, _ := descriptor(a).ReadAt(buf[:], 0); n > 0 { // unreadable is not newer
		if err := checkSchema(buf[:n]); errors.Is(err, ErrSchema) {
			return err
		}
	}
	b, err := openAt(top, lockName, forRead)
	if err != nil {
		return err
	}
	defer closeFD(b)
	// Shared first: two qshims that start together must not see each other's
	// check as a held lock, which would be right but hide a broken one.
	if err := flock(a, shared); err != nil {
		if isBusy(err) {
			return nil
		}
		return fmt.Errorf("%w: %w", ErrNoFlock, err)
	}
	if err := flock(b, exclusNB); !isBusy(err) {
		return fmt.Errorf("%w: two holders at once", ErrNoFlock)
	}
	return nil
}

// waiter is one blocked flock. It cannot be cancelled: when its caller gives
// up, the next one of this process takes it over, or it lets go as soon as it
// gets the lock. So a stuck sibling costs each process one thread, not one
// every 30 seconds.
type waiter struct {
	fd  int
	got chan error // the outcome, for whoever wants it

	mu     sync.Mutex
	wanted bool
	done   bool
}

func newWaiter(fd int) *waiter {
	w := &waiter{fd: fd, got: make(chan error, 1), wanted: true}
	go func() {
		err := flock(fd, exclusive)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done = true
		if err != nil || !w.wanted {
			closeFD(fd)
		}
		if w.wanted {
			w.got <- err
		}
	}()
	return w
}

// adopt takes over an abandoned request; false if that has ended meanwhile.
func (w *waiter) adopt() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return false
	}
	w.wanted = true
	return true
}

// abandon gives the request up, and the lock with it if it came just now.
func (w *waiter) abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = false
	select {
	case err := <-w.got:
		if err == nil {
			closeFD(w.fd)
		}
	default:
	}
}
