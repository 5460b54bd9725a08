package lockfile

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Record implements Store.
func (d *Dir) Record(id string, fn func(*Session)) error {
	d.mu.Lock()
	own := d.leases[id]
	d.mu.Unlock()
	if own == nil {
		return d.wrap(fmt.Errorf("session %q: %w", clip(id, 80), ErrNoSession))
	}
	return own.Record(fn)
}

// Record implements Lease. The session's own file has one writer, this
// process, so neither the directory's lock nor its siblings' files are needed.
func (l *lease) Record(fn func(*Session)) error {
	d := l.d
	late := time.NewTimer(LockWait)
	defer late.Stop()
	giveBack, err := d.takeTurn(context.Background(), LockWait, late.C)
	if err != nil {
		return d.wrap(err)
	}
	defer giveBack()
	if d.partly {
		// A change that only stands in the intent would undo this one later.
		if err := d.lockedInTurn(context.Background(), LockWait, late.C, l.reread); err != nil {
			return err
		}
		d.partly = false
	}
	r, err := d.enter()
	if err != nil {
		return err
	}
	defer d.leave(r)
	return d.wrap(l.record(r, fn))
}

// reread learns what our session has become in a change that was completed.
func (l *lease) reread(h *holder) error {
	data, _, err := readSmall(h.sessions, l.stem+jsonExt, MaxFile)
	if err != nil {
		return err
	}
	s, err := decodeSession(l.id, data)
	if err != nil {
		return err
	}
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	l.session = s
	return nil
}

func (l *lease) record(r *rooms, fn func(*Session)) error {
	d := l.d
	d.mu.Lock()
	open, old := d.leases[l.id] == l, l.session
	d.mu.Unlock()
	if !open {
		return fmt.Errorf("session %q: %w", l.id, ErrNoSession)
	}
	next := old.Clone()
	fn(&next)
	next.ID, next.Schema, next.Alive = l.id, Schema, old.Alive
	if same(old, next) {
		return nil
	}
	name, data, err := encodeFile(l.id, next)
	if err != nil {
		return fmt.Errorf("session %w", err)
	}
	if next, err = decodeSession(l.id, data); err != nil {
		return err
	}
	if _, err := statAt(r.sessions, name); err != nil {
		// Somebody removed it: without its lease it must not come back. The
		// next update announces the session again, as it is now.
		return errors.Join(fmt.Errorf("session %q: %w", l.id, ErrNoSession), err)
	}
	if err := d.placeAll(r, []change{{sessionRoom, name, data}}, nil); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l.session = next
	return nil
}

// Two files take turns as the session's: the spare is written in place and
// exchanged with it. That costs 20 us, a new file renamed over the old one 750
// on a busy ext4 (which flushes it at once, in fear of a power cut). A reader
// may still have the spare open from when it was the session's; he can tell by
// its time (readSmall), if that has changed, so a spare rests for grain before
// it is written again. Until then a new file is made.
func (l *lease) writeSpare(r *rooms, data []byte) error {
	name := l.stem + spareExt
	if !l.retired.IsZero() {
		st, err := statAt(r.sessions, name)
		if err == nil && st.mode.IsRegular() && time.Since(l.retired) > grainOf(st) {
			if err := overwrite(r.sessions, name, st.size, data); err == nil {
				return nil
			}
		}
	}
	if err := dropIfThere(r.sessions, name); err != nil {
		return err
	}
	fd, err := openAt(r.sessions, name, forNew)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if err = private(fd); err == nil {
		_, err = descriptor(fd).Write(data)
	}
	if err != nil {
		return errors.Join(pathErr("write", name, err), dropIfThere(r.sessions, name))
	}
	return nil
}

func overwrite(dir int, name string, size int64, data []byte) error {
	fd, err := openAt(dir, name, forWrite)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if _, err := descriptor(fd).WriteAt(data, 0); err != nil {
		return pathErr("write", name, err)
	}
	if size > int64(len(data)) {
		return pathErr("truncate", name, truncate(fd, int64(len(data))))
	}
	return nil
}

// swapIn makes the spare the session's file.
func (l *lease) swapIn(r *rooms) error {
	name, spare := l.stem+jsonExt, l.stem+spareExt
	if err := swapAt(r.sessions, spare, name); err == nil {
		l.retired = time.Now() // the monotonic part of it
		return nil
	}
	// No exchange here, or nothing to exchange with.
	l.retired = time.Time{}
	return renameAt(r.sessions, spare, r.sessions, name)
}
