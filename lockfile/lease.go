package lockfile

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// lease is the flock that says that a session lives. The kernel drops it with
// the process, 0.2 ms after kill -9 (measured, DESIGN section 4.13).
type lease struct {
	d       *Dir
	id      string
	stem    string  // escaped id
	fd      int     // of the lease file; guarded by Dir.mu, -1 when closed
	session Session // as last stored; guarded by Dir.mu

	retired time.Time // when the spare file was last the session's; zero: there is none; owned by the turn
}

// Lease implements Store. The order is what makes Alive true: the lease file
// is made and locked first, the session file appears last, and both under the
// directory's lock, so nobody ever sees a session whose lease is not yet held
// and no probe can be in the way of taking it.
func (d *Dir) Lease(s Session) (Lease, error) {
	if s.ID == "" {
		id, err := d.NewID()
		if err != nil {
			return nil, err
		}
		s.ID = id
	}
	stem, data, err := sessionFile(s)
	if err != nil {
		return nil, d.wrap(err)
	}
	s, err = decodeSession(s.ID, data)
	if err != nil {
		return nil, d.wrap(err)
	}
	own := &lease{d: d, id: s.ID, stem: stem, fd: -1, session: s}
	err = d.locked(context.Background(), LockWait, func(h *holder) error {
		if _, err := statAt(h.sessions, stem+jsonExt); err == nil {
			return fmt.Errorf("session %q: %w", s.ID, fs.ErrExist)
		}
		return own.take(h, data)
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leases[own.id] = own
	return own, nil
}

func sessionFile(s Session) (stem string, data []byte, err error) {
	s.Schema = Schema
	name, data, err := encodeFile(s.ID, s)
	return strings.TrimSuffix(name, jsonExt), data, err
}

// take makes, locks and announces the lease; the directory's lock is held.
func (l *lease) take(r *holder, data []byte) (err error) {
	name := l.stem + leaseExt
	if err := r.touch(); err != nil {
		return err
	}
	if err := l.d.at("create lease"); err != nil {
		return err
	}
	// What lies there has no session file, so it is an orphan's: a fresh file,
	// because a probe of the old one could hold it for an instant.
	if err := dropIfThere(r.sessions, name); err != nil {
		return err
	}
	fd, err := openAt(r.sessions, name, forNew)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			closeFD(fd)
			err = errors.Join(err, dropIfThere(r.sessions, name))
		}
	}()
	if err := private(fd); err != nil {
		return pathErr("chmod", name, err)
	}
	if err := l.d.at("lock lease"); err != nil {
		return err
	}
	if err := flock(fd, exclusNB); err != nil {
		return pathErr("flock", name, err)
	}
	if err := l.d.writeTemp(r.rooms, tempName, data); err != nil {
		return err
	}
	if err := l.d.at("place session"); err != nil {
		return errors.Join(err, dropIfThere(r.top, tempName))
	}
	if err := renameAt(r.top, tempName, r.sessions, l.stem+jsonExt); err != nil {
		return errors.Join(err, dropIfThere(r.top, tempName))
	}
	if l.fd >= 0 {
		closeFD(l.fd)
	}
	l.fd = fd
	return nil
}

// heal announces our own sessions again whose files somebody removed.
func (d *Dir) heal(h *holder) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	healed := false
	for id, own := range d.leases {
		if _, there := d.sessions.entries[id]; there {
			continue
		}
		if err := d.healOne(h, own); err != nil {
			return err
		}
		healed = true
	}
	if !healed {
		return nil
	}
	return d.sessions.scan(h.sessions)
}

// healOne does so for one; mu is held.
func (d *Dir) healOne(h *holder, own *lease) error {
	if _, err := statAt(h.sessions, own.stem+jsonExt); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, data, err := sessionFile(own.session)
	if err == nil {
		err = own.take(h, data)
	}
	if err == nil {
		d.notice(Notice{Kind: Mended, Path: filepath.Join(d.path, sessionRoom, own.stem+jsonExt), Err: fs.ErrNotExist})
	}
	return err
}

// ID implements Lease.
func (l *lease) ID() string { return l.id }

// closeWait is how long a session that ends waits for the lock. Without it the
// files go all the same: the worst that a writer can do to them at that moment
// is to write the session again, which Recover then finds dead.
const closeWait = 500 * time.Millisecond

// Close implements Lease.
func (l *lease) Close() error {
	d := l.d
	d.mu.Lock()
	open := d.leases[l.id] == l
	delete(d.leases, l.id)
	d.mu.Unlock()
	if !open {
		return nil
	}
	err := d.locked(context.Background(), closeWait, func(h *holder) error {
		return errors.Join(h.touch(), l.remove(h.rooms))
	})
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrSchema) {
		var r *rooms
		if r, err = d.enter(); err == nil {
			err = l.remove(r)
			d.leave(r)
		}
	}
	closeFD(l.fd)
	return errors.Join(err, d.dropLogs(func(session string) bool { return session == l.id }))
}

// remove takes the session's files away, the announcement first.
func (l *lease) remove(r *rooms) error {
	return errors.Join(dropIfThere(r.sessions, l.stem+jsonExt), dropIfThere(r.sessions, l.stem+leaseExt),
		dropIfThere(r.sessions, l.stem+spareExt))
}

// NewID returns a fresh session id, 8 characters, 40 bits, lower case: for a
// session whose id must be known before its lease is taken.
func (d *Dir) NewID() (string, error) {
	var b [5]byte
	if _, err := io.ReadFull(d.ids, b[:]); err != nil {
		return "", fmt.Errorf("session id: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:])), nil
}
