package lockfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"time"

	"qshim/lockfile/fault"
)

// locked runs fn under the lock of the whole directory, with any change that a
// dead process left half done completed first. wait bounds the time to get the
// lock; 0 means only if it is free now.
func (d *Dir) locked(ctx context.Context, wait time.Duration, fn func(*holder) error) error {
	late := time.NewTimer(wait)
	defer late.Stop()
	giveBack, err := d.takeTurn(ctx, wait, late.C)
	if err != nil {
		return d.wrap(err)
	}
	defer giveBack()
	return d.lockedInTurn(ctx, wait, late.C, fn)
}

// takeTurn waits for this process's other operations.
func (d *Dir) takeTurn(ctx context.Context, wait time.Duration, late <-chan time.Time) (giveBack func(), err error) {
	giveBack = func() { d.turn <- struct{}{} }
	select {
	case <-d.turn:
		return giveBack, nil
	default:
	}
	if wait == 0 {
		return nil, ErrBusy
	}
	select {
	case <-d.turn:
		return giveBack, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late:
		return nil, ErrBusy
	}
}

func (d *Dir) lockedInTurn(ctx context.Context, wait time.Duration, late <-chan time.Time, fn func(*holder) error) error {
	r, err := d.enter()
	if err != nil {
		return err
	}
	defer d.leave(r)
	fd, err := d.flock(ctx, r, wait, late)
	if err != nil {
		return d.wrap(err)
	}
	// Closing the descriptor is the release: it was opened for this one use.
	defer closeFD(fd)
	fault.At("locked")
	h := &holder{rooms: r, fd: fd}
	if h.gen, err = readStamp(fd); err != nil {
		return d.wrap(err)
	}
	defer h.done()
	if err := d.settle(h); err != nil {
		return d.wrap(err)
	}
	return d.wrap(fn(h))
}

// holder is what only who has the lock can do.
type holder struct {
	*rooms
	fd      int    // of the lock file
	gen     uint64 // the directory's write count: odd while somebody writes
	touched bool   // it has been raised for this holding
}

// touch raises the write count to the next odd number, before the first write
// of a holding, and done to the even one after it. Whoever finds the even
// number that he knows need not look again. A killed writer leaves it odd,
// which costs others a look and nothing else.
func (h *holder) touch() error {
	if h.touched {
		return nil
	}
	next := (h.gen + 1) | 1
	if err := writeStamp(h.fd, next); err != nil {
		return err
	}
	h.gen, h.touched = next, true
	return nil
}

// placed raises it to the next odd number, after the last rename of an intent
// and before the intent is cleared: a reader who has looked at some files before
// and at others after finds either the intent or another number. (Siblings are
// told by the first rename, so they look in the middle of it.)
func (h *holder) placed() error {
	if err := writeStamp(h.fd, h.gen+2); err != nil {
		return err
	}
	h.gen += 2
	return nil
}

func (h *holder) done() {
	if h.touched {
		_ = writeStamp(h.fd, h.gen+1) // left odd it is only slower
	}
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
	if err = fault.Err("flock"); err == nil {
		err = flock(fd, exclusNB)
	}
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
	if err := d.at("wait for lock"); err != nil {
		closeFD(fd)
		return -1, err
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

// openLock opens the lock file, made if need be. A umask that took our own
// permission from it is made up for.
func openLock(top int) (int, error) {
	fd, err := openAt(top, lockName, forLock)
	if errors.Is(err, fs.ErrPermission) && chmodAt(top, lockName, 0o600) == nil {
		fd, err = openAt(top, lockName, forLock)
	}
	return fd, err
}

// stamp is the content of the lock file: the schema of the whole directory and
// a count of its writes. It has a fixed width and is written in place, which
// costs no block, no rename and no journal entry.
type stamp struct {
	Schema int    `json:"schema"`
	Writes string `json:"writes"` // 20 digits
}

// A stamp as it is written, up to its digits and behind them.
func stampHead() string { return `{"schema":` + strconv.Itoa(Schema) + `,"writes":"` }

const stampTail = `"}`

// readStamp reads the write count. Content that is no stamp counts as none
// written yet, for the first holder and after a power cut.
func readStamp(fd int) (uint64, error) {
	var buf [128]byte
	n, _ := descriptor(fd).ReadAt(buf[:], 0) // an empty file is EOF; a real error also fails the next write
	line, _, _ := bytes.Cut(buf[:n], []byte("\n"))
	return decodeStamp(line)
}

func decodeStamp(line []byte) (uint64, error) {
	if len(line) == 0 {
		return 0, nil
	}
	if n, ok := ownStamp(line); ok {
		return n, nil
	}
	return anyStamp(line)
}

// ownStamp reads a stamp in the form that writeStamp gives it. JSON's tables of
// types would be the dearest part of a launch that needs nothing else of them.
func ownStamp(line []byte) (writes uint64, ok bool) {
	digits, ok := bytes.CutPrefix(line, []byte(stampHead()))
	if !ok || len(digits) != 20+len(stampTail) || string(digits[20:]) != stampTail {
		return 0, false
	}
	writes, err := strconv.ParseUint(string(digits[:20]), 10, 64)
	return writes, err == nil
}

// anyStamp reads a stamp of whatever form.
func anyStamp(line []byte) (uint64, error) {
	if err := checkSchema(line); err != nil {
		if errors.Is(err, ErrSchema) {
			return 0, err // as every file says it: its user is told once
		}
		return 0, nil
	}
	var s stamp
	if json.Unmarshal(line, &s) != nil {
		return 0, nil
	}
	n, err := strconv.ParseUint(s.Writes, 10, 64)
	if err != nil {
		return 0, nil
	}
	return n, nil
}

func writeStamp(fd int, writes uint64) error {
	_, err := descriptor(fd).WriteAt(fmt.Appendf(nil, "%s%020d%s\n", stampHead(), writes, stampTail), 0)
	return pathErr("write", lockName, err)
}

// writes reads the count without the lock; ok is false where there is none.
func (r *rooms) writes() (count uint64, ok bool) {
	fd, err := openAt(r.top, lockName, forRead)
	if err != nil {
		return 0, false
	}
	defer closeFD(fd)
	count, err = readStamp(fd)
	return count, err == nil && count > 0
}

// checkFlock fails where flock does not exclude: two descriptors of one file
// must not both get it. A lock that somebody else holds is proof enough.
func checkFlock(top int) error {
	a, err := openLock(top)
	if isReadOnly(err) {
		return nil // reading goes; every update will say what is wrong
	}
	if err != nil {
		return err
	}
	defer closeFD(a)
	if _, err := readStamp(a); err != nil {
		return err
	}
	b, err := openLock(top)
	if err != nil {
		return err
	}
	defer closeFD(b)
	// Shared first: two qshims that start together must not see each other's
	// check as a held lock, which would be right but hide a broken one.
	err = fault.Err("flock")
	if err == nil {
		err = flock(a, shared)
	}
	if err != nil {
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
