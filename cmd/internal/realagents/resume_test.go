package realagents

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"qshim/cmd/internal/fakeprovider"
)

// resumeBench is a world in which failed tasks are done again after a moment.
func resumeBench(t *testing.T, a Agent, plan bool, config string) *bench {
	t.Helper()
	b := newBench(t, a, plan, 1)
	if !shimmed() {
		t.Skip("without qshim nothing is done again")
	}
	file := filepath.Join(t.TempDir(), "config.toml")
	b.must(os.WriteFile(file, []byte(config), 0o600))
	b.setup.Env = append(b.setup.Env, "QSHIM_CONFIG="+file, "CLAUDE_CODE_MAX_RETRIES=0")
	return b
}

// asked are the user texts of the main requests so far, with their statuses.
func (b *bench) asked() (out []string) {
	for _, r := range b.provider.Counts().Requests {
		if !r.Side {
			out = append(out, fmt.Sprintf("%s %d", strings.Join(strings.Fields(r.Text), " "), r.Status))
		}
	}
	return out
}

func (b *bench) askedExactly(want ...string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	_ = b.provider.Wait(ctx, func(c fakeprovider.Counts) bool { // what is missing is told below
		n := 0
		for _, r := range c.Requests {
			if !r.Side && !r.Done.IsZero() {
				n++
			}
		}
		return n >= len(want)
	})
	if got := b.asked(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		b.Errorf("the provider was asked\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	b.Logf("asked: %q", b.asked())
}

func (b *bench) resumed(reason string) event {
	b.Helper()
	return b.logged("resume "+reason, func(e event) bool { return e.Event == "resume" && e.Reason == reason })
}

// release opens every limiter, as a person would.
func (b *bench) release() {
	b.Helper()
	out, err := b.qshim(b.Context(), "release", "--all").CombinedOutput()
	b.Logf("%s", out)
	b.must(err)
}

const onceOnScreen = "resume_tui = \"once\"\n[rate]\nbase = \"4s\"\n"

// transient is a refusal that each agent gives up on at once.
const transient = `{"scenario":{"kind":"rate","next":1}}`

// A turn that a limit broke is resumed by one word, once, and the session goes on.
func TestResumeTyped(t *testing.T) {
	for _, a := range []Agent{Claude, Codex} {
		t.Run(string(a), func(t *testing.T) {
			b := resumeBench(t, a, false, onceOnScreen)
			b.control(transient)
			s := b.start()
			b.must(s.Ask("pane1 go on", patience))
			b.refused(1)
			b.resumed("wait")
			b.resumed("seen")
			b.must(s.Text(regexp.MustCompile(`OK:continue`), patience))
			b.must(s.Ask("pane1 next", patience))
			b.askedExactly("pane1 go on 429", "continue 200", "pane1 next 200")
		})
	}
}

// A user who types in between has the turn: nothing is typed into it.
func TestResumeNotTypedOverTheUser(t *testing.T) {
	for _, a := range []Agent{Claude, Codex} {
		t.Run(string(a), func(t *testing.T) {
			b := resumeBench(t, a, false, onceOnScreen)
			b.control(transient)
			s := b.start()
			b.must(s.Ask("pane1 go on", patience))
			b.refused(1)
			b.resumed("wait")
			b.must(s.Keys("half"))
			b.resumed("user")
			b.release()
			b.must(s.Ask(" a thought", patience))
			b.askedExactly("pane1 go on 429", "half a thought 200")
		})
	}
}

// What stood in the composer before the limit came stays alone there.
func TestResumeNotBehindHalfAPrompt(t *testing.T) {
	for _, a := range []Agent{Claude, Codex} {
		t.Run(string(a), func(t *testing.T) {
			b := resumeBench(t, a, false, onceOnScreen)
			tries := 2
			if a == Codex {
				tries = 6
			}
			b.setup.Env = append(b.setup.Env, "CLAUDE_CODE_MAX_RETRIES=1")
			b.control(fmt.Sprintf(`{"scenario":{"kind":"rate","retry_after_s":3,"next":%d}}`, tries))
			s := b.start()
			b.must(s.Ask("pane1 go on", patience))
			b.refused(1)
			b.must(s.Keys("half"))
			b.refused(tries)
			b.logged("the final error", func(e event) bool { return e.Event == "finding" && e.Class == "rate" })
			b.release()
			b.must(s.Ask(" a thought", patience))
			want := make([]string, tries)
			for i := range want {
				want[i] = "pane1 go on 429"
			}
			b.askedExactly(append(want, "half a thought 200")...)
		})
	}
}

// A dialog gets no key. Claude's stands after its turn; Gemini's is part of the
// turn, and when its user has answered it with Stop, the turn is resumed.
func TestResumeNotIntoADialog(t *testing.T) {
	t.Run("claude", func(t *testing.T) {
		b := resumeBench(t, Claude, true, "resume_tui = \"once\"\n[resuming]\nlongest = \"8d\"\n")
		b.control(`{"scenario":{"kind":"window","resets_in_s":180000,"next":1}}`)
		s := b.start()
		b.must(s.Ask("pane1 go on", patience))
		b.must(s.Text(regexp.MustCompile(`Whatdoyouwanttodo\?`), patience))
		b.logged("a limit", func(e event) bool { return e.Event == "finding" && e.Confidence == "certain" })
		b.release()
		b.must(b.ended(s)) // what was not typed by its end was not typed
		b.logged("exit", func(e event) bool { return e.Event == "exit" })
		b.askedExactly("pane1 go on 429")
		for _, e := range b.events() {
			if e.Event == "resume" && e.Reason != "wait" && e.Reason != "dialog" {
				b.Errorf("%v: %s", e, e.Reason)
			}
		}
	})
	t.Run("gemini", func(t *testing.T) {
		b := resumeBench(t, Gemini, false, "resume_tui = \"once\"\n[resuming]\nlongest = \"8d\"\n")
		b.control(`{"scenario":{"kind":"daily","next":1}}`)
		s := b.start()
		b.must(s.Ask("pane1 go on", patience))
		b.must(s.Text(regexp.MustCompile(`●1\.Keeptrying`), patience))
		b.must(s.Keys("2"))
		b.resumed("wait")
		b.release()
		b.resumed("seen")
		b.must(s.Text(regexp.MustCompile(`OK:continue`), patience))
		b.askedExactly("pane1 go on 429", "continue 200")
	})
}

// Claude's own automatic continue is left to itself.
func TestResumeLeftToTheAgent(t *testing.T) {
	b := resumeBench(t, Claude, true, "resume_tui = \"once\"\n")
	b.control(`{"scenario":{"kind":"window","resets_in_s":7200,"next":1}}`)
	s := b.start()
	b.must(s.Ask("pane1 go on", patience))
	b.must(s.Text(regexp.MustCompile(`Continuingautomatically`), patience))
	b.logged("a hold", func(e event) bool { return e.Event == "hold" && e.Class == "window" })
	b.release()
	b.must(s.Ask("pane1 next", patience))
	b.askedExactly("pane1 go on 429", "pane1 next 200")
	for _, e := range b.events() {
		if e.Event == "resume" {
			b.Errorf("%v", e)
		}
	}
}

// A headless run is done again, with the session's own history where there is
// one, and writes one document.
func TestResumeHeadless(t *testing.T) {
	for _, c := range []struct {
		agent   Agent
		args    []string
		control string
		want    []string
		out     string
	}{
		{Claude, []string{"-p", "pane1 go on"}, transient, []string{"pane1 go on piped words 429", "continue 200"}, "OK: continue\n"},
		{Codex, []string{"exec", "--skip-git-repo-check", "pane1 go on"}, transient, []string{"pane1 go on <stdin> piped words </stdin> 429", "continue 200"}, "OK: continue\n"},
		{Gemini, []string{"-p", "pane1 go on"}, `{"scenario":{"kind":"window","resets_in_s":400,"next":1}}`, []string{"piped words pane1 go on 429", "piped words pane1 go on 200"}, "OK: piped words pane1 go on\n"},
	} {
		t.Run(string(c.agent), func(t *testing.T) {
			b := resumeBench(t, c.agent, false, "[rate]\nbase = \"3s\"\n")
			b.control(c.control)
			cmd := exec.CommandContext(t.Context(), os.Getenv(builtAs), append(append([]string{string(c.agent)}, b.setup.Args...), c.args...)...)
			cmd.Env, cmd.Dir = append(append([]string{}, b.setup.Env...), b.env()...), b.setup.Project
			var out, errs bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("piped words\n"), &out, &errs
			began := time.Now()
			b.must(cmd.Start())
			b.resumed("wait")
			if c.agent == Gemini {
				b.release() // the stated reset is minutes away
			}
			err := cmd.Wait()
			t.Logf("%v after %v\nstdout %q\nstderr %s", err, time.Since(began).Round(time.Second), out.String(), errs.String())
			b.must(err)
			b.askedExactly(c.want...)
			if out.String() != c.out {
				t.Errorf("stdout %q, want %q", out.String(), c.out)
			}
		})
	}
}
