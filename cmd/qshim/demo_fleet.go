package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"qshim/cmd/internal/painter"
	"qshim/lockfile"
)

// painterArg is the hidden subcommand that runs a scripted agent.
const painterArg = "__painter"

// fleet is one half of the demo: its agents, and how they are doing.
type fleet struct {
	dir, self, key string
	governed       bool
	store          *lockfile.Dir // governed: what its sessions share
	provider       *demoProvider
	end            func() // the provider

	mu     sync.Mutex
	agents []*demoAgent
}

type demoAgent struct {
	name  string
	ended time.Duration // after the fleet's start; 0: it works
	code  int
	cut   bool // the demo's time was up
}

// newFleet makes the private home, the state directory and the agent: a script
// named claude, so that the real rules for Claude Code apply.
func newFleet(dir, self string, governed bool) (f *fleet, err error) {
	f = &fleet{dir: dir, self: self, governed: governed, provider: newDemoProvider(time.Now()), key: "demo-key-of-the-fleet-" + filepath.Base(dir)}
	for _, d := range []string{"bin", "home", "config"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	script := "#!/bin/sh\nexec \"$DEMO_PAINTER\" " + painterArg + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "bin", "claude"), []byte(script), 0o700); err != nil {
		return nil, err
	}
	approved, err := json.Marshal(map[string]any{"customApiKeyResponses": map[string]any{"approved": []string{f.key[max(0, len(f.key)-20):]}}})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "home", ".claude.json"), approved, 0o600); err != nil {
		return nil, err
	}
	for i := range demoAgents {
		a := &demoAgent{name: fmt.Sprintf("agent-%d", i+1)}
		if err := os.Mkdir(filepath.Join(dir, a.name), 0o700); err != nil {
			return nil, err
		}
		f.agents = append(f.agents, a)
	}
	if governed {
		if f.store, err = lockfile.Open(filepath.Join(dir, "state"), lockfile.Options{}); err != nil {
			return nil, err
		}
	}
	f.end, err = painter.Serve(f.socket(), f.provider.reply)
	return f, err
}

func (f *fleet) socket() string { return filepath.Join(f.dir, "provider") }

// env is all that an agent of the demo sees: nothing of the user's own set-up.
func (f *fleet) env() []string {
	return []string{
		"PATH=" + filepath.Join(f.dir, "bin") + ":/usr/bin:/bin", "HOME=" + filepath.Join(f.dir, "home"),
		"XDG_CONFIG_HOME=" + filepath.Join(f.dir, "config"), "QSHIM_STATE_DIR=" + filepath.Join(f.dir, "state"),
		"TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "DEMO_PAINTER=" + f.self,
		"ANTHROPIC_API_KEY=" + f.key, "DEMO_PROVIDER=" + f.socket(),
	}
}

// start starts every agent on a terminal of its own. both counts them.
func (f *fleet) start(ctx context.Context, both *sync.WaitGroup) error {
	began := time.Now()
	for _, a := range f.agents {
		argv := []string{filepath.Join(f.dir, "bin", "claude")}
		if f.governed {
			argv = []string{f.self, "claude"}
		}
		// Two dashes: to Claude Code -calls would be -c, which goes on with a session.
		argv = append(argv, "--name="+a.name, fmt.Sprint("--calls=", demoCalls),
			fmt.Sprint("--think=", demoThink), fmt.Sprint("--attempts=", demoAttempts))
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = filepath.Join(f.dir, a.name), f.env()
		tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
		if err != nil {
			return err
		}
		both.Go(func() { f.follow(ctx, a, cmd, tty, began) })
	}
	return nil
}

// follow plays the terminal of one agent until it ends or the time is up.
func (f *fleet) follow(ctx context.Context, a *demoAgent, cmd *exec.Cmd, tty *os.File, began time.Time) {
	var helpers sync.WaitGroup
	helpers.Go(func() { _, _ = io.Copy(io.Discard, tty) }) // ends with the terminal
	exited := make(chan struct{})
	helpers.Go(func() { endWith(ctx, cmd.Process, exited) })
	_ = cmd.Wait() // its exit code is looked at below
	close(exited)
	_ = tty.Close() // nothing is written to it any more
	helpers.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	a.ended, a.code, a.cut = time.Since(began), cmd.ProcessState.ExitCode(), ctx.Err() != nil
}

// endWith ends an agent of ours when the time is up.
func endWith(ctx context.Context, p *os.Process, exited <-chan struct{}) {
	select {
	case <-exited:
		return
	case <-ctx.Done():
	}
	_ = p.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-exited:
	case <-time.After(2 * time.Second):
		_ = p.Kill() // as above
	}
}

// agentLook is one agent at one instant.
type agentLook struct {
	name  string
	state string // waiting, running, idle, suspended, retrying, done, failed
	why   string
	until time.Time
	calls int // answered
}

// fleetLook is one fleet at one instant.
type fleetLook struct {
	agents []agentLook
	tally  demoTally
	now    time.Time
}

func (f *fleet) look(now time.Time) fleetLook {
	out := fleetLook{tally: f.provider.tally(), now: now}
	sessions := f.sessions()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.agents {
		calls, until := f.provider.of(a.name)
		l := agentLook{name: a.name, state: "running", calls: calls}
		switch s, ok := sessions[a.name]; {
		case a.ended > 0 && a.code == 0:
			l.state = "done"
		case a.ended > 0:
			l.state = "failed"
		case ok && (s.State == lockfile.Suspended || s.State == lockfile.Waiting):
			l.state, l.why, l.until = string(s.State), s.Reason, s.Until
		case !until.IsZero():
			l.state, l.until = "retrying", until
		}
		out.agents = append(out.agents, l)
	}
	return out
}

// sessions are the fleet's by the directory that each agent has to itself.
func (f *fleet) sessions() map[string]lockfile.Session {
	out := map[string]lockfile.Session{}
	if f.store == nil {
		return out
	}
	l, err := f.store.Read()
	if err != nil {
		return out // the picture misses a beat
	}
	for _, s := range l.Sessions {
		out[filepath.Base(s.Cwd)] = s
	}
	return out
}

// fleetResult is what became of a fleet.
type fleetResult struct {
	done, failed int
	refused      int
	took         time.Duration // until the last one ended
}

func (f *fleet) result() fleetResult {
	r := fleetResult{refused: f.provider.tally().refused}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.agents {
		if a.code == 0 && !a.cut {
			r.done++
		} else {
			r.failed++
		}
		r.took = max(r.took, a.ended)
	}
	return r
}
