package agentlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"qshim/lockfile/notifier"
)

// hints watches directories. Without inotify it watches nothing and says so.
type hints struct {
	w       *notifier.Notifier     // nil: not available
	watched map[string]os.FileInfo // by name, as it was when the watch was made
}

func newHints(poll bool) *hints {
	h := &hints{watched: map[string]os.FileInfo{}}
	if poll {
		return h
	}
	if w, err := notifier.New(); err == nil { // an error is the user's limit of instances
		h.w = w
	}
	return h
}

// watch makes the watches those of want, each replaced by its nearest ancestor
// that exists. added says that a new one stands; all that every one does.
func (h *hints) watch(want []string) (added, all bool) {
	if h.w == nil {
		return false, false
	}
	all = true
	next := map[string]os.FileInfo{}
	for _, dir := range want {
		if dir, info := nearest(dir); info != nil {
			next[dir] = info
		} else {
			all = false
		}
	}
	for dir, was := range h.watched {
		if now := next[dir]; now == nil || !os.SameFile(now, was) {
			h.unwatch(dir)
		}
	}
	for dir := range next {
		if h.watched[dir] != nil {
			continue
		}
		if err := h.w.Add(dir); errors.Is(err, fs.ErrNotExist) {
			added = true // gone since: the next round finds what there is now
		} else if err != nil {
			all = false
		} else {
			h.note(dir)
			added = true
		}
	}
	return added, all
}

// note records what is watched under a name. It asks after the watch stands: if
// the directory was replaced before that, this is the new one; if after, the
// kernel tells that the old one has moved or gone.
func (h *hints) note(dir string) {
	info, err := os.Stat(dir)
	if err != nil {
		h.w.Remove(dir) // gone already: the next round finds what there is now
		return
	}
	h.watched[dir] = info
}

// unwatch drops the watch of a directory that has gone, been replaced, or is of
// no more use.
func (h *hints) unwatch(dir string) {
	h.w.Remove(dir)
	delete(h.watched, dir)
}

// nearest is the closest existing directory at or above dir.
func nearest(dir string) (string, os.FileInfo) {
	for range 64 {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, info
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return "", nil
}

// wait returns true at a tick or at a change that is wanted, and false when ctx
// ends. Changes that came together are one.
func (h *hints) wait(ctx context.Context, tick <-chan time.Time, wants func(path string, created bool) bool) bool {
	var events chan fsnotify.Event
	var lost chan error
	if h.w != nil {
		events, lost = h.w.Events, h.w.Errors
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return true
		case <-lost: // events were lost: everything may have changed
			return true
		case e := <-events:
			if h.matters(e, wants) {
				h.drain()
				return true
			}
		}
	}
}

// matters judges one event. A watched directory that has gone, and a new
// directory on the way to one that is wanted, always do.
func (h *hints) matters(e fsnotify.Event, wants func(string, bool) bool) bool {
	if h.watched[e.Name] != nil && e.Has(fsnotify.Remove|fsnotify.Rename) {
		h.unwatch(e.Name) // after a move it would watch the directory moved
		return true
	}
	created := e.Has(fsnotify.Create | fsnotify.Rename)
	if created {
		if info, err := os.Lstat(e.Name); err == nil && info.IsDir() {
			return true
		}
	}
	if e.Op == fsnotify.Chmod {
		return false
	}
	return wants(e.Name, created)
}

// drain takes the events that are waiting already, but keeps none that a look
// would not see anyway.
func (h *hints) drain() {
	for range 4096 {
		select {
		case e := <-h.w.Events:
			if h.watched[e.Name] != nil && e.Has(fsnotify.Remove|fsnotify.Rename) {
				h.unwatch(e.Name)
			}
		default:
			return
		}
	}
}

func (h *hints) close() {
	if h.w != nil {
		_ = h.w.Close() // nothing is left to be told
	}
}
