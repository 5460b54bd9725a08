package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// shelf is what this process knows of one room of JSON files. A file that has
// the same inode, size and time as when it was read is not read again: 200
// unchanged sessions cost 200 stats.
type shelf[T any] struct {
	room    string
	decode  func(id string, data []byte) (T, error)
	entries map[string]entry[T] // by id
}

type entry[T any] struct {
	fileID
	sure bool // an equal stat means equal content
	val  T
	bad  error // why val is not usable, nil: it is
}

// grain is longer than the coarsest clock that stamps files in the kernels
// that we know (10 ms at 100 Hz). A file that was this fresh when it was read
// may have been replaced since by one with the same stamp, and even the same
// inode; such an entry is read again.
const grain = 20 * time.Millisecond

// sureOf reports whether a stat taken at now identifies the content for good.
// File systems that keep whole seconds get two of them.
func sureOf(st stat, now time.Time) bool {
	age := now.Sub(time.Unix(0, st.mtime))
	if st.mtime%int64(time.Second) == 0 {
		return age > 2*time.Second+grain
	}
	return age > grain
}

// forget drops everything known.
func (s *shelf[T]) forget() { s.entries = nil }

// scan brings the shelf up to date and reports whether anything differs.
func (s *shelf[T]) scan(dir int) (changed bool, err error) {
	names, err := listDir(dir)
	if err != nil {
		return false, err
	}
	// Wall clock, not the injected one: it is compared with the kernel's stamps.
	now := time.Now()
	next := make(map[string]entry[T], len(names))
	for _, name := range names {
		id, ok := fileToID(name, jsonExt)
		if !ok {
			continue
		}
		st, err := statAt(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		e, known := s.entries[id]
		if !known || !e.sure || e.fileID != st.fileID {
			was := e.fileID
			if e, err = s.read(dir, id, name, now); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return false, err
			}
			changed = changed || !known || e.fileID != was
		}
		next[id] = e
	}
	changed = changed || len(next) != len(s.entries)
	s.entries = next
	return changed, nil
}

// read reads one file. What is wrong with the file itself is kept in the
// entry; an error of the system (no descriptors, I/O) ends the scan, because a
// state with holes in it must not be taken for the state.
func (s *shelf[T]) read(dir int, id, name string, now time.Time) (entry[T], error) {
	data, st, err := readSmall(dir, name, MaxFile)
	e := entry[T]{fileID: st.fileID, sure: sureOf(st, now)}
	if err == nil {
		e.val, e.bad = s.decode(id, data)
		return e, nil
	}
	if errors.Is(err, errGarbage) || errors.Is(err, fs.ErrPermission) {
		e.bad = err
		return e, nil
	}
	return e, err
}

// fileToID returns the id that a file name stands for, false for all others.
func fileToID(name, ext string) (string, bool) {
	stem, ok := strings.CutSuffix(name, ext)
	if !ok {
		return "", false
	}
	return unescape(stem)
}

// listDir returns the names in a directory. It opens it anew, because the
// position in an open one is shared.
func listDir(dir int) ([]string, error) {
	fd, err := openAt(dir, ".", forDir)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer func() { _ = f.Close() }() // opened for reading: nothing to lose
	return f.Readdirnames(-1)
}

// scanBoth brings both shelves up to date; mu is held.
func (d *Dir) scanBoth(r *rooms) (changed bool, err error) {
	a, err := d.limiters.scan(r.limiters)
	if err != nil {
		return false, err
	}
	b, err := d.sessions.scan(r.sessions)
	return a || b, err
}

// assemble makes a ledger of the shelves; its values share memory with them.
// known holds leases probed a moment ago. A dead session of a newer qshim is
// left for that one to recover, a live one means that we step aside.
func (d *Dir) assemble(r *rooms, known map[string]bool) (Ledger, error) {
	l := Ledger{Limiters: make(map[string]Limiter, len(d.limiters.entries)),
		Sessions: make(map[string]Session, len(d.sessions.entries))}
	for id, e := range d.limiters.entries {
		if errors.Is(e.bad, ErrSchema) {
			return Ledger{}, e.bad
		}
		if e.bad == nil {
			l.Limiters[id] = e.val
		}
	}
	for id, e := range d.sessions.entries {
		if e.bad != nil && !errors.Is(e.bad, ErrSchema) {
			continue
		}
		alive, probed := known[id]
		if !probed {
			alive = d.alive(r, id)
		}
		if e.bad == nil {
			e.val.Alive = alive
			l.Sessions[id] = e.val
		} else if alive {
			return Ledger{}, e.bad
		}
	}
	return l, nil
}

// alive reports whether a session's lease is held. The probe is a shared lock
// for an instant: it cannot disturb the owner, which has its lock since before
// the session could be seen, nor another probe. What cannot be probed counts
// as alive: to take a living session for dead would continue its agent.
func (d *Dir) alive(r *rooms, id string) bool {
	if d.leases[id] != nil {
		return true
	}
	name, err := escape(id)
	if err != nil {
		return false
	}
	name += leaseExt
	fd, err := openAt(r.sessions, name, forRead)
	if errors.Is(err, fs.ErrPermission) && chmodAt(r.sessions, name, 0o600) == nil {
		fd, err = openAt(r.sessions, name, forRead)
	}
	if err != nil {
		st, serr := statAt(r.sessions, name)
		return !errors.Is(serr, fs.ErrNotExist) && (serr != nil || st.mode.IsRegular())
	}
	defer closeFD(fd)
	return flock(fd, shared) != nil
}

// Read implements Store. It collects until two passes agree, so that a change
// of several files is seen whole; under constant change three passes must do,
// and the next hint brings the rest.
func (d *Dir) Read() (Ledger, error) {
	r, err := d.enter()
	if err != nil {
		return Ledger{}, err
	}
	defer d.leave(r)
	if d.hasBad(r) {
		// Somebody who holds the lock will do it otherwise.
		_ = d.locked(context.Background(), 0, func(r *rooms) error { return d.tidy(r) })
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for range 3 {
		changed, err := d.scanBoth(r)
		if err != nil {
			return Ledger{}, d.wrap(err)
		}
		if !changed {
			break
		}
	}
	l, err := d.assemble(r, nil)
	if err != nil {
		return Ledger{}, d.wrap(err)
	}
	l = l.Clone()
	if err := d.overlay(r, &l); err != nil {
		return Ledger{}, d.wrap(err)
	}
	return l, nil
}

// hasBad scans and reports whether a file must be set aside or mended.
func (d *Dir) hasBad(r *rooms) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.scanBoth(r); err != nil {
		return false // Read meets it again and returns it
	}
	return len(d.limiters.bad()) > 0 || len(d.sessions.bad()) > 0
}

// bad returns the unusable files, by id.
func (s *shelf[T]) bad() map[string]error {
	var m map[string]error
	for id, e := range s.entries {
		if e.bad != nil && !errors.Is(e.bad, ErrSchema) {
			if m == nil {
				m = map[string]error{}
			}
			m[id] = e.bad
		}
	}
	return m
}

// tidy mends or sets aside what cannot be used; the lock is held.
func (d *Dir) tidy(r *rooms) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.scanBoth(r); err != nil {
		return err
	}
	tidyShelf(d, r.limiters, &d.limiters)
	tidyShelf(d, r.sessions, &d.sessions)
	return nil
}

func tidyShelf[T any](d *Dir, dir int, s *shelf[T]) {
	for id, why := range s.bad() {
		name, err := escape(id)
		if err != nil {
			continue
		}
		name += jsonExt
		if errors.Is(why, fs.ErrPermission) && d.mend(dir, s.room, name, why) {
			if e, err := s.read(dir, id, name, time.Now()); err == nil && e.bad == nil {
				s.entries[id] = e
				continue
			}
		}
		if d.setAside(dir, s.room, name, why) {
			delete(s.entries, id)
		}
	}
}
