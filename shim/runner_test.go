//go:build linux

package shim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"qshim/detect"
	"qshim/detect/screen"
	"qshim/lockfile"
	"qshim/shim/agentlog"
	"qshim/shim/term"
)

// newTestRunner is a runner without a session: what needs none.
func newTestRunner(t *testing.T) (*runner, *faceBench) {
	t.Helper()
	f := newFaceBench(t)
	r := newRunner(Config{Now: time.Now})
	r.watch, r.face, r.gov = f.watch, f.screenFace, newGovBench(t).governor
	return r, f
}

// The agent's debug log holds prompts and grows for days: it is cut, and not
// looked at for every line.
func TestDebugLogIsTrimmed(t *testing.T) {
	_, store := newDirStore(t)
	lease, err := store.Lease(lockfile.Session{PID: os.Getpid(), Agent: "gemini", State: lockfile.Idle})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	log, err := store.NewLog(lease.ID(), "gemini")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log.Path(), bytes.Repeat([]byte("x"), lockfile.MaxLog+1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := newTestRunner(t)
	r.c.DebugLog = log
	line := bytes.Repeat([]byte("y"), trimEach/4)
	for i, want := range []bool{false, false, false, true} {
		r.log(t.Context(), agentlog.Item{Line: line, Source: agentlog.SourceDebug})
		if st, err := os.Stat(log.Path()); err != nil || (st.Size() == 0) != want {
			t.Fatalf("after %d lines: %v, %v", i+1, st, err)
		}
	}
}

func newDirStore(t *testing.T) (string, *lockfile.Dir) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	store, err := lockfile.Open(dir, lockfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return dir, store
}

// A panic in the watcher leaves it free: the session's hooks still need it.
func TestPanicInTheWatcherLeavesNoLock(t *testing.T) {
	r, _ := newTestRunner(t)
	func() {
		defer func() { _ = recover() }()
		r.see(t.Context(), func(*detect.Watcher) detect.Report { panic("a bug of ours") })
	}()
	if !r.watch.TryLock() {
		t.Error("the watcher is locked for ever")
	}
}

func TestNothingPendingNoTimer(t *testing.T) {
	r, f := newTestRunner(t)
	if d, any := r.untilWake(); any {
		t.Errorf("wakes in %v", d)
	}
	f.writes("\x1b[?1049h\x1b[2J")
	f.pausedNow()
	if d, any := r.untilWake(); !any || d > time.Second {
		t.Errorf("a countdown wakes in %v, %v", d, any)
	}
	f.over()
	r.gov.wake = time.Now().Add(-time.Hour)
	if d, any := r.untilWake(); !any || d < time.Millisecond {
		t.Errorf("what is overdue wakes in %v, %v", d, any)
	}
}

// A clock that is set back while siblings are suspended, or while this session
// is, delays neither the look after those whose shim was killed nor the end of
// the own pause (found by the night run: processes stayed stopped for an hour).
func TestClockSetBack(t *testing.T) {
	r, _ := newTestRunner(t)
	store := r.gov.store.(*memStore)
	var off time.Duration
	r.c.Now = func() time.Time { return time.Now().Round(0).Add(off) }
	r.gov.now = r.c.Now
	look := func() {
		t.Helper()
		if d, any := r.untilWake(); !any || d > careEvery {
			t.Fatalf("set by %v: looks again in %v, %v", off, d, any)
		}
		r.tick(t.Context())
	}
	leave := func(id string, alive bool) {
		store.mu.Lock()
		defer store.mu.Unlock()
		store.l.Sessions[id] = lockfile.Session{ID: id, Limiters: []string{testLimiter}, State: lockfile.Suspended, Alive: alive, Stopped: []lockfile.Stopped{{PID: 4711}}}
	}
	leave("first", false)
	leave("second", true)
	r.gov.decide(t.Context())
	if got := fmt.Sprint(store.j.take()); got != "[recover first]" {
		t.Fatal(got)
	}
	for i, by := range []time.Duration{-time.Hour, -365 * 24 * time.Hour} {
		look()
		off += by
		leave("second", false) // killed in the same instant
		leave("third", true)
		look()
		look()
		if got := fmt.Sprint(store.j.take()); got != "[recover second]" {
			t.Errorf("step %d back: %s", i, got)
		}
		leave("second", true)
		r.gov.decide(t.Context())
	}
	// With nobody to look after, what this session waits for itself.
	store.mu.Lock()
	clear(store.l.Sessions)
	store.mu.Unlock()
	r.gov.care, r.gov.wake = time.Time{}, r.c.Now().Add(careEvery)
	look()
	off -= time.Hour
	look()
}

func TestOneKeyIsAnOrderManyAreNot(t *testing.T) {
	for in, want := range map[string][]Key{
		"r":                   {KeyRun},
		"R":                   {KeyRun},
		"q":                   {KeyQuit},
		"y":                   {KeyYes},
		"\x03":                {KeyInterrupt},
		"\x1b[99;5u":          {KeyInterrupt},
		"run":                 {KeyOther, KeyOther, KeyOther},
		"q\r":                 {KeyOther, KeyOther},
		"r\x1b[I":             {KeyRun}, // a focus report is no key
		"\x03\x03":            {KeyInterrupt, KeyInterrupt},
		"\x1b[<0;1;1M":        nil,
		"\x1b[200~r\x1b[201~": {KeyOther},
	} {
		var k term.Keys
		keys := k.Decode([]byte(in))
		var got []Key
		for _, key := range keys {
			if key.Kind != term.Report && key.Kind != term.Cursor {
				got = append(got, pauseKey(key, pressed(keys) == 1))
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

// A spinner and a clock are quiet; an answer that streams is not.
func TestCalm(t *testing.T) {
	s := screen.New(40, 10)
	now := time.Unix(1_800_000_000, 0)
	var c calm
	step := func(b string) bool {
		_, _ = s.Write([]byte(b))
		now = now.Add(100 * time.Millisecond)
		return c.broken(s, now)
	}
	step("\x1b[2J\x1b[H")
	for i := range 100 {
		if step(fmt.Sprintf("\x1b[8;1H%c Working… %d\x1b[10;1Htokens %d", '⠁'+rune(i%8), i, i)) {
			t.Fatalf("frame %d of a spinner broke the calm", i)
		}
	}
	broken := 0
	for i := range 20 {
		if step(fmt.Sprintf("\x1b[10;1H\r\nline %d of an answer", i)) {
			broken++
		}
	}
	if broken == 0 {
		t.Error("a streamed answer did not break the calm")
	}
	s.Resize(40, 20)
	step("x")
	if step("y") {
		t.Error("a resize alone broke the calm")
	}
}
