package agentlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// both runs a test with directory events and with polls.
func both(t *testing.T, test func(t *testing.T, poll bool)) {
	t.Run("events", func(t *testing.T) { test(t, false) })
	t.Run("polls", func(t *testing.T) { test(t, true) })
}

func TestTailFile(t *testing.T) {
	both(t, func(t *testing.T, poll bool) {
		path := filepath.Join(t.TempDir(), "not", "yet", "agent.log")
		r := run(t, Spec{Kind: File, Files: []string{path}, Poll: poll})
		write(t, path, "one\n")
		r.expect("one")
		write(t, path, "two\n")
		r.expect("two")
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		write(t, path, "three\n")
		r.expect("three")
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		write(t, path, "four\n")
		r.expect("four")
		if err := os.Rename(filepath.Dir(path), filepath.Dir(path)+".moved"); err != nil {
			t.Fatal(err)
		}
		write(t, path, "five\n")
		r.expect("five")
	})
}

func TestTailClaude(t *testing.T) {
	both(t, func(t *testing.T, poll bool) {
		h := claudeHome{t, filepath.Join(t.TempDir(), ".claude")} // does not exist yet
		procs := alone()
		procs.parents[20] = 1
		r := run(t, Spec{Kind: ClaudeTranscript, Home: h.dir, Cwd: cwd, PID: 10, Procs: procs, Poll: poll})
		h.status(20, "bbbb", "busy")
		write(t, h.transcript("bbbb"), "sibling\n")
		h.status(10, "aaaa", "idle")
		r.expect("<idle>")
		h.status(10, "aaaa", "busy")
		r.expect("<busy>")
		write(t, h.transcript("bbbb"), "sibling\n")
		write(t, h.transcript("aaaa"), "a1\n")
		r.expect("a1")
		h.status(10, "cccc", "busy")
		write(t, h.transcript("cccc"), "c1\n")
		r.expect("c1")
		h.status(10, "cccc", "idle")
		r.expect("<idle>")
	})
}

func TestTailCodex(t *testing.T) {
	both(t, func(t *testing.T, poll bool) {
		home, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		// Open files are this test's own: the real /proc is asked where there is one.
		write(t, rollout(home, "29", thread2), `{"payload":{"cwd":"/elsewhere"}}`+"\n")
		r := run(t, Spec{Kind: CodexRollout, Home: home, Cwd: "/proj", PID: os.Getpid(), Poll: poll, Started: time.Now()})
		path := rollout(home, "29", thread1)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		meta := `{"payload":{"cwd":"/proj"}}`
		fmt.Fprintln(f, meta)
		r.expect(meta)
		fmt.Fprintln(f, "two")
		r.expect("two")
	})
}

func TestTailGemini(t *testing.T) {
	both(t, func(t *testing.T, poll bool) {
		home, log := filepath.Join(t.TempDir(), ".gemini"), filepath.Join(t.TempDir(), "debug.log")
		r := run(t, Spec{Kind: Gemini, Home: home, Cwd: "/proj", Files: []string{log}, Poll: poll})
		head := chatHead("2026-11-29T16:45:08.023Z")
		write(t, log, startupRecord)
		r.expect(startupRecord[:len(startupRecord)-1])
		write(t, chat(home, "ours0000"), head)
		write(t, filepath.Join(home, "projects.json"), `{"projects":{"/proj":"proj"}}`)
		r.expect(head[:len(head)-1])
		write(t, chat(home, "ours0000"), "o1\n")
		r.expect("o1")
	})
}

// TestTailReadsTheRest: what was written before the end is delivered.
func TestTailReadsTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	ctx, stop := context.WithCancel(context.Background())
	var got []Item
	s := Spec{Kind: File, Files: []string{path}, Poll: true}
	s.Every = func(time.Duration) (<-chan time.Time, func()) {
		write(t, path, "last words\n")
		stop()
		return nil, func() {}
	}
	if err := Tail(ctx, s, func(i Item) { got = append(got, i) }); err != nil {
		t.Fatal(err)
	}
	if words(got) != "last words" {
		t.Errorf("got %q", words(got))
	}
}

func TestTailRefusesBadSpecs(t *testing.T) {
	for _, s := range []Spec{
		{}, {Kind: "tail"}, {Kind: File}, {Kind: File, Files: []string{"relative"}},
		{Kind: ClaudeTranscript}, {Kind: CodexRollout, Home: "rel"}, {Kind: Gemini, Home: "/x", Files: []string{"rel"}},
	} {
		if err := Tail(context.Background(), s, func(Item) {}); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
}

// TestSiblingsDoNotWake: what other sessions write in the same directories is
// no reason to look.
func TestSiblingsDoNotWake(t *testing.T) {
	b, h := claudeBench(t, alone())
	h.status(10, "aaaa", "idle")
	write(t, h.transcript("aaaa"), "a1\n")
	b.step()
	for path, want := range map[string]bool{
		filepath.Join(h.dir, "sessions", "10.json"): true,
		filepath.Join(h.dir, "sessions", "20.json"): false,
		filepath.Join(h.dir, "sessions", "20.key"):  false,
		h.transcript("bbbb"):                        false,
	} {
		if got := b.find.wants(b.tail, path, true); got != want {
			t.Errorf("wants %s: %v", path, got)
		}
	}
}
