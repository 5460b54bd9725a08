package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// How a change is made whole. A single file is written beside and renamed over
// the old one: old or new, nothing between. A change of several files, or with
// events, is first written as one file, "intent"; from its rename on the change
// has happened: whoever takes the lock next completes it before anything else
// (settle), and who reads without the lock sees it through overlay. Then come
// the temporary files, the event lines, the renames, and the intent's removal.
// Until the first rename any failure is undone. Nothing is synced: against a
// crash of a process the page cache suffices, and after a power cut every
// session is dead and the holds are minutes old.

// intent is a change of several files that has been decided.
type intent struct {
	Schema int          `json:"schema"`
	Files  []intentFile `json:"files,omitempty"`
	Events *intentLines `json:"events,omitempty"`
}

// intentFile is one file of it, as "limiters/NAME.json".
type intentFile struct {
	Path string `json:"path"`
	Data string `json:"data,omitempty"`
	Gone bool   `json:"gone,omitempty"`
}

// intentLines are the event lines, and where in which file they go: so that to
// append them twice appends them once.
type intentLines struct {
	Inode uint64 `json:"inode"`
	At    int64  `json:"at"`
	Lines string `json:"lines"`
}

// commit makes the changes and appends the events, all or nothing; the lock is
// held and no intent is pending.
func (d *Dir) commit(r *rooms, changes []change, events []Event) error {
	lines, err := d.encodeEvents(events)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return d.appendLines(r, lines)
	}
	if len(changes) == 1 && len(lines) == 0 {
		return d.renameAll(r, changes, nil)
	}
	in := intent{Schema: Schema}
	for _, c := range changes {
		in.Files = append(in.Files, intentFile{Path: c.room + "/" + c.name, Data: string(c.data), Gone: c.data == nil})
	}
	if len(lines) > 0 {
		ino, at, err := d.prepareLog(r)
		if err != nil {
			return err
		}
		in.Events = &intentLines{Inode: ino, At: at, Lines: string(lines)}
	}
	if err := d.writeIntent(r, in); err != nil {
		return err
	}
	return d.carryOut(r, changes, in.Events)
}

func (d *Dir) writeIntent(r *rooms, in intent) error {
	data, err := encode(in)
	if err != nil {
		return err
	}
	if err := d.writeTemp(r, tempPrefix+intentName, data); err != nil {
		return err
	}
	if err := d.at("rename intent"); err != nil {
		return errors.Join(err, dropIfThere(r.top, tempPrefix+intentName))
	}
	return renameAt(r.top, tempPrefix+intentName, r.top, intentName)
}

// carryOut does what the intent says. If it fails before the first rename, the
// intent is withdrawn and nothing has happened.
func (d *Dir) carryOut(r *rooms, changes []change, ev *intentLines) error {
	if err := d.renameAll(r, changes, func() error { return d.redoLines(r, ev) }); err != nil {
		var part partlyError
		if errors.As(err, &part) {
			return err // stays for the next holder of the lock
		}
		if gone := errors.Join(d.undoLines(r, ev), dropIfThere(r.top, intentName)); gone != nil {
			return partlyError{errors.Join(err, gone)}
		}
		return err
	}
	if err := d.at("remove intent"); err != nil {
		return partlyError{err}
	}
	return dropIfThere(r.top, intentName)
}

// partlyError says that the change has begun and will be completed.
type partlyError struct{ err error }

func (e partlyError) Error() string {
	return "a change is only partly written and will be completed by the next update: " + e.err.Error()
}
func (e partlyError) Unwrap() error { return e.err }

// renameAll writes all new files beside, calls then (nil: nothing), and puts
// them in place.
func (d *Dir) renameAll(r *rooms, changes []change, then func() error) (err error) {
	defer func() {
		if err != nil {
			for i := range changes {
				err = errors.Join(err, dropIfThere(r.top, tempName(i)))
			}
		}
	}()
	for i, c := range changes {
		if c.data == nil {
			continue
		}
		if err := d.writeTemp(r, tempName(i), c.data); err != nil {
			return err
		}
	}
	if then != nil {
		if err := then(); err != nil {
			return err
		}
	}
	for i, c := range changes {
		if err := d.place(r, i, c); err != nil {
			if i > 0 {
				return partlyError{err}
			}
			return err
		}
	}
	return nil
}

func (d *Dir) place(r *rooms, i int, c change) error {
	if err := d.at("place " + c.room + "/" + c.name); err != nil {
		return err
	}
	if c.data != nil {
		return renameAt(r.top, tempName(i), r.room(c.room), c.name)
	}
	if err := dropIfThere(r.room(c.room), c.name); err != nil {
		return err
	}
	if c.room == sessionRoom {
		// A lease that stays behind alone means nothing; Recover sweeps it.
		_ = removeAt(r.sessions, strings.TrimSuffix(c.name, jsonExt)+leaseExt)
	}
	return nil
}

// Temporary files lie in the top directory under fixed names: they are only
// written under the lock, so a killed writer's are reused, never piled up, and
// who watches the limiters is not woken by them.
func tempName(i int) string { return fmt.Sprintf("%s%d", tempPrefix, i) }

func (r *rooms) room(name string) int {
	if name == limiterRoom {
		return r.limiters
	}
	return r.sessions
}

// writeTemp writes a new file in the top directory.
func (d *Dir) writeTemp(r *rooms, name string, data []byte) error {
	if err := d.at("write " + name); err != nil {
		return err
	}
	fd, err := openAt(r.top, name, forNew)
	if errors.Is(err, fs.ErrExist) {
		if err = removeAt(r.top, name); err == nil {
			fd, err = openAt(r.top, name, forNew)
		}
	}
	if err != nil {
		return err
	}
	defer closeFD(fd)
	err = private(fd)
	if err == nil {
		_, err = descriptor(fd).Write(data)
	}
	if err != nil {
		return errors.Join(pathErr("write", name, err), dropIfThere(r.top, name))
	}
	return nil
}

func dropIfThere(dir int, name string) error {
	if err := removeAt(dir, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// settle completes the change that a dead process left behind; the lock is held.
func (d *Dir) settle(r *rooms) error {
	in, changes, err := readIntent(r)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errGarbage):
		d.mu.Lock()
		defer d.mu.Unlock()
		d.setAside(r.top, "", intentName, err)
		return nil
	case err != nil:
		return err
	}
	err = d.renameAll(r, changes, func() error { return d.redoLines(r, in.Events) })
	if err != nil {
		return err
	}
	return dropIfThere(r.top, intentName)
}

// overlay shows a reader a change that is decided but not yet in place.
func (d *Dir) overlay(r *rooms, l *Ledger) error {
	_, changes, err := readIntent(r)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errGarbage) {
		return nil // garbage is set aside by the next writer
	}
	if err != nil {
		return err
	}
	for _, c := range changes {
		id, _ := fileToID(c.name, jsonExt) // checked by readIntent
		switch {
		case c.room == limiterRoom && c.data == nil:
			delete(l.Limiters, id)
		case c.room == limiterRoom:
			if l.Limiters[id], err = decodeLimiter(id, c.data); err != nil {
				return err
			}
		case c.data == nil:
			delete(l.Sessions, id)
		default:
			s, err := decodeSession(id, c.data)
			if err != nil {
				return err
			}
			s.Alive = d.alive(r, id)
			l.Sessions[id] = s
		}
	}
	return nil
}

// maxIntent bounds what is read: an update of every one of 1000 sessions.
const maxIntent = 64 << 20

func readIntent(r *rooms) (intent, []change, error) {
	data, _, err := readSmall(r.top, intentName, maxIntent)
	if err != nil {
		return intent{}, nil, err
	}
	return decodeIntent(data)
}

// decodeIntent accepts only names that commit writes and content that decodes:
// it is the one file whose content decides where something is written.
func decodeIntent(data []byte) (in intent, changes []change, err error) {
	if err := checkSchema(data); err != nil {
		return in, nil, err
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return in, nil, fmt.Errorf("%w: %w", errGarbage, err)
	}
	for _, f := range in.Files {
		room, name, _ := strings.Cut(f.Path, "/")
		id, ok := fileToID(name, jsonExt)
		if !ok || room != limiterRoom && room != sessionRoom {
			return in, nil, fmt.Errorf("%w: path %q", errGarbage, clip(f.Path, 80))
		}
		c := change{room: room, name: name}
		if !f.Gone {
			c.data = []byte(f.Data)
			if room == limiterRoom {
				_, err = decodeLimiter(id, c.data)
			} else {
				_, err = decodeSession(id, c.data)
			}
			if err != nil {
				return in, nil, err
			}
		}
		changes = append(changes, c)
	}
	if ev := in.Events; ev != nil && (ev.At < 0 || !bytes.HasSuffix([]byte(ev.Lines), []byte("\n"))) {
		return in, nil, fmt.Errorf("%w: events", errGarbage)
	}
	return in, changes, nil
}
