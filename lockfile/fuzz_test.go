package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// FuzzLimiter: what is accepted comes back the same when it is written again.
func FuzzLimiter(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := decodeLimiter("a/b", data)
		if err != nil {
			named(t, err)
			return
		}
		again, err := encode(l)
		if err != nil {
			t.Fatalf("accepted but not writable: %v", err)
		}
		l2, err := decodeLimiter("a/b", again)
		if err != nil || !cmp.Equal(l, l2) {
			t.Errorf("%v\n%s", err, cmp.Diff(l, l2))
		}
		printable(t, again)
	})
}

// FuzzSession is the same for sessions.
func FuzzSession(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeSession("a/b", data)
		if err != nil {
			named(t, err)
			return
		}
		again, err := encode(s)
		if err != nil {
			t.Fatalf("accepted but not writable: %v", err)
		}
		s2, err := decodeSession("a/b", again)
		if err != nil || !cmp.Equal(s, s2) {
			t.Errorf("%v\n%s", err, cmp.Diff(s, s2))
		}
		printable(t, again)
	})
}

var seeds = []string{
	`{"schema":1,"id":"a/b"}`,
	`{"schema":1,"id":"a/b","label":"x\u009b\u007f\u001b[2J","holds":[{"class":"rate","since":"2026-01-01T00:00:00Z","why":"` + "\xc2\x9b\x7f" + `"}],"probe":{"session":"s"},"updated":"2026-01-01T00:00:00+23:59"}`,
	`{"schema":1,"id":"a/b","pid":1,"limiters":["a/b"],"stopped":[{"pid":1,"start":18446744073709551615,"group":true}],"run_anyway":{"x":"2026-01-01T00:00:00Z"}}`,
	`{"schema":2,"id":"a/b"}`, `{"schema":1,`, `{"schema":-1}`, `{"schema":1e300}`, `[]`, `null`, ``, "\x00",
	strings.Repeat(`{"schema":`, 1000), strings.Repeat("[", 100000),
}

// named: every refusal is one that callers tell apart.
func named(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, errGarbage) && !errors.Is(err, ErrSchema) {
		t.Errorf("an error without a name: %v", err)
	}
}

// printable: no control byte reaches a file, so `cat` is safe.
func printable(t *testing.T, data []byte) {
	t.Helper()
	if i := bytes.IndexFunc(bytes.TrimSuffix(data, []byte("\n")), func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0
	}); i >= 0 {
		t.Errorf("control byte at %d of %q", i, data)
	}
}

// FuzzEvents reads a log of any content and compares with the simplest reader.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("{\"schema\":1,\"log\":\"qshim events\"}\n{\"at\":\"2026-01-01T00:00:00Z\",\"event\":\"hold\"}\n"), uint32(3))
	f.Add([]byte("{\"event\":\"a\"}\n\n\x00\n{\"event\":\"b\"}\n{\"event\":\"torn"), uint32(0))
	f.Add(append(bytes.Repeat([]byte("x"), 3*maxLine), "\n{\"event\":\"after\"}\n"...), uint32(maxLine))
	f.Add([]byte(`{"event":"`+strings.Repeat("y", maxLine-12)+"\"}\n"), uint32(1))
	f.Fuzz(func(t *testing.T, data []byte, cut uint32) {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, data[:min(int(cut), len(data))], 0o600); err != nil {
			t.Fatal(err)
		}
		fd, err := openAt(here, path, forTail)
		if err != nil {
			t.Fatal(err)
		}
		defer closeFD(fd)
		c := &logReader{fd: fd}
		var got []string
		take := func(e Event, _ error) bool { got = append(got, e.Event); return true }
		if _, err := c.lines(take); err != nil { // a part of it,
			t.Fatal(err)
		}
		if _, err := descriptor(fd).Write(data[min(int(cut), len(data)):]); err != nil {
			t.Fatal(err)
		}
		if _, err := c.lines(take); err != nil { // then the rest
			t.Fatal(err)
		}
		var want []string
		whole := bytes.Split(data, []byte("\n"))
		for _, line := range whole[:len(whole)-1] {
			var e Event
			if len(line) <= maxLine && json.Unmarshal(line, &e) == nil && e.Event != "" {
				want = append(want, e.Event)
			}
		}
		if !cmp.Equal(got, want) {
			t.Error(cmp.Diff(got, want))
		}
		end, err := wholeLines(fd, int64(len(data)))
		if err != nil || end != int64(bytes.LastIndexByte(data, '\n')+1) {
			t.Errorf("whole lines end at %d, %v", end, err)
		}
	})
}

// FuzzIntent: no content makes a change outside the two rooms, and settling it
// never breaks the store.
func FuzzIntent(f *testing.F) {
	f.Add([]byte(`{"schema":1,"files":[{"path":"limiters/a.json","data":"{\"schema\":1,\"id\":\"a\"}"},{"path":"sessions/s.json","gone":true}],"events":{"inode":1,"at":0,"lines":"x\n"}}`))
	f.Add([]byte(`{"schema":1,"files":[{"path":"limiters/../../x.json","gone":true}]}`))
	f.Add([]byte(`{"schema":1,"files":[{"path":"limiters/%2E%2E.json","data":""}]}`))
	f.Add([]byte(`{"schema":1,"events":{"inode":1,"at":9223372036854775807,"lines":"\n"}}`))
	f.Add([]byte(`-"schema":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		place := filepath.Join(t.TempDir(), "state")
		d, err := Open(place, Options{Now: func() time.Time { return time.Unix(0, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		if err := os.WriteFile(filepath.Join(place, intentName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Read(); err != nil && !errors.Is(err, ErrSchema) {
			t.Errorf("Read: %v", err)
		}
		if _, err := d.Update(t.Context(), step); err != nil && !errors.Is(err, ErrSchema) {
			t.Errorf("Update: %v", err)
		}
		names, err := os.ReadDir(filepath.Dir(place))
		if err != nil || len(names) != 1 {
			t.Errorf("outside: %v, %v", names, err)
		}
		for _, room := range []string{limiterRoom, sessionRoom} {
			files, err := os.ReadDir(filepath.Join(place, room))
			if err != nil {
				t.Error(err)
			}
			for _, e := range files {
				if _, ok := fileToID(e.Name(), jsonExt); !ok && !strings.Contains(e.Name(), badInfix) {
					t.Errorf("%s/%s", room, e.Name())
				}
			}
		}
	})
}

// FuzzName: names are reversible, safe, and one a name.
func FuzzName(f *testing.F) {
	for _, s := range []string{"anthropic/3f9a00112233/proj.x#opus", "..", ".", "", "a%2Fb", "A", "ü", "\x00", strings.Repeat("x", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if back, ok := unescape(id); ok { // taken as a file name
			if again, err := escape(back); err != nil || again != id {
				t.Errorf("name %q: id %q: name %q, %v", id, back, again, err)
			}
		}
		name, err := escape(id)
		if err != nil {
			if !errors.Is(err, ErrName) {
				t.Error(err)
			}
			return
		}
		if back, ok := unescape(name); !ok || back != id {
			t.Errorf("%q: %q: %q, %v", id, name, back, ok)
		}
		if name != filepath.Base(name) || strings.HasPrefix(name, ".") || len(name) > maxName || strings.ToLower(name) != name && !strings.Contains(name, "%") || strings.Contains(name, logJoin) {
			t.Errorf("%q: unsafe name %q", id, name)
		}
	})
}

// FuzzSmall: the other files that are parsed.
func FuzzSmall(f *testing.F) {
	f.Add([]byte(`{"schema":1,"writes":"00000000000000000007"}`))
	f.Add([]byte(`{"schema":1,"salt":"` + strings.Repeat("0f", 32) + `"}`))
	f.Add([]byte(`{"schema":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := decodeStamp(data); err != nil && !errors.Is(err, ErrSchema) {
			t.Errorf("stamp: %v", err)
		}
		if writes, ok := ownStamp(data); ok {
			if n, err := anyStamp(data); n != writes || err != nil {
				t.Errorf("stamp read as %d, and as JSON %d, %v", writes, n, err)
			}
		}
		if salt, err := decodeSalt(data); err != nil {
			named(t, err)
		} else if len(salt) != saltSize {
			t.Errorf("salt of %d bytes", len(salt))
		}
	})
}
