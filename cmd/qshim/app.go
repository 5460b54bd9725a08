package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"qshim/cmd/internal/cmdline"
	"qshim/cmd/internal/painter"
	"qshim/lockfile"
	"qshim/lockfile/fault"
	"qshim/policies"
	"qshim/policies/account"
	"qshim/policies/config"
	"qshim/shim"
)

// app is qshim's outside: streams, environment, clock, and what the flags and
// files said. Commands reach the world only through it.
type app struct {
	stdin, stdout, stderr *os.File
	getenv                func(string) string
	lookupEnv             func(string) (string, bool)
	environ               func() []string
	now                   func() time.Time
	rand                  func() float64

	flags  map[string]string // settings given as flags, by key
	file   string            // --config
	config *config.Config    // loaded on first use
	policy policies.Policy   // of config
	known  *profiles         // loaded on first use
	unread []error           // what is wrong with the user's own profiles
	end    shim.End          // of the agent; its signal is qshim's too
}

func newApp() *app {
	return &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, lookupEnv: os.LookupEnv, environ: os.Environ,
		now: fault.Clock(time.Now), rand: rand.Float64,
		flags: map[string]string{},
	}
}

// Exit codes of qshim's own; an agent's code is passed on as it is.
const (
	exitFailed   = 1
	exitUsage    = 2   // bad arguments or configuration
	exitTempFail = 75  // a launch that is not made now (EX_TEMPFAIL)
	exitGaveUp   = 130 // Ctrl-C in the launch wait
)

// exitError ends qshim with a code. An empty text prints nothing: it is said.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// usagef is a mistake of the caller's: exit 2.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...)}
}

// exitCode is what err ends qshim with.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.code
	}
	return exitFailed
}

// load reads the configuration once: file, environment, flags.
func (a *app) load() error {
	if a.config != nil {
		return nil
	}
	name, data, err := a.configFile()
	if err != nil {
		return err
	}
	c, err := config.Load(config.Input{Name: name, Data: data, Env: a.lookupEnv, Flags: a.flags})
	if err != nil {
		return &exitError{exitUsage, err.Error()}
	}
	if err := checkLimiter(c); err != nil {
		return err
	}
	a.config, a.policy = c, c.Policy
	return nil
}

// checkLimiter: a limiter that nobody can be on would look like an account of
// its own. The value is not shown, since it may be a key.
func checkLimiter(c *config.Config) error {
	if c.Limiter == "" || account.CheckID(c.Limiter) == nil {
		return nil
	}
	o, _ := c.Origin("", "limiter") // a value that is set has one
	return usagef("%v", &config.Error{Origin: o, Text: account.CheckID(c.Limiter).Error()})
}

// configFile reads --config, $QSHIM_CONFIG, or the user's file if there is one.
func (a *app) configFile() (name string, data []byte, err error) {
	name, by := a.file, "--config"
	if name == "" {
		name, by = a.getenv("QSHIM_CONFIG"), "QSHIM_CONFIG"
	}
	asked := name != ""
	if !asked {
		dir := a.configDir()
		if dir == "" {
			return "", nil, nil
		}
		name = filepath.Join(dir, "config.toml")
	}
	data, err = readConfig(name, asked)
	if errors.Is(err, os.ErrNotExist) && !asked {
		return name, nil, nil
	}
	if e := (*fs.PathError)(nil); errors.As(err, &e) && asked {
		return name, nil, usagef("config file %s: %v (named by %s)", name, e.Err, by)
	} else if errors.As(err, &e) {
		return name, nil, usagef("config file %s: %v", name, e.Err)
	}
	return name, data, nil
}

// maxConfig bounds a config file, in bytes.
const maxConfig = 1 << 20

// readConfig reads a config file. The one that is looked for by itself must be
// a regular file, so that nothing that lies there can hang a launch; one that
// was asked for may be a pipe (<(…)).
func readConfig(name string, asked bool) ([]byte, error) {
	flag := os.O_RDONLY
	if !asked {
		flag |= unix.O_NONBLOCK
	}
	f, err := os.OpenFile(name, flag, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !asked && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is not a regular file")}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = &fs.PathError{Op: "read", Path: name, Err: errors.New("it is larger than 1 MiB")}
	}
	return data, err
}

// configDir is $XDG_CONFIG_HOME/qshim, else ~/.config/qshim; empty without a home.
func (a *app) configDir() string {
	if d := a.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "qshim")
	}
	if h := a.getenv("HOME"); h != "" {
		return filepath.Join(h, ".config", "qshim")
	}
	return ""
}

// stateDir is --state-dir, else $XDG_STATE_HOME/qshim, else ~/.local/state/qshim.
func (a *app) stateDir() (string, error) {
	if d := a.config.StateDir; d != "" {
		return filepath.Abs(d)
	}
	if d := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "qshim"), nil
	}
	if h := a.getenv("HOME"); h != "" {
		return filepath.Join(h, ".local", "state", "qshim"), nil
	}
	return "", errors.New("there is no place for the state: set HOME or --state-dir")
}

// openStore opens the state directory; what it sets aside is said once.
func (a *app) openStore() (*lockfile.Dir, error) {
	return a.openStoreTelling(func(n lockfile.Notice) { sayNotice(a.stderr, n) })
}

// openStoreTelling is openStore where what it sets aside is told to notice.
func (a *app) openStoreTelling(notice func(lockfile.Notice)) (*lockfile.Dir, error) {
	if err := a.load(); err != nil {
		return nil, err
	}
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	return lockfile.Open(dir, lockfile.Options{Now: a.now, Notice: notice})
}

func (a *app) readLedger() (lockfile.Ledger, error) {
	s, err := a.openStore()
	if err != nil {
		return lockfile.Ledger{}, err
	}
	defer s.Close()
	_, _ = s.Recover(shim.ContinueOrphan) // best effort: what killed shims left is not what was asked for
	l, err := s.Read()
	for id, x := range l.Sessions {
		if shim.GoesOn(x) {
			x.State, x.Reason, x.Until = lockfile.Running, "", time.Time{}
			l.Sessions[id] = x
		}
	}
	return l, err
}

// settingFlags are the flags before the agent, each a setting of the same name.
var settingFlags = []struct{ name, help string }{
	{"state-dir", "directory of the shared state"},
	{"profile", "the agent's profile, instead of by the name that is called"},
	{"limiter", "the account part of the limiters, for example openai/team-a"},
	{"priority", "interactive or background"},
	{"max-wait", "longest launch wait without a terminal, for example 6h"},
	{"resume", "a task that failed by a limit: once, notify or never"},
	{"mode", "govern, or observe: detect and log, touch nothing"},
}

// ownWords are the first words that are qshim's own, not an agent's.
var ownWords = []string{
	"completion", "config", "continue", "demo", "doctor", "explain", "help", "hold", "init", "link", "log", "queue", "release", "status",
	"unlink", "version", cmdline.Request, cmdline.RequestPlain,
}

// commands are those of qshim's own, a file each.
var commands = []func(*app) *cmdline.Command{
	statusCmd, logCmd, queueCmd, holdCmd, releaseCmd, continueCmd, initCmd, linkCmd, unlinkCmd, configCmd, doctorCmd, demoCmd,
	versionCmd, explainCmd, helpCmd, completionCmd,
}

// root is the command line. What follows AGENT belongs to it, byte for byte:
// flags are read only up to the first word.
func (a *app) root() *cmdline.Command {
	c := &cmdline.Command{
		Use:      "qshim [flags] AGENT [args...]",
		Long:     rootHelp,
		Flags:    a.ownFlags(),
		MaxArgs:  cmdline.AnyArgs,
		Verbatim: true,
		Complete: func(args []string) cmdline.Offer {
			if len(args) > 0 {
				return cmdline.Offer{} // the agent's own
			}
			return a.agentsInPath()
		},
		Run: func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return usagef("which agent? For example: qshim claude (all commands: qshim --help)")
			}
			return a.runAgent(ctx, args)
		},
	}
	for _, sub := range commands {
		c.Add(sub(a))
	}
	return c
}

// ownFlags are those of every command and of a launch. The configuration knows
// the form of what they say.
func (a *app) ownFlags() []*cmdline.Flag {
	setting := func(name, kind, help string) *cmdline.Flag {
		return &cmdline.Flag{Name: name, Kind: kind, Help: help, Set: func(s string) error {
			a.flags[strings.ReplaceAll(name, "-", "_")] = s
			return nil
		}}
	}
	flags := []*cmdline.Flag{
		cmdline.String(&a.file, "config", "config file (default ~/.config/qshim/config.toml)"),
		setting("now", "", "launch at once, in spite of every hold"),
		setting("no-adjust", "", "leave the agent's arguments and environment as they are"),
	}
	for _, s := range settingFlags {
		flags = append(flags, setting(s.name, "string", s.help))
	}
	return flags
}

// run is qshim's whole life.
func (a *app) run(ctx context.Context, argv []string) int {
	err := a.dispatch(ctx, argv)
	if err != nil && err.Error() != "" {
		for line := range strings.Lines(err.Error()) { // several mistakes in a config file
			say(a.stderr, "%s", errorWords(errors.New(line)))
		}
	}
	return exitCode(err)
}

// dispatch tells a call by a link's name (claude -> qshim) from qshim's own.
func (a *app) dispatch(ctx context.Context, argv []string) error {
	if len(argv) > 1 && argv[1] == painterArg {
		return &exitError{code: painter.Main(argv[2:], a.stdin, a.stdout, a.stderr, a.getenv)}
	}
	if words, ok := calledAs(argv); ok {
		return a.runAgent(ctx, words)
	}
	if len(argv) > 1 && argv[1] != "" && argv[1][0] != '-' && !slices.Contains(ownWords, argv[1]) {
		return a.runAgent(ctx, argv[1:]) // as root would, after making all commands
	}
	words := argv[min(1, len(argv)):]
	if len(words) > 0 && (words[0] == cmdline.Request || words[0] == cmdline.RequestPlain) {
		return a.offer(words[0] == cmdline.RequestPlain, words[1:])
	}
	return a.command(ctx, a.root(), words)
}

// command reads words against c and does what they ask for.
func (a *app) command(ctx context.Context, c *cmdline.Command, words []string) error {
	call, err := c.Parse(words)
	if m := (*cmdline.Mistake)(nil); errors.As(err, &m) {
		return usagef("%s", mistakeWords(m))
	} else if err != nil {
		return err
	}
	if call.Help {
		return printHelp(a.stdout, call.Command)
	}
	return call.Command.Run(ctx, call.Args)
}
