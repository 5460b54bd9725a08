//go:build linux

package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stateFiles are those that a launch reads, with what each is for.
var stateFiles = []string{"limiters/anthropic%2Fsoak.json", "sessions/aaaaaaaa.json", "lock", "intent", "salt", "events.jsonl"}

// damage is one way in which a file can be wrong.
type damage struct {
	name string
	do   func(t *testing.T, path string)
	root bool // needs to be root
}

var damages = []damage{
	{"truncated", func(t *testing.T, p string) { write(t, p, `{"schema":1,"id":"an`, 0o600) }, false},
	{"empty", func(t *testing.T, p string) { write(t, p, "", 0o600) }, false},
	{"garbage", func(t *testing.T, p string) { write(t, p, "\x00\x1b]0;pwned\x07\xff\xfe garbage\n", 0o600) }, false},
	{"older schema", func(t *testing.T, p string) { write(t, p, "{\"schema\":0,\"id\":\"x\"}\n", 0o600) }, false},
	{"newer schema", func(t *testing.T, p string) {
		write(t, p, "{\"schema\":2,\"id\":\"x\",\"writes\":\"00000000000000000009\",\"salt\":\"\",\"log\":\"\"}\n", 0o600)
	}, false},
	{"another's", func(t *testing.T, p string) {
		if err := os.Chown(p, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}, true},
	{"writable by all", func(t *testing.T, p string) {
		if err := os.Chmod(p, 0o666); err != nil {
			t.Fatal(err)
		}
	}, false},
	{"mode 000", func(t *testing.T, p string) {
		if err := os.Chmod(p, 0); err != nil {
			t.Fatal(err)
		}
	}, false},
	{"a link", func(t *testing.T, p string) {
		target := filepath.Join(t.TempDir(), "target")
		write(t, target, "not ours", 0o600)
		must(t, os.Remove(p), os.Symlink(target, p))
		t.Cleanup(func() {
			if b, err := os.ReadFile(target); err != nil || string(b) != "not ours" {
				t.Errorf("what the link leads to was changed: %q %v", b, err)
			}
		})
	}, false},
	{"a FIFO", func(t *testing.T, p string) { must(t, os.Remove(p), unix.Mkfifo(p, 0o600)) }, false},
	{"a directory", func(t *testing.T, p string) { must(t, os.Remove(p), os.Mkdir(p, 0o700)) }, false},
	{"1 GB", func(t *testing.T, p string) { must(t, os.Truncate(p, 1<<30)) }, false},
}

// means is what the user of the next session reads, "" nothing, and whether the
// file is set aside.
func (d damage) means(name string) (words string, aside bool) {
	notFile := d.name == "a link" || d.name == "a FIFO" || d.name == "a directory"
	switch {
	case d.name == "newer schema" && strings.HasPrefix(name, "sessions/"):
		return "", false // it is dead: who wrote it takes it away
	case d.name == "newer schema":
		return "newer qshim", false
	case name == "lock" && notFile:
		return "without coordination", false // no launch may mend it: two could do so at once
	case name == "lock":
		return "", false
	case d.name == "mode 000" && os.Getuid() == 0:
		return "", false // root reads it all the same; see TestAsOrdinaryUser
	case d.name == "mode 000":
		return "was mended", false
	case d.name == "empty" && (name == "intent" || name == "events.jsonl"):
		return "", false // as if it were not there
	case d.name == "1 GB" && name == "events.jsonl":
		return "", false // it is rotated
	}
	return "it is kept as", true
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// seeded is a fleet whose state directory has every file.
func seeded(t *testing.T, qshim string) *fleet {
	t.Helper()
	f := newFleet(t, qshim, slowPolicy)
	s := f.start(stationOpt{}).ready()
	f.open()
	eventually(t, "the session", func() bool { return s.session(f.ledger()).State == "running" })
	s.tell('q')
	if c := s.shim.code(); c != 0 {
		t.Fatalf("code %d: %s", c, tail(s.output()))
	}
	s.close()
	for _, name := range stateFiles {
		path := filepath.Join(f.state, name)
		if _, err := os.Lstat(path); os.IsNotExist(err) && strings.HasPrefix(name, "sessions/") {
			write(t, path, `{"schema":1,"id":"aaaaaaaa","pid":1,"agent":"claude","limiters":["anthropic/soak"],"priority":"interactive","state":"idle","since":"2026-01-01T00:00:00Z","born":"2026-01-01T00:00:00Z"}`, 0o600)
		} else if os.IsNotExist(err) {
			write(t, path, "-", 0o600)
		}
	}
	return f
}

// said are qshim's own lines on a terminal.
func said(out string) (lines []string) {
	for _, l := range strings.FieldsFunc(out, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if _, words, ok := strings.Cut(l, "qshim: "); ok {
			lines = append(lines, "qshim: "+words)
		}
	}
	return lines
}

// session runs one session on a terminal to its end and returns what qshim said.
func (f *fleet) session(o stationOpt) []string {
	f.t.Helper()
	s := f.start(o).ready()
	s.tell('q')
	if c := s.shim.code(); c != 0 || s.pid() == 0 {
		f.t.Errorf("the agent did not run: code %d, %s", c, tail(s.output()))
	}
	select {
	case <-s.drained: // what was said last may still be on its way through the terminal
	case <-time.After(f.patience):
		f.t.Error("somebody has the terminal still")
	}
	s.close()
	out := s.output()
	if strings.Contains(out, "\x1b]0;pwned") {
		f.t.Error("a file's control bytes reached the terminal")
	}
	return said(out)
}

// TestDamagedFiles: every file of the state directory, damaged in every way.
// Whatever it is, the agent runs, its user is told at most once, nothing is
// deleted, and after `qshim doctor --repair` all is as before.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	for _, name := range stateFiles {
		for _, d := range damages {
			t.Run(strings.ReplaceAll(name, "/", "_")+" "+d.name, func(t *testing.T) {
				t.Parallel()
				if d.root && os.Getuid() != 0 {
					t.Skip("only root can give a file away")
				}
				f := seeded(t, plainQshim)
				path := filepath.Join(f.state, name)
				d.do(t, path)
				was, err := os.Lstat(path)
				must(t, err)
				first := f.session(stationOpt{})
				kept := ""
				if names, _ := filepath.Glob(path + ".bad-*"); len(names) > 0 {
					kept = filepath.Base(names[0])
				}
				second := f.session(stationOpt{})
				doctor := f.command("doctor", "--repair")
				third := f.session(stationOpt{})
				t.Logf("| %s | %s | %s | %v | %s |", name, d.name, short(first), kept != "", short(bads(doctor.out)))
				if len(first) > 1 || len(second) > 1 {
					t.Errorf("said more than once: %q, then %q", first, second)
				}
				words, aside := d.means(name)
				if (len(first) > 0) != (words != "") || len(first) > 0 && !strings.Contains(first[0], words) {
					t.Errorf("said %q, not %q", first, words)
				}
				if aside != (kept != "") {
					t.Errorf("set aside: %q", kept)
				} else if aside {
					is, err := os.Lstat(filepath.Join(filepath.Dir(path), kept))
					must(t, err)
					if !os.SameFile(was, is) || is.Size() != was.Size() {
						t.Errorf("what is set aside is another: %v, was %v", is.Mode(), was.Mode())
					}
					if !strings.Contains(strings.Join(bads(doctor.out), " "), kept) {
						t.Errorf("doctor does not name %s: %s", kept, doctor.out)
					}
				}
				if d.name != "newer schema" && len(third) > 0 {
					t.Errorf("after doctor --repair: %q", third)
				}
			})
		}
	}
}

func short(lines []string) string {
	if len(lines) == 0 {
		return "nothing"
	}
	s := strings.Join(lines, " / ")
	return s[:min(len(s), 260)]
}

// bads are a doctor's findings about the state directory.
func bads(out string) (lines []string) {
	for _, l := range strings.Split(out, "\n") {
		if strings.HasPrefix(l, "bad ") || strings.HasPrefix(l, "note") && strings.Contains(l, "/state") || strings.Contains(l, "repaired") {
			lines = append(lines, strings.Join(strings.Fields(l), " "))
		}
	}
	return lines
}

// TestBrokenDisks: errors of the disk itself, in the built binary at every step
// of a change, while a session comes, hits a limit and goes.
func TestBrokenDisks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, fault string }{
		{"full at every write", "full@write*"},
		{"full at every rename", "full@place*"},
		{"full when deciding", "full@decide intent"},
		{"full when clearing", "full@clear intent"},
		{"full for the event log", "full@append events"},
		{"full for a lease", "full@create lease"},
		{"full later on", "full@write*#4"},
		{"full everywhere", "full@*"},
		{"over quota", fmt.Sprintf("errno:%d@write*", unix.EDQUOT)},
		{"read-only", fmt.Sprintf("errno:%d@write*", unix.EROFS)},
		{"I/O errors", fmt.Sprintf("errno:%d@write*", unix.EIO)},
		{"no flock", fmt.Sprintf("errno:%d@flock", unix.EOPNOTSUPP)},
		{"no lock daemon", fmt.Sprintf("errno:%d@flock", unix.ENOLCK)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := seeded(t, faultyQshim)
			// A marker: such a launch is told to the ledger before its start. Else this
			// short play may be over before anything is written.
			s := f.start(stationOpt{env: []string{"QSHIM_FAULT=" + c.fault, "QSHIM_SESSION=gone"}}).ready()
			s.tell('f')
			eventually(t, "the row", func() bool { return s.shows("Request rejected") })
			s.tell('d')
			s.tell('q')
			if code := s.shim.code(); code != 0 || s.pid() == 0 {
				t.Errorf("the agent did not run: code %d, %s", code, tail(s.output()))
			}
			s.close()
			lines := said(s.output())
			doctor := run(t, append(f.env(f.state), "QSHIM_FAULT="+c.fault), nil, faultyQshim, "doctor")
			t.Logf("| %s | %s | %s |", c.name, short(lines), short(bads(doctor.out)))
			if len(lines) == 0 && !strings.Contains(c.name, "clearing") || len(lines) > 1 {
				t.Errorf("said: %q", lines)
			}
			if after := f.session(stationOpt{}); len(after) > 0 {
				t.Errorf("when the disk works again: %q", after)
			}
			f.clean()
		})
	}
}

// TestDamagedMeanwhile: a file that goes bad while agents have their screens is
// told of once, after the agent's end: not over what it shows.
func TestDamagedMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plainQshim, slowPolicy)
	all := []*station{f.start(stationOpt{}).ready(), f.start(stationOpt{}).ready()}
	f.open()
	for _, s := range all {
		eventually(t, "at work", func() bool { return s.session(f.ledger()).State == "running" })
	}
	path := filepath.Join(f.state, "limiters", "anthropic%2Fsoak.json")
	write(t, path, "garbage", 0o600)
	all[0].tell('f')
	eventually(t, "it is set aside", func() bool {
		names, _ := filepath.Glob(path + ".bad-*")
		return len(names) == 1
	})
	eventually(t, "the sibling is stopped all the same", func() bool { return all[1].session(f.ledger()).State == "suspended" && stopped(all[1].pid()) })
	for _, s := range all {
		if s.shows("qshim: ") && !strings.Contains(s.output(), "suspended") || s.shows("kept as") {
			t.Errorf("over the agent's screen: %q", said(s.output()))
		}
	}
	f.command("continue", "--all")
	told := 0
	for _, s := range all {
		eventually(t, "it runs", func() bool { return !stopped(s.pid()) })
		s.tell('q')
		if c := s.over(); c != 0 {
			t.Errorf("code %d", c)
		}
		<-s.drained
		s.close()
		told += strings.Count(s.output(), "kept as")
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
