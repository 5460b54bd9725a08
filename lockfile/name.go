package lockfile

import (
	"fmt"
	"io/fs"
	"strings"
)

// maxName is the most bytes an escaped id may take: with the suffixes that we
// add (.json, .bad-TIME) it stays under NAME_MAX, 255 on every system we know.
const maxName = 200

const upperHex = "0123456789ABCDEF"

// escape turns an id into a file name, reversibly. Lower-case letters, digits
// and ._@- stand for themselves, everything else is %XX; capitals too, because
// a file system may take A and a for the same. A dot in front is escaped, so
// that no id makes a hidden file, "." or "..".
func escape(id string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(id); i++ {
		c := id[i]
		if plain(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	if b.Len() == 0 || b.Len() > maxName {
		return "", fmt.Errorf("%q: %w", clip(id, 80), ErrName)
	}
	return b.String(), nil
}

// unescape is the inverse of escape. It accepts only what escape makes, so
// that two names never stand for one id.
func unescape(name string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		hi, lo := strings.IndexByte(upperHex, name[i+1]), strings.IndexByte(upperHex, name[i+2])
		if hi < 0 || lo < 0 {
			return "", false
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	again, err := escape(b.String())
	return b.String(), err == nil && again == name
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("._@-", c) >= 0
}

// clip cuts s to at most n bytes for use in an error.
func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "..."
	}
	return s
}

func pathErr(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
