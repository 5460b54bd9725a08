//go:build linux

package soak

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Two more parts: the shim of a task that a limit broke and that is done again.
const (
	runner = "run again" // a headless one, by running it once more
	typist = "type"      // a turn on a screen, by typing a word
)

// shortResumeSteps are those of a short run: the intent wanted, on the record,
// before and after what is done, and after its outcome.
var shortResumeSteps = map[string][]string{
	runner: {"resume wanted", "resume begun", "run again", "agent ended", "ran again"},
	typist: {"resume wanted", "resume begun", "type", "typed", "type#2", "typed#2", "resume seen"},
}

// TestTaskResumedOnce kills the shim of a task that is done again at each step of
// that. The task is never done twice: not by its shim, a sibling, a command, or
// the next session in the same place.
func TestTaskResumedOnce(t *testing.T) {
	t.Parallel()
	steps := shortResumeSteps
	if os.Getenv("QSHIM_SOAK_STEPS") == "all" {
		steps = map[string][]string{}
		for _, role := range []string{runner, typist} {
			trace := filepath.Join(t.TempDir(), "trace")
			newTask(t, role, "", trace).run()
			steps[role] = passed(t, trace)
		}
	}
	for role, names := range steps {
		for _, step := range names {
			t.Run(role+" "+strings.ReplaceAll(step, "/", "_"), func(t *testing.T) {
				t.Parallel()
				k := newTask(t, role, "kill@"+step, "")
				k.run()
				t.Logf("| %s | %s | killed %v | %q | %v |", role, step, k.killed, k.done(), k.w.longest.Round(time.Millisecond))
				if !k.killed && os.Getenv("QSHIM_SOAK_STEPS") == "" {
					t.Error("the step was not reached")
				}
			})
		}
	}
	t.Run("nobody killed", func(t *testing.T) {
		t.Parallel()
		for role, want := range map[string]string{runner: "first again", typist: "continue enter"} {
			k := newTask(t, role, "", "")
			k.run()
			if got := strings.Join(k.done(), " "); got != want {
				t.Errorf("%s: done %q, want %q", role, got, want)
			}
		}
	})
}

// task is one that a limit breaks, beside a sibling that lives.
type task struct {
	*play
	book string // what its agents were made to do, a line each
}

func newTask(t *testing.T, role, fault, trace string) *task {
	p := newPlay(t, role, fault, trace)
	k := &task{play: p, book: filepath.Join(p.f.home, "book")}
	write(t, filepath.Join(p.f.home, "config.toml"), "resume_tui = \"once\"\n"+fastPolicy, 0o600)
	must(t, os.Mkdir(filepath.Join(p.f.home, "bin", "work"), 0o755))
	write(t, filepath.Join(p.f.home, "bin", "work", "claude"), k.script(), 0o755)
	return k
}

// script is the agent with the task. It writes down each run, each word and each
// Enter that it gets.
func (k *task) script() string {
	head := "#!/bin/sh\n" + scriptHead + "echo $$ >\"$SOAK_PID.new\" && mv \"$SOAK_PID.new\" \"$SOAK_PID\"\nexec 3<>\"$SOAK_CTL\"\n"
	if k.role == runner {
		return head + `[ -n "$SOAK_NEXT" ] || if [ -s ` + k.book + ` ]; then echo again; else echo first; fi >>` + k.book + `
echo '{"session_id":"0f0e0d0c-1111-4222-8333-444455556666"}' >&2
read -r k <&3
case $k in f) echo "API Error: Request rejected (429) · This request would exceed your account's rate limit."; exit 1;; esac
echo done
`
	}
	rows := func(key byte) string { return shellQuote(claudeRows(key)) }
	composer := shellQuote("\x1b[28;1H❯\u00a0%s\x1b[K")
	return head + "stty raw -echo\ncr=$(printf '\\r')\nprintf %s " + rows('b') + `
( while :; do
	k=$(dd bs=512 count=1 2>/dev/null)
	case $k in
	'') exit;;
	*$cr*) echo enter >>` + k.book + "; printf %s " + rows('b') + `;;
	*) echo "$k" >>` + k.book + "; printf " + composer + ` "$k";;
	esac
done ) </dev/tty &
while read -r k <&3; do case $k in
f) printf %s ` + rows('f') + `;;
d) printf %s ` + rows('d') + `;;
q) kill $!; exit 0;;
esac; done
`
}

// done is what the task's agents were made to do so far.
func (k *task) done() []string {
	b, err := os.ReadFile(k.book)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

func (k *task) run() {
	o := stationOpt{headless: k.role == runner, pipe: true, path: filepath.Join(k.f.home, "bin", "work"), env: k.fault}
	k.victim = k.f.start(o)
	s := k.f.start(stationOpt{})
	k.others = append(k.others, s)
	for _, one := range []*station{k.victim, s} {
		eventually(k.t, "a session at work", func() bool { return one.shim.ended() || one.session(k.f.ledger()).State == "running" })
	}
	k.victim.tell('f')
	times := map[string]int{runner: 2, typist: 2}[k.role]
	eventually(k.t, "the task is done again", func() bool {
		return k.victim.shim.ended() || len(k.done()) >= times && k.resumed()
	})
	if !k.victim.shim.ended() {
		k.victim.tell('d')
	}
	began := time.Now()
	k.goOn([]*station{s})
	k.took = time.Since(began)
	k.finish()
	k.once("when all had ended")
	// Whoever comes next in the same place finds nothing to do.
	next := k.f.start(stationOpt{path: o.path, dir: k.victim.dir, env: []string{"SOAK_NEXT=1"}}).ready()
	eventually(k.t, "the next session is known", func() bool { return next.session(k.f.ledger()).ChildPID > 0 })
	next.tell('q')
	if c := next.over(); c != 0 {
		k.t.Errorf("the next session ended with %d", c)
	}
	next.close()
	k.once("after the next session")
}

// resumed: the ledger knows of the outcome as far as it has to.
func (k *task) resumed() bool {
	return k.role == runner || k.reason("seen")
}

func (k *task) reason(why string) bool {
	for e, err := range k.f.store.Events(k.t.Context(), time.Time{}, false) {
		if err == nil && e.Event == "resume" && e.Reason == why {
			return true
		}
	}
	return false
}

// once checks that nothing was done twice, and nothing that is not on the record.
func (k *task) once(when string) {
	k.t.Helper()
	times := map[string]int{}
	for _, what := range k.done() {
		times[what]++
	}
	for what, n := range times {
		if n > 1 {
			k.t.Errorf("%s: %q was done %d times: %q", when, what, n, k.done())
		}
	}
	if times["again"]+times["continue"]+times["enter"] > 0 && !k.reason("begin") {
		k.t.Errorf("%s: done again without a word in the log: %q", when, k.done())
	}
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
