package agentlog

import (
	"path/filepath"
	"testing"
)

func piBench(t *testing.T, old string) (*bench, func(name string) string, *fakeProcs) {
	t.Helper()
	home := t.TempDir()
	file := func(name string) string { return filepath.Join(home, "sessions", "--proj-x--", name) }
	if old != "" {
		write(t, file("old.jsonl"), old)
	}
	procs := &fakeProcs{parents: map[int]int{10: 1, 11: 10, 20: 1}, running: []int{11}}
	return newBench(t, Spec{Kind: Pi, Home: home, Cwd: "/proj/x", PID: 10, Procs: procs}), file, procs
}

func TestPi(t *testing.T) {
	b, file, procs := piBench(t, "history\n")
	b.expect("")
	write(t, file("new.jsonl"), "one\n")
	b.expect("one")
	write(t, file("old.jsonl"), "resumed\n") // --continue goes on in its old file
	b.expect("resumed")
	procs.running = append(procs.running, 20)
	write(t, file("sibling.jsonl"), "sibling's\n")
	write(t, file("new.jsonl"), "two\n")
	b.expect("two")
	procs.running = procs.running[:1] // gone again, and what it wrote is not ours
	b.expect("")
}

func TestPiBesideAnother(t *testing.T) {
	b, file, procs := piBench(t, "")
	procs.running = append(procs.running, 20)
	b.expect("")
	write(t, file("whose.jsonl"), "one\n")
	b.expect("")
	write(t, file("whose.jsonl"), "two\n")
	b.expect("")
}
