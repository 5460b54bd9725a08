package notifier

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func begin(t *testing.T, dirs ...string) *Notifier {
	t.Helper()
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() }) // a second time for some
	for _, dir := range dirs {
		if err := n.Add(dir); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// told waits until n tells of path, and allows no word of other directories than
// its and also.
func told(t *testing.T, n *Notifier, path string, also ...string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case ev := <-n.Events:
			if dir := filepath.Dir(ev.Name); dir != filepath.Dir(path) && !slices.Contains(also, dir) {
				t.Errorf("told of %s", ev.Name)
			}
			if ev.Name == path {
				return
			}
		case <-late:
			t.Fatalf("not told of %s", path)
		}
	}
}

// instances counts this process's inotify instances, -1 where it is not known.
func instances(t *testing.T) (n int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return -1
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}

// TestOneInstance: everybody hears of his own directories, through one instance.
func TestOneInstance(t *testing.T) {
	x, y := t.TempDir(), t.TempDir()
	a, b, both := begin(t, x), begin(t, y), begin(t, x, y)
	if n := instances(t); n > 1 {
		t.Errorf("%d instances", n)
	}
	touch(t, filepath.Join(x, "1"))
	told(t, a, filepath.Join(x, "1"))
	told(t, both, filepath.Join(x, "1"))
	touch(t, filepath.Join(y, "2"))
	told(t, b, filepath.Join(y, "2"))
	// Who ends, or wants to hear no more, takes nothing from the others.
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	both.Remove(y)
	touch(t, filepath.Join(x, "3"))
	told(t, both, filepath.Join(x, "3"), y)
	touch(t, filepath.Join(y, "4"))
	told(t, b, filepath.Join(y, "4"))
	if err := a.Add(x); err == nil {
		t.Error("added to a closed one")
	}
	for _, n := range []*Notifier{b, both} {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := instances(t); n > 0 {
		t.Errorf("%d instances after the last one", n)
	}
}

// TestSlowOwner: who does not collect his events is told that some are lost, and
// is in nobody's way.
func TestSlowOwner(t *testing.T) {
	x, y := t.TempDir(), t.TempDir()
	slow, quick := begin(t, x), begin(t, y)
	for range 2 * room {
		touch(t, filepath.Join(x, "f"))
	}
	touch(t, filepath.Join(y, "g"))
	told(t, quick, filepath.Join(y, "g"))
	select {
	case <-slow.Errors:
	default:
		t.Error("nothing is said of what was lost")
	}
}

// TestReplaced: a directory that was replaced can be watched again by its name.
func TestReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	make := func() {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	make()
	a, b := begin(t, dir), begin(t, dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	for ev := range a.Events { // of its own name: it has gone
		if ev.Name == dir {
			break
		}
	}
	make()
	a.Remove(dir)
	if err := a.Add(dir); err != nil {
		t.Fatal(err)
	}
	touch(t, filepath.Join(dir, "1"))
	told(t, a, filepath.Join(dir, "1"))
	b.Remove(dir) // the old one's
	touch(t, filepath.Join(dir, "2"))
	told(t, a, filepath.Join(dir, "2"))
}

// TestAtOnce: what is dealt with at once does not come as an event, the rest does.
func TestAtOnce(t *testing.T) {
	x := t.TempDir()
	dealt := make(chan string, 100)
	n, err := NewAtOnce(func(ev fsnotify.Event) bool {
		mine := filepath.Base(ev.Name) == "mine"
		if mine {
			dealt <- ev.Name
		}
		return mine
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	if err := n.Add(x); err != nil {
		t.Fatal(err)
	}
	touch(t, filepath.Join(x, "mine"))
	touch(t, filepath.Join(x, "other"))
	for late := time.After(20 * time.Second); ; {
		select {
		case ev := <-n.Events:
			if filepath.Base(ev.Name) == "mine" {
				t.Error("told of what was dealt with")
			}
			if filepath.Base(ev.Name) == "other" {
				if len(dealt) == 0 {
					t.Error("the first one was not told at once")
				}
				return
			}
		case <-late:
			t.Fatal("not told")
		}
	}
}
