package lockfile

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"qshim/lockfile/fault"
)

// Recover implements Store. Continuing comes first and outside the lock: if
// the recoverer dies after it, the next one continues again, which harms
// nobody; if it came last, a process could stay stopped with no record of it.
func (d *Dir) Recover(cont func(Stopped) error) ([]Session, error) {
	l, err := d.Read()
	if err != nil {
		return nil, err
	}
	var dead []Session
	for _, s := range l.Sessions {
		if !s.Alive {
			dead = append(dead, s)
		}
	}
	if !l.Bereft() {
		if d.Strays() {
			return nil, d.sweep()
		}
		return nil, nil
	}
	sort.Slice(dead, func(i, j int) bool { return dead[i].ID < dead[j].ID })
	done := map[string]bool{}
	var errs []error
	for _, s := range dead {
		if err := continueAll(s, cont); err != nil {
			errs = append(errs, err)
		} else {
			done[s.ID] = true
		}
	}
	_, err = d.Update(context.Background(), func(l Ledger) (Ledger, []Event) {
		forget(l, done)
		return l, nil
	})
	if err == nil {
		err = d.sweep()
	}
	return dead, errors.Join(append(errs, err)...)
}

// mayBeStopped is what a session that died may have left stopped: what it has
// recorded, or its agent's group, whose stop it records a moment later.
func (s Session) mayBeStopped() []Stopped {
	if len(s.Stopped) == 0 && s.ChildLeads && s.ChildPID > 0 {
		return []Stopped{{PID: s.ChildPID, Start: s.ChildStart, Group: true}}
	}
	return s.Stopped
}

func continueAll(s Session, cont func(Stopped) error) error {
	var errs []error
	for _, p := range s.mayBeStopped() {
		fault.At("continue orphan")
		if err := cont(p); err != nil {
			errs = append(errs, fmt.Errorf("process %d of session %s: %w", p.PID, s.ID, err))
		}
	}
	return errors.Join(errs...)
}

// Bereft reports that a killed session left something: itself, or a probe that
// nobody makes any more. Recover tidies up behind it.
func (l Ledger) Bereft() bool {
	for _, s := range l.Sessions {
		if !s.Alive {
			return true
		}
	}
	for _, m := range l.Limiters {
		if m.Probe != nil && !l.Sessions[m.Probe.Session].Alive {
			return true
		}
	}
	return false
}

// Strays reports files that a launch left that was killed before its session
// was announced, or one that is at this point just now: sweep finds out.
func (d *Dir) Strays() bool {
	r, err := d.enter()
	if err != nil {
		return false
	}
	defer d.leave(r)
	names, err := listDir(r.sessions)
	if err != nil {
		return false
	}
	there := map[string]bool{}
	for _, name := range names {
		if stem, ok := strings.CutSuffix(name, jsonExt); ok {
			there[stem] = true
		}
	}
	for _, name := range names {
		if stem, ok := strings.CutSuffix(name, leaseExt); ok && !there[stem] {
			return true
		}
	}
	return false
}

// forget frees the probes of the dead and drops the sessions that are done
// with. A session that stopped something since it was read (it cannot, it is
// dead) would keep its file.
func forget(l Ledger, done map[string]bool) {
	for id, m := range l.Limiters {
		if m.Probe != nil && !l.Sessions[m.Probe.Session].Alive {
			m.Probe = nil
			l.Limiters[id] = m
		}
	}
	for id := range done {
		if s, ok := l.Sessions[id]; ok && !s.Alive {
			delete(l.Sessions, id)
		}
	}
}

// sweep removes what killed writers left: lease and spare files without a session,
// temporary files, and the debug logs of sessions that are gone. All under the
// lock: a session leases under it, and only then has a log.
func (d *Dir) sweep() error {
	return d.locked(context.Background(), LockWait, func(r *holder) error {
		names, err := listDir(r.sessions)
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, name := range names {
			if id, ok := fileToID(name, jsonExt); ok {
				there[id] = true
			}
		}
		for _, name := range names {
			id, ok := fileToID(name, leaseExt)
			if !ok {
				id, ok = fileToID(name, spareExt)
			}
			if ok && !there[id] {
				err = errors.Join(err, dropIfThere(r.sessions, name))
			}
		}
		tops, err2 := listDir(r.top)
		for _, name := range tops {
			if strings.HasPrefix(name, tempPrefix) {
				err = errors.Join(err, dropIfThere(r.top, name))
			}
		}
		return errors.Join(err, err2, d.dropLogs(func(session string) bool { return !there[session] }))
	})
}
