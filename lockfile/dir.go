package lockfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"qshim/lockfile/fault"
)

// The names in the state directory (DESIGN section 6).
const (
	lockName     = "lock"     // flocked by every writer; never renamed or replaced
	intentName   = "intent"   // a change of several files that is under way
	saltName     = "salt"     // 32 random bytes for account hashes
	limiterRoom  = "limiters" // <escaped id>.json, one watched file a limiter
	sessionRoom  = "sessions" // <escaped id>.json, .lock (the lease), .spare (see Record)
	cacheRoom    = "cache"    // <escaped name>.json
	logRoom      = "logs"     // <session>+<name>: agents' debug logs
	crashRoom    = "crash"    // reports of qshim's own panics
	jsonExt      = ".json"
	leaseExt     = ".lock"
	spareExt     = ".spare"
	badInfix     = ".bad-"
	tempPrefix   = "tmp."
	tempName     = tempPrefix + "0"
	badTimeStamp = "20060102T150405Z"
)

// Dir is the Store in a state directory.
//
// Locks: turn orders the lock holders of this process, then the flock on the
// file "lock" those of all processes; mu guards the fields and is never held
// while waiting for either.
type Dir struct {
	path string
	o    Options
	ids  io.Reader
	turn chan struct{} // holds one token: this process's turn at the lock
	wait *waiter       // a lock request that outlived its caller; owned by the turn

	partly bool // a change of ours may stand in the intent only; owned by the turn

	mu       sync.Mutex
	rooms    *rooms
	reopened chan struct{} // closed and replaced when rooms is
	limiters shelf[Limiter]
	sessions shelf[Session]
	leases   map[string]*lease
	probed   map[string]time.Time // when a lease was last found held
	ignored  map[string]bool      // notices of kind Ignored already given
	heard    map[string]bool      // the limiters' files that the watch told of since they were looked at; nil: it tells not of all
	fallback error                // why the last watch is a stat each second; nil: it is not
	closed   bool
}

var _ Store = (*Dir)(nil)

// rooms are the open directories. All file names are resolved from them, so a
// directory that is swapped for a link afterwards leads nobody elsewhere.
type rooms struct {
	top, limiters, sessions int
	id, limitersID, sessID  fileID
	users                   int  // operations under way; guarded by Dir.mu
	stale                   bool // replaced; closed by its last user
}

// Open opens the state directory, which it creates with mode 0700 when it is
// missing. ErrUnsafe: others own it or could write to it, or it is a link.
// ErrNoFlock, ErrSchema: as they say. The caller then goes on without a store.
func Open(dir string, o Options) (*Dir, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	ids := o.Rand
	if o.Rand == nil {
		o.Rand, ids = rand.Reader, quickRand{}
	}
	if o.maxEvents == 0 {
		o.maxEvents = MaxEvents
	}
	if o.tick == 0 {
		o.tick = time.Second
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	d := &Dir{path: abs, o: o, ids: ids, turn: make(chan struct{}, 1), reopened: make(chan struct{}),
		leases: map[string]*lease{}, probed: map[string]time.Time{}, ignored: map[string]bool{}}
	d.limiters = shelf[Limiter]{room: limiterRoom, decode: decodeLimiter}
	d.sessions = shelf[Session]{room: sessionRoom, decode: decodeSession}
	d.turn <- struct{}{}
	r, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer d.leave(r)
	if err := checkFlock(r.top); err != nil {
		return nil, errors.Join(d.wrap(err), d.Close())
	}
	return d, nil
}

// quickRand is for session ids, which must differ and are no secret: the
// runtime's own generator, which the system has seeded, is there from the start.
type quickRand struct{}

func (quickRand) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(mathrand.Uint32())
	}
	return len(p), nil
}

// Path returns the state directory, absolute.
func (d *Dir) Path() string { return d.path }

// Close implements Store. A watch ends with its context.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.retire()
	return nil
}

// Still implements Store.
func (d *Dir) Still() (resume func()) {
	<-d.turn
	return sync.OnceFunc(func() { d.turn <- struct{}{} })
}

// enter returns the open directories, opened again if somebody removed or
// replaced the state directory meanwhile. Every enter has its leave.
func (d *Dir) enter() (*rooms, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("state directory %s: %w", d.path, fs.ErrClosed)
	}
	if d.rooms != nil && d.rooms.replaced(d.path) {
		d.retire()
	}
	if d.rooms == nil {
		r, err := openRooms(d.path)
		if err != nil {
			return nil, d.wrap(err)
		}
		d.rooms = r
	}
	d.rooms.users++
	return d.rooms, nil
}

// replaced reports that one of the open directories is no longer the one of
// that name.
func (r *rooms) replaced(path string) bool {
	other := func(at int, name string, id fileID) bool {
		st, err := statAt(at, name)
		return err != nil || st.ino != id.ino || st.dev != id.dev
	}
	return other(here, path, r.id) || other(r.top, limiterRoom, r.limitersID) || other(r.top, sessionRoom, r.sessID)
}

func (d *Dir) leave(r *rooms) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.users--; r.stale && r.users == 0 {
		r.close()
	}
}

// retire forgets the open directories; mu is held.
func (d *Dir) retire() {
	if r := d.rooms; r != nil {
		d.rooms, r.stale = nil, true
		if r.users == 0 {
			r.close()
		}
		close(d.reopened)
		d.reopened = make(chan struct{})
	}
	d.limiters.forget()
	d.sessions.forget()
}

func (r *rooms) close() {
	for _, fd := range []int{r.top, r.limiters, r.sessions} {
		if fd >= 0 {
			closeFD(fd)
		}
	}
}

func openRooms(path string) (_ *rooms, err error) {
	r := &rooms{top: -1, limiters: -1, sessions: -1}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.top, err = openTop(path); err != nil {
		return nil, err
	}
	if r.limiters, err = openRoom(r.top, limiterRoom); err != nil {
		return nil, err
	}
	if r.sessions, err = openRoom(r.top, sessionRoom); err != nil {
		return nil, err
	}
	for fd, id := range map[int]*fileID{r.top: &r.id, r.limiters: &r.limitersID, r.sessions: &r.sessID} {
		st, err := statFD(fd)
		if err != nil {
			return nil, err
		}
		*id = st.fileID
	}
	return r, nil
}

// openTop opens the state directory itself, creating it and its parents.
func openTop(path string) (int, error) {
	fd, err := openAt(here, path, forDir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return -1, err
		}
		fd, err = openAt(here, path, forDir)
	}
	return safeDir(fd, here, path, err)
}

// openRoom opens a directory in the state directory, creating it.
func openRoom(top int, name string) (int, error) {
	fd, err := openAt(top, name, forDir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := mkdirAt(top, name); err != nil && !errors.Is(err, fs.ErrExist) {
			return -1, err
		}
		fd, err = openAt(top, name, forDir)
	}
	return safeDir(fd, top, name, err)
}

// safeDir passes fd on if only we can write to that directory.
func safeDir(fd, at int, name string, err error) (int, error) {
	if err != nil {
		// O_NOFOLLOW and O_DIRECTORY report a link as ELOOP, ENOTDIR or EMLINK,
		// depending on the system: ask what it is instead.
		if st, serr := statAt(at, name); serr == nil && !st.mode.IsDir() {
			return -1, fmt.Errorf("%s: %w: not a directory (%v)", name, ErrUnsafe, st.mode.Type())
		}
		return -1, err
	}
	st, err := statFD(fd)
	if err == nil {
		err = unsafeMode(st)
	}
	if err != nil {
		closeFD(fd)
		return -1, fmt.Errorf("%s: %w", name, err)
	}
	return fd, nil
}

// unsafeMode says why others could change a file or directory of ours, if so.
// POSIX access lists are covered: their mask shows as the group's bits.
func unsafeMode(st stat) error {
	if uid := effectiveUID(); st.uid != uid {
		return fmt.Errorf("%w: it belongs to user %d, not %d", ErrUnsafe, st.uid, uid)
	}
	if st.mode.Perm()&0o022 != 0 {
		return fmt.Errorf("%w: others may write to it (mode %04o)", ErrUnsafe, st.mode.Perm())
	}
	return nil
}

func (d *Dir) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("state directory %s: %w", d.path, err)
}

// at marks a step of a change; tests fail or die there.
func (d *Dir) at(step string) error {
	if err := fault.Err(step); err != nil || d.o.step == nil {
		return err
	}
	return d.o.step(step)
}

func (d *Dir) notice(n Notice) {
	if d.o.Notice != nil {
		d.o.Notice(n)
	}
}
