package realagents

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"qshim/cmd/internal/fakeprovider"

	"github.com/google/go-cmp/cmp"
)

// siblings are the tests of several sessions; without qshim nobody waits.
func siblings(t *testing.T, a Agent) *bench {
	t.Helper()
	if skip == "" && !shimmed() {
		t.Skip("without qshim nobody waits")
	}
	return newBench(t, a, false, 2)
}

// suspended starts two sessions, keeps the second busy and lets the first be
// refused until the second is stopped.
func (b *bench) suspended(retryAfter string) (one, two *Session) {
	b.Helper()
	if b.agent == Qwen {
		retryAfter = "2"
	}
	b.control(fmt.Sprintf(`{"scenario":{"kind":"rate","retry_after_s":%s,"next":%d,"match":"pane1"}}`, retryAfter, hidden(b.agent)))
	one, two = b.start(), b.start()
	b.must(two.Ask("pane2 hold=10m", patience))
	b.must(two.Text(regexp.MustCompile(`word1`), patience))
	b.must(one.Ask("pane1 go on", patience))
	b.refused(hidden(b.agent))
	took := b.eventually("pane 2 is stopped", 4*time.Second, func() bool { return b.stopped(two) })
	b.Logf("stopped %v after the refusal", took)
	return one, two
}

// hidden is how many refusals it takes until an agent shows or logs one: the
// client library of Qwen Code 0.15.10 tries four times without a word, also
// where the provider says how long to wait (measured).
func hidden(a Agent) int {
	if a == Qwen {
		return 4
	}
	return 1
}

// goesOn waits until more of a held answer is shown than now.
func (b *bench) goesOn(s *Session) {
	b.Helper()
	words := func(rows []string) int { return strings.Count(strings.Join(rows, " "), "word") }
	seen := words(s.Screen())
	b.must(s.Until("the answer goes on", patience, func(rows []string, _ string) bool { return words(rows) > seen }))
}

// A sibling that is busy on the same account is stopped while another's own
// retry runs, and goes on after it.
func TestSiblingWaits(t *testing.T) {
	for _, a := range Agents() {
		t.Run(string(a), func(t *testing.T) {
			if a != Claude && a != Codex {
				wholeOnly(t) // they take long to start
			}
			b := siblings(t, a)
			one, two := b.suspended("8")
			b.must(one.Text(regexp.MustCompile(`OK:pane1goon`), patience))
			took := b.eventually("pane 2 goes on", 15*time.Second, func() bool { return !b.stopped(two) })
			t.Logf("continued %v after the answer", took)
			b.goesOn(two)
			if n := b.provider.Counts().Sum("", "").Limited; n != hidden(a) {
				t.Errorf("%d refusals, want %d", n, hidden(a))
			}
		})
	}
}

// claude -p says nothing of its retries: its debug log does, so that a sibling
// waits for them as for any other.
func TestSiblingWaitsForHiddenRetries(t *testing.T) {
	b := siblings(t, Claude)
	b.control(`{"scenario":{"kind":"rate","retry_after_s":8,"next":1,"match":"pane1"}}`)
	two := b.launch(Launch{Args: headless(Claude, "pane2 hold=10m")})
	b.counted(func(s fakeprovider.AccountCount) bool { return s.Answering > 0 })
	b.launch(Launch{Args: headless(Claude, "pane1 go on")})
	b.refused(1)
	took := b.eventually("pane 2 is stopped", 4*time.Second, func() bool { return b.stopped(two) })
	b.Logf("stopped %v after the refusal", took)
	b.logged("the hidden retry", func(e event) bool { return e.Event == "finding" && e.Rule == "retry-logged" })
	b.eventually("pane 2 goes on", patience, func() bool { return !b.stopped(two) })
	if n := b.provider.Counts().Sum("", "").Limited; n != 1 {
		t.Errorf("%d refusals, want the one", n)
	}
}

// kill -9 of the shim that is the probe: the sibling goes on, long before the
// stated time.
func TestKilledProbeFreesItsSibling(t *testing.T) {
	b := siblings(t, Codex)
	one, two := b.suspended("30")
	b.must(syscall.Kill(one.PID(), syscall.SIGKILL))
	b.eventually("the killed shim's agent is gone", patience, func() bool { return len(one.Agent(b.install)) == 0 })
	b.eventually("pane 2 goes on", patience, func() bool { return !b.stopped(two) })
	b.goesOn(two)
}

// kill -9 of a shim whose agent is stopped leaves nothing stopped.
func TestKilledShimLeavesNothingStopped(t *testing.T) {
	b := siblings(t, Codex)
	_, two := b.suspended("20")
	b.must(syscall.Kill(two.PID(), syscall.SIGKILL))
	left := func() []Process {
		return slices.DeleteFunc(two.Processes(), func(p Process) bool { return p.State != "T" })
	}
	defer func() {
		if t.Failed() {
			t.Logf("stopped: %+v", left())
		}
	}()
	b.eventually("no process is stopped", 10*time.Second, func() bool { return len(left()) == 0 })
}

// A launch during the hold waits and then starts; another account does not.
func TestLaunchWaitsOnItsOwnAccountOnly(t *testing.T) {
	b := siblings(t, Codex)
	b.control(`{"scenario":{"kind":"rate","retry_after_s":20,"next":1,"match":"pane1"}}`)
	one := b.start()
	b.must(one.Ask("pane1 go on", patience))
	b.refused(1)
	b.logged("a hold", func(e event) bool { return e.Event == "hold" })
	refused := time.Now()

	mine := b.setup
	b.setup = b.account("two", false)
	b.start().Close() // its composer comes
	if took := time.Since(refused); took > 15*time.Second {
		t.Errorf("another account's launch took %v of the 20 s hold", took)
	}

	b.setup = mine
	two := b.launch(Launch{})
	b.logged("a launch that waits", func(e event) bool { return e.Event == "launch_wait" })
	_, err := two.Row(composer(b.agent), patience)
	b.must(err)
	if took := time.Since(refused); took < 18*time.Second {
		t.Errorf("started %v into the 20 s hold", took)
	}
}

// changing is what differs between two runs of the same turn: how long it took,
// which word an agent picked for it, and names of the test's own.
var changing = regexp.MustCompile(`\d+m? ?\d*s\b|\d?\d:\d\d( [AP]M)?|[✻✶✽✢·*] \S+( for)?|~?/\S+|[0-9a-f]{8}-[0-9a-f-]+`)

// A pause in the middle of a streamed answer leaves no trace: at the end of the
// turn the screen is that of a session that was never stopped.
func TestPausedAnswerLooksTheSame(t *testing.T) {
	for _, a := range Agents() {
		t.Run(string(a), func(t *testing.T) {
			if a != Codex {
				wholeOnly(t)
			}
			b := siblings(t, a)
			const prompt = "pane2 hold=20s gap=1s"
			b.control(`{"scenario":{"kind":"rate","retry_after_s":8,"next":1,"match":"pane1"}}`)
			one, two := b.start(), b.start()
			b.must(one.Keys("pane1 go on")) // typed, so that only Enter is left to do in the middle of pane 2's answer
			b.must(one.Text(regexp.MustCompile(`pane1goon`), patience))
			b.must(two.Ask(prompt, patience))
			b.must(two.Text(regexp.MustCompile(`word1`), patience))
			b.must(one.Keys("\r"))
			b.refused(1)
			b.eventually("pane 2 is stopped", 4*time.Second, func() bool { return b.stopped(two) })
			b.must(two.Until("the pause row", patience, paused))
			b.must(one.Text(regexp.MustCompile(`OK:pane1goon`), patience))
			b.eventually("pane 2 goes on", 15*time.Second, func() bool { return !b.stopped(two) })
			one.Close()

			alone := b.start()
			b.must(alone.Ask(prompt, patience))
			b.must(alone.Text(regexp.MustCompile(`OK:pane2hold=20sgap=1s`), patience))
			var want, got string
			b.must(alone.Until("the turn ends", patience, func(rows []string, _ string) bool { return b.composed(rows, "") && calm(rows) }))
			err := two.Until("the same screen", patience, func(rows []string, _ string) bool {
				want, got = masked(alone.Screen()), masked(rows)
				return want == got
			})
			if err != nil {
				t.Errorf("never paused (-), paused (+):\n%s", cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		})
	}
}

func paused(rows []string, _ string) bool {
	return slices.ContainsFunc(rows, func(r string) bool { return strings.Contains(r, "qshim:") })
}

// calm: no sign that a turn is still in progress.
func calm(rows []string) bool {
	return !slices.ContainsFunc(rows, func(r string) bool { return strings.Contains(r, "esc to") })
}

// masked leaves out blank rows, Codex's "Worked for", which it writes only under a
// turn that took long, and what Claude Code tells in the first sessions alone (▎).
func masked(rows []string) string {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r string) bool {
		r = strings.Trim(r, " ─")
		return r == "" || strings.HasPrefix(r, "Worked for ") || strings.HasPrefix(r, "▎")
	})
	return changing.ReplaceAllString(strings.Join(rows, "\n"), "…")
}
