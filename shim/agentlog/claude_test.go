package agentlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const cwd = "/home/u/My proj_é.x"

// claudeHome is a configuration directory with two sessions' writers.
type claudeHome struct {
	t   *testing.T
	dir string
}

func (h claudeHome) status(pid int, session, status string) {
	set(h.t, filepath.Join(h.dir, "sessions", fmt.Sprint(pid)+".json"),
		fmt.Sprintf(`{"pid":%d,"sessionId":%q,"cwd":%q,"startedAt":1,"procStart":"100","kind":"interactive","status":%q,"updatedAt":2}`,
			pid, session, cwd, status))
}

func (h claudeHome) transcript(session string) string {
	return filepath.Join(h.dir, "projects", "-home-u-My-proj---x", session+".jsonl")
}

func claudeBench(t *testing.T, procs *fakeProcs) (*bench, claudeHome) {
	t.Helper()
	h := claudeHome{t, t.TempDir()}
	return newBench(t, Spec{Kind: ClaudeTranscript, Home: h.dir, Cwd: cwd, PID: 10, Procs: procs}), h
}

// alone is a tree with only the agent.
func alone() *fakeProcs {
	return &fakeProcs{parents: map[int]int{10: 1}, starts: map[int]string{10: "100"}}
}

func TestClaudeOwnSession(t *testing.T) {
	b, h := claudeBench(t, alone())
	b.expect("")
	h.status(10, "aaaa", "idle")
	b.expect("<idle>")
	h.status(10, "aaaa", "busy")
	b.expect("<busy>")
	write(t, h.transcript("aaaa"), "a1\n")
	b.expect("a1")
	b.expect("")
	h.status(10, "aaaa", "waiting") // a permission dialog
	write(t, h.transcript("aaaa"), "a2\n")
	b.expect("<idle> a2")
}

func TestClaudeSiblingInTheSameDirectory(t *testing.T) {
	procs := alone()
	procs.parents[20] = 1
	b, h := claudeBench(t, procs)
	h.status(20, "bbbb", "busy")
	write(t, h.transcript("bbbb"), "b1\n")
	b.expect("")
	h.status(10, "aaaa", "busy")
	write(t, h.transcript("bbbb"), "b2\n")
	write(t, h.transcript("aaaa"), "a1\n")
	b.expect("<busy> a1")
}

func TestClaudeUnderALauncher(t *testing.T) {
	procs := &fakeProcs{parents: map[int]int{10: 1, 11: 10, 12: 11, 13: 12, 20: 1}, starts: map[int]string{11: "100", 13: "100"}}
	b, h := claudeBench(t, procs)
	h.status(13, "nested", "busy") // a tool of ours runs claude itself
	h.status(11, "aaaa", "idle")
	write(t, h.transcript("nested"), "n1\n")
	write(t, h.transcript("aaaa"), "a1\n")
	b.expect("<idle> a1")
	h.status(13, "nested", "idle")
	write(t, h.transcript("nested"), "n2\n")
	b.expect("")
}

func TestClaudeStaleStatusOfAReusedPid(t *testing.T) {
	procs := alone()
	procs.starts[10] = "999"
	b, h := claudeBench(t, procs)
	h.status(10, "dead", "busy") // procStart 100: another process's, which crashed
	write(t, h.transcript("dead"), "d1\n")
	b.expect("")
}

func TestClaudeClearBeginsAnotherSession(t *testing.T) {
	b, h := claudeBench(t, alone())
	h.status(10, "aaaa", "idle")
	write(t, h.transcript("aaaa"), "a1\n")
	b.expect("<idle> a1")
	h.status(10, "cccc", "idle")
	b.expect("")
	write(t, h.transcript("aaaa"), "a2\n") // the old one's last word
	write(t, h.transcript("cccc"), "c1\n")
	if got := b.step(); got != "a2 c1" {
		t.Errorf("got %q", got)
	}
}

func TestClaudeTornStatus(t *testing.T) {
	b, h := claudeBench(t, alone())
	h.status(10, "aaaa", "busy")
	b.expect("<busy>")
	path := filepath.Join(h.dir, "sessions", "10.json")
	for _, torn := range []string{"", `{"pid":10,"sessionId":"aaaa","st`, "null", strings.Repeat("x", maxStatus+1)} {
		set(t, path, torn)
		b.expect("")
	}
	h.status(10, "aaaa", "idle")
	b.expect("<idle>")
}

func TestClaudeResumedTranscript(t *testing.T) {
	h := claudeHome{t, t.TempDir()}
	write(t, h.transcript("aaaa"), `{"timestamp":"2026-11-28T00:00:00Z","isApiErrorMessage":true}`+"\nold without a date\n")
	b := newBench(t, Spec{Kind: ClaudeTranscript, Home: h.dir, Cwd: cwd, PID: 10, Procs: alone()})
	write(t, h.transcript("aaaa"), "new\n") // before its status file names it
	h.status(10, "aaaa", "idle")
	b.expect("<idle> new")
	// A forked session copies history into a new file.
	write(t, h.transcript("ffff"), `{"timestamp":"2026-11-28T00:00:00Z","isApiErrorMessage":true}`+"\n"+`{"timestamp":"2026-11-29T16:46:00Z","n":1}`+"\n")
	h.status(10, "ffff", "idle")
	b.expect(`{"timestamp":"2026-11-29T16:46:00Z","n":1}`)
}

func TestClaudeSessionNameStaysInside(t *testing.T) {
	b, h := claudeBench(t, alone())
	write(t, filepath.Join(filepath.Dir(h.dir), "evil.jsonl"), "secret\n")
	h.status(10, "../../../evil", "idle")
	b.expect("<idle>")
}

func TestClaudeLongDirectory(t *testing.T) {
	long := "/" + strings.Repeat("abcdefghij/", 30)
	home := t.TempDir()
	b := newBench(t, Spec{Kind: ClaudeTranscript, Home: home, Cwd: long, PID: 10, Procs: alone()})
	set(t, filepath.Join(home, "sessions", "10.json"), fmt.Sprintf(`{"pid":10,"sessionId":"aaaa","cwd":%q,"status":"idle"}`, long))
	write(t, filepath.Join(home, "projects", projectDir(long)[:200]+"-shyeu7", "aaaa.jsonl"), "a1\n")
	b.expect("<idle> a1")
}

func TestClaudeProjectDir(t *testing.T) {
	// The first has the form that 2.1.332 made on disk.
	for cwd, want := range map[string]string{
		"/tmp/deep/My Proj_é.x+y": "-tmp-deep-My-Proj---x-y",
		"/a/😀b":                   "-a---b", // JavaScript counts two
		"":                        "",
	} {
		if got := projectDir(cwd); got != want {
			t.Errorf("projectDir(%q) = %q, want %q", cwd, got, want)
		}
	}
}

func TestClaudeStatusFileGone(t *testing.T) {
	b, h := claudeBench(t, alone())
	h.status(10, "aaaa", "busy")
	write(t, h.transcript("aaaa"), "a1\n")
	b.expect("<busy> a1")
	if err := os.Remove(filepath.Join(h.dir, "sessions", "10.json")); err != nil { // at exit
		t.Fatal(err)
	}
	write(t, h.transcript("aaaa"), "a2\n")
	b.expect("a2")
}

func FuzzClaudeStatus(f *testing.F) {
	f.Add(`{"pid":10,"sessionId":"aaaa","cwd":"/x","status":"busy"}`)
	f.Add(`{"pid":10,"sessionId":"../..","cwd":"/../..","status":"x","procStart":5}`)
	f.Add(`[]`)
	home := f.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "sessions"), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(home, "sessions", "10.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &claude{}
		tail := &tailer{spec: Spec{Home: home, PID: 10, Procs: alone()}, files: map[string]*file{}, emit: func(i Item) {
			if i.Status != "busy" && i.Status != "idle" {
				t.Errorf("%+v", i)
			}
		}}
		c.look(tail)
		c.dirs(tail)
		for path := range tail.files {
			if !strings.HasPrefix(path, filepath.Join(home, "projects")) {
				t.Errorf("follows %q", path)
			}
		}
	})
}

// The debug log that --debug-file names: whole records, only those since the
// launch, and a row that is quoted inside one is no record.
func TestClaudeDebugLog(t *testing.T) {
	h := claudeHome{t, t.TempDir()}
	log := filepath.Join(t.TempDir(), "debug.log")
	b := newBench(t, Spec{Kind: ClaudeTranscript, Home: h.dir, Cwd: cwd, PID: 10, Procs: alone(), Started: launch, Files: []string{log}})
	const refused = "[ERROR] API error (attempt 1/11): 429 429 {}"
	write(t, log, "2026-11-29T16:45:01.000Z "+refused+"\n")
	b.expect("2026-11-29T16:45:01.000Z " + refused)
	write(t, log, "2026-11-29T16:45:02.000Z [DEBUG] a hook printed\n2026-11-28T16:45:01.000Z "+refused+"\n  2026-11-29T16:45:03.000Z "+refused+"\n")
	b.expect("2026-11-29T16:45:02.000Z [DEBUG] a hook printed")
	h.status(10, "aaaa", "busy")
	b.expect("<busy>")
	write(t, h.transcript("aaaa"), "a1\n")
	b.expect("a1")
}

// A clock that was set back behind the launch makes no new record old, nor an
// old one of that time before it new.
func TestClockSetBack(t *testing.T) {
	now := launch.Add(time.Minute)
	var got []string
	f := &file{freshSince: launch, now: func() time.Time { return now }, emit: func(i Item) { got = append(got, string(i.Line)) }}
	say := func() string { return fmt.Sprintf(`{"timestamp":%q}`, now.Format(time.RFC3339)) }
	f.deliver([]byte(say()))
	now = now.Add(-time.Hour)
	copied := fmt.Sprintf(`{"timestamp":%q}`, now.Add(-time.Minute).Format(time.RFC3339))
	f.deliver([]byte(copied))
	f.deliver([]byte(say()))
	if len(got) != 2 || got[1] != say() {
		t.Errorf("delivered %q", got)
	}
}
