package notifier

import "github.com/fsnotify/fsnotify"

// source is what tells of all directories that somebody watches.
type source struct {
	w    *fsnotify.Watcher
	done chan struct{} // closed when its events have been passed on
}

// newSource begins; event and lost are called on a goroutine of its own, not after
// Close has returned.
func newSource(event func(*source, fsnotify.Event), lost func(*source, error)) (*source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	s := &source{w: w, done: make(chan struct{})}
	go s.pass(event, lost)
	return s, nil
}

// Add watches a directory, again if it has been replaced since.
func (s *source) Add(dir string) error { return s.w.Add(dir) }

// Remove ends that.
func (s *source) Remove(dir string) error { return s.w.Remove(dir) }

// Close ends all.
func (s *source) Close() error {
	err := s.w.Close()
	<-s.done
	return err
}

// pass is the goroutine. The room that it takes on its stack is more than the runtime
// would shrink that to, and what lies beyond suffices for what event does: a stack
// that grows then takes an eighth of a stop.
func (s *source) pass(event func(*source, fsnotify.Event), lost func(*source, error)) {
	defer close(s.done)
	var deep [24 << 10]byte
	s.tell(event, lost, &deep)
}

func (s *source) tell(event func(*source, fsnotify.Event), lost func(*source, error), _ *[24 << 10]byte) {
	events, errs := s.w.Events, s.w.Errors
	for events != nil || errs != nil {
		select {
		case ev, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			event(s, ev)
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			lost(s, err)
		}
	}
}
