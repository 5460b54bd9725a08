package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// errGarbage marks content that is no JSON of ours: set aside, not used.
var errGarbage = errors.New("not readable")

// errChanged marks a file that was written while it was read.
var errChanged = errors.New("changed while it was read")

// Schema changes: a field that an older qshim may lose on rewriting is added
// without a new number (it ignores the field); anything else raises Schema (in
// schema.go), and every older qshim steps aside.

// encode makes the one line of JSON that a file or event log line consists of.
// Control bytes that JSON leaves alone (DEL and C1, which is the 8-bit form of
// ESC) are escaped too: people print these files in terminals.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return escapeControls(b.Bytes()), nil
}

// escapeControls writes DEL and C1 as \u00XX. In JSON they can only stand
// inside a string, where that is the same text.
func escapeControls(p []byte) []byte {
	if bytes.IndexByte(p, 0x7f) < 0 && bytes.IndexByte(p, 0xc2) < 0 {
		return p
	}
	out := make([]byte, 0, len(p)+16)
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == 0x7f:
			out = append(out, `\u007f`...)
		case p[i] == 0xc2 && i+1 < len(p) && p[i+1] >= 0x80 && p[i+1] < 0xa0:
			out = fmt.Appendf(out, `\u%04x`, p[i+1])
			i++
		default:
			out = append(out, p[i])
		}
	}
	return out
}

// checkSchema reads the schema of a file's content before anything else of it.
func checkSchema(data []byte) error {
	if bytes.HasPrefix(data, []byte(`{"schema":1,`)) && Schema == 1 {
		return nil // as we write it; the rest is checked by whoever decodes it
	}
	var head struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%w: %w", errGarbage, err)
	}
	switch {
	case head.Schema == nil || *head.Schema < 1:
		return fmt.Errorf("%w: no schema", errGarbage)
	case *head.Schema > Schema:
		return fmt.Errorf("%w (schema %d, this one knows %d)", ErrSchema, *head.Schema, Schema)
	}
	return nil
}

func decodeInto(data []byte, v any) error {
	if err := checkSchema(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %w", errGarbage, err)
	}
	return nil
}

func decodeLimiter(id string, data []byte) (Limiter, error) {
	var l Limiter
	if err := decodeInto(data, &l); err != nil {
		return Limiter{}, err
	}
	if l.ID != id {
		return Limiter{}, fmt.Errorf("%w: it says that it is %q", errGarbage, clip(l.ID, 80))
	}
	return l, nil
}

// AsRead is a limiter as a sibling would read it, as it is where it cannot be
// written.
func AsRead(l Limiter) Limiter {
	l.Schema = Schema
	_, data, err := encodeFile(l.ID, l)
	if err != nil {
		return l
	}
	if read, err := decodeLimiter(l.ID, data); err == nil {
		return read
	}
	return l
}

func decodeSession(id string, data []byte) (Session, error) {
	var s Session
	if err := decodeInto(data, &s); err != nil {
		return Session{}, err
	}
	if s.ID != id {
		return Session{}, fmt.Errorf("%w: it says that it is %q", errGarbage, clip(s.ID, 80))
	}
	// An older shim steps aside from the moment on that a newer one has written
	// here: its record stands still, and nobody may wait for what it does next.
	s.Observe = s.Observe || s.Schema < Schema
	return s, nil
}

// readSmall reads a whole file that only we may have written, at most limit
// bytes of it, and returns what stat says of exactly what was read. A session
// file is the one that may be written while we read it: after two more changes
// its own shim reuses the file (see Record). Then it is no longer the one of
// that name, or has another time, and is read again.
func readSmall(dir int, name string, limit int64) (data []byte, st stat, err error) {
	for range 5 {
		var fd int
		if fd, st, err = openSmall(dir, name, limit); err != nil {
			return nil, st, err
		}
		data, err = readWhole(fd, st.size)
		closeFD(fd)
		if err == nil {
			err = stillIt(dir, name, st)
		}
		if !errors.Is(err, errChanged) {
			return data, st, err
		}
	}
	return nil, st, err
}

// openSmall opens a file that is one, ours alone and not too large.
func openSmall(dir int, name string, limit int64) (int, stat, error) {
	fd, err := openAt(dir, name, forRead)
	if err != nil {
		// A link (ELOOP) or a socket (ENXIO) is not opened: say what it is.
		st, serr := statAt(dir, name)
		if serr == nil && !st.mode.IsRegular() {
			err = fmt.Errorf("%s: %w: not a file (%v)", name, errGarbage, st.mode.Type())
		}
		return -1, st, err
	}
	st, err := statFD(fd)
	if err == nil && (!st.mode.IsRegular() || st.size > limit) {
		err = fmt.Errorf("%s: %w: %v, %d bytes", name, errGarbage, st.mode, st.size)
	}
	if err == nil {
		if unsafe := unsafeMode(st); unsafe != nil {
			err = fmt.Errorf("%s: %w: %w", name, errGarbage, unsafe)
		}
	}
	if err != nil {
		closeFD(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// readWhole reads a file of that size.
func readWhole(fd int, size int64) ([]byte, error) {
	// One byte more than there should be: what does not fill it is known to be whole.
	data := make([]byte, size+1)
	for n := 0; ; {
		k, err := descriptor(fd).Read(data[n:])
		n += k
		switch {
		case n == len(data):
			return nil, errChanged
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case err != nil || n == len(data)-1:
			return data[:n], nil
		}
	}
}

// stillIt fails if what was read need not be what stands there.
func stillIt(dir int, name string, st stat) error {
	now, err := statAt(dir, name)
	if err == nil && now.fileID != st.fileID {
		err = pathErr("read", name, errChanged)
	}
	return err
}
