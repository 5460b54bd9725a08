package agentlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func fileBench(t *testing.T) (*bench, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log", "agent.log")
	return newBench(t, Spec{Kind: File, Files: []string{path}}), path
}

func TestOnlyWhatIsNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	write(t, path, "old\nhalf an old")
	b := newBench(t, Spec{Kind: File, Files: []string{path}})
	b.expect("")
	write(t, path, " line\nnew\nhalf")
	b.expect("new") // the line that began before the launch is old
	write(t, path, " done\n")
	b.expect("half done")
	b.expect("")
}

func TestAppearsLate(t *testing.T) {
	b, path := fileBench(t)
	b.expect("")
	write(t, path, "first\n")
	b.expect("first")
}

func TestRotation(t *testing.T) {
	b, path := fileBench(t)
	write(t, path, "one\n")
	b.expect("one")
	write(t, path, "two\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write(t, path+".1", "three\nlost")
	b.expect("two three") // moved away, still written
	write(t, path, "four\n")
	b.expect("four")
	write(t, path, "five\n")
	if err := os.Rename(path, path+".2"); err != nil {
		t.Fatal(err)
	}
	write(t, path, "six\n")
	b.expect("five six") // nothing is lost between the two
}

func TestTruncation(t *testing.T) {
	b, path := fileBench(t)
	write(t, path, "one\nhalf")
	b.expect("one")
	set(t, path, "2\n")
	b.expect("2")
	write(t, path, "3\n")
	b.expect("3")
}

func TestDeletedAndMadeAgain(t *testing.T) {
	b, path := fileBench(t)
	write(t, path, "one\n")
	b.expect("one")
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	b.expect("")
	write(t, path, "two\n")
	b.expect("two")
}

func TestRefusesWhatIsNoFile(t *testing.T) {
	b, path := fileBench(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	b.expect("") // and does not hang
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	b.expect("")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret\n")
	if err := os.Symlink(secret, path); err != nil {
		t.Fatal(err)
	}
	b.expect("") // leads outside
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, "a file\n")
	b.expect("a file")
}

// TestLinkThatTakesThePath replaces a file that is followed by a link to the
// outside.
func TestLinkThatTakesThePath(t *testing.T) {
	b, path := fileBench(t)
	write(t, path, "one\n")
	b.expect("one")
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, path); err != nil {
		t.Fatal(err)
	}
	b.expect("")
	b.expect("")
}

func TestHomeMayBeALink(t *testing.T) {
	dotfiles := t.TempDir()
	home := filepath.Join(t.TempDir(), ".codex")
	if err := os.Symlink(dotfiles, home); err != nil {
		t.Fatal(err)
	}
	rollout := "sessions/2026/11/29/rollout-2026-11-29T16-45-01-01a228c9-02fa-74b2-9187-39c8e4823bd5.jsonl"
	real, err := filepath.EvalSymlinks(dotfiles)
	if err != nil {
		t.Fatal(err)
	}
	procs := &fakeProcs{open: map[int][]string{7: {filepath.Join(real, rollout)}}}
	b := newBench(t, Spec{Kind: CodexRollout, Home: home, PID: 7, Procs: procs})
	write(t, filepath.Join(dotfiles, rollout), "one\n")
	b.expect("one")
}

func TestLineTooLong(t *testing.T) {
	b, path := fileBench(t)
	long := strings.Repeat("x", MaxLine+1)
	write(t, path, "a\n"+long+"\nb\n"+strings.Repeat("y", MaxLine)+"\n"+long)
	b.step()
	if len(b.items) != 4 || string(b.items[1].Line) != "b" || len(b.items[2].Line) != MaxLine || b.items[3].Skipped != 1 {
		t.Fatalf("%d items: %.20q", len(b.items), words(b.items))
	}
	f := b.tail.files[path]
	if len(f.part) != 0 {
		t.Errorf("%d bytes of a line too long are kept", len(f.part))
	}
	for range 20 {
		write(t, path, long)
		b.expect("")
	}
	write(t, path, "\nc\n")
	b.expect("c <skipped>")
}

// TestCatchUp follows a large file of which nobody knows how much is old.
func TestCatchUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 40); err != nil { // sparse
		t.Skip("no sparse files here: ", err)
	}
	f.Close()
	write(t, path, "\nnew\n")
	b := newBench(t, Spec{Kind: File, Files: []string{filepath.Join(t.TempDir(), "other")}})
	b.tail.add(SourceFile, filepath.Dir(path), filepath.Base(path), 0)
	began := time.Now()
	b.expect("new")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("read for %v", took)
	}
}

// TestSplits writes lines in arbitrary pieces: what comes out does not depend
// on where they are cut.
func TestSplits(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(dir, "split", time.Duration(n).String())
		b := newBench(t, Spec{Kind: File, Files: []string{path}})
		text := strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-zé"{}\r ]{0,12}\n`), 0, 8).Draw(rt, "lines"), "")
		var want, got []string
		for _, l := range strings.Split(text, "\n") {
			if l = strings.TrimSuffix(l, "\r"); strings.TrimSpace(l) != "" {
				want = append(want, l)
			}
		}
		for rest := text; rest != ""; {
			cut := rapid.IntRange(1, len(rest)).Draw(rt, "cut")
			write(t, path, rest[:cut])
			rest = rest[cut:]
			b.step()
			for _, i := range b.items {
				got = append(got, string(i.Line))
			}
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			rt.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestOldRecords(t *testing.T) {
	for line, want := range map[string]bool{
		`{"timestamp":"2026-11-29T16:44:50.000Z","type":"x"}`:                                  true,
		`{"timestamp":"2026-11-29T16:44:59.000Z"}`:                                             false, // clocks differ
		`{"timestamp":"2026-11-29T16:45:01.5Z"}`:                                               false,
		`{"snapshot":{"timestamp":"2026-11-28T00:00:00Z"},"timestamp":"2026-11-29T17:00:00Z"}`: false,
		`{"timestamp":"2026-11-28T00:00:00Z","m":{"timestamp":"2026-11-27T00:00:00Z"}}`:        true,
		// debug logs: the record's own time, not those that it quotes
		`2026-11-29T16:44:50.000Z [ERROR] API error (attempt 1/11): 429 429 {}`:           true,
		`2026-11-29T16:45:01.341Z [ERROR] API error (attempt 1/11): 429 429 {}`:           false,
		`2026-11-29T16:45:01.341Z [DEBUG] hook said {"timestamp":"2026-11-28T00:00:00Z"}`: false,
		`2026-11-29T16:44:50.000Z [DEBUG] hook said {"timestamp":"2026-11-29T17:00:00Z"}`: true,
		`2026-99-29T16:44:50.000Z [ERROR] API error (attempt 1/11)`:                       false,
		`{"timestamp":"soon"}`:           false,
		`{"timestamp":"`:                 false,
		`{"type":"mode"}`:                false,
		`{"timestamp":1795980489022}`:    false,
		`{"timestamp":"2026-11-29T16:40`: false,
	} {
		if got := old([]byte(line), launch); got != want {
			t.Errorf("old(%s) = %v", line, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n"), []byte("c"), true)
	f.Add([]byte("[2026-11-29T16:58:32.241Z] [WARN] Attempt 1\nrow\n"), []byte("[2026-11-29T16:58:33.000Z] [LOG] x\n"), true)
	f.Add([]byte(`{"timestamp":"2026-11-29T16:58:32.241Z"}`+"\n"), []byte("\x00\xff\n"), false)
	f.Fuzz(func(t *testing.T, one, two []byte, join bool) {
		var lines int
		file := &file{joinRows: join, freshSince: launch, now: later, emit: func(i Item) {
			lines++
			if len(i.Line) == 0 || len(i.Line) > MaxLine || strings.ContainsRune(string(i.Line), '\n') {
				t.Errorf("line %q", i.Line)
			}
		}}
		file.feed(one)
		file.flush()
		file.feed(two)
		file.flush()
		if newlines := strings.Count(string(one)+string(two), "\n"); lines > newlines {
			t.Errorf("%d lines of %d", lines, newlines)
		}
	})
}

// TestCutAndGrown: a file that was cut and has grown past where we were holds
// other lines: it is read anew, not from the middle of one.
func TestCutAndGrown(t *testing.T) {
	b, path := fileBench(t)
	write(t, path, "one\n")
	b.expect("one")
	set(t, path, "three four five\nsix\n")
	b.expect("three four five six")
}
