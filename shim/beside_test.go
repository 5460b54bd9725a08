//go:build linux

package shim

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"qshim/detect/finding"
)

// A file is read from where the agent begins, follows what happens to it, and
// is never read on for long.
func TestBesideReads(t *testing.T) {
	old := "ERROR: old\n"
	long := strings.Repeat("x", besideMost)
	for _, c := range []struct {
		name string
		flag int
		do   func(f *os.File) error
		want string
		skip bool
	}{
		{"what is there is old", os.O_APPEND, func(f *os.File) error { return nil }, "", false},
		{"appended", os.O_APPEND, func(f *os.File) error { _, err := f.WriteString("new\n"); return err }, "new\n", false},
		{"from its own place", 0, func(f *os.File) error { _, err := f.WriteString("new"); return err }, "newOR: old\n", false},
		{"cut and grown", os.O_APPEND, func(f *os.File) error {
			if err := f.Truncate(0); err != nil {
				return err
			}
			_, err := f.WriteString("n\n")
			return err
		}, "n\n", true},
		{"moved away", os.O_APPEND, func(f *os.File) error {
			if err := os.Rename(f.Name(), f.Name()+".1"); err != nil {
				return err
			}
			_, err := f.WriteString("new\n")
			return err
		}, "new\n", false},
		{"deleted", os.O_APPEND, func(f *os.File) error {
			if err := os.Remove(f.Name()); err != nil {
				return err
			}
			_, err := f.WriteString("new\n")
			return err
		}, "new\n", false},
		{"far ahead", os.O_APPEND, func(f *os.File) error { _, err := f.WriteString(long + "\nend\n"); return err }, long[:tapTail-5] + "\nend\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_WRONLY|c.flag, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			b, ok := readBeside(int(f.Fd()))
			if !ok {
				t.Fatal("not read")
			}
			defer os.NewFile(uintptr(b.fd), "own").Close()
			if err := c.do(f); err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for buf := make([]byte, chunk); ; {
				n := b.read(buf)
				if n == 0 {
					break
				}
				got.Write(buf[:n])
			}
			if got.String() != c.want || b.skipped() != c.skip || b.skipped() {
				t.Errorf("%d bytes %.40q, want %d bytes %.40q; left out: want %v once", got.Len(), got.String(), len(c.want), c.want, c.skip)
			}
		})
	}
}

func TestBesideRefuses(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, f := range []*os.File{w, null} {
		if _, ok := readBeside(int(f.Fd())); ok {
			t.Errorf("%s is read", f.Name())
		}
	}
	if _, ok := readBeside(1 << 20); ok {
		t.Error("a closed descriptor is read")
	}
}

// openOut opens files as a shell's redirection does.
func openOut(t *testing.T, path string, flag int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// The agent has the caller's own files, with or without a terminal, and the
// watcher gets what it writes there, the last word included.
func TestBesideAgent(t *testing.T) {
	script := `printf 'o1\n'; printf 'e1\n' >&2; read x; printf 'o2\n'; printf 'e2' >&2; stat -L -c %F /proc/self/fd/2 >&2`
	for _, c := range []struct {
		name string
		fds  [3]bool // files
		one  bool    // both are the same
		want map[Kind]string
	}{
		{"on a terminal", [3]bool{2: true}, false, map[Kind]string{Stderr: "e1\ne2regular file\n"}},
		{"both", [3]bool{1: true, 2: true}, false, map[Kind]string{Stdout: "o1\no2\n", Stderr: "e1\ne2regular file\n"}},
		{"in one", [3]bool{1: true, 2: true}, true, map[Kind]string{Stdout: "o1\ne1\no2\ne2regular file\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var files [3]*os.File
			for fd := 1; fd <= 2; fd++ {
				if c.fds[fd] {
					files[fd] = openOut(t, filepath.Join(dir, fmt.Sprint(fd)), os.O_TRUNC)
				}
			}
			if c.one {
				files[2] = files[1]
			}
			d := newDesk(t, deskOpt{files: files, ctl: true}, self(t), wrapArg, "/bin/sh", "-c", script)
			got := map[Kind]string{}
			hear := func(until func() bool) {
				for !until() {
					var k Kind
					var s string
					_, _ = fmt.Sscanf(d.ctl.expect("stream"), "stream%d %s", &k, &s)
					b, err := hex.DecodeString(s)
					if err != nil {
						t.Fatal(err)
					}
					got[k] += string(b)
				}
			}
			hear(func() bool { // while it runs
				all := got[Stdout] + got[Stderr]
				return strings.Contains(all, "e1\n") && (!c.fds[1] || strings.Contains(all, "o1\n"))
			})
			d.send("\r")
			hear(func() bool { return len(got[Stdout]) == len(c.want[Stdout]) && len(got[Stderr]) == len(c.want[Stderr]) })
			d.ctl.expect("exited 0")
			for k, want := range c.want {
				b, err := os.ReadFile(filepath.Join(dir, map[Kind]string{Stdout: "1", Stderr: "2"}[k]))
				if got[k] != want || err != nil || string(b) != want {
					t.Errorf("kind %d: heard %q, the file has %q (%v), want %q", k, got[k], b, err, want)
				}
			}
		})
	}
}

// A limit in a file counts for the session whose file it is; where several
// sessions write into one, nobody knows whose it is.
func TestBesideFinds(t *testing.T) {
	limit := `echo 'ERROR: You’ve hit your usage limit. Try again at 5:47 PM.' >&2; exit 1`
	dir, store := newDirStore(t)
	env := []string{stateEnv + "=" + dir, agentEnv + "=codex"}
	run := func(err *os.File) int {
		d := newDesk(t, deskOpt{files: [3]*os.File{2: err}, env: env}, self(t), sessionArg, "/bin/sh", "-c", limit)
		_ = d.all()
		d.code()
		n := 0
		for e, err := range store.Events(context.Background(), time.Time{}, false) {
			if err == nil && e.Event == "finding" && e.Class == finding.Window {
				n++
			}
		}
		return n
	}
	alone := filepath.Join(t.TempDir(), "alone")
	if n := run(openOut(t, alone, os.O_APPEND)); n != 1 {
		t.Errorf("%d findings, want the one", n)
	}
	both := openOut(t, filepath.Join(t.TempDir(), "both"), os.O_APPEND)
	other := newDesk(t, deskOpt{files: [3]*os.File{2: both}, env: env}, self(t), sessionArg, "/bin/sh", "-c", "echo READY; read x")
	other.expect("READY")
	if n := run(both); n != 1 {
		t.Errorf("%d findings, want none more", n)
	}
	other.send("\r")
	other.code()
	if n := run(both); n != 2 {
		t.Errorf("%d findings, want another one", n)
	}
}
