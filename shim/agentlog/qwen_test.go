package agentlog

import (
	"path/filepath"
	"testing"
)

const (
	qwen1 = "4168b23e-4089-4f66-bbca-d8df6f6417d5"
	qwen2 = "11111111-4089-4f66-bbca-d8df6f6417d5"
	qwen3 = "22222222-4089-4f66-bbca-d8df6f6417d5"
)

// qwenBench: pid 10 is the launcher, 11 the agent, 20 a sibling.
func qwenBench(t *testing.T, old map[string]string) (*bench, string, *fakeProcs) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range old {
		write(t, filepath.Join(home, name), text)
	}
	procs := &fakeProcs{parents: map[int]int{10: 1, 11: 10, 20: 1}, open: map[int][]string{}}
	return newBench(t, Spec{Kind: Qwen, Home: home, Cwd: "/proj", PID: 10, Procs: procs}), home, procs
}

func qwenDebug(home, session string) string { return filepath.Join(home, "debug", session+".txt") }
func qwenChat(home, session string) string {
	return filepath.Join(home, "projects", "-proj", "chats", session+".jsonl")
}

func TestQwenSession(t *testing.T) {
	b, home, procs := qwenBench(t, nil)
	b.expect("")
	write(t, qwenDebug(home, qwen2), "2026-11-29T22:42:52.302Z [INFO] sibling\n")
	procs.open[20] = []string{qwenDebug(home, qwen2)}
	b.expect("")
	write(t, qwenDebug(home, qwen1), "2026-11-29T22:42:52.302Z [INFO] one\n")
	b.expect("") // whose it is cannot be told yet
	procs.open[11] = []string{"/dev/null", qwenDebug(home, qwen1)}
	b.expect("2026-11-29T22:42:52.302Z [INFO] one")
	procs.open[11] = nil
	write(t, qwenDebug(home, qwen1), "2026-11-29T22:42:53.302Z [ERROR] two\n  of two rows\n2026-11-29T22:42:54.302Z [INFO] three\n")
	b.expect("2026-11-29T22:42:53.302Z [ERROR] two   of two rows 2026-11-29T22:42:54.302Z [INFO] three")
	write(t, qwenChat(home, qwen2), "sibling\n")
	write(t, qwenChat(home, qwen1), "chat\n")
	b.expect("chat")
}

func TestQwenResumed(t *testing.T) {
	b, home, procs := qwenBench(t, map[string]string{"debug/" + qwen1 + ".txt": "2026-11-28T22:42:52.302Z [INFO] old\n"})
	b.expect("")
	procs.open[11] = []string{qwenDebug(home, qwen1)}
	write(t, qwenDebug(home, qwen1), "2026-11-29T22:42:52.302Z [INFO] new\n")
	b.expect("2026-11-29T22:42:52.302Z [INFO] new")
}

func TestQwenWithoutOpenFiles(t *testing.T) {
	b, home, procs := qwenBench(t, map[string]string{"debug/" + qwen2 + ".txt": "2026-11-28T22:42:52.302Z [INFO] old\n"})
	procs.blind = true
	b.expect("")
	write(t, qwenDebug(home, qwen1), "2026-11-29T22:42:52.302Z [INFO] one\n")
	b.expect("2026-11-29T22:42:52.302Z [INFO] one")
}

func TestQwenRefusesOtherNames(t *testing.T) {
	b, home, procs := qwenBench(t, nil)
	procs.open[11] = []string{filepath.Join(home, "debug", "..x.txt"), filepath.Join(home, "settings.json"), "/debug/" + qwen1 + ".txt"}
	write(t, filepath.Join(home, "debug", "..x.txt"), "no\n")
	write(t, filepath.Join(home, "settings.json"), "no\n")
	b.expect("")
}

// A session that the launch has named is ours from its first record, however
// many siblings begin with it; /clear begins another one.
func TestQwenNamed(t *testing.T) {
	for _, blind := range []bool{false, true} {
		home, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		procs := &fakeProcs{parents: map[int]int{10: 1, 11: 10}, open: map[int][]string{}, blind: blind}
		b := newBench(t, Spec{Kind: Qwen, Home: home, Cwd: "/proj", PID: 10, Procs: procs, Session: qwen1})
		b.expect("")
		write(t, qwenDebug(home, qwen2), "2026-11-29T22:42:52.302Z [INFO] sibling\n")
		b.expect("")
		write(t, qwenDebug(home, qwen1), "2026-11-29T22:42:52.302Z [INFO] one\n")
		b.expect("2026-11-29T22:42:52.302Z [INFO] one")
		if blind {
			continue
		}
		write(t, qwenDebug(home, qwen3), "2026-11-29T22:42:53.302Z [INFO] cleared\n")
		b.expect("") // whose it is cannot be told yet
		procs.open[11] = []string{qwenDebug(home, qwen3)}
		write(t, qwenDebug(home, qwen3), "2026-11-29T22:42:54.302Z [INFO] on\n")
		b.expect("2026-11-29T22:42:53.302Z [INFO] cleared 2026-11-29T22:42:54.302Z [INFO] on")
	}
}

// A name that is no file's is no path either.
func TestQwenNamedBadly(t *testing.T) {
	for _, id := range []string{"../../etc/passwd", "a b", "true"} {
		home := t.TempDir()
		b := newBench(t, Spec{Kind: Qwen, Home: home, Cwd: "/proj", PID: 10, Procs: &fakeProcs{parents: map[int]int{10: 1}}, Session: id})
		write(t, filepath.Join(home, "settings.txt"), "no\n")
		b.expect("")
	}
}
