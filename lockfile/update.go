package lockfile

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"sort"
)

// Update implements Store.
func (d *Dir) Update(ctx context.Context, fn func(old Ledger) (Ledger, []Event)) (Ledger, error) {
	known, seen := d.warm()
	if err := d.at("take lock"); err != nil {
		return Ledger{}, d.wrap(err)
	}
	return d.update(ctx, fn, func(h *holder) (Ledger, error) { return d.current(h, known, seen) })
}

// UpdateOwn implements Store.
func (d *Dir) UpdateOwn(ctx context.Context, fn func(old Ledger) (Ledger, []Event)) (Ledger, error) {
	return d.update(ctx, fn, d.currentOwn)
}

func (d *Dir) update(ctx context.Context, fn func(Ledger) (Ledger, []Event), load func(*holder) (Ledger, error)) (Ledger, error) {
	var out Ledger
	err := d.locked(ctx, LockWait, func(h *holder) error {
		old, err := load(h)
		if err != nil {
			return err
		}
		next, events := fn(old.Clone())
		changes, err := d.diff(old, &next)
		if err != nil {
			return err
		}
		if err := d.commit(h, changes, events); err != nil {
			return err
		}
		d.remember(next)
		out = next
		return nil
	})
	if err != nil {
		return Ledger{}, err
	}
	return out, nil
}

// currentOwn is the state under the lock without the siblings.
func (d *Dir) currentOwn(h *holder) (Ledger, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.limiters.scan(h.limiters); err != nil {
		return Ledger{}, err
	}
	if err := tidyShelf(d, h, h.limiters, &d.limiters); err != nil {
		return Ledger{}, err
	}
	for _, own := range d.leases {
		if err := d.healOne(h, own); err != nil {
			return Ledger{}, err
		}
	}
	return d.assembleOwn()
}

// warm reads files and probes leases before the lock is taken, to hold it only
// for what changed since; seen is the write count that this reading stands for,
// 0 if it stands for none. A session seen dead stays dead, one seen alive may
// die at any moment, also after a probe under the lock: so nothing is lost.
// Errors are left to the same reading under the lock.
func (d *Dir) warm() (known map[string]bool, seen uint64) {
	r, err := d.enter()
	if err != nil {
		return nil, 0
	}
	defer d.leave(r)
	seen, _ = r.writes()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.scanBoth(r); err != nil {
		return nil, 0
	}
	known = make(map[string]bool, len(d.sessions.entries))
	for id := range d.sessions.entries {
		known[id] = d.alive(r, id)
	}
	if seen%2 == 1 {
		seen = 0 // somebody was writing
	}
	return known, seen
}

// current is the state under the lock, tidied, with our own sessions written
// again if somebody removed them. Its values share memory with the shelves.
func (d *Dir) current(h *holder, known map[string]bool, seen uint64) (Ledger, error) {
	if err := d.tidy(h, seen > 0 && seen == h.gen); err != nil {
		return Ledger{}, err
	}
	if err := d.heal(h); err != nil {
		return Ledger{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.assemble(h.rooms, known)
}

// change is one file as it is to be; nil data: removed.
type change struct {
	room, name string
	data       []byte
}

// diff returns what differs between old and next, and completes next to what
// will be stored. It fails before anything is written.
func (d *Dir) diff(old Ledger, next *Ledger) ([]change, error) {
	a, err := d.diffLimiters(old, next)
	if err != nil {
		return nil, err
	}
	b, err := d.diffSessions(old, next)
	if err != nil {
		return nil, err
	}
	sort.Slice(a, func(i, j int) bool { return a[i].name < a[j].name })
	sort.Slice(b, func(i, j int) bool { return b[i].name < b[j].name })
	return append(a, b...), nil
}

func (d *Dir) diffLimiters(old Ledger, next *Ledger) (changes []change, err error) {
	if next.Limiters == nil {
		next.Limiters = old.Clone().Limiters
	}
	for id, l := range next.Limiters {
		was, had := old.Limiters[id]
		l.ID, l.Schema, l.Updated = id, Schema, was.Updated
		next.Limiters[id] = l
		if had && same(was, l) {
			continue
		}
		l.Updated = d.o.Now().UTC()
		name, data, err := encodeFile(id, l)
		if err != nil {
			return nil, fmt.Errorf("limiter %w", err)
		}
		// As siblings will read it: same zone, no monotonic clock.
		if next.Limiters[id], err = decodeLimiter(id, data); err != nil {
			return nil, err
		}
		changes = append(changes, change{limiterRoom, name, data})
	}
	for id := range old.Limiters {
		if _, kept := next.Limiters[id]; !kept {
			changes = appendRemoval(changes, limiterRoom, id)
		}
	}
	return changes, nil
}

func (d *Dir) diffSessions(old Ledger, next *Ledger) (changes []change, err error) {
	if next.Sessions == nil {
		next.Sessions = old.Clone().Sessions
	}
	for id, s := range next.Sessions {
		was, had := old.Sessions[id]
		if !had {
			return nil, fmt.Errorf("session %q: %w", clip(id, 80), ErrNoSession)
		}
		if was.Alive && !d.holds(id) {
			next.Sessions[id] = was.Clone()
			continue // its own process alone writes it, at this very moment perhaps
		}
		s.ID, s.Schema, s.Alive = id, Schema, was.Alive
		next.Sessions[id] = s
		if same(was, s) {
			continue
		}
		name, data, err := encodeFile(id, s)
		if err != nil {
			return nil, fmt.Errorf("session %w", err)
		}
		stored, err := decodeSession(id, data)
		if err != nil {
			return nil, err
		}
		stored.Alive = was.Alive
		next.Sessions[id] = stored
		changes = append(changes, change{sessionRoom, name, data})
	}
	for id, s := range old.Sessions {
		if _, kept := next.Sessions[id]; !kept && s.Alive {
			next.Sessions[id] = s.Clone()
		} else if !kept {
			changes = appendRemoval(changes, sessionRoom, id)
		}
	}
	return changes, nil
}

// holds reports that the session is one of this process.
func (d *Dir) holds(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leases[id] != nil
}

func appendRemoval(changes []change, room, id string) []change {
	name, err := escape(id)
	if err != nil {
		return changes // it came from a file name, so it has one
	}
	return append(changes, change{room: room, name: name + jsonExt})
}

// same reports whether two values are stored as the same bytes. Most are equal
// outright; a time in another zone is equal only once written.
func same[T any](a, b T) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, err1 := encode(a)
	y, err2 := encode(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

func encodeFile(id string, v any) (name string, data []byte, err error) {
	stem, err := escape(id)
	if err != nil {
		return "", nil, err
	}
	if data, err = encode(v); err != nil {
		return "", nil, fmt.Errorf("%q: %w", clip(id, 80), err)
	}
	if len(data) > MaxFile {
		return "", nil, fmt.Errorf("%q: %w: %d bytes", clip(id, 80), ErrTooLarge, len(data))
	}
	return stem + jsonExt, data, nil
}

// remember keeps what our own sessions look like, to write them again if
// somebody removes the directory under us.
func (d *Dir) remember(l Ledger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, own := range d.leases {
		if s, ok := l.Sessions[id]; ok {
			own.session = s.Clone()
		}
	}
}
