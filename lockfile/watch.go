package lockfile

import (
	"context"
	"errors"
	"hash/fnv"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"qshim/lockfile/notifier"
)

// watch tells that something in one directory of ours changed.
type watch struct {
	d      *Dir
	room   string                 // "" for the state directory itself
	wanted func(name string) bool // by base name
	hint   chan struct{}
	atOnce func() bool // see Store.Watch; nil: there is none
}

// rearm is how many ticks of the fallback pass between tries to get a real
// watch again: another program may have let go of its inotify instances.
const rearm = 60

// Watch implements Store.
func (d *Dir) Watch(ctx context.Context, atOnce func() bool) (<-chan struct{}, error) {
	w := &watch{d: d, room: limiterRoom, hint: make(chan struct{}, 1), atOnce: atOnce,
		wanted: func(name string) bool { return strings.HasSuffix(name, jsonExt) }}
	return w.hint, w.start(ctx)
}

// Fallback says why the last watch begun on this Dir looks at the files each
// second instead of being told, nil when it is told. Usually it is that all
// 128 inotify instances of the user are taken.
func (d *Dir) Fallback() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fallback
}

// start arms the watch before it returns: what changes afterwards is noticed.
func (w *watch) start(ctx context.Context) error {
	moved, err := w.moved()
	if err != nil {
		return err
	}
	news, sign := w.arm()
	go func() {
		defer close(w.hint)
		for {
			if news != nil {
				w.told(ctx, news, moved)
			} else {
				w.look(ctx, sign, moved)
			}
			if ctx.Err() != nil {
				return
			}
			if moved, err = w.moved(); err != nil {
				// The directory cannot be opened now; look again each second.
				moved = nil
			}
			news, sign = w.arm()
			w.tell()
		}
	}()
	return nil
}

// moved makes sure that the directory is there, and returns the channel that
// is closed when it is opened anew.
func (w *watch) moved() (<-chan struct{}, error) {
	r, err := w.d.enter()
	if err != nil {
		return nil, err
	}
	defer w.d.leave(r)
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	return w.d.reopened, nil
}

// arm begins a real watch, or returns the directory's signature to compare with.
func (w *watch) arm() (*notifier.Notifier, uint64) {
	news, err := w.notifier()
	if w.atOnce != nil {
		w.d.hear(err == nil)
	}
	w.d.mu.Lock()
	w.d.fallback = err
	w.d.mu.Unlock()
	if err != nil {
		return nil, w.signature()
	}
	return news, 0
}

func (w *watch) notifier() (*notifier.Notifier, error) {
	if w.d.o.noWatch {
		return nil, errors.New("no watch: switched off")
	}
	news, err := notifier.NewAtOnce(w.heard)
	if err != nil {
		return nil, err
	}
	if err := news.Add(filepath.Join(w.d.path, w.room)); err != nil {
		return nil, errors.Join(err, news.Close())
	}
	return news, nil
}

// heard hands a change of a file to who deals with it at once.
func (w *watch) heard(ev fsnotify.Event) (done bool) {
	name := filepath.Base(ev.Name)
	if w.atOnce == nil || !w.wanted(name) {
		return false
	}
	w.d.note(name)
	return w.atOnce()
}

// told passes hints on until ctx ends or the watch is of no use any more.
func (w *watch) told(ctx context.Context, news *notifier.Notifier, moved <-chan struct{}) {
	defer func() {
		_ = news.Close() // nothing to lose
		if w.atOnce != nil {
			w.d.hear(false)
		}
	}()
	self := filepath.Join(w.d.path, w.room)
	for {
		select {
		case <-ctx.Done():
			return
		case <-moved:
			return
		case ev := <-news.Events:
			if ev.Name == self && ev.Has(fsnotify.Remove|fsnotify.Rename) {
				return
			}
			if w.wanted(filepath.Base(ev.Name)) {
				w.tell()
			}
		case <-news.Errors:
			if w.atOnce != nil {
				w.d.hear(true) // from now on
			}
			w.tell() // an overflow: something changed
		}
	}
}

// look compares the directory each tick, until a real watch should be tried.
func (w *watch) look(ctx context.Context, sign uint64, moved <-chan struct{}) {
	tick := time.NewTimer(w.d.lookEvery())
	defer tick.Stop()
	for left := rearm * w.d.o.tick; left > 0; left -= w.d.lookEvery() {
		select {
		case <-ctx.Done():
			return
		case <-moved:
			return
		case <-tick.C:
			tick.Reset(w.d.lookEvery())
			if now := w.signature(); now != sign {
				sign = now
				w.tell()
			}
		}
	}
}

// busyTick is the tick of who has an agent at work, or stopped: a limit is met by
// all that are busy, and each that goes on late is in the way of the next. A look
// takes some 20 us.
const busyTick = 250 * time.Millisecond

// lookEvery is the tick of the fallback.
func (d *Dir) lookEvery() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, own := range d.leases {
		if own.session.State == Running || own.session.State == Suspended {
			return min(d.o.tick, busyTick)
		}
	}
	return d.o.tick
}

func (w *watch) tell() {
	select {
	case w.hint <- struct{}{}:
	default: // one is waiting already
	}
}

// signature changes when a wanted file does. The order of names is the
// directory's own, so the hashes of the files are added up.
func (w *watch) signature() uint64 {
	r, err := w.d.enter()
	if err != nil {
		return 0
	}
	defer w.d.leave(r)
	dir := r.top
	if w.room == limiterRoom {
		dir = r.limiters
	}
	names, err := listDir(dir)
	if err != nil {
		return 0
	}
	var sum uint64
	for _, name := range names {
		if !w.wanted(name) {
			continue
		}
		st, err := statAt(dir, name)
		if err != nil {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(name)) // a hash does not fail
		for _, v := range []uint64{st.ino, uint64(st.mtime), uint64(st.size)} {
			for ; v != 0; v >>= 8 {
				_, _ = h.Write([]byte{byte(v)})
			}
			_, _ = h.Write([]byte{'/'})
		}
		sum += h.Sum64()
	}
	return sum
}
