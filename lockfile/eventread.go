package lockfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"time"
)

// Events implements Store.
func (d *Dir) Events(ctx context.Context, since time.Time, follow bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var hint chan struct{}
		if follow {
			ctx, cancel := context.WithCancel(ctx)
			w := &watch{d: d, hint: make(chan struct{}, 1), wanted: func(name string) bool {
				return strings.HasPrefix(name, "events") && strings.HasSuffix(name, rotatedBack)
			}}
			if err := w.start(ctx); err != nil {
				cancel()
				yield(Event{}, err)
				return
			}
			hint = w.hint
			defer func() {
				cancel()
				for range hint { // until the watch has ended
				}
			}()
		}
		c := &logReader{d: d, since: since, fd: -1}
		defer c.close()
		for {
			if !c.drain(yield) || !follow {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-hint:
			}
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// logReader walks the logs from the oldest to the one being written. It keeps
// the current one open: after a rotation the rest of it is read under the
// descriptor before the walk goes on by number.
type logReader struct {
	d     *Dir
	since time.Time
	fd    int    // -1: none open
	ino   uint64 // of the open one
	num   int    // its number, 0: it is events.jsonl
	last  int    // the highest number done
	off   int64
	rest  []byte // the beginning of a line whose end is not written yet
	skip  bool   // the rest of an over-long line is skipped
}

// drain yields everything there is now; false: the consumer has had enough or
// an error was yielded.
func (c *logReader) drain(yield func(Event, error) bool) bool {
	for {
		if c.fd < 0 {
			found, err := c.open()
			if errors.Is(err, ErrSchema) {
				if !yield(Event{}, err) {
					return false
				}
				if c.num == 0 {
					c.fd = -1
					return true // the newest: nothing after it
				}
				c.last, c.fd = c.num, -1
				continue
			}
			if err != nil {
				yield(Event{}, c.d.wrap(err))
				return false
			}
			if !found {
				return true
			}
		}
		if ok, err := c.lines(yield); err != nil {
			yield(Event{}, c.d.wrap(err))
			return false
		} else if !ok {
			return false
		}
		if err := c.d.at("end of log"); err != nil {
			yield(Event{}, c.d.wrap(err))
			return false
		}
		ended, err := c.ended()
		if err != nil {
			yield(Event{}, c.d.wrap(err))
			return false
		}
		if !ended {
			return true
		}
		// Rotated since the last read: what was written before that is there now.
		if ok, err := c.lines(yield); err != nil || !ok {
			return false
		}
		c.last = c.num
		c.close()
	}
}

func (c *logReader) close() {
	if c.fd >= 0 {
		closeFD(c.fd)
	}
	c.fd, c.off, c.rest, c.skip = -1, 0, nil, false
}

// open opens the next log: the lowest number not done and not too old, else
// the current one.
func (c *logReader) open() (found bool, err error) {
	r, err := c.d.enter()
	if err != nil {
		return false, err
	}
	defer c.d.leave(r)
	for {
		n, err := c.next(r)
		if err != nil {
			return false, err
		}
		name := eventsName
		if n > 0 {
			name = rotatedName(n)
		}
		if err := c.d.at("open log"); err != nil {
			return false, err
		}
		fd, st, err := openForReading(r.top, name)
		if errors.Is(err, fs.ErrNotExist) && n == 0 {
			return false, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			c.last = n // removed as too old meanwhile
			continue
		}
		if c.num = n; err != nil {
			return false, err
		}
		// Rotated between the look and the opening? Then a number has appeared.
		if again, err := c.next(r); err != nil || again != n {
			closeFD(fd)
			if err != nil {
				return false, err
			}
			continue
		}
		c.fd, c.ino, c.off = fd, st.ino, 0
		return true, nil
	}
}

func (c *logReader) next(r *rooms) (int, error) {
	nums, err := rotated(r)
	if err != nil {
		return 0, err
	}
	for _, n := range nums {
		if n <= c.last {
			continue
		}
		st, err := statAt(r.top, rotatedName(n))
		if err == nil && time.Unix(0, st.mtime).Before(c.since) {
			continue // its last line is older than that
		}
		return n, nil
	}
	return 0, nil
}

func openForReading(top int, name string) (int, stat, error) {
	st, err := statAt(top, name)
	if err != nil {
		return -1, st, err
	}
	if !st.mode.IsRegular() {
		return -1, st, fmt.Errorf("%s: %w: not a file (%v)", name, errGarbage, st.mode.Type())
	}
	fd, err := openAt(top, name, forRead)
	if err != nil {
		return -1, st, err
	}
	if st, err = statFD(fd); err == nil && st.size > 0 {
		if err = checkHeader(fd); errors.Is(err, errGarbage) {
			err = nil // a damaged beginning: the lines behind it are read all the same
		}
	}
	if err != nil {
		closeFD(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// ended reports that nothing will be written to the open log any more, and
// learns its number.
func (c *logReader) ended() (bool, error) {
	if c.num > 0 {
		return true, nil
	}
	r, err := c.d.enter()
	if err != nil {
		return false, err
	}
	defer c.d.leave(r)
	if st, err := statAt(r.top, eventsName); err == nil && st.ino == c.ino {
		return false, nil
	}
	nums, err := rotated(r)
	if err != nil {
		return false, err
	}
	c.num = c.last // it was removed, not rotated: go on with whatever there is
	for _, n := range nums {
		if st, err := statAt(r.top, rotatedName(n)); err == nil && st.ino == c.ino {
			c.num = n
		}
	}
	return true, nil
}

// lines yields the whole lines from off to the end of the open log.
func (c *logReader) lines(yield func(Event, error) bool) (more bool, err error) {
	buf := make([]byte, maxLine)
	for {
		n, err := descriptor(c.fd).ReadAt(buf, c.off)
		c.off += int64(n)
		if !c.split(buf[:n], yield) {
			return false, nil
		}
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			return true, nil
		}
		if err != nil {
			return false, pathErr("read", eventsName, err)
		}
	}
}

func (c *logReader) split(p []byte, yield func(Event, error) bool) bool {
	for {
		line, after, whole := bytes.Cut(p, []byte("\n"))
		if !whole {
			if c.skip || len(c.rest)+len(p) > maxLine {
				c.rest, c.skip = nil, true
			} else {
				c.rest = append(c.rest, p...)
			}
			return true
		}
		if e, ok := decodeEvent(append(c.rest, line...)); ok && !c.skip && !e.At.Before(c.since) {
			if !yield(e, nil) {
				return false
			}
		}
		c.rest, c.skip, p = c.rest[:0], false, after
	}
}

// decodeEvent reads one line. The header and what a fault left are no events.
func decodeEvent(line []byte) (Event, bool) {
	var e Event
	if len(line) == 0 || len(line) > maxLine || json.Unmarshal(line, &e) != nil || e.Event == "" {
		return Event{}, false
	}
	return e, true
}
