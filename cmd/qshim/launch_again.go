package main

import (
	"context"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"qshim/lockfile/fault"
	"qshim/policies"
	"qshim/policies/agents"
	"qshim/shim"
	"qshim/shim/term"
)

// again is a headless launch whose task is done again when a limit broke it
// (resume = "once"), or whose user is told how (resume = "notify").
//
// What the runs write: standard output carries the last run's document alone
// where the format is one (text, json) and it goes into a pipe or a file; it
// goes as it comes where it is a stream of records, or a terminal, where a
// person sees one run after the other. Standard error is a log, not a document:
// every run's goes as it comes, with qshim's own lines in between.
type again struct {
	once    bool
	args    []string // of the run that is on, or was last
	attempt *shim.Attempt
	spool   *shim.Spool
	feed    *shim.Feed
	file    int64 // where a file on standard input stood at the start; -1: it is none
	replied bool  // the model has answered in one of the runs
	caught  chan os.Signal
}

// again says what is done should a limit break this launch; nil: nothing.
func (l *launch) again() *again {
	p := l.t.Profile
	mode := l.a.config.Resume(p.Name, true)
	if !l.call.Headless || mode == "never" || l.set.Observe() {
		return nil
	}
	g := &again{
		once: mode == "once" && p.CanRunAgain(l.t.Args(), l.call), args: l.t.Args(), file: -1,
		attempt: &shim.Attempt{Session: p.SessionOf(l.t.Args()), Text: l.call.StreamFormat == "text"},
	}
	if p.Resume.ID != "" {
		g.attempt.ID = regexp.MustCompile(p.Resume.ID) // the profile was checked when it was read
	}
	if !g.once {
		return g
	}
	g.attempt.Able = func(a *shim.Attempt) bool { return l.nextArgs(g) != nil }
	g.catch()
	if term.IsTerminal(0) && term.IsTerminal(1) {
		return g
	}
	switch kindOf(0) {
	case unix.S_IFIFO, unix.S_IFSOCK:
		g.feed = shim.NewFeed(0)
	case unix.S_IFREG:
		if at, err := unix.Seek(0, 0, unix.SEEK_CUR); err == nil {
			g.file = at
		}
	}
	if out := kindOf(1); l.call.StreamFormat != "stream-json" && (out == unix.S_IFIFO || out == unix.S_IFSOCK || out == unix.S_IFREG) {
		g.spool = shim.NewSpool("")
	}
	return g
}

// catch listens from the first run on: a signal between a run and the wait for
// the next one would kill qshim with what the run wrote still in the spool.
func (g *again) catch() {
	set := []os.Signal{unix.SIGTERM}
	for _, s := range []syscall.Signal{unix.SIGHUP, unix.SIGINT} {
		if !signal.Ignored(s) { // nohup: stays ignored
			set = append(set, s)
		}
	}
	g.caught = make(chan os.Signal, 1)
	signal.Notify(g.caught, set...)
}

// untilCaught is done when one of these signals has come.
func (g *again) untilCaught(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-g.caught:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// kindOf is the file type of a descriptor, 0 if it is closed.
func kindOf(fd int) uint32 {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0
	}
	return uint32(st.Mode) & unix.S_IFMT
}

// nextArgs are the arguments that do a failed run's task again: those that
// continue its session, or the same ones where nothing has been done yet. nil:
// neither would be right.
func (l *launch) nextArgs(g *again) []string {
	a, r := g.attempt, &l.t.Profile.Resume
	if g.spool != nil && !g.spool.Kept() {
		return nil // half of it is out already
	}
	input := g.feed == nil || g.feed.Kept()
	switch {
	case a.Session != "" && (!r.NeedsReply || g.replied || a.Replied):
		if r.Stdin && !input {
			return nil
		}
		return l.t.Profile.ResumeArgs(l.t.Args(), l.call, a.Session)
	case a.Replied || !input:
		return nil
	}
	return slices.Clone(g.args)
}

// runAgain does the task again for as long as a limit breaks it and the policy
// lets it, and gives out what the last run wrote.
func (l *launch) runAgain(ctx context.Context, g *again, code int, err error) (int, error) {
	if g == nil {
		return code, err
	}
	for err == nil && g.attempt.Due {
		if !l.awaitAgain(ctx, g) {
			break
		}
		if code, err = l.startAgain(ctx, g); err == nil && code != 0 && !g.attempt.Failed {
			say(l.a.stderr, "%s", l.voice.failedAgain(l.t.Profile.Title, code))
		}
	}
	if g.caught != nil {
		signal.Stop(g.caught) // a reader that does not read may be given up on
	}
	if err == nil && g.attempt.Failed {
		l.tellFailed(g)
	}
	if g.spool != nil {
		defer g.spool.Close()
		if err := g.spool.Flush(1); err != nil {
			return code, err
		}
	}
	return code, err
}

// awaitAgain waits for the task's turn. False: it is not done again.
func (l *launch) awaitAgain(ctx context.Context, g *again) bool {
	ctx, cancel := g.untilCaught(ctx)
	defer cancel()
	w := l.launchWait()
	w.Again, w.Skip = true, false
	v, _ := w.OnTerminal(ctx)
	if v == shim.Launch {
		fault.At("resume begun")
		return true
	}
	why := "gave_up"
	if v == shim.TooLong {
		g.attempt.Again = policies.TooFar
	} else {
		why = "user"
		g.attempt.Failed = false // whoever ended the wait knows
	}
	g.attempt.Due = false
	shim.GiveUpResume(l.store, l.a.policy, l.self, l.a.now(), why)
	return false
}

func (l *launch) startAgain(ctx context.Context, g *again) (int, error) {
	a := g.attempt
	g.args = l.nextArgs(g)
	anew := a.Session == "" || !slices.Contains(g.args, a.Session)
	if anew {
		a.Session = l.t.Profile.SessionOf(g.args)
	}
	g.replied = g.replied || a.Replied
	if g.spool != nil {
		g.spool.Drop()
	}
	if g.file >= 0 {
		at := g.file
		if !anew && !l.t.Profile.Resume.Stdin {
			at, _ = unix.Seek(0, 0, unix.SEEK_END) // the session holds it; at worst it gets it twice
		}
		_, _ = unix.Seek(0, at, unix.SEEK_SET) // as above
	}
	if g.feed != nil {
		g.feed.Skip(!anew && !l.t.Profile.Resume.Stdin)
	}
	say(l.a.stderr, "%s", l.voice.runsAgain(l.t.Profile.Title))
	applied := l.adjustments(g.args)
	fault.At("run again")
	defer fault.At("ran again")
	return l.start(ctx, applied, g.args, g)
}

// tellFailed says once that a limit broke the task and how to do it again.
func (l *launch) tellFailed(g *again) {
	a := g.attempt
	f := failure{
		agent: l.t.Profile.Title, label: l.label(a.Limiter), again: a.Again, hold: a.Hold, limiter: a.Limiter, now: l.a.now(),
		command: l.byHand(g),
	}
	text := l.voice.failed(f)
	say(l.a.stderr, "%s", text)
	if err := shim.Tell(l.set.NotifyCommand, text); err != nil {
		say(l.a.stderr, "%s", l.voice.Warn(err))
	}
}

// byHand is the command line that does the task again; "" if the same is to be
// typed once more.
func (l *launch) byHand(g *again) string {
	a, p := g.attempt, l.t.Profile
	replied := g.replied || a.Replied
	var args []string
	switch {
	case a.Session != "" && (replied || !p.Resume.NeedsReply) && p.CanRunAgain(l.t.Args(), l.call):
		args = p.ResumeArgs(l.t.Args(), l.call, a.Session)
	case replied:
		args = p.LatestArgs()
	}
	if len(args) == 0 {
		return ""
	}
	words := append(slices.Clone(l.t.Argv[:l.t.Inv.At+1]), args...)
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return "qshim " + strings.Join(words, " ")
}

// plainWord needs no quotes in a shell.
var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`) })

func shellWord(w string) string {
	if plainWord().MatchString(w) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// adjustments are what a run with these arguments gets beyond them.
func (l *launch) adjustments(args []string) agents.Applied {
	if l.set.NoAdjust {
		return agents.Applied{}
	}
	return l.t.Profile.Adjustments(args, l.call, l.env, l.known())
}
