package notifier

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// source is what tells of all directories that somebody watches: an inotify
// instance, and one goroutine that reads it and tells by itself. (Package
// fsnotify hands each event to another goroutine. For a process that has been
// asleep that is another thread; when a limit wakes 100 of them each costs all of
// them a turn at the processors.)
type source struct {
	file *os.File
	done chan struct{} // closed when its events have been passed on

	mu   sync.Mutex
	dirs map[int32]string // by watch descriptor
	wds  map[string]int32
}

// what a directory is watched for: as fsnotify does.
const what = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_DELETE_SELF |
	unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_MOVE_SELF

// newSource begins; event and lost are called on a goroutine of its own, not after
// Close has returned.
func newSource(event func(*source, fsnotify.Event), lost func(*source, error)) (*source, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	s := &source{file: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{}), dirs: map[int32]string{}, wds: map[string]int32{}}
	go s.run(event, lost)
	return s, nil
}

// Add watches a directory, again if it has been replaced since.
func (s *source) Add(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wd, err := s.control(func(fd int) (int, error) { return unix.InotifyAddWatch(fd, dir, what) })
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	if old, ok := s.wds[dir]; ok && old != int32(wd) {
		delete(s.dirs, old) // of the one that was there before
	}
	s.wds[dir], s.dirs[int32(wd)] = int32(wd), dir
	return nil
}

// Remove ends that.
func (s *source) Remove(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wd, ok := s.wds[dir]
	if !ok {
		return fsnotify.ErrNonExistentWatch
	}
	s.forget(wd)
	_, err := s.control(func(fd int) (int, error) { return unix.InotifyRmWatch(fd, uint32(wd)) })
	return err
}

// forget must be called with mu held.
func (s *source) forget(wd int32) {
	if dir, ok := s.dirs[wd]; ok && s.wds[dir] == wd {
		delete(s.wds, dir)
	}
	delete(s.dirs, wd)
}

// control calls fn with the instance's descriptor, which os.File must not give
// away: reading it could not be ended then.
func (s *source) control(fn func(fd int) (int, error)) (n int, err error) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return -1, err
	}
	if cerr := raw.Control(func(fd uintptr) { n, err = fn(int(fd)) }); cerr != nil {
		return -1, cerr
	}
	return n, err
}

// Close ends all.
func (s *source) Close() error {
	err := s.file.Close()
	<-s.done
	return err
}

// run is the goroutine. The room that it takes on its stack is more than the runtime
// would shrink that to, and what lies beyond suffices for what event does: a stack
// that grows then takes an eighth of a stop.
func (s *source) run(event func(*source, fsnotify.Event), lost func(*source, error)) {
	defer close(s.done)
	var deep [24 << 10]byte
	s.read(deep[:], event, lost)
}

func (s *source) read(buf []byte, event func(*source, fsnotify.Event), lost func(*source, error)) {
	for {
		n, err := s.file.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil { // not seen; without events everybody has to look
			lost(s, err)
			return
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			raw := *(*unix.InotifyEvent)(unsafe.Pointer(&b[0]))
			end := min(unix.SizeofInotifyEvent+int(raw.Len), len(b))
			name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:end]), "\x00")
			b = b[end:]
			if raw.Mask&unix.IN_Q_OVERFLOW != 0 {
				lost(s, fsnotify.ErrEventOverflow)
			} else if ev, ok := s.event(raw, name); ok {
				event(s, ev)
			}
		}
	}
}

// event translates one; false: it says nothing of a directory that is watched.
func (s *source) event(raw unix.InotifyEvent, name string) (fsnotify.Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, ok := s.dirs[raw.Wd]
	if !ok {
		return fsnotify.Event{}, false
	}
	if raw.Mask&(unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 {
		s.forget(raw.Wd)
		return fsnotify.Event{}, false
	}
	ev := fsnotify.Event{Name: dir}
	if name != "" {
		ev.Name = filepath.Join(dir, name)
	}
	for _, o := range ops {
		if raw.Mask&o.bits != 0 {
			ev.Op |= o.op
		}
	}
	if raw.Mask&unix.IN_MOVE_SELF != 0 { // it is another directory's name now
		s.forget(raw.Wd)
		_, _ = s.control(func(fd int) (int, error) { return unix.InotifyRmWatch(fd, uint32(raw.Wd)) }) // it may have gone
	}
	return ev, true
}

var ops = []struct {
	bits uint32
	op   fsnotify.Op
}{
	{unix.IN_CREATE | unix.IN_MOVED_TO, fsnotify.Create},
	{unix.IN_MODIFY, fsnotify.Write},
	{unix.IN_DELETE | unix.IN_DELETE_SELF, fsnotify.Remove},
	{unix.IN_MOVED_FROM | unix.IN_MOVE_SELF, fsnotify.Rename},
	{unix.IN_ATTRIB, fsnotify.Chmod},
}
