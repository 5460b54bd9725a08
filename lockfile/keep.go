package lockfile

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"
)

// saltSize is the length of the salt in bytes: as much as the hash it feeds.
const saltSize = 32

// saltFile is what the file "salt" holds.
type saltFile struct {
	Schema int    `json:"schema"`
	Salt   string `json:"salt"` // hexadecimal
}

// Salt returns this installation's salt for account hashes, which is made once
// and then only read: 32 random bytes. A salt file that cannot be read is set
// aside and replaced, which gives every account a new id.
func (d *Dir) Salt() ([]byte, error) {
	r, err := d.enter()
	if err != nil {
		return nil, err
	}
	salt, err := readSalt(r)
	d.leave(r)
	if err == nil || errors.Is(err, ErrSchema) {
		return salt, d.wrap(err)
	}
	err = d.locked(context.Background(), LockWait, func(h *holder) error {
		r := h.rooms
		salt, err = readSalt(r)
		if errors.Is(err, fs.ErrPermission) && d.mend(r.top, "", saltName, err) {
			salt, err = readSalt(r)
		}
		if errors.Is(err, errGarbage) || errors.Is(err, fs.ErrPermission) {
			d.mu.Lock()
			d.setAside(r.top, "", saltName, err)
			d.mu.Unlock()
			err = fs.ErrNotExist
		}
		if errors.Is(err, fs.ErrNotExist) {
			salt, err = d.makeSalt(r)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return salt, nil
}

func readSalt(r *rooms) ([]byte, error) {
	data, _, err := readSmall(r.top, saltName, MaxFile)
	if err != nil {
		return nil, err
	}
	return decodeSalt(data)
}

func decodeSalt(data []byte) ([]byte, error) {
	f, ok := saltAsWritten(data)
	if !ok {
		if err := decodeInto(data, &f); err != nil {
			return nil, err
		}
	}
	salt, err := hex.DecodeString(f.Salt)
	if err != nil || len(salt) != saltSize {
		return nil, fmt.Errorf("%s: %w: not %d bytes", saltName, errGarbage, saltSize)
	}
	return salt, nil
}

// saltAsWritten reads the file as makeSalt writes it. Every start does, and the
// JSON decoder costs a process that has not used it 0.3 ms.
func saltAsWritten(data []byte) (f saltFile, ok bool) {
	const head, tail = `{"schema":1,"salt":"`, "\"}\n"
	text, begins := bytes.CutPrefix(data, []byte(head))
	text, ends := bytes.CutSuffix(text, []byte(tail))
	return saltFile{1, string(text)}, begins && ends && Schema == 1 && len(text) == 2*saltSize
}

func (d *Dir) makeSalt(r *rooms) ([]byte, error) {
	salt := make([]byte, saltSize)
	if _, err := io.ReadFull(d.o.Rand, salt); err != nil {
		return nil, fmt.Errorf("salt: %w", err)
	}
	data, err := encode(saltFile{Schema: Schema, Salt: hex.EncodeToString(salt)})
	if err != nil {
		return nil, err
	}
	return salt, d.put(r, r.top, saltName, data)
}

// put writes one file of any room, synced: what is kept this way is written
// rarely, and a salt lost in a power cut would rename every account.
func (d *Dir) put(r *rooms, dir int, name string, data []byte) error {
	if err := d.writeTemp(r, tempName, data); err != nil {
		return err
	}
	fd, err := openAt(r.top, tempName, forRead)
	if err == nil {
		err = syncFD(fd)
		closeFD(fd)
	}
	if err == nil {
		err = d.at("place " + name)
	}
	if err == nil {
		err = renameAt(r.top, tempName, dir, name)
	}
	if err != nil {
		return errors.Join(err, dropIfThere(r.top, tempName))
	}
	return nil
}

// cacheFile wraps what WriteCache is given.
type cacheFile struct {
	Schema int             `json:"schema"`
	Data   json.RawMessage `json:"data"`
}

// ReadCache reads what WriteCache stored under the name into v. Whatever is
// wrong (absent, damaged, of another schema) is an error that means "not
// cached"; nothing is set aside, for a cache can be made again.
func (d *Dir) ReadCache(name string, v any) error {
	file, err := escape(name)
	if err != nil {
		return d.wrap(err)
	}
	return d.inRoom(cacheRoom, func(_ *rooms, dir int) error {
		data, _, err := readSmall(dir, file+jsonExt, MaxCache)
		if err != nil {
			return err
		}
		var f cacheFile
		if err := decodeInto(data, &f); err != nil {
			return err
		}
		return json.Unmarshal(f.Data, v)
	})
}

// WriteCache stores v as JSON under the name, at most MaxCache bytes.
func (d *Dir) WriteCache(name string, v any) error {
	file, err := escape(name)
	if err != nil {
		return d.wrap(err)
	}
	inner, err := encode(v)
	if err != nil {
		return d.wrap(err)
	}
	data, err := encode(cacheFile{Schema: Schema, Data: inner})
	if err == nil && len(data) > MaxCache {
		err = fmt.Errorf("cache %s: %w: %d bytes", name, ErrTooLarge, len(data))
	}
	if err != nil {
		return d.wrap(err)
	}
	return d.locked(context.Background(), LockWait, func(r *holder) error {
		dir, err := openRoom(r.top, cacheRoom)
		if err != nil {
			return err
		}
		defer closeFD(dir)
		return d.put(r.rooms, dir, file+jsonExt, data)
	})
}

// inRoom runs fn with a directory that is only opened when needed.
func (d *Dir) inRoom(name string, fn func(r *rooms, dir int) error) error {
	r, err := d.enter()
	if err != nil {
		return err
	}
	defer d.leave(r)
	dir, err := openRoom(r.top, name)
	if err != nil {
		return d.wrap(err)
	}
	defer closeFD(dir)
	return d.wrap(fn(r, dir))
}

// Log is a file that an agent writes its debug log to because we asked it to.
// It holds prompts: mode 0600, capped, and removed when its session ends.
type Log struct {
	d    *Dir
	file string
}

// latestName is a link to the newest log that Claude Code (measured 2.1.332)
// makes beside the log that it was asked for. It goes with the first log.
const latestName = "latest"

// logJoin stands between session and name; escape never makes it.
const logJoin = "+"

// NewLog makes an empty log file for a session, which must have its lease: the
// log of a session that is not there is swept away. The lease's Close removes
// it, and Recover if the shim could not.
func (d *Dir) NewLog(session, name string) (*Log, error) {
	a, err := escape(session)
	if err != nil {
		return nil, d.wrap(err)
	}
	b, err := escape(name)
	if err != nil {
		return nil, d.wrap(err)
	}
	l := &Log{d: d, file: a + logJoin + b}
	err = d.inRoom(logRoom, func(_ *rooms, dir int) error {
		if err := dropIfThere(dir, l.file); err != nil {
			return err
		}
		fd, err := openAt(dir, l.file, forNew)
		if err != nil {
			return err
		}
		defer closeFD(fd)
		return private(fd)
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Path returns the file's absolute path, for the agent's environment.
func (l *Log) Path() string { return filepath.Join(l.d.path, logRoom, l.file) }

// Trim empties the log when it takes more than MaxLog bytes of disk, and
// reports whether it did; whoever reads the log begins again at 0 then. It
// counts blocks, because an agent that does not append leaves a hole before
// its next line.
func (l *Log) Trim() (trimmed bool, err error) {
	err = l.d.inRoom(logRoom, func(_ *rooms, dir int) error {
		st, err := statAt(dir, l.file)
		if err != nil || !st.mode.IsRegular() || st.blocks*512 <= MaxLog {
			return err
		}
		fd, err := openAt(dir, l.file, forWrite)
		if err != nil {
			return err
		}
		defer closeFD(fd)
		trimmed = true
		return truncate(fd, 0)
	})
	return trimmed, err
}

// Close removes the log.
func (l *Log) Close() error {
	return l.d.inRoom(logRoom, func(_ *rooms, dir int) error { return dropIfThere(dir, l.file) })
}

// dropLogs removes the logs of the sessions that pick chooses.
func (d *Dir) dropLogs(pick func(session string) bool) error {
	r, err := d.enter()
	if err != nil {
		return err
	}
	defer d.leave(r)
	dir, err := openAt(r.top, logRoom, forDir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return d.wrap(err)
	}
	defer closeFD(dir)
	names, err := listDir(dir)
	for _, name := range names {
		stem, _, ok := strings.Cut(name, logJoin)
		if session, valid := unescape(stem); ok && valid && pick(session) {
			err = errors.Join(err, dropIfThere(dir, name), dropIfThere(dir, latestName))
		}
	}
	return d.wrap(err)
}

// The crash reports that are kept, and how much of each, in bytes.
const (
	keepCrashes = 10
	maxCrash    = 256 << 10
)

// Crash writes a report of our own panic and returns its path. It takes no
// lock, because the one who panicked may hold it.
func (d *Dir) Crash(report []byte) (path string, err error) {
	if len(report) > maxCrash {
		report = report[:maxCrash]
	}
	err = d.inRoom(crashRoom, func(_ *rooms, dir int) error {
		stem := "crash-" + d.o.Now().UTC().Format("20060102T150405.000000000Z")
		fd, name := -1, ""
		for n := 1; n < 100; n++ {
			name = fmt.Sprintf("%s-%d.txt", stem, n)
			if fd, err = openAt(dir, name, forNew); !errors.Is(err, fs.ErrExist) {
				break
			}
		}
		if err != nil {
			return err
		}
		defer closeFD(fd)
		if _, err := descriptor(fd).Write(report); err != nil {
			return pathErr("write", name, err)
		}
		path = filepath.Join(d.path, crashRoom, name)
		return dropOldest(dir, "crash-", keepCrashes)
	})
	return path, err
}

func dropOldest(dir int, prefix string, keep int) error {
	names, err := listDir(dir)
	if err != nil {
		return err
	}
	var ours []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			ours = append(ours, name)
		}
	}
	sort.Strings(ours) // named by time
	for _, name := range ours[:max(0, len(ours)-keep)] {
		err = errors.Join(err, dropIfThere(dir, name))
	}
	return err
}
