package realagents

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// shells are started so that they read no file of the user's.
var shells = map[string]string{
	"bash": "exec bash --norc --noprofile -i",
	"zsh":  "exec zsh -f -i",
	"dash": "exec dash -i",
}

// prompted is the shell's prompt on the screen's last row.
func prompted(rows []string, _ string) bool {
	return len(rows) > 0 && strings.TrimSpace(rows[len(rows)-1]) == "PROMPT#"
}

// notified: the shell says that a job is stopped, and prompts. Gemini leaves its
// own rows on the screen, and both are written over them.
func notified(rows []string, _ string) bool {
	for n, r := range rows[:max(0, len(rows)-1)] {
		if jobStopped.MatchString(r) && strings.HasPrefix(rows[n+1], "PROMPT#") {
			return true
		}
	}
	return false
}

var jobStopped = regexp.MustCompile(`\[1\] *\+ *Stopped|zsh: suspended`)

// in starts a shell on a terminal of the bench's account.
func (b *bench) in(shell string) *Session {
	b.Helper()
	s, err := Start(b.setup, Launch{
		Prefix: []string{"sh", "-c", shells[shell]},
		Env:    append(b.env(), "PS1=PROMPT# ", "PROMPT_EOL_MARK=", "HISTFILE=/dev/null"),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	b.must(s.Until("the prompt", patience, prompted))
	return s
}

// line is the agent as the user types it.
func (b *bench) line() string {
	words := append([]string{string(b.agent)}, b.setup.Args...)
	if shimmed() {
		words = append([]string{os.Getenv(builtAs)}, words...)
	} else if b.agent == Codex {
		words = append(words, "--no-daemon")
	}
	return strings.Join(words, " ")
}

// shellsByDefault is what a CI run has time for.
var shellsByDefault = []string{"claude/bash", "codex/zsh", "codex/dash"}

// Ctrl-Z gives the shell's prompt back, fg the agent's screen, and the next
// prompt is answered: under each shell with each agent.
func TestCtrlZ(t *testing.T) {
	for shell := range shells {
		for _, a := range Agents() {
			t.Run(string(a)+"/"+shell, func(t *testing.T) {
				t.Parallel()
				if !slices.Contains(shellsByDefault, string(a)+"/"+shell) {
					wholeOnly(t)
				}
				if _, err := exec.LookPath(shell); err != nil {
					t.Skip(shell + " is not installed")
				}
				b := newBench(t, a, false, 1)
				s := b.in(shell)
				b.must(s.Keys(b.line() + "\r"))
				_, err := s.Row(composer(a), patience)
				b.must(err)
				b.stop(s)
				b.must(s.Until("the shell's prompt", patience, notified))
				b.must(s.Keys("echo $((20+1))$((1+1))\r"))
				_, err = s.Row(regexp.MustCompile(`^212`), patience)
				b.must(err)
				b.must(s.Keys("fg\r"))
				b.must(s.Until("the composer again", patience, b.composed))
				b.askBack(s, "pane1 and again")
				b.answered(s, regexp.MustCompile(`OK:pane1andagain`))
				b.served(1)
			})
		}
	}
}

// askBack asks an agent that is just back from a shell. Codex CLI 0.171.0 throws
// away what is typed before it has its terminal again, about half the time here,
// with and without qshim, and its old screen does not tell; then the user types
// it again, and so does this, on an empty line.
func (b *bench) askBack(s *Session, text string) {
	b.Helper()
	b.again(s, "\x15", func(limit time.Duration) error { return s.Ask(text, limit) })
}

// again tries until it works, with keys between two tries, as a user would.
func (b *bench) again(s *Session, keys string, try func(limit time.Duration) error) {
	b.Helper()
	for range patience / (5 * time.Second) {
		if try(5*time.Second) == nil {
			return
		}
		b.must(s.Keys(keys))
	}
	b.must(try(time.Second))
}

// stop presses Ctrl-Z, after an answer where the agent still takes it then:
// Gemini CLI 0.61.0 undoes first what was typed, and wants the key twice.
func (b *bench) stop(s *Session) {
	b.Helper()
	if b.agent == Gemini {
		b.must(s.Keys("\x1a"))
		_, err := s.Row(regexp.MustCompile(`Press Ctrl\+Z again to suspend`), patience)
		b.must(err)
	} else {
		b.must(s.Ask("pane1 go on", patience))
		b.must(s.Text(regexp.MustCompile(`OK:pane1goon`), patience))
		b.must(s.Until("idle", patience, b.composed))
	}
	b.must(s.Keys("\x1a"))
}

// answered waits for the answer. Gemini CLI 0.61.0 takes an Enter that it reads
// together with the text before for a line break, as after fg on a busy machine,
// with and without qshim; then the user presses it again, and so does this.
func (b *bench) answered(s *Session, want *regexp.Regexp) {
	b.Helper()
	b.again(s, "\r", func(limit time.Duration) error { return s.Text(want, limit) })
}

// composed: the agent's composer stands at the bottom, and no shell's prompt.
func (b *bench) composed(rows []string, title string) bool {
	if prompted(rows, title) {
		return false
	}
	for _, r := range tail(rows, 9) {
		if composer(b.agent).MatchString(r) {
			return true
		}
	}
	return false
}

func tail(rows []string, n int) []string { return rows[max(0, len(rows)-n):] }
