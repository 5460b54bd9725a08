package agentlog

import (
	"fmt"
	"path/filepath"
	"testing"
)

// ocBench: pid 10 is the launcher, 11 the agent, 20 a sibling.
func ocBench(t *testing.T, procs *fakeProcs) (*bench, func(run, rest string)) {
	t.Helper()
	home := t.TempDir()
	log := filepath.Join(home, "log", "opencode.log")
	write(t, log, "timestamp=2026-11-29T16:40:00.000Z level=INFO run=aaaaaaaa message=\"creating instance\" directory=/proj\n")
	procs.parents = map[int]int{10: 1, 11: 10, 20: 1}
	b := newBench(t, Spec{Kind: OpenCode, Home: home, Cwd: "/proj", PID: 10, Procs: procs})
	return b, func(run, rest string) {
		write(t, log, fmt.Sprintf("timestamp=2026-11-29T16:45:10.000Z %s run=%s %s\n", map[bool]string{true: "level=ERROR", false: "level=INFO"}[rest[0] == '!'], run, rest[1:]))
	}
}

const (
	ocCreates = ` message="creating instance" directory=/proj`
	ocFails   = `!message="stream error" small=false error.error="AI_APICallError: Rate limit reached \"x\""`
)

func ocLine(run string) string {
	return "timestamp=2026-11-29T16:45:10.000Z level=ERROR run=" + run + " " + ocFails[1:]
}

func TestOpenCodeRun(t *testing.T) {
	b, say := ocBench(t, &fakeProcs{})
	say("aaaaaaaa", ocFails) // from before the launch
	say("bbbbbbbb", ` message="creating instance" directory=/other`)
	say("bbbbbbbb", ocFails)
	b.expect("")
	say("cccccccc", ocCreates)
	say("cccccccc", " message=loading path=/x")
	b.expect("")
	say("cccccccc", ocFails)
	b.expect(ocLine("cccccccc"))
	say("bbbbbbbb", ocFails)
	say("dddddddd", ocCreates) // a later one: ours is known
	say("dddddddd", ocFails)
	say("cccccccc", ocFails)
	b.expect(ocLine("cccccccc"))
}

// Where another run may be ours, neither is.
func TestOpenCodeRivals(t *testing.T) {
	b, say := ocBench(t, &fakeProcs{})
	say("cccccccc", ocCreates)
	say("dddddddd", ocCreates)
	say("cccccccc", ocFails)
	say("dddddddd", ocFails)
	b.expect("")
	for _, c := range []struct {
		running []int
		blind   bool
		want    string
	}{{[]int{11}, false, ocLine("cccccccc")}, {[]int{11, 20}, false, ""}, {nil, true, ocLine("cccccccc")}} {
		b, say := ocBench(t, &fakeProcs{running: c.running, blind: c.blind})
		say("cccccccc", ocCreates)
		say("cccccccc", ocFails)
		b.expect(c.want)
	}
}

func TestLogField(t *testing.T) {
	line := `timestamp=1 level=ERROR message="a \"b\" run=x" run=r1 empty= path=/a=b last="open`
	for key, want := range map[string]string{"level": "ERROR", "message": `a "b" run=x`, "run": "r1", "empty": "", "path": "/a=b", "none": "", "last": ""} {
		if got := string(logField([]byte(line), key)); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

func FuzzLogField(f *testing.F) {
	f.Add([]byte(`a=1 b="x y" c=`), "b")
	f.Add([]byte(`="`), "")
	f.Fuzz(func(t *testing.T, line []byte, key string) {
		if got := logField(line, key); len(got) > 4*len(line) {
			t.Errorf("%q from %q", got, line)
		}
	})
}
