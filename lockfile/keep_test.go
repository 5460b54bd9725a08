package lockfile

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestSalt(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		d := open(t, place)
		wg.Go(func() {
			salt, err := d.Salt()
			if err != nil || len(salt) != 32 {
				t.Errorf("%x, %v", salt, err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[string(salt)] = true
		})
	}
	wg.Wait()
	if len(seen) != 1 {
		t.Errorf("%d salts in one installation", len(seen))
	}
	d := openWith(t, place, Options{Rand: bytes.NewReader(make([]byte, 100))}, SetAside)
	write(t, filepath.Join(place, saltName), `{"schema":1,"salt":"00"}`, 0o600)
	salt, err := d.Salt()
	if err != nil || !bytes.Equal(salt, make([]byte, 32)) {
		t.Errorf("after a bad file: %x, %v", salt, err)
	}
	aside(t, place, saltName)
	if info, err := os.Stat(filepath.Join(place, saltName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	poor := openWith(t, filepath.Join(t.TempDir(), "state"), Options{Rand: bytes.NewReader(nil)})
	if salt, err := poor.Salt(); err == nil {
		t.Errorf("a salt without randomness: %x", salt)
	}
}

func TestCache(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	var got map[string]string
	if err := d.ReadCache("versions", &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	want := map[string]string{"/usr/bin/x": "1.2 <&>"}
	if err := d.WriteCache("versions", want); err != nil {
		t.Fatal(err)
	}
	if err := d.ReadCache("versions", &got); err != nil || got["/usr/bin/x"] != "1.2 <&>" {
		t.Errorf("%v, %v", got, err)
	}
	if err := d.WriteCache("../../x", 1); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(d.Path(), cacheRoom, "%2E.%2F..%2Fx.json")); err != nil {
		t.Error(err)
	}
	if err := d.WriteCache("big", strings.Repeat("x", MaxCache)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("big: %v", err)
	}
	write(t, filepath.Join(d.Path(), cacheRoom, "versions.json"), "{", 0o600)
	if err := d.ReadCache("versions", &got); err == nil {
		t.Error("a damaged cache was read")
	}
}

func TestLogs(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	s1, err := d.Lease(Session{ID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	s2, err := d.Lease(Session{ID: "s2"})
	if err != nil {
		t.Fatal(err)
	}
	var logs []*Log
	for _, s := range []string{"s1", "s2", "s2", "dead"} {
		l, err := d.NewLog(s, fmt.Sprintf("gemini/%d.log", len(logs)))
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
		if info, err := os.Stat(l.Path()); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	there := func() (s string) {
		for _, l := range logs {
			if _, err := os.Stat(l.Path()); err == nil {
				s += "x"
			} else {
				s += "-"
			}
		}
		return s
	}
	if trimmed, err := logs[0].Trim(); trimmed || err != nil {
		t.Errorf("an empty log: %v, %v", trimmed, err)
	}
	write(t, logs[0].Path(), strings.Repeat("prompt\n", MaxLog/7+1000), 0o600)
	if trimmed, err := logs[0].Trim(); !trimmed || err != nil {
		t.Errorf("a full log: %v, %v", trimmed, err)
	}
	if info, err := os.Stat(logs[0].Path()); err != nil || info.Size() != 0 {
		t.Errorf("after Trim: %v, %v", info, err)
	}
	latest := filepath.Join(filepath.Dir(logs[0].Path()), latestName) // Claude Code makes it
	if err := os.Symlink(logs[0].Path(), latest); err != nil {
		t.Fatal(err)
	}
	if bad := Check(d.path, Options{}); len(bad) > 0 {
		t.Errorf("its link is no fault: %v", bad)
	}
	if err := s1.Close(); err != nil {
		t.Error(err)
	}
	if got := there(); got != "-xxx" {
		t.Errorf("after s1: %s", got)
	}
	if _, err := os.Lstat(latest); err == nil {
		t.Error("the link stays")
	}
	if err := logs[1].Close(); err != nil {
		t.Error(err)
	}
	if err := d.sweep(); err != nil {
		t.Error(err)
	}
	if got := there(); got != "--x-" {
		t.Errorf("after the sweep: %s", got)
	}
	if err := s2.Close(); err != nil {
		t.Error(err)
	}
	if got := there(); got != "----" {
		t.Errorf("after s2: %s", got)
	}
}

func TestCrashReports(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	resume := d.Still() // who panicked may hold the turn and the lock
	defer resume()
	for i := range keepCrashes + 5 {
		path, err := d.Crash([]byte(fmt.Sprintf("panic %d %s", i, strings.Repeat("x", maxCrash))))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || info.Size() > maxCrash {
			t.Errorf("%v, %v", info, err)
		}
	}
	files, err := os.ReadDir(filepath.Join(d.Path(), crashRoom))
	if err != nil || len(files) != keepCrashes {
		t.Errorf("%d kept, %v", len(files), err)
	}
}

// TestPrivate: every byte that is written lies in a file of ours, 0600, whatever
// the umask of the others is.
func TestPrivate(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	if _, err := scenario(place, func(int, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, place)
}

// The salt is read without the JSON decoder, and as the decoder reads it.
func TestSaltAsWritten(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	salt, err := d.Salt()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(d.Path(), saltName))
	if err != nil {
		t.Fatal(err)
	}
	quick, ok := saltAsWritten(data)
	var decoded saltFile
	if err := decodeInto(data, &decoded); err != nil || !ok || quick != decoded || hex.EncodeToString(salt) != quick.Salt {
		t.Errorf("%q: %v %v, decoded %v, %v", data, quick, ok, decoded, err)
	}
	for _, other := range []string{`{"schema":1,"salt":"00"}` + "\n", `{"schema":2,` + string(data[12:]), " " + string(data)} {
		if _, ok := saltAsWritten([]byte(other)); ok {
			t.Errorf("%q passes for ours", other)
		}
	}
}
