package realagents

import (
	"bufio"
	"context"
	"encoding/json"
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

// patience bounds every wait: a scenario takes seconds on an idle machine, and a
// CLI up to a minute to start on a loaded one.
const patience = 100 * time.Second

// turns lets two CLIs run at a time: each takes a whole core to start.
var turns = make(chan struct{}, 2)

// bench is one scenario's world: a provider, one account's HOME, one state
// directory shared by its sessions.
type bench struct {
	*testing.T
	agent    Agent
	provider *fakeprovider.Server
	setup    Setup
	install  string
	state    string
	url      string
}

// newBench waits for its turn; sessions is how many CLIs will run at once.
func newBench(t *testing.T, a Agent, plan bool, sessions int) *bench {
	t.Helper()
	if skip != "" {
		t.Skip(skip)
	}
	install, err := InstallDir(repo)
	if err != nil {
		t.Skip(err)
	}
	if install, err = filepath.EvalSymlinks(install); err != nil {
		t.Fatal(err)
	}
	for range sessions {
		turns <- struct{}{}
	}
	t.Cleanup(func() {
		for range sessions {
			<-turns
		}
	})
	b := &bench{T: t, agent: a, provider: fakeprovider.New(fakeprovider.Options{}), install: install, state: t.TempDir()}
	url, stop, err := b.provider.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.url = url
	t.Cleanup(stop)
	b.setup = b.account("one", plan)
	t.Cleanup(b.tell)
	return b
}

// account makes a HOME for one more account on the same provider and state
// directory.
func (b *bench) account(name string, plan bool) Setup {
	b.Helper()
	s, err := Prepare(b.agent, place(b.T), b.install, b.url, "UTC", Account{Key: DummyKey(b.agent, name), Plan: plan})
	b.must(err)
	return s
}

// tell shows, after a failure, what qshim logged and what the provider was asked.
func (b *bench) tell() {
	if !b.Failed() {
		return
	}
	if shimmed() {
		out, err := b.qshim(context.Background(), "log", "--json", "--since", "24h").CombinedOutput()
		b.Logf("qshim log (%v):\n%s", err, out)
	}
	for _, r := range b.provider.Counts().Requests {
		b.Logf("request %s %q: %d %s", r.At.Format(time.StampMilli), r.Text, r.Status, r.Kind)
	}
}

// place is a directory that goes away with the test. Not t.TempDir: an agent's
// grandchild may still be writing a log when it is removed, which is no failure
// of what is tested here.
func place(t *testing.T) string {
	dir, err := os.MkdirTemp("", "qshim-place-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// wholeOnly skips what a CI run has no time for.
func wholeOnly(t *testing.T) {
	t.Helper()
	if os.Getenv(gate) == "1" {
		t.Skip("runs with " + gate + "=all")
	}
}

// shimmed reports whether the agents run under qshim.
func shimmed() bool { return os.Getenv(gate) != direct }

func (b *bench) env() []string { return []string{"QSHIM_STATE_DIR=" + b.state} }

// start launches one more session on the account and waits for its composer.
func (b *bench) start(args ...string) *Session {
	b.Helper()
	s := b.launch(Launch{Args: args})
	if _, err := s.Row(composer(b.agent), patience); err != nil {
		b.Fatal(err)
	}
	return s
}

func (b *bench) launch(l Launch) *Session {
	b.Helper()
	if shimmed() {
		l.Prefix, l.Env = []string{os.Getenv(builtAs)}, append(l.Env, b.env()...)
	} else if b.agent == Codex {
		l.Args = append([]string{"--no-daemon"}, l.Args...) // what qshim adds by itself
	}
	s, err := Start(b.setup, l)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

// composer is the row that says that an agent takes a prompt.
func composer(a Agent) *regexp.Regexp {
	switch a {
	case Codex:
		return regexp.MustCompile(`^› Ask Codex to do anything`)
	case Gemini, Qwen:
		return regexp.MustCompile(`Type your message`)
	case OpenCode:
		return regexp.MustCompile(`Ask anything`)
	}
	return regexp.MustCompile(`^❯( |$)`)
}

// ask types a prompt and presses Enter until the provider is asked: on a loaded
// machine an agent reads text and Enter at once, which is a paste to it. Before
// any request no dialog can be open that another Enter would answer.
func (b *bench) ask(s *Session, text string) {
	b.Helper()
	before := b.provider.Counts().Sum("", "").Requests
	b.must(s.Ask(text, patience))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(b.Context(), patience/5)
		err := b.provider.Wait(ctx, func(c fakeprovider.Counts) bool { return c.Sum("", "").Requests > before })
		cancel()
		if err == nil {
			return
		}
		b.must(s.Keys("\r"))
	}
	b.Fatal(s.failure("the provider was not asked"))
}

func (b *bench) control(json string) {
	b.Helper()
	c, err := fakeprovider.ParseControl([]byte(json))
	if err == nil {
		err = b.provider.Apply(c)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// served waits until the provider has answered n requests to the end.
func (b *bench) served(n int) {
	b.Helper()
	b.counted(func(s fakeprovider.AccountCount) bool { return s.OK-s.Answering >= n })
}

// refused waits until the provider has answered n requests with 429.
func (b *bench) refused(n int) {
	b.Helper()
	b.counted(func(s fakeprovider.AccountCount) bool { return s.Limited >= n })
}

func (b *bench) counted(ok func(fakeprovider.AccountCount) bool) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	err := b.provider.Wait(ctx, func(c fakeprovider.Counts) bool { return ok(c.Sum("", "")) })
	if err != nil {
		b.Fatalf("%v; the provider counts %+v", err, b.provider.Counts().Accounts)
	}
}

// event is a line of qshim log --json.
type event struct {
	At         time.Time `json:"at"`
	Event      string    `json:"event"`
	Session    string    `json:"session"`
	Agent      string    `json:"agent"`
	Limiter    string    `json:"limiter"`
	Class      string    `json:"class"`
	Cause      string    `json:"cause"`
	Confidence string    `json:"confidence"`
	ErrorCode  string    `json:"error_code"`
	Until      time.Time `json:"until"`
	RetryAfter float64   `json:"retry_after_s"`
	Rule       string    `json:"rule"`
	Rows       []string  `json:"rows"`
	Reason     string    `json:"reason"`
}

func (e event) String() string {
	return fmt.Sprintf("%s %s %s/%s %s rule=%s until=%s after=%g %q", e.Event, e.Limiter, e.Class, e.Cause, e.Confidence, e.Rule, e.Until.Format(time.RFC3339), e.RetryAfter, e.Rows)
}

// qshim runs one of qshim's own commands on the scenario's state directory.
func (b *bench) qshim(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Getenv(builtAs), args...)
	cmd.Env = append(append([]string{}, b.setup.Env...), b.env()...)
	cmd.Dir = b.setup.Project
	return cmd
}

// logged waits for an event that ok accepts; all others are shown when none comes.
func (b *bench) logged(what string, ok func(event) bool) event {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	cmd := b.qshim(ctx, "log", "--json", "--follow", "--since", "24h")
	out, err := cmd.StdoutPipe()
	b.must(err)
	b.must(cmd.Start())
	defer func() { cancel(); _ = cmd.Wait() }() // ended by us: its status says nothing
	var seen []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			b.Fatalf("not an event: %q", lines.Text())
		}
		if ok(e) {
			return e
		}
		seen = append(seen, e.String())
	}
	b.Fatalf("no event: %s; the log holds\n%s", what, strings.Join(seen, "\n"))
	return event{}
}

// events is the whole log so far.
func (b *bench) events() []event {
	b.Helper()
	out, err := b.qshim(b.Context(), "log", "--json", "--since", "24h").Output()
	b.must(err)
	var all []event
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if line == "" {
			continue
		}
		var e event
		b.must(json.Unmarshal([]byte(line), &e))
		all = append(all, e)
	}
	return all
}

// status is what qshim status --json says.
type status struct {
	Limiters []struct {
		ID    string `json:"id"`
		State string `json:"state"`
		Holds []struct {
			Class string    `json:"class"`
			Until time.Time `json:"until"`
		} `json:"holds"`
	} `json:"limiters"`
	Sessions []struct {
		ID       string   `json:"id"`
		ChildPID int      `json:"child_pid"`
		Agent    string   `json:"agent"`
		Limiters []string `json:"limiters"`
		State    string   `json:"state"`
	} `json:"sessions"`
}

func (b *bench) status() status {
	b.Helper()
	out, err := b.qshim(b.Context(), "status", "--json").Output()
	b.must(err)
	var s status
	b.must(json.Unmarshal(out, &s))
	return s
}

// eventually looks every few milliseconds: process states send no event.
func (b *bench) eventually(what string, limit time.Duration, ok func() bool) time.Duration {
	b.Helper()
	begin := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Since(begin) > limit {
			b.Fatalf("%s: not within %v", what, limit)
		}
		<-tick.C
	}
	return time.Since(begin)
}

// stopped reports whether every process of a session's agent is stopped.
func (b *bench) stopped(s *Session) bool {
	all := s.Agent(b.install)
	for _, p := range all {
		if p.State != "T" {
			return false
		}
	}
	return len(all) > 0
}
