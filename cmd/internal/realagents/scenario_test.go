package realagents

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"qshim/cmd/internal/fakeprovider"
)

// scenario is one refusal (or none) as one agent meets it, on a screen or, with
// args, as a call without one.
type scenario struct {
	name    string
	agent   Agent
	plan    bool
	control string   // for the provider, before the prompt
	env     []string // added to the agent's environment
	args    []string // headless: the call; its output stands for the screen
	code    int      // headless: how the call ends
	shows   string   // regexp that the rows must match, blanks taken out
	answers bool     // the turn ends with the provider's answer, after the agent's own retry
	slow    bool     // only with QSHIM_REAL_AGENTS=all: the agent tries for minutes or starts for half a one

	// What qshim must find: a class, or alternatives separated by |. Empty: it
	// must find nothing. Cause is wanted for class retrying.
	class, cause string
	reset        time.Duration // the hold's end, from the refusal; 0: not looked at
}

func (c scenario) title() string {
	if c.args != nil {
		return string(c.agent) + "/headless-" + c.name
	}
	return string(c.agent) + "/" + c.name
}

func TestScenario(t *testing.T) {
	for _, c := range append(scenarios(), headlessScenarios()...) {
		t.Run(c.title(), func(t *testing.T) {
			if c.slow && os.Getenv(gate) != everything {
				t.Skip("in the whole set: " + gate + "=" + everything)
			}
			t.Parallel()
			b := newBench(t, c.agent, c.plan, 1)
			if c.control != "" {
				b.control(c.control)
			}
			if c.args != nil {
				c.call(b)
				return
			}
			s := b.launch(Launch{Env: c.env})
			if _, err := s.Row(composer(c.agent), patience); err != nil {
				b.Fatal(err)
			}
			asked := time.Now()
			b.ask(s, "pane1 go on")
			b.must(s.Text(regexp.MustCompile(c.shows), c.patience()))
			shown := time.Now()
			if c.answers {
				b.served(1)
				b.must(s.Text(c.answer(), patience))
			}
			if shimmed() {
				c.found(b, s, asked, shown)
			}
		})
	}
}

// patience of a slow scenario is that of the agent's own tries.
func (c scenario) patience() time.Duration {
	if c.slow {
		return 4 * time.Minute
	}
	return patience
}

// answer is what the provider says, as the screen shows it without blanks.
func (c scenario) answer() *regexp.Regexp {
	if r, ok := recitals[c.agent]; ok && strings.HasPrefix(c.name, "recital") {
		return regexp.MustCompile(regexp.QuoteMeta(strings.Join(strings.Fields(r), "")[:20]))
	}
	return regexp.MustCompile(`OK:"?pane1goon`)
}

// call runs the agent without a screen, on pipes, to its end.
func (c scenario) call(b *bench) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), c.patience())
	defer cancel()
	argv := append([]string{string(c.agent)}, append(append([]string{}, b.setup.Args...), c.args...)...)
	if shimmed() {
		argv = append([]string{os.Getenv(builtAs)}, argv...)
	}
	env := append(append(append([]string{}, b.setup.Env...), b.env()...), c.env...)
	env = append(env, "QSHIM_RESUME=never") // what a limit ends, ends here
	path, err := lookPath(argv[0], env)
	b.must(err)
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Args[0], cmd.Dir, cmd.Env = argv[0], b.setup.Project, env
	cmd.WaitDelay = drain
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if code := exitCode(err); code != c.code && !errors.Is(err, exec.ErrWaitDelay) {
		b.Fatalf("the call ended with %d, want %d: %v\n%s", code, c.code, ctx.Err(), out.Bytes())
	}
	if said := strings.Join(strings.Fields(out.String()), ""); !regexp.MustCompile(c.shows).MatchString(said) {
		b.Errorf("no %s in\n%s", c.shows, out.Bytes())
	}
	if shimmed() {
		refused := c.refusal(b)
		c.found(b, nil, refused, refused)
	}
}

// refusal is when the provider refused first, the present where it did not.
func (c scenario) refusal(b *bench) time.Time {
	for _, r := range b.provider.Counts().Requests {
		if r.Kind != "" && r.Kind != fakeprovider.Plain && !r.Side {
			return r.At
		}
	}
	return time.Now()
}

// ended hangs up and waits for the end. Gemini CLI 0.61.0 does not survive a
// hangup in an orderly way, with or without qshim (SIGABRT or SIGSEGV in node's
// terminal code, measured), and about one in forty stays: that one is killed,
// since the end itself is not what is tested here.
func (b *bench) ended(s *Session) error {
	if _, err := s.Hangup(patience / 4); err == nil {
		return nil
	}
	for _, p := range s.Agent(b.install) {
		signalTo(p, syscall.SIGKILL)
	}
	_, err := s.Exited(patience)
	return err
}

// found checks what qshim made of it.
// s is nil for a call that has ended; shown is when
// the refusal could first be seen.
func (c scenario) found(b *bench, s *Session, asked, shown time.Time) {
	b.Helper()
	if c.class == "" {
		// What is not found by its end was not found.
		if s != nil {
			b.must(b.ended(s))
		}
		b.logged("exit", func(e event) bool { return e.Event == "exit" })
		for _, e := range b.events() {
			if e.Event == "hold" || (e.Event == "finding" && e.Confidence != "weak") {
				b.Errorf("nothing was to be found: %v", e)
			}
		}
		return
	}
	among := func(list, word string) bool { return list == "" || strings.Contains("|"+list+"|", "|"+word+"|") }
	e := b.logged("a finding "+c.class, func(e event) bool {
		return e.Event == "finding" && among(c.class, e.Class) && (e.Class != "retrying" || among(c.cause, e.Cause))
	})
	b.Logf("found %s by %s, %v after it could be seen", e.Class, e.Rule, e.At.Sub(shown).Round(time.Millisecond))
	if e.Agent != string(c.agent) || e.Limiter == "" || e.Confidence == "weak" {
		b.Errorf("finding without its agent, limiter or confidence: %v", e)
	}
	if c.reset > 0 {
		h := b.logged("a hold "+c.class, func(e event) bool { return e.Event == "hold" && among(c.class, e.Class) })
		// A clock time is cut to its minute, then a minute's margin and up to 10 s follow.
		if late := h.Until.Sub(asked.Add(c.reset)); late < -5*time.Second || late > 150*time.Second {
			b.Errorf("held until %v, %v after the reset", h.Until, late)
		}
	}
	if c.answers && s != nil {
		b.logged("open again", func(e event) bool { return e.Event == "release" || e.Event == "finding" })
		b.eventually("the limiter is open", patience, func() bool {
			for _, l := range b.status().Limiters {
				if l.State != "open" {
					return false
				}
			}
			return true
		})
	}
}
