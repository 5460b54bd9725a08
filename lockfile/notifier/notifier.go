// Package notifier lets all who watch directories in one process share one
// inotify instance: a user has 128 of them (fs.inotify.max_user_instances), and
// a session watches the limiters and its agent's log.
package notifier

import (
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Notifier tells of changes in the directories that its owner added.
type Notifier struct {
	// Events are the changes, of a directory (by its own name) and in it. What
	// finds no room is dropped and said in Errors: nobody waits for a slow owner.
	Events chan fsnotify.Event
	// Errors say that events were lost: everything may have changed.
	Errors chan error

	dirs map[string]bool // guarded by shared
}

// room is how many events an owner may be behind. More of them come together
// where many agents keep their logs in one directory; a look then finds all.
const room = 64

// shared is the process's instance, while somebody has a Notifier.
var shared struct {
	sync.Mutex
	w     *fsnotify.Watcher
	done  chan struct{} // closed when w's events have been passed on
	users map[*Notifier]bool
}

// New returns a Notifier without directories. An error is usually that no
// instance is left.
func New() (*Notifier, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.w == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			return nil, err
		}
		shared.w, shared.done, shared.users = w, make(chan struct{}), map[*Notifier]bool{}
		go pass(w, shared.done)
	}
	n := &Notifier{Events: make(chan fsnotify.Event, room), Errors: make(chan error, 1), dirs: map[string]bool{}}
	shared.users[n] = true
	return n, nil
}

// Add watches a directory, again if it has been replaced since.
func (n *Notifier) Add(dir string) error {
	dir = filepath.Clean(dir)
	shared.Lock()
	defer shared.Unlock()
	if !shared.users[n] {
		return fsnotify.ErrClosed
	}
	if err := shared.w.Add(dir); err != nil {
		return err
	}
	n.dirs[dir] = true
	return nil
}

// Remove ends the watch of a directory. It is no error if that has gone.
func (n *Notifier) Remove(dir string) {
	shared.Lock()
	defer shared.Unlock()
	if shared.users[n] {
		n.remove(filepath.Clean(dir))
	}
}

// remove must be called with shared locked.
func (n *Notifier) remove(dir string) {
	delete(n.dirs, dir)
	for other := range shared.users {
		if other.dirs[dir] {
			return
		}
	}
	_ = shared.w.Remove(dir) // it may have gone by itself
}

// Close ends it. Its channels stay open and tell nothing more.
func (n *Notifier) Close() error {
	shared.Lock()
	if !shared.users[n] {
		shared.Unlock()
		return nil
	}
	delete(shared.users, n)
	if len(shared.users) > 0 {
		for dir := range n.dirs {
			n.remove(dir)
		}
		shared.Unlock()
		return nil
	}
	w, done := shared.w, shared.done
	shared.w = nil
	shared.Unlock()
	err := w.Close()
	<-done
	return err
}

// pass hands on what w tells, until it is closed.
func pass(w *fsnotify.Watcher, done chan struct{}) {
	defer close(done)
	events, lost := w.Events, w.Errors
	for events != nil || lost != nil {
		select {
		case ev, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			tell(w, func(n *Notifier) {
				if n.dirs[ev.Name] || n.dirs[filepath.Dir(ev.Name)] {
					n.event(ev)
				}
			})
		case err, ok := <-lost:
			if !ok {
				lost = nil
				continue
			}
			tell(w, func(n *Notifier) { n.lost(err) })
		}
	}
}

// tell calls fn for everybody whose instance w is.
func tell(w *fsnotify.Watcher, fn func(*Notifier)) {
	shared.Lock()
	defer shared.Unlock()
	if shared.w != w {
		return
	}
	for n := range shared.users {
		fn(n)
	}
}

func (n *Notifier) event(ev fsnotify.Event) {
	select {
	case n.Events <- ev:
	default:
		n.lost(fsnotify.ErrEventOverflow)
	}
}

func (n *Notifier) lost(err error) {
	select {
	case n.Errors <- err:
	default: // it says so already
	}
}
