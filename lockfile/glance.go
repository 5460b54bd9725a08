package lockfile

import (
	"errors"
	"io/fs"
	"time"
)

// Glance implements Store. Who watches the limiters knows which have changed, and
// looks at these alone. To list the directory would need its lock, and at this
// moment whoever has just put the file there has that: 100 processes that it woke
// then wait for the one to be given a processor again (45 ms, measured, of which
// it needed 0.1).
func (d *Dir) Glance() (Ledger, error) {
	if l, ok := d.glanceHeard(); ok {
		return l, nil
	}
	return d.read(false, func(r *rooms) (Ledger, error) {
		if err := d.limiters.scan(r.limiters); err != nil {
			return Ledger{}, err
		}
		return d.assembleOwn()
	})
}

// glanceHeard is Glance by what the watch has told since the last scan; false: that
// does not suffice.
func (d *Dir) glanceHeard() (Ledger, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.heard == nil || d.rooms == nil || d.closed || d.limiters.entries == nil {
		return Ledger{}, false
	}
	for name := range d.heard {
		if !d.limiters.refresh(d.rooms.limiters, name) {
			return Ledger{}, false
		}
		delete(d.heard, name)
	}
	l, err := d.assembleOwn()
	if err != nil || len(d.limiters.bad()) > 0 {
		return Ledger{}, false
	}
	l.detach()
	return l, true
}

// refresh is scan for one file; false: it could not be looked at.
func (s *shelf[T]) refresh(dir int, name string) bool {
	id, ok := fileToID(name, jsonExt)
	if !ok {
		return true // none of ours
	}
	e, err := s.read(dir, id, name, time.Now()) // as in scan
	if err == nil {
		s.entries[id] = e
		return true
	}
	delete(s.entries, id)
	return errors.Is(err, fs.ErrNotExist)
}

// hear begins, or ends, to note which files the watch tells of. What was known
// before is looked at again: it may have changed meanwhile.
func (d *Dir) hear(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = nil
	if on {
		d.heard = map[string]bool{}
	}
	d.limiters.forget()
}

func (d *Dir) note(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.heard != nil {
		d.heard[name] = true
	}
}
