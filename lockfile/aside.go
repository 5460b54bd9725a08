package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// setAside renames a file that cannot be used; it is never deleted, because a
// person may still read in it what we cannot. The lock is held.
func (d *Dir) setAside(dir int, room, name string, why error) bool {
	as := name + badInfix + d.o.Now().UTC().Format(badTimeStamp)
	for n := 2; ; n++ {
		if _, err := statAt(dir, as); errors.Is(err, fs.ErrNotExist) {
			break
		}
		as = fmt.Sprintf("%s%s%s-%d", name, badInfix, d.o.Now().UTC().Format(badTimeStamp), n)
	}
	path := filepath.Join(d.path, room, name)
	if err := renameAt(dir, name, dir, as); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return true
		}
		d.ignoreOnce(path, errors.Join(why, err))
		return false
	}
	d.notice(Notice{Kind: SetAside, Path: path, As: filepath.Join(d.path, room, as), Err: why})
	return true
}

// mend gives a file of ours back the permission that it lost.
func (d *Dir) mend(dir int, room, name string, why error) bool {
	st, err := statAt(dir, name)
	if err != nil || !st.mode.IsRegular() || st.uid != effectiveUID() {
		return false
	}
	if err := chmodAt(dir, name, 0o600); err != nil {
		return false
	}
	d.notice(Notice{Kind: Mended, Path: filepath.Join(d.path, room, name), Err: why})
	return true
}

func (d *Dir) ignoreOnce(path string, why error) {
	if !d.ignored[path] {
		d.ignored[path] = true
		d.notice(Notice{Kind: Ignored, Path: path, Err: why})
	}
}
