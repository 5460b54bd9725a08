package lockfile

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Store is the shared state as a shim uses it. Dir is the one in the state
// directory; package storetest is the suite that any other must pass too.
//
// A store is safe for use by several goroutines, and the state behind it by
// several processes.
type Store interface {
	// Read returns a snapshot without taking the lock: a caller that acts on
	// it alone may be a moment late, and whoever must not be claims under
	// Update. Session.Alive is filled in. A read never waits for a writer.
	Read() (Ledger, error)

	// Update calls fn with the state as it is under the lock and stores what fn
	// changed, as one change: after a crash at any point all of it is there or
	// none of it. It returns the state as stored. Nothing changed means nothing
	// written, and no event means no line.
	//
	// fn owns the ledger that it is given and may change it in place. It runs
	// under the lock of every sibling: it must not block, sleep or call the
	// store. A limiter or dead session missing from what it returns is
	// removed; a nil map means "as it was". A live session is written by the
	// store that holds its lease only: from any other, changes to it are not
	// stored, and it cannot be removed by anyone. One that holds no lease cannot
	// be added (ErrNoSession). Session.Alive, Schema and Limiter.Updated are the
	// store's to write.
	//
	// ErrBusy: a sibling held the lock for LockWait. ErrSchema: a newer qshim
	// wrote here. After any error nothing was changed, with one exception that
	// the error names: a disk that filled up between two renames; the change
	// is then completed by whoever takes the lock next.
	Update(ctx context.Context, fn func(old Ledger) (Ledger, []Event)) (Ledger, error)

	// Glance and UpdateOwn are Read and Update without the siblings: Sessions
	// holds only those of this store's own leases. They cost the same whether
	// two sessions run or two hundred, and do for all that concerns oneself: to
	// see that one must stop, to report a finding, the edge of a turn. A Glance of
	// a watching store, which looks only at what it was told of, may not see yet
	// what is decided and not in place, and several changes not as one.
	Glance() (Ledger, error)
	UpdateOwn(ctx context.Context, fn func(old Ledger) (Ledger, []Event)) (Ledger, error)

	// Record changes one session of this store's own leases, as Lease.Record
	// does. ErrNoSession also where the lease is another store's.
	Record(id string, fn func(*Session)) error

	// Lease makes s a session that is alive until the lease is closed or this
	// process ends, in whatever way. An empty s.ID is replaced by a fresh one.
	Lease(s Session) (Lease, error)

	// Watch returns a channel that receives a hint some milliseconds after a
	// limiter changed, by whomever; hints that nobody collected melt into one.
	// Where the system has no watch left the hint may be a second late, or a
	// quarter for who has an agent at work. The
	// channel is closed when ctx ends.
	//
	// atOnce, if there is one, is called for each change before its hint, on the
	// goroutine that heard of it; true: it has done what there was to do, and
	// there is no hint. It may use the store, but must not wait for anything else.
	Watch(ctx context.Context, atOnce func() bool) (<-chan struct{}, error)

	// Append writes events that belong to no change of state. A line is never
	// interleaved with another's.
	Append(events ...Event) error

	// Events yields the logged events not older than since, oldest first; with
	// follow it then waits for new ones until ctx ends. Lines that are no
	// events are skipped. An error ends the sequence, except ErrSchema, which
	// stands for one file that was skipped.
	Events(ctx context.Context, since time.Time, follow bool) iter.Seq2[Event, error]

	// Recover cleans up after sessions that died without closing their lease:
	// it calls cont for everything that they left stopped, frees the probes
	// that they had claimed and drops their files. It returns the sessions that
	// it found dead. Any sibling and any command may call it at any time.
	//
	// cont must verify the process (pid and start time) at that moment, and
	// returns nil too when it is gone. While it returns an error the session's
	// file stays, and the next Recover tries again. It runs outside the lock
	// and may be called twice for one process by two recoverers at once.
	Recover(cont func(Stopped) error) ([]Session, error)

	// Still waits until no operation of this process holds the lock and lets
	// none begin before resume is called. A shim that is about to stop itself
	// (Ctrl-Z) must not take the lock with it into its sleep.
	Still() (resume func())

	// Close releases what the store holds in this process. Leases are closed
	// by their owners.
	Close() error
}

// Lease is a session's sign of life.
type Lease interface {
	// ID is the session's id.
	ID() string
	// Record changes this session alone, much cheaper than Update: it needs no
	// lock and reads no sibling. It is how a shim keeps its state, its turns
	// and what it is about to stop. fn must not call the store. Siblings are
	// not given a hint. ErrNoSession: the lease is closed, or its file was
	// removed, which the next Update repairs.
	Record(fn func(*Session)) error
	// Close ends the session: its files are removed, and the debug logs that
	// were made for it.
	Close() error
}

// The errors that a caller tells apart. All mean "this decision is run": the
// caller goes on without coordination and says why once (DESIGN section 4.14).
var (
	// ErrBusy is returned when a sibling held the lock for LockWait.
	ErrBusy = errors.New("the state is locked by another qshim")
	// ErrSchema is returned when a newer qshim wrote the state.
	ErrSchema = errors.New("the state was written by a newer qshim")
	// ErrUnsafe is returned for a state directory that others could change:
	// another owner, group or world writable, or a link.
	ErrUnsafe = errors.New("the state directory is not safe to use")
	// ErrNoFlock is returned on a file system whose locks exclude nobody.
	ErrNoFlock = errors.New("file locks do not work on this file system")
	// ErrNoSession is returned when an update adds a session without a lease.
	ErrNoSession = errors.New("no such session")
	// ErrName is returned for an id that is empty or too long to name a file.
	ErrName = errors.New("not usable as an id")
	// ErrTooLarge is returned when a limiter or session grew beyond what any
	// reader accepts.
	ErrTooLarge = errors.New("too large")
	// ErrUnsupported is returned on systems without flock(2).
	ErrUnsupported = errors.New("not supported on this system")
)

// The store's limits.
const (
	// LockWait is how long an operation waits for the lock before ErrBusy.
	LockWait = 2 * time.Second
	// MaxFile is the most a limiter, session, salt or intent may take, in
	// bytes. The usual limiter takes some 300, the usual session 600.
	MaxFile = 64 << 10
	// MaxCache is the most a cache file may take, in bytes.
	MaxCache = 1 << 20
	// MaxEvents is the size in bytes at which the event log is rotated.
	MaxEvents = 8 << 20
	// KeepEvents is how many rotated event logs are kept.
	KeepEvents = 5
	// MaxLog is the size in bytes beyond which an agent's debug log is cut.
	MaxLog = 16 << 20
)

// Options are what a store needs from outside. The zero value is usable.
type Options struct {
	Now  func() time.Time // the clock for stamps; nil: time.Now
	Rand io.Reader        // for the salt and session ids; nil: crypto/rand, and for ids the runtime's
	// Notice is told of each thing set aside, mended or passed over, once. It
	// must not call the store. nil: nobody is told.
	Notice func(Notice)

	maxEvents int64                   // tests: rotation size; 0: MaxEvents
	tick      time.Duration           // tests: stat fallback period; 0: a second
	noWatch   bool                    // tests: pretend that inotify is exhausted
	step      func(name string) error // tests: called before each step of a change
}

// Notice tells what the store did about something that it met. It is handed
// out once for each thing, by whichever process dealt with it.
type Notice struct {
	Kind NoticeKind
	Path string // what it was about
	As   string // SetAside: where it is now
	Err  error  // what was wrong with it
}

// NoticeKind says what was done.
type NoticeKind string

// The notices.
const (
	SetAside NoticeKind = "set_aside" // renamed to NAME.bad-TIME, never deleted
	Mended   NoticeKind = "mended"    // made readable again, or written again
	Ignored  NoticeKind = "ignored"   // neither was possible, for example on a read-only disk
)
