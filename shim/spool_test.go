package shim

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func spooled(t *testing.T, s *Spool) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() { b, _ := io.ReadAll(r); _ = r.Close(); got <- string(b) }()
	if err := s.Flush(int(w.Fd())); err != nil {
		t.Error(err)
	}
	_ = w.Close()
	return <-got
}

// What goes in comes out, whole and once, in memory and in a file.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, SpoolMemory - 1, SpoolMemory, SpoolMemory + 1, 3 * SpoolMemory} {
		s := NewSpool(dir)
		var want bytes.Buffer
		for want.Len() < size {
			part := make([]byte, min(1+r.IntN(chunk), size-want.Len()))
			for i := range part {
				part[i] = byte(r.Uint32())
			}
			want.Write(part)
			s.write(part)
		}
		if names, _ := os.ReadDir(dir); len(names) != 0 {
			t.Errorf("%d bytes leave %v in the directory", size, names)
		}
		if s.file != nil {
			if st, err := s.file.Stat(); err != nil || st.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", st.Mode(), err)
			}
		}
		if got := spooled(t, s); got != want.String() {
			t.Errorf("%d bytes came back as %d", size, len(got))
		}
		if got := spooled(t, s); got != "" {
			t.Errorf("%d bytes came twice", len(got))
		}
		if len(s.mem) > SpoolMemory {
			t.Errorf("%d bytes in memory", len(s.mem))
		}
		s.Drop()
		s.write([]byte("next run"))
		if got := spooled(t, s); got != "next run" {
			t.Errorf("after the run was dropped: %q", got)
		}
		s.Close()
	}
}

// A disk that takes nothing, or a document without end: nothing is lost, and
// the run cannot be done again.
func TestSpoolThatCannotKeep(t *testing.T) {
	s := NewSpool("/nonexistent")
	big := strings.Repeat("x", SpoolMemory)
	s.write([]byte(big))
	if !s.Kept() {
		t.Error("a megabyte is not kept")
	}
	s.write([]byte("rest"))
	s.write([]byte(" of it"))
	if s.Kept() {
		t.Error("it cannot be kept and is said to be")
	}
	if got := spooled(t, s); got != big+"rest of it" {
		t.Errorf("%d bytes came back", len(got))
	}
	s = NewSpool(t.TempDir())
	defer s.Close()
	s.size = SpoolMost
	s.write([]byte("too much"))
	if s.Kept() {
		t.Error("it keeps more than it may")
	}
}

// A stream whose spool has given up passes on what was kept first.
func TestStreamAfterItsSpool(t *testing.T) {
	s := NewSpool("/nonexistent")
	st := newStream(Stdout, -1, 1, false)
	st.spool = s
	for _, part := range []string{strings.Repeat("a", SpoolMemory), "b", "c"} {
		if !st.keep([]byte(part)) {
			t.Fatal("not kept")
		}
	}
	var out []byte
	for st.spool != nil {
		st.addTo(nil)
		out, st.pend = append(out, st.pend...), nil
	}
	if want := strings.Repeat("a", SpoolMemory) + "bc"; string(out) != want {
		t.Errorf("%d bytes", len(out))
	}
	if st.keep([]byte("d")) {
		t.Error("still kept")
	}
}

// played lets a feed run until the agent has had all, or has closed its end.
func played(t *testing.T, f *Feed, most int) string {
	t.Helper()
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	f.begin(p[1])
	defer f.end()
	got := make(chan string, 1)
	go func() {
		r := os.NewFile(uintptr(p[0]), "agent")
		var src io.Reader = r
		if most >= 0 {
			src = io.LimitReader(r, int64(most))
		}
		b, _ := io.ReadAll(src)
		_ = r.Close()
		got <- string(b)
	}()
	for fds := f.addTo(nil); f.at >= 0; fds = f.addTo(nil) {
		if _, err := poll(fds, -1); err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		f.move(fds)
	}
	return <-got
}

func piped(t *testing.T, data []byte) *Feed {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	go func() { _, _ = w.Write(data); _ = w.Close() }()
	return NewFeed(int(r.Fd()))
}

func TestFeedAgain(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcde\n"), 50_000)
	f := piped(t, data)
	for range 3 {
		if got := played(t, f, -1); got != string(data) {
			t.Errorf("%d bytes of %d", len(got), len(data))
		}
	}
	f.Skip(true)
	if got := played(t, f, -1); got != "" {
		t.Errorf("%d bytes for a session that has them", len(got))
	}
	f.Skip(false)
	if got := played(t, f, -1); got != string(data) || !f.Kept() {
		t.Errorf("%d bytes of %d, kept %v", len(got), len(data), f.Kept())
	}
}

// An agent that stops reading gets the whole input in its next run all the same.
func TestFeedOfAnAgentThatStopsReading(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 1<<20)
	f := piped(t, data)
	if got := played(t, f, 100); len(got) != 100 {
		t.Errorf("%d bytes", len(got))
	}
	if got := played(t, f, -1); got != string(data) {
		t.Errorf("%d bytes of %d", len(got), len(data))
	}
}

// More than can be kept arrives whole, once.
func TestFeedTooLarge(t *testing.T) {
	data := bytes.Repeat([]byte("y"), FeedMost+1)
	f := piped(t, data)
	if got := played(t, f, -1); got != string(data) || f.Kept() {
		t.Errorf("%d bytes of %d, kept %v", len(got), len(data), f.Kept())
	}
	if f.kept != nil {
		t.Error("it is kept in part")
	}
}
