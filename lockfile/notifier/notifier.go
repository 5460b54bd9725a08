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

	atOnce func(fsnotify.Event) (done bool) // see NewAtOnce; nil: there is none
	dirs   map[string]bool                  // guarded by shared
}

// room is how many events an owner may be behind. More of them come together
// where many agents keep their logs in one directory; a look then finds all.
const room = 64

// shared is the process's instance, while somebody has a Notifier.
var shared struct {
	sync.Mutex
	w     *source
	users map[*Notifier]bool
}

// New returns a Notifier without directories. An error is usually that no
// instance is left.
func New() (*Notifier, error) { return newNotifier(nil) }

// NewAtOnce is New for who must not lose the time that a change of goroutines
// takes while 100 processes hear of the same event: fn is called with each, on
// the goroutine that reads them for all Notifiers. Those that it has dealt with do
// not come by Events.
func NewAtOnce(fn func(fsnotify.Event) (done bool)) (*Notifier, error) { return newNotifier(fn) }

func newNotifier(atOnce func(fsnotify.Event) bool) (*Notifier, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.w == nil {
		w, err := newSource(event, lost)
		if err != nil {
			return nil, err
		}
		shared.w, shared.users = w, map[*Notifier]bool{}
	}
	n := &Notifier{Events: make(chan fsnotify.Event, room), Errors: make(chan error, 1), atOnce: atOnce, dirs: map[string]bool{}}
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
	w := shared.w
	shared.w = nil
	shared.Unlock()
	return w.Close()
}

// event hands on what w tells.
func event(w *source, ev fsnotify.Event) {
	for _, n := range concerned(w, func(n *Notifier) bool { return n.dirs[ev.Name] || n.dirs[filepath.Dir(ev.Name)] }) {
		if n.atOnce == nil || !n.atOnce(ev) {
			n.event(ev)
		}
	}
}

// lost says to all that w's events were lost.
func lost(w *source, err error) {
	for _, n := range concerned(w, func(*Notifier) bool { return true }) {
		n.lost(err)
	}
}

// concerned are those whose instance w is and whom it concerns. They are told
// without the lock: one that takes its time must not keep others from ending.
func concerned(w *source, is func(*Notifier) bool) (all []*Notifier) {
	shared.Lock()
	defer shared.Unlock()
	if shared.w != w {
		return nil
	}
	for n := range shared.users {
		if is(n) {
			all = append(all, n)
		}
	}
	return all
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
