package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// How a change is made whole. A single file is written beside and put in place
// of the old one: old or new, nothing between. A change of several files, or
// with events, is first written as one line into the file "intent", beginning
// with "-" in place of "{". The one byte that turns it into JSON decides: from
// then on the change has happened. Whoever takes the lock next completes it
// before anything else (settle), and who reads without the lock sees it through
// overlay. Then come the new files beside, the event lines, the renames, and
// the "-" again. Until the first rename any failure is undone. (To write in
// place costs 20 us where creating and removing a file costs 500 on a busy
// ext4.) Nothing is synced: against a crash of a process the page cache
// suffices, and after a power cut every session is dead anyway.

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

// commit makes the changes and appends the events, all or nothing; no intent is
// pending.
func (d *Dir) commit(h *holder, changes []change, events []Event) error {
	lines, err := d.encodeEvents(events)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return d.appendLines(h.rooms, lines)
	}
	if err := h.touch(); err != nil {
		return err
	}
	if len(changes) == 1 && len(lines) == 0 {
		return d.placeAll(h.rooms, changes, nil)
	}
	in := intent{Schema: Schema}
	for _, c := range changes {
		in.Files = append(in.Files, intentFile{Path: c.room + "/" + c.name, Data: string(c.data), Gone: c.data == nil})
	}
	if len(lines) > 0 {
		ino, at, err := d.prepareLog(h.rooms)
		if err != nil {
			return err
		}
		in.Events = &intentLines{Inode: ino, At: at, Lines: string(lines)}
	}
	fd, err := d.writeIntent(h.rooms, in)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	return d.carryOut(h, fd, changes, in.Events)
}

// The first byte of the file "intent".
const (
	decided   = '{' // what follows has happened
	undecided = '-' // what follows is void
)

// writeIntent decides a change. It returns the open file.
func (d *Dir) writeIntent(r *rooms, in intent) (int, error) {
	data, err := encode(in)
	if err != nil {
		return -1, err
	}
	if len(data) > maxIntent {
		return -1, fmt.Errorf("%s: %w: %d bytes", intentName, ErrTooLarge, len(data))
	}
	if err := d.at("write intent"); err != nil {
		return -1, err
	}
	fd, err := openAt(r.top, intentName, forLock)
	if err != nil {
		return -1, err
	}
	data[0] = undecided
	if err = private(fd); err == nil {
		_, err = descriptor(fd).WriteAt(data, 0)
	}
	if err == nil {
		err = d.at("decide intent")
	}
	if err == nil {
		_, err = descriptor(fd).WriteAt([]byte{decided}, 0)
	}
	if err != nil {
		closeFD(fd)
		return -1, pathErr("write", intentName, err)
	}
	return fd, nil
}

// clearIntent makes it void. A long one gives its space back.
func clearIntent(fd int) error {
	_, err := descriptor(fd).WriteAt([]byte{undecided}, 0)
	if st, serr := statFD(fd); err == nil && serr == nil && st.size > MaxFile {
		err = truncate(fd, 1)
	}
	return pathErr("write", intentName, err)
}

// carryOut does what the intent says. If it fails before the first rename, the
// intent is withdrawn and nothing has happened.
func (d *Dir) carryOut(h *holder, fd int, changes []change, ev *intentLines) error {
	r := h.rooms
	if err := d.placeAll(r, changes, func() error { return d.redoLines(r, ev) }); err != nil {
		var part partlyError
		if errors.As(err, &part) {
			d.partly = true
			return err // stays for the next holder of the lock
		}
		if gone := errors.Join(d.undoLines(r, ev), clearIntent(fd)); gone != nil {
			d.partly = true
			return partlyError{errors.Join(err, gone)}
		}
		return err
	}
	err := d.at("clear intent")
	if err == nil {
		err = h.placed()
	}
	if err == nil {
		err = clearIntent(fd)
	}
	if err != nil {
		d.partly = true
		return partlyError{err}
	}
	return nil
}

// partlyError says that the change has begun and will be completed.
type partlyError struct{ err error }

func (e partlyError) Error() string {
	return "a change is only partly written and will be completed by the next update: " + e.err.Error()
}
func (e partlyError) Unwrap() error { return e.err }

// placeAll writes all new files beside, calls then (nil: nothing), and puts
// them in place.
func (d *Dir) placeAll(r *rooms, changes []change, then func() error) (err error) {
	ready := make([]string, len(changes))
	defer func() {
		if err != nil {
			for _, name := range ready {
				if strings.HasPrefix(name, tempPrefix) {
					err = errors.Join(err, dropIfThere(r.top, name))
				}
			}
		}
	}()
	for i, c := range changes {
		if ready[i], err = d.prepare(r, i, c); err != nil {
			return err
		}
	}
	if then != nil {
		if err := then(); err != nil {
			return err
		}
	}
	for i, c := range changes {
		if err := d.place(r, ready[i], c); err != nil {
			if i > 0 {
				return partlyError{err}
			}
			return err
		}
	}
	return nil
}

// prepare writes the new content beside and returns under which name: our own
// session's in its spare file, all others in a temporary one.
func (d *Dir) prepare(r *rooms, i int, c change) (name string, err error) {
	if c.data == nil {
		return "", nil
	}
	if own := d.own(c); own != nil {
		if err := d.at("write spare"); err != nil {
			return "", err
		}
		return own.stem + spareExt, own.writeSpare(r, c.data)
	}
	name = fmt.Sprintf("%s%d", tempPrefix, i)
	return name, d.writeTemp(r, name, c.data)
}

// place puts what prepare wrote where it belongs.
func (d *Dir) place(r *rooms, ready string, c change) error {
	if err := d.at("place " + c.room + "/" + c.name); err != nil {
		return err
	}
	if c.data == nil {
		if err := dropIfThere(r.room(c.room), c.name); err != nil {
			return err
		}
		if c.room == sessionRoom {
			stem := strings.TrimSuffix(c.name, jsonExt)
			// What stays behind alone means nothing; Recover sweeps it.
			_ = removeAt(r.sessions, stem+leaseExt)
			_ = removeAt(r.sessions, stem+spareExt)
		}
		return nil
	}
	if strings.HasSuffix(ready, spareExt) {
		return d.own(c).swapIn(r)
	}
	return renameAt(r.top, ready, r.room(c.room), c.name)
}

// own returns the lease of a session of this process, nil for any other change.
func (d *Dir) own(c change) *lease {
	if c.room != sessionRoom {
		return nil
	}
	id, _ := fileToID(c.name, jsonExt)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leases[id]
}

func (r *rooms) room(name string) int {
	if name == limiterRoom {
		return r.limiters
	}
	return r.sessions
}

// writeTemp writes a new file in the top directory. Temporary files lie there
// under fixed names: they are only written under the lock, so a killed writer's
// are reused, never piled up, and who watches the limiters is not woken by them.
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

// settle completes the change that a dead process left behind.
func (d *Dir) settle(h *holder) error {
	in, changes, err := readIntent(h.rooms)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission) && d.mend(h.top, "", intentName, err):
		return d.settle(h)
	case errors.Is(err, errGarbage):
		d.mu.Lock()
		defer d.mu.Unlock()
		d.setAside(h.top, "", intentName, err)
		return nil
	case err != nil:
		return err
	}
	if err := h.touch(); err != nil {
		return err
	}
	if err := d.placeAll(h.rooms, changes, func() error { return d.redoLines(h.rooms, in.Events) }); err != nil {
		return err
	}
	if err := h.placed(); err != nil {
		return err
	}
	fd, err := openAt(h.top, intentName, forWrite)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	return clearIntent(fd)
}

// overlay shows a reader a change that is decided but not yet in place. Our own
// sessions are right already.
func (d *Dir) overlay(r *rooms, l *Ledger, changes []change, siblings bool) (err error) {
	for _, c := range changes {
		id, _ := fileToID(c.name, jsonExt) // checked by readIntent
		switch {
		case c.room == limiterRoom && c.data == nil:
			delete(l.Limiters, id)
		case c.room == limiterRoom:
			if l.Limiters[id], err = decodeLimiter(id, c.data); err != nil {
				return err
			}
		case !siblings || d.holds(id):
		case c.data == nil:
			delete(l.Sessions, id)
		default:
			s, err := decodeSession(id, c.data)
			if err != nil {
				return err
			}
			d.mu.Lock()
			s.Alive = d.alive(r, id)
			d.mu.Unlock()
			l.Sessions[id] = s
		}
	}
	return nil
}

// maxIntent bounds what is read: an update of every one of 1000 sessions.
const maxIntent = 64 << 20

// pendingIntent is readIntent for a reader without the lock: nothing, and
// garbage, which the next writer sets aside, are no error.
func pendingIntent(r *rooms) ([]change, error) {
	_, changes, err := readIntent(r)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errGarbage) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	return changes, err
}

// readIntent returns the decided change, ErrNotExist if there is none.
func readIntent(r *rooms) (intent, []change, error) {
	st, err := statAt(r.top, intentName)
	if err != nil {
		return intent{}, nil, err
	}
	if !st.mode.IsRegular() || st.size > maxIntent {
		return intent{}, nil, fmt.Errorf("%s: %w: %v, %d bytes", intentName, errGarbage, st.mode, st.size)
	}
	if err := unsafeMode(st); err != nil {
		return intent{}, nil, fmt.Errorf("%s: %w: %w", intentName, errGarbage, err)
	}
	fd, err := openAt(r.top, intentName, forRead)
	if err != nil {
		return intent{}, nil, err
	}
	defer closeFD(fd)
	var first [1]byte
	if _, err := descriptor(fd).ReadAt(first[:], 0); errors.Is(err, io.EOF) || err == nil && first[0] == undecided {
		return intent{}, nil, fs.ErrNotExist
	} else if err != nil {
		return intent{}, nil, pathErr("read", intentName, err)
	}
	data, err := io.ReadAll(io.LimitReader(descriptor(fd), maxIntent))
	if err != nil {
		return intent{}, nil, pathErr("read", intentName, err)
	}
	// Behind the line there may be more, left from a longer one.
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return decodeIntent(line)
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
