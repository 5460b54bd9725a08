package agentlog

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	thread1 = "01a228c9-02fa-74b2-9187-39c8e4823bd5"
	thread2 = "01a228c9-15ef-7de0-b1a6-bab95c4fa5aa"
)

func rollout(home, day, thread string) string {
	return filepath.Join(home, "sessions", "2026", "11", day, "rollout-2026-11-"+day+"T16-45-10-"+thread+".jsonl")
}

func lock(home, thread string) string {
	return filepath.Join(home, "thread-writer-locks", thread+".lock")
}

// codexBench: pid 10 is the npm launcher, 11 the native process, 20 a sibling.
func codexBench(t *testing.T) (*bench, string, *fakeProcs) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	procs := &fakeProcs{parents: map[int]int{10: 1, 11: 10, 20: 1}, open: map[int][]string{}}
	return newBench(t, Spec{Kind: CodexRollout, Home: home, Cwd: "/proj", PID: 10, Procs: procs}), home, procs
}

func TestCodexOpenRollout(t *testing.T) {
	b, home, procs := codexBench(t)
	b.expect("")
	write(t, rollout(home, "29", thread2), "sibling\n")
	procs.open[20] = []string{rollout(home, "29", thread2)}
	b.expect("")
	procs.open[11] = []string{"/dev/null", lock(home, thread1), rollout(home, "29", thread1)}
	write(t, rollout(home, "29", thread1), "one\n")
	b.expect("one")
	write(t, rollout(home, "29", thread2), "sibling\n")
	b.expect("")
}

func TestCodexNewThread(t *testing.T) {
	b, home, procs := codexBench(t)
	procs.open[11] = []string{rollout(home, "29", thread1)}
	write(t, rollout(home, "29", thread1), "one\n")
	b.expect("one")
	procs.open[11] = append(procs.open[11], rollout(home, "30", thread2))
	write(t, rollout(home, "30", thread2), "two\n")
	write(t, rollout(home, "29", thread1), "one again\n")
	b.expect("one again two")
}

func TestCodexResumedThread(t *testing.T) {
	b, home, procs := codexBench(t)
	path := rollout(home, "12", thread1)
	write(t, path, "old\n")
	before := launch.AddDate(0, 0, -1)
	if err := os.Chtimes(path, before, before); err != nil {
		t.Fatal(err)
	}
	procs.open[11] = []string{lock(home, thread1)} // opened only with the first turn
	b.expect("")
	write(t, path, "new\n")
	b.expect("new")
}

func TestCodexRefusesPathsOutside(t *testing.T) {
	b, home, procs := codexBench(t)
	outside := rollout(t.TempDir(), "29", thread1)
	write(t, outside, "secret\n")
	procs.open[11] = []string{outside, filepath.Join(home, "history.jsonl"), home + "x/sessions/rollout"}
	write(t, filepath.Join(home, "history.jsonl"), "user input\n")
	b.expect("")
}

// TestCodexWithoutOpenFiles takes a rollout by exclusion.
func TestCodexWithoutOpenFiles(t *testing.T) {
	meta := `{"timestamp":"2026-11-29T16:45:10Z","type":"session_meta","payload":{"cwd":"/proj"}}`
	t.Run("one", func(t *testing.T) {
		b, home, procs := codexBench(t)
		procs.blind = true
		write(t, rollout(home, "29", thread2), `{"type":"session_meta","payload":{"cwd":"/elsewhere"}}`+"\n")
		write(t, rollout(home, "29", thread1), meta+"\n")
		b.expect(meta)
		write(t, rollout(home, "29", "01a228c9-15ef-7de0-b1a6-000000000000"), meta+"\n")
		write(t, rollout(home, "29", thread1), "more\n")
		b.expect("more")
	})
	t.Run("two", func(t *testing.T) {
		b, home, procs := codexBench(t)
		procs.blind = true
		write(t, rollout(home, "29", thread1), meta+"\n")
		write(t, rollout(home, "29", thread2), meta+"\n")
		b.expect("")
	})
	t.Run("old", func(t *testing.T) {
		home, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		write(t, rollout(home, "29", thread1), meta+"\n")
		b := newBench(t, Spec{Kind: CodexRollout, Home: home, Cwd: "/proj", PID: 10, Procs: &fakeProcs{blind: true}})
		b.expect("")
	})
}

// TestCodexManyThreads lets the oldest go.
func TestCodexManyThreads(t *testing.T) {
	b, home, procs := codexBench(t)
	for i := range maxFiles + 3 {
		path := rollout(home, "29", "01a228c9-02fa-74b2-9187-39c8e4823b"+string(rune('a'+i/10))+string(rune('0'+i%10)))
		write(t, path, "x\n")
		procs.open[11] = []string{path}
		b.expect("x")
	}
	if len(b.tail.files) != maxFiles || len(b.tail.order) != maxFiles {
		t.Errorf("%d files followed", len(b.tail.files))
	}
}
