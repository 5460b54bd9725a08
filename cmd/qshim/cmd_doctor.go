package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"qshim/cmd/internal/cmdline"
	"qshim/lockfile"
	"qshim/policies/account"
	"qshim/policies/agents"
	"qshim/shim"
)

func doctorCmd(a *app) *cmdline.Command {
	var repair bool
	return &cmdline.Command{
		Use:   "doctor",
		Short: "Check the set-up: agents, accounts, state directory",
		Long: `Check the set-up: which agents are found and in which versions, whose account
each would use, what is adjusted in a launch, whether the state directory works,
and which running agents are not governed. Exit code 1 when something is wrong.`,
		Flags: []*cmdline.Flag{cmdline.Bool(&repair, "repair", "mend what can be mended safely; nothing is deleted")},
		Run: func(context.Context, []string) error {
			if err := a.load(); err != nil {
				return err
			}
			d := doctor{a: a, p: paletteFor(a.stdout, a.getenv), repair: repair}
			d.examine()
			if d.bad > 0 {
				return &exitError{code: exitFailed}
			}
			return nil
		},
	}
}

// doctor looks and says. Unless it may repair it changes nothing that a launch
// would not change too: a file that nobody can read is set aside by either.
type doctor struct {
	a      *app
	p      palette
	repair bool
	bad    int
}

func (d *doctor) examine() {
	d.fine("qshim %s", version())
	if file, data, err := d.a.configFile(); err == nil && data != nil {
		d.fine("config %s", file)
	} else {
		d.fine("config: defaults, there is no %s", file)
	}
	d.ownProfiles()
	store := d.state()
	if store != nil {
		defer store.Close()
	}
	d.agents(store)
	d.unrecognised(store)
	d.ungoverned(store)
}

// ownProfiles tells of the user's own profiles.
func (d *doctor) ownProfiles() {
	if err := d.a.profileErrors(); err != nil {
		for line := range strings.Lines(err.Error()) {
			d.wrong("%s", printable(strings.TrimSpace(line)))
		}
	}
	for _, p := range d.a.profiles().all() {
		switch {
		case p.User == nil:
		case p.Raw == nil:
			d.fine("agent profile %s: %s", printable(p.Name), printable(p.User.Path))
		default:
			d.fine("agent profile %s: %s, over the built-in one", printable(p.Name), printable(p.User.Path))
		}
	}
}

// state checks the state directory; nil where it does not work.
func (d *doctor) state() *lockfile.Dir {
	dir, err := d.a.stateDir()
	if err != nil {
		d.wrong("%v", err)
		return nil
	}
	before := d.bad
	for _, p := range lockfile.Check(dir, lockfile.Options{Now: d.a.now}) {
		d.problem(p)
	}
	store, err := d.a.openStore()
	if err != nil && d.bad > before {
		return nil // why is said
	}
	if err != nil {
		d.wrong("%s", errorWords(err))
		return nil
	}
	if d.repair {
		d.recover(store)
	}
	if l, err := store.Read(); err == nil {
		d.fine("state directory %s: %s", store.Path(), ledgerWords(l))
	}
	return store
}

// recover continues what dead sessions left stopped.
func (d *doctor) recover(store *lockfile.Dir) {
	dead, err := store.Recover(shim.ContinueOrphan)
	if err != nil {
		d.wrong("%s", errorWords(err))
	}
	for _, s := range dead {
		d.fine("cleaned up after session %s, whose qshim was killed", printable(s.ID))
	}
}

func (d *doctor) problem(p lockfile.Problem) {
	words, harmless := problemWords(p)
	switch {
	case harmless:
		d.note("%s", words)
	case p.Repair != nil && d.repair:
		if err := p.Repair(); err != nil {
			d.wrong("%s; repairing it failed: %s", words, printable(err.Error()))
			return
		}
		d.fine("repaired: %s", words)
	case p.Repair != nil:
		d.wrong("%s (qshim doctor --repair mends it)", words)
	default:
		d.wrong("%s", words)
	}
}

// agents tells of each known agent in PATH.
func (d *doctor) agents(store *lockfile.Dir) {
	find := newFinder(d.a.getenv("PATH"))
	found := 0
	for _, p := range d.a.profiles().all() {
		for _, b := range p.Binaries {
			t, err := resolveLaunch([]string{b}, p.Name, d.a.profiles(), find)
			if err != nil {
				continue
			}
			found++
			d.agent(&t, store)
		}
	}
	if found == 0 {
		d.note("no agent that qshim knows is in PATH; any other runs too: qshim ANYTHING")
	}
}

func (d *doctor) agent(t *launchTarget, store *lockfile.Dir) {
	p := prober{stat: os.Stat, run: runProbe, env: d.a.environ()}
	var salt []byte
	if store != nil {
		p.cache = store
		salt, _ = store.Salt() // without one the IDs differ from the sessions'; the directory's trouble is said above
	}
	v := p.version(t)
	if v == "" {
		v = "version unknown"
	}
	d.fine("%s: %s (%s)", t.Profile.Title, t.Path, printable(v))
	cwd, _ := os.Getwd() // a directory that is gone: identity does without
	id := account.Identify(account.Launch{Profile: t.Profile, Command: t.Command, Env: d.a.getenv, Home: d.a.getenv("HOME"), Cwd: cwd,
		FS: agentFiles{}, Salt: salt, Override: d.a.config.Limiter, Aliases: d.a.config.Aliases})
	d.identity(id)
	k := p.known(t)
	for _, format := range []string{"", "text"} { // on a terminal, and without a screen
		applied := t.Profile.Adjustments(nil, agents.Call{Session: true, Headless: format != "", StreamFormat: format}, d.a.getenv, k)
		for _, name := range applied.Names {
			d.adjustment(t.Profile, name, slices.Contains(applied.Fallbacks, name), format != "")
		}
	}
}

func (d *doctor) identity(id account.Identity) {
	labels := make([]string, len(id.Limiters))
	for i, m := range id.Limiters {
		labels[i] = printable(m.ID)
	}
	first := ""
	if len(id.Limiters) > 0 {
		first = printable(id.Limiters[0].Label)
	}
	if !id.Known {
		d.note("  account unknown: its sessions wait for each other and for no others (%s)", strings.Join(labels, ", "))
		return
	}
	d.fine("  draws on %s, by %s (%s)", first, printable(id.How), strings.Join(labels, ", "))
}

// adjustment names one adjustment, in the second round only those that are
// made for some output formats.
func (d *doctor) adjustment(p *agents.Profile, name string, fallback, formats bool) {
	for _, a := range p.Adjust {
		if a.Name != name || formats != (len(a.Formats) > 0) {
			continue
		}
		if fallback {
			d.note("  adjusted in its harmless form (%s): %s", strings.Join(a.Fallback, " "), a.Why)
			return
		}
		var what []string
		for _, v := range a.Args {
			what = append(what, strings.NewReplacer("{log}", "…", "{uuid}", "…").Replace(v))
		}
		for k := range a.Env {
			what = append(what, k+"=…")
		}
		d.fine("  adjusted (%s): %s", strings.Join(what, " "), a.Why)
	}
}

// driftSince is how far back doctor counts what no rule knew.
const driftSince = 7 * 24 * time.Hour

// unrecognised counts the failed turns whose limit no rule knew, by agent.
func (d *doctor) unrecognised(store *lockfile.Dir) {
	if store == nil {
		return
	}
	seen := map[string]int{}
	for e, err := range store.Events(context.Background(), d.a.now().Add(-driftSince), false) {
		if err == nil && e.Event == driftEvent {
			seen[e.Agent]++
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(seen)) {
		d.note("%s: %s in a week ended on limit words that no rule knows (qshim log --unrecognised --since 7d)", printable(agent), count(seen[agent], "turn"))
	}
}

// ungoverned tells of agents that run without qshim: they share the account,
// but hear of no hold.
func (d *doctor) ungoverned(store *lockfile.Dir) {
	names := map[string]string{}
	for _, p := range d.a.profiles().all() {
		for _, b := range p.Binaries {
			names[b] = p.Title
		}
	}
	governed := map[int]bool{}
	if store != nil {
		if l, err := store.Read(); err == nil {
			for _, s := range l.Sessions {
				governed[s.PID] = s.Alive
			}
		}
	}
	for _, p := range otherAgents(names, governed) {
		d.note("%s runs without qshim: pid %d", names[p.name], p.pid)
	}
}

type runningAgent struct {
	pid  int
	name string
}

// otherAgents finds this user's processes that are named like an agent and have
// no session above them. It needs /proc; elsewhere it finds none.
func otherAgents(names map[string]string, governed map[int]bool) (out []runningAgent) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	uid := os.Getuid()
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || !ownedBy(info, uid) {
			continue
		}
		line, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue
		}
		name := agentName(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), names)
		pid := atoi(filepath.Base(dir))
		if name == "" || slices.ContainsFunc(ancestorsOf(pid, parentOf), func(up int) bool {
			return governed[up] || processName(up, names) != "" || isQshim(up)
		}) {
			continue
		}
		out = append(out, runningAgent{pid, name})
	}
	return out
}
