package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
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
	ids     map[string]string   // file name to id, of the last scan
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
	return now.Sub(time.Unix(0, st.mtime)) > grainOf(st)
}

func grainOf(st stat) time.Duration {
	if st.mtime%int64(time.Second) == 0 {
		return 2*time.Second + grain
	}
	return grain
}

// forget drops everything known.
func (s *shelf[T]) forget() { s.entries, s.ids = nil, nil }

// scan brings the shelf up to date.
func (s *shelf[T]) scan(dir int) error {
	names, err := listDir(dir)
	if err != nil {
		return err
	}
	// Wall clock, not the injected one: it is compared with the kernel's stamps.
	now := time.Now()
	if s.entries == nil {
		s.entries = map[string]entry[T]{}
	}
	ids := make(map[string]string, len(names))
	for _, name := range names {
		id, ok := s.ids[name]
		if !ok {
			if id, ok = fileToID(name, jsonExt); !ok {
				continue
			}
		}
		st, err := statAt(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		e, known := s.entries[id]
		if !known || !e.sure || e.fileID != st.fileID {
			if e, err = s.read(dir, id, name, now); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return err
			}
			s.entries[id] = e
		}
		ids[name] = id
	}
	s.ids = ids
	if len(s.entries) > len(ids) {
		there := make(map[string]bool, len(ids))
		for _, id := range ids {
			there[id] = true
		}
		maps.DeleteFunc(s.entries, func(id string, _ entry[T]) bool { return !there[id] })
	}
	return nil
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
func (d *Dir) scanBoth(r *rooms) error {
	if err := d.limiters.scan(r.limiters); err != nil {
		return err
	}
	if err := d.sessions.scan(r.sessions); err != nil {
		return err
	}
	for id := range d.probed {
		if _, there := d.sessions.entries[id]; !there {
			delete(d.probed, id)
		}
	}
	return nil
}

// assemble makes a ledger of the shelves; its values share memory with them.
// known holds leases probed a moment ago. A dead session of a newer qshim is
// left for that one to recover, a live one means that we step aside.
func (d *Dir) assemble(r *rooms, known map[string]bool) (Ledger, error) {
	l, err := d.assembleOwn()
	if err != nil {
		return Ledger{}, err
	}
	for id, e := range d.sessions.entries {
		if d.leases[id] != nil || e.bad != nil && !errors.Is(e.bad, ErrSchema) {
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

// assembleOwn is assemble without the siblings' sessions. Our own are taken
// from memory: nobody else writes them, and Record may have since the scan.
func (d *Dir) assembleOwn() (Ledger, error) {
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
	for id, own := range d.leases {
		s := own.session
		s.Alive = true
		l.Sessions[id] = s
	}
	return l, nil
}

// trust is how long a lease that was found held is taken to be held while its
// process is there. A process number is not an identity, so the lock is asked
// again after that; in between one kill(pid, 0) stands for an open, a flock and
// a close, which matters to 200 sessions that look at each other.
const trust = 2 * time.Second

// alive reports whether a session's lease is held; mu is held.
func (d *Dir) alive(r *rooms, id string) bool {
	if d.leases[id] != nil {
		return true
	}
	if at, ok := d.probed[id]; ok && time.Since(at) < trust {
		if pid := d.sessions.entries[id].val.PID; pid > 0 && processThere(pid) {
			return true
		}
	}
	if !held(r, id) {
		delete(d.probed, id)
		return false
	}
	d.probed[id] = time.Now()
	return true
}

// held asks the lock. The probe is a shared lock for an instant: it cannot
// disturb the owner, which has its lock since before the session could be seen,
// nor another probe. What cannot be probed counts as alive: to take a living
// session for dead would continue its agent.
func held(r *rooms, id string) bool {
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

// Read implements Store.
func (d *Dir) Read() (Ledger, error) {
	return d.read(true, func(r *rooms) (Ledger, error) {
		if err := d.scanBoth(r); err != nil {
			return Ledger{}, err
		}
		return d.assemble(r, nil)
	})
}

// read looks again while others write, so that a change of several files is
// seen whole; when they do so without pause, the tenth look must do, and the
// next hint brings the rest. (One change moves the count three times.)
func (d *Dir) read(siblings bool, look func(*rooms) (Ledger, error)) (Ledger, error) {
	r, err := d.enter()
	if err != nil {
		return Ledger{}, err
	}
	defer d.leave(r)
	tidied := false
	for try := 1; ; try++ {
		before, _ := r.writes()
		l, bad, err := d.collect(r, look)
		if err != nil {
			return Ledger{}, d.wrap(err)
		}
		if bad && !tidied {
			// If somebody else has the lock, the file is passed over this time.
			tidied = true
			err := d.locked(context.Background(), 0, func(h *holder) error { return d.tidy(h, false) })
			if err != nil && !errors.Is(err, ErrBusy) {
				d.ignoreBad(err)
			}
			continue
		}
		changes, err := pendingIntent(r)
		if after, _ := r.writes(); after == before {
			if err == nil {
				err = d.overlay(r, &l, changes, siblings)
			}
			return l, d.wrap(err)
		}
		if try >= 10 {
			return l, nil // whoever wrote meanwhile has completed any intent
		}
	}
}

// collect returns a ledger of its own, and whether a file must be set aside or
// mended.
func (d *Dir) collect(r *rooms, look func(*rooms) (Ledger, error)) (l Ledger, bad bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l, err = look(r); err != nil {
		return Ledger{}, false, err
	}
	l.detach()
	return l, len(d.limiters.bad()) > 0 || len(d.sessions.bad()) > 0, nil
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

// ignoreBad says of each unusable file, once, that nothing can be done about it.
func (d *Dir) ignoreBad(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for room, bad := range map[string]map[string]error{limiterRoom: d.limiters.bad(), sessionRoom: d.sessions.bad()} {
		for id, err := range bad {
			if name, nameErr := escape(id); nameErr == nil {
				d.ignoreOnce(filepath.Join(d.path, room, name+jsonExt), errors.Join(err, why))
			}
		}
	}
}

// tidy mends or sets aside what cannot be used; fresh says that the shelves
// are up to date.
func (d *Dir) tidy(h *holder, fresh bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !fresh {
		if err := d.scanBoth(h.rooms); err != nil {
			return err
		}
	}
	return errors.Join(tidyShelf(d, h, h.limiters, &d.limiters), tidyShelf(d, h, h.sessions, &d.sessions))
}

func tidyShelf[T any](d *Dir, h *holder, dir int, s *shelf[T]) error {
	for id, why := range s.bad() {
		name, err := escape(id)
		if err != nil {
			continue
		}
		if err := h.touch(); err != nil {
			return err
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
	return nil
}
