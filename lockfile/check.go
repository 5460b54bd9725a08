package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Problem is one thing that is not as it should be in a state directory.
type Problem struct {
	Kind ProblemKind
	Path string
	Err  error // what exactly; nil where the kind says it all
	// Repair does what is safe to do without asking; nil: nothing is. It
	// deletes nothing that a person or a program could still want.
	Repair func() error
}

// ProblemKind says what sort of problem it is; the words are for the caller.
type ProblemKind string

// The problems.
const (
	UnsafeDir   ProblemKind = "unsafe_dir"   // others own it or may write to it, or it is a link
	ReadableDir ProblemKind = "readable_dir" // others may look into it
	UnsafeFile  ProblemKind = "unsafe_file"  // others may read or write a file, or own it
	Unusable    ProblemKind = "unusable"     // cannot be opened at all: Err says why
	ReadOnly    ProblemKind = "read_only"    // nothing can be written: no disk space, no permission
	NoFlock     ProblemKind = "no_flock"     // locks exclude nobody here
	RemoteDisk  ProblemKind = "remote_disk"  // a network or user-space file system: Err names it
	Locked      ProblemKind = "locked"       // somebody has held the lock for LockWait
	NewerSchema ProblemKind = "newer_schema" // a newer qshim writes here
	BadFile     ProblemKind = "bad_file"     // content that cannot be used; Repair sets it aside
	AsideFile   ProblemKind = "aside_file"   // was set aside earlier; a person may look and remove it
	DeadSession ProblemKind = "dead_session" // ended without cleaning up; Recover does it
	Leftover    ProblemKind = "leftover"     // of a killed writer
	CrashReport ProblemKind = "crash_report" // qshim itself panicked once
	NoWatch     ProblemKind = "no_watch"     // no inotify instance left: news comes a second late
)

// Check looks for everything that could be wrong with a state directory, for
// `qshim doctor`. It changes nothing itself. A directory that does not exist
// is no problem: the first session makes it.
func Check(dir string, o Options) []Problem {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return []Problem{{Kind: Unusable, Path: dir, Err: err}}
	}
	st, err := statAt(here, abs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []Problem{{Kind: Unusable, Path: abs, Err: err}}
	}
	k := &checker{path: abs}
	if !k.dir(here, abs, abs, st) {
		return k.found
	}
	for _, room := range []string{limiterRoom, sessionRoom, cacheRoom, logRoom, crashRoom} {
		k.room(room)
	}
	k.inside(o)
	return k.found
}

type checker struct {
	path  string
	found []Problem
}

func (k *checker) add(kind ProblemKind, path string, err error, repair func() error) {
	k.found = append(k.found, Problem{kind, path, err, repair})
}

// dir checks one directory's owner and mode; false: nobody will open it.
func (k *checker) dir(at int, name, path string, st stat) bool {
	if !st.mode.IsDir() {
		k.add(UnsafeDir, path, fmt.Errorf("not a directory (%v)", st.mode.Type()), nil)
		return false
	}
	repair := func() error { return chmodAt(here, path, 0o700) }
	if err := unsafeMode(st); err != nil {
		if st.uid != effectiveUID() {
			repair = nil
		}
		k.add(UnsafeDir, path, err, repair)
		return false
	}
	if st.mode.Perm()&0o077 != 0 {
		k.add(ReadableDir, path, fmt.Errorf("mode %04o", st.mode.Perm()), repair)
	}
	if st.mode.Perm()&0o700 != 0o700 {
		k.add(Unusable, path, fmt.Errorf("mode %04o", st.mode.Perm()), repair)
		return false
	}
	return true
}

// room checks one room and the files in it.
func (k *checker) room(name string) {
	path := filepath.Join(k.path, name)
	st, err := statAt(here, path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		k.add(Unusable, path, err, nil)
		return
	}
	if !k.dir(here, path, path, st) {
		return
	}
	k.files(path, name)
}

// files checks owner, mode and kind of every file in a directory.
func (k *checker) files(path, room string) {
	fd, err := openAt(here, path, forDir)
	if err != nil {
		k.add(Unusable, path, err, nil)
		return
	}
	defer closeFD(fd)
	names, err := listDir(fd)
	if err != nil {
		k.add(Unusable, path, err, nil)
	}
	sort.Strings(names)
	for _, name := range names {
		st, err := statAt(fd, name)
		if err != nil || room == "" && st.mode.IsDir() && !strings.Contains(name, badInfix) {
			continue // a room
		}
		k.file(filepath.Join(path, name), room, name, st)
	}
}

func (k *checker) file(path, room, name string, st stat) {
	switch {
	case strings.Contains(name, badInfix):
		k.add(AsideFile, path, nil, nil)
	case room == logRoom && name == latestName:
	case !st.mode.IsRegular():
		k.add(BadFile, path, fmt.Errorf("not a file (%v)", st.mode.Type()), nil)
	case st.uid != effectiveUID():
		k.add(UnsafeFile, path, unsafeMode(st), nil)
	case st.mode.Perm() != 0o600:
		k.add(UnsafeFile, path, fmt.Errorf("mode %04o", st.mode.Perm()), func() error { return chmodAt(here, path, 0o600) })
	case room == "" && strings.HasPrefix(name, tempPrefix):
		k.add(Leftover, path, nil, nil)
	case room == crashRoom:
		k.add(CrashReport, path, nil, nil)
	}
}

// inside opens the store and uses it.
func (k *checker) inside(o Options) {
	if st, err := statAt(here, filepath.Join(k.path, lockName)); err == nil && !st.mode.IsRegular() {
		k.notALock(o, st)
		return
	}
	d, err := Open(k.path, o)
	if err != nil {
		k.opening(err)
		return
	}
	defer func() { _ = d.Close() }() // nothing was written
	k.files(k.path, "")
	k.watching()
	r, err := d.enter()
	if err != nil {
		k.add(Unusable, k.path, err, nil)
		return
	}
	defer d.leave(r)
	if name, ok := remoteFS(r.top); ok {
		k.add(RemoteDisk, k.path, errors.New(name), nil)
	}
	k.contents(d, r)
	k.others(d, r)
	k.writing(d)
}

// notALock: something else stands in the lock's place. Nobody of ours can have
// locked it, so it may be set aside; but only when a person asks, because two
// launches that did so at once could each get a lock of their own.
func (k *checker) notALock(o Options, st stat) {
	path := filepath.Join(k.path, lockName)
	k.add(BadFile, path, fmt.Errorf("not a file (%v)", st.mode.Type()), func() error {
		now := time.Now()
		if o.Now != nil {
			now = o.Now()
		}
		return os.Rename(path, path+badInfix+now.UTC().Format(badTimeStamp))
	})
}

func (k *checker) opening(err error) {
	kind := Unusable
	switch {
	case errors.Is(err, ErrNoFlock):
		kind = NoFlock
	case errors.Is(err, ErrSchema):
		kind = NewerSchema
	case errors.Is(err, ErrUnsafe):
		kind = UnsafeDir
	}
	k.add(kind, k.path, err, nil)
}

func (k *checker) watching() {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		k.add(NoWatch, k.path, err, nil)
		return
	}
	_ = w.Close() // it watched nothing
}

// contents reads every limiter and session.
func (k *checker) contents(d *Dir, r *rooms) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.scanBoth(r); err != nil {
		k.add(Unusable, k.path, err, nil)
		return
	}
	for id, e := range d.limiters.entries {
		k.content(d, limiterRoom, id, e.bad)
	}
	for id, e := range d.sessions.entries {
		k.content(d, sessionRoom, id, e.bad)
		if e.bad == nil && !d.alive(r, id) {
			k.add(DeadSession, k.filePath(sessionRoom, id), nil, nil)
		}
	}
}

// others reads what is neither limiter nor session.
func (k *checker) others(d *Dir, r *rooms) {
	_, err := readSalt(r)
	k.other(d, saltName, err, func(again *Dir) error { _, err := again.Salt(); return err })
	_, _, err = readIntent(r)
	k.other(d, intentName, err, func(again *Dir) error {
		return again.locked(context.Background(), LockWait, func(*holder) error { return nil })
	})
	k.other(d, eventsName, headerOf(r), func(again *Dir) error { return again.Append(Event{Event: "repair"}) })
}

// headerOf fails for an event log that nobody could append to.
func headerOf(r *rooms) error {
	fd, st, err := openSmall(r.top, eventsName, 1<<62)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if st.size == 0 {
		return nil
	}
	return checkHeader(fd)
}

func (k *checker) other(d *Dir, name string, bad error, mend func(*Dir) error) {
	path := filepath.Join(k.path, name)
	switch {
	case errors.Is(bad, ErrSchema):
		k.add(NewerSchema, path, bad, nil)
	case errors.Is(bad, errGarbage) && !slices.ContainsFunc(k.found, func(p Problem) bool { return p.Kind == BadFile && p.Path == path }):
		k.add(BadFile, path, bad, func() error {
			again, err := Open(k.path, d.o)
			if err != nil {
				return err
			}
			return errors.Join(mend(again), again.Close())
		})
	}
}

func (k *checker) content(d *Dir, room, id string, bad error) {
	switch {
	case bad == nil:
	case errors.Is(bad, ErrSchema):
		k.add(NewerSchema, k.filePath(room, id), bad, nil)
	default:
		repair := func() error { // Check has closed its own Dir by then
			again, err := Open(k.path, d.o)
			if err != nil {
				return err
			}
			return errors.Join(again.locked(context.Background(), LockWait, func(h *holder) error { return again.tidy(h, false) }), again.Close())
		}
		k.add(BadFile, k.filePath(room, id), bad, repair)
	}
}

func (k *checker) filePath(room, id string) string {
	name, err := escape(id)
	if err != nil {
		name = id // it came from a file name, so this does not happen
	}
	return filepath.Join(k.path, room, name+jsonExt)
}

// writing takes the lock and writes a file that nobody reads.
func (k *checker) writing(d *Dir) {
	err := d.locked(context.Background(), LockWait, func(r *holder) error {
		return errors.Join(d.writeTemp(r.rooms, tempName, []byte(time.Now().Format(time.RFC3339))), dropIfThere(r.top, tempName))
	})
	switch {
	case errors.Is(err, ErrBusy):
		k.add(Locked, filepath.Join(k.path, lockName), err, nil)
	case errors.Is(err, ErrSchema):
		k.add(NewerSchema, filepath.Join(k.path, lockName), err, nil)
	case err != nil:
		k.add(ReadOnly, k.path, err, nil)
	}
}
