//go:build linux

package shim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"qshim/detect"
	"qshim/lockfile"
	profiles "qshim/policies/agents"
	"qshim/policies/config"
)

// sessionArg is a whole session: __session CMD…, with its state in stateEnv.
const (
	sessionArg = "__session"
	stateEnv   = "QSHIM_TEST_STATE"
	agentEnv   = "QSHIM_TEST_PROFILE" // generic if not set
	faultEnv   = "QSHIM_TEST_FAULT"   // what goes wrong: see sessionMain
	bellEnv    = "QSHIM_TEST_BELL"    // file that the notify_command writes its argument to
)

// testVoice says little, with a countdown.
type testVoice struct{}

func (testVoice) PauseRow(p Pause, cols int) string {
	left := p.Decision.Until.Sub(p.Now).Round(time.Second)
	return fmt.Sprintf("⏸停 PAUSED keys=%d dropped=%d %v", p.Keys, p.Dropped, left)
}
func (testVoice) Title(p Pause) string       { return "suspended title" + strings.Repeat("!", p.Dropped) }
func (testVoice) Notice(n Notice) string     { return "-e notice\x07 " + string(n.Kind) }
func (testVoice) Line(p Pause, _ int) string { return "waits: " + string(p.Decision.Reason.Code) }
func (testVoice) Note(Pause) string          { return "note" }
func (testVoice) Ask(Pause) string           { return "ask " }
func (testVoice) GiveUp(Pause) string        { return "give up" }
func (testVoice) Warn(err error) string      { return "WARN " + err.Error() }

// sessionMain is what cmd/qshim does around Run.
func sessionMain(argv []string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	profile := os.Getenv(agentEnv)
	if profile == "" {
		profile = "generic"
	}
	raw, _ := profiles.Builtin(profile)
	rules, err := detect.ParseProfile(profile, raw)
	if err != nil {
		return fail(err)
	}
	store, err := lockfile.Open(os.Getenv(stateEnv), lockfile.Options{})
	if err != nil {
		return fail(err)
	}
	fault := os.Getenv(faultEnv)
	now := time.Now()
	s := lockfile.Session{
		PID: os.Getpid(), Agent: profile, Limiters: []string{testLimiter}, Priority: lockfile.Interactive,
		State: lockfile.Running, Since: now, Born: now, TurnBegan: now, Observe: fault == "observe",
	}
	if fault == "launch" {
		s.State, s.Prompt = lockfile.Waiting, true
	}
	lease, err := store.Lease(s)
	if err != nil {
		return fail(err)
	}
	defer lease.Close()
	if fault == "launch" {
		w := LaunchWait{Store: store, Policy: config.Defaults().Policy, Self: lease.ID(), Label: func(id string) string { return id },
			Voice: testVoice{}, Out: os.Stderr, Now: time.Now, Rand: func() float64 { return 0.5 }}
		if v, sig := w.OnTerminal(context.Background()); v != Launch {
			return map[Verdict]int{Abandoned: 130, TooLong: 75, Terminated: 128 + int(sig)}[v]
		}
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fail(err)
	}
	policy := config.Defaults().Policy
	policy.C.Rate.Base, policy.C.Probe.Time = time.Second, 2*time.Second // a test does not wait half a minute
	c := Config{
		Options: Options{Path: path, Argv: argv, Env: without(without(os.Environ(), stateEnv), faultEnv),
			Streams: rules.HasStreams(), Errors: profile == "codex"},
		Headless: profile == "codex",
		Title:    "Agent", Rules: rules, Zone: time.UTC, Store: store, Self: lease.ID(), Policy: policy,
		Voice: testVoice{}, Label: func(id string) string { return id }, Family: func(string) string { return "" },
		Now: time.Now, Rand: func() float64 { return 0.5 }, Stderr: os.Stderr, TitleOn: true, OSC9: true,
	}
	if file := os.Getenv(bellEnv); file != "" {
		c.NotifyCommand = []string{"/bin/sh", "-c", `printf '%s|' "$1" >>` + file, "sh"}
	}
	if fault == "panic" {
		c.Store = panicStore{store}
		c.Crash = func(report []byte) { _ = os.WriteFile(filepath.Join(os.Getenv(stateEnv), "crash"), report, 0o600) }
	}
	end, err := Run(context.Background(), c)
	if err != nil {
		return fail(err)
	}
	return ended(end)
}

// panicStore panics when somebody is suspended.
type panicStore struct{ lockfile.Store }

func (s panicStore) Read() (lockfile.Ledger, error) {
	l, err := s.Store.Read()
	for _, x := range l.Sessions {
		if x.State == lockfile.Suspended {
			panic("a bug of ours")
		}
	}
	return l, err
}
