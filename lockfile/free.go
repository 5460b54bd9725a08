package lockfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Free reports that nothing is known of these limiters, and of their parts
// (ID#family), that could hold up a launch: their names and what has been used
// of them at the most. It takes no lock and decodes nothing, so a launch that
// has nothing to wait for learns so in a tenth of the time that Read takes in a
// fresh process. False is also said where it cannot be told at a look: while
// somebody writes, of a file that is not as we write it, in a directory that
// does not work.
func (d *Dir) Free(ids []string) bool {
	r, err := d.enter()
	if err != nil {
		return false
	}
	defer d.leave(r)
	before, ok := r.writes()
	if !ok || !allFree(r, ids) {
		return false
	}
	changes, err := pendingIntent(r)
	after, _ := r.writes()
	return err == nil && len(changes) == 0 && before == after
}

func allFree(r *rooms, ids []string) bool {
	names, err := listDir(r.limiters)
	if err != nil {
		return false
	}
	for _, name := range names {
		id, ok := fileToID(name, jsonExt)
		base, _, _ := strings.Cut(id, "#")
		if !ok || !slices.Contains(ids, id) && !slices.Contains(ids, base) {
			continue
		}
		if data, _, err := readSmall(r.limiters, name, MaxFile); err != nil || !freeLimiter(data) {
			return false
		}
	}
	return true
}

// freeKeys are those of a limiter that hold up no launch, and those within its
// share.
var freeKeys = [...]string{"schema", "id", "label", "updated", "used", "share", "at", "ends", "tokens", "from", "base", "size", "learned"}

// freeLimiter reports that a file has no keys but these. In a JSON text every
// key ends with `":`, which inside a string would stand as `\":` and be counted
// too: then the file is taken for one that says more.
func freeLimiter(data []byte) bool {
	if !bytes.HasPrefix(data, fmt.Appendf(nil, `{"schema":%d,`, Schema)) {
		return false
	}
	known := 0
	for _, key := range freeKeys {
		known += bytes.Count(data, []byte(`"`+key+`":`))
	}
	return bytes.Count(data, []byte(`":`)) == known
}
