package lockfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strconv"
	"strings"
)

// The event log: one JSON object a line, the first line of each file its
// schema. A full events.jsonl is renamed to the next number, so that one
// rename is the whole rotation and a follower can tell the order.
const (
	eventsName   = "events.jsonl"
	rotatedFront = "events-"
	rotatedBack  = ".jsonl"
	// maxLine bounds a line, so that a reader needs no more memory than that.
	maxLine = 64 << 10
)

type eventHeader struct {
	Schema int    `json:"schema"`
	Log    string `json:"log"`
}

// Append implements Store.
func (d *Dir) Append(events ...Event) error {
	lines, err := d.encodeEvents(events)
	if err != nil {
		return d.wrap(err)
	}
	if len(lines) == 0 {
		return nil
	}
	return d.locked(context.Background(), LockWait, func(h *holder) error { return d.appendLines(h.rooms, lines) })
}

// encodeEvents makes the lines. Evidence that would burst a line is left out.
func (d *Dir) encodeEvents(events []Event) ([]byte, error) {
	var out []byte
	for _, e := range events {
		if e.At.IsZero() {
			e.At = d.o.Now()
		}
		e.At, e.Until = e.At.UTC(), e.Until.UTC()
		line, err := encode(e)
		if err == nil && len(line) > maxLine {
			e.Rows, e.Reason = nil, clip(e.Reason, 1000)
			line, err = encode(e)
		}
		if err == nil && len(line) > maxLine {
			err = ErrTooLarge
		}
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", clip(e.Event, 40), err)
		}
		out = append(out, line...)
	}
	return out, nil
}

// appendLines appends whole lines or nothing; the lock is held.
func (d *Dir) appendLines(r *rooms, lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	ino, at, err := d.prepareLog(r)
	if err != nil {
		return err
	}
	ev := &intentLines{Inode: ino, At: at, Lines: string(lines)}
	if err := d.redoLines(r, ev); err != nil {
		return errors.Join(err, d.undoLines(r, ev))
	}
	return nil
}

// prepareLog makes events.jsonl ready to take lines: rotated if it is full,
// with its header, and without the torn line of a writer that was killed.
func (d *Dir) prepareLog(r *rooms) (ino uint64, at int64, err error) {
	fd, st, err := d.openLog(r)
	if err != nil {
		return 0, 0, err
	}
	defer func() { closeFD(fd) }()
	if st.size >= d.o.maxEvents {
		if err := d.rotate(r); err != nil {
			return 0, 0, err
		}
		closeFD(fd)
		if fd, st, err = d.openLog(r); err != nil {
			fd = -1
			return 0, 0, err
		}
	}
	if st.size == 0 {
		header, err := encode(eventHeader{Schema: Schema, Log: "qshim events"})
		if err != nil {
			return 0, 0, err
		}
		if _, err := descriptor(fd).Write(header); err != nil {
			return 0, 0, errors.Join(pathErr("write", eventsName, err), truncate(fd, 0))
		}
		return st.ino, int64(len(header)), nil
	}
	at, err = wholeLines(fd, st.size)
	if err != nil || at == st.size {
		return st.ino, at, err
	}
	return st.ino, at, truncate(fd, at)
}

// wholeLines returns where the last whole line of a log ends.
func wholeLines(fd int, size int64) (int64, error) {
	buf := make([]byte, 1)
	for end := size; end > 0; {
		from := max(0, end-int64(len(buf)))
		n, err := descriptor(fd).ReadAt(buf[:end-from], from)
		if err != nil {
			return 0, pathErr("read", eventsName, err)
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end, buf = from, make([]byte, maxLine)
	}
	return 0, nil
}

// openLog opens events.jsonl for appending. What is no file of ours there is
// set aside; a log of a newer schema is left alone.
func (d *Dir) openLog(r *rooms) (int, stat, error) {
	for try := 0; ; try++ {
		fd, st, err := openOwnLog(r)
		if err == nil || try > 0 {
			return fd, st, err
		}
		if errors.Is(err, fs.ErrPermission) {
			d.mend(r.top, "", eventsName, err)
			continue
		}
		if !errors.Is(err, errGarbage) {
			return -1, st, err
		}
		d.mu.Lock()
		ok := d.setAside(r.top, "", eventsName, err)
		d.mu.Unlock()
		if !ok {
			return -1, st, err
		}
	}
}

func openOwnLog(r *rooms) (int, stat, error) {
	st, err := statAt(r.top, eventsName)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err == nil && !st.mode.IsRegular() {
		return -1, st, fmt.Errorf("%s: %w: not a file (%v)", eventsName, errGarbage, st.mode.Type())
	}
	fd, err := openAt(r.top, eventsName, forTail)
	if err != nil {
		return -1, st, err
	}
	if fresh {
		err = private(fd)
	}
	if err == nil {
		st, err = statFD(fd)
	}
	if err == nil {
		if err = unsafeMode(st); err != nil {
			err = fmt.Errorf("%s: %w: %w", eventsName, errGarbage, err)
		}
	}
	if err == nil && st.size > 0 {
		err = checkHeader(fd)
	}
	if err != nil {
		closeFD(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// checkHeader fails for the log of a newer qshim, and for content that has no
// header: a torn header is garbage like any other.
func checkHeader(fd int) error {
	buf := make([]byte, 256)
	n, err := descriptor(fd).ReadAt(buf, 0)
	if err != nil {
		return pathErr("read", eventsName, err)
	}
	line, _, whole := bytes.Cut(buf[:n], []byte("\n"))
	if !whole {
		return fmt.Errorf("%s: %w: no header", eventsName, errGarbage)
	}
	if err := checkSchema(line); err != nil {
		return fmt.Errorf("%s: %w", eventsName, err)
	}
	return nil
}

// redoLines puts the lines at their place, whether or not all or some of them
// are there already.
func (d *Dir) redoLines(r *rooms, ev *intentLines) error {
	if ev == nil {
		return nil
	}
	if err := d.at("append events"); err != nil {
		return err
	}
	fd, st, err := d.openLog(r)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if st.ino == ev.Inode && st.size > ev.At {
		if st.size >= ev.At+int64(len(ev.Lines)) {
			return nil
		}
		if err := truncate(fd, ev.At); err != nil {
			return pathErr("truncate", eventsName, err)
		}
	}
	if st.size == 0 {
		// Somebody removed the log since; a file without its header is garbage.
		if _, _, err := d.prepareLog(r); err != nil {
			return err
		}
	}
	if _, err := descriptor(fd).Write([]byte(ev.Lines)); err != nil {
		return pathErr("write", eventsName, err)
	}
	return nil
}

// undoLines takes back what redoLines wrote.
func (d *Dir) undoLines(r *rooms, ev *intentLines) error {
	if ev == nil {
		return nil
	}
	fd, st, err := openOwnLog(r)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if st.ino != ev.Inode || st.size <= ev.At {
		return nil
	}
	return pathErr("truncate", eventsName, truncate(fd, ev.At))
}

// rotate gives the full log its number and removes those beyond KeepEvents.
func (d *Dir) rotate(r *rooms) error {
	nums, err := rotated(r)
	if err != nil {
		return err
	}
	next := 1
	if len(nums) > 0 {
		next = nums[len(nums)-1] + 1
	}
	if err := d.at("rotate events"); err != nil {
		return err
	}
	if err := renameAt(r.top, eventsName, r.top, rotatedName(next)); err != nil {
		return err
	}
	for _, n := range nums {
		if n <= next-KeepEvents {
			_ = removeAt(r.top, rotatedName(n)) // the next rotation tries again
		}
	}
	return nil
}

// rotated lists the numbers of the full logs, ascending, oldest first.
func rotated(r *rooms) ([]int, error) {
	names, err := listDir(r.top)
	if err != nil {
		return nil, err
	}
	var nums []int
	for _, name := range names {
		mid, ok1 := strings.CutPrefix(name, rotatedFront)
		mid, ok2 := strings.CutSuffix(mid, rotatedBack)
		n, err := strconv.Atoi(mid)
		if ok1 && ok2 && err == nil && n > 0 && rotatedName(n) == name {
			nums = append(nums, n)
		}
	}
	sort.Ints(nums)
	return nums, nil
}

func rotatedName(n int) string { return fmt.Sprintf("%s%06d%s", rotatedFront, n, rotatedBack) }
