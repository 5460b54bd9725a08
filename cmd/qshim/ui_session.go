package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"qshim/detect/finding"
	"qshim/policies"
	"qshim/shim"
)

// voice says everything a session shows, in its own colours.
type voice struct {
	p    palette
	look string // the agent's own command that shows what is used
}

var _ shim.Voice = voice{}

// PauseRow leaves out words until it fits, the keys last: somebody whose agent
// stands still wants to know how to go on. It uses no symbol whose width
// terminals disagree on.
func (v voice) PauseRow(p shim.Pause, cols int) string {
	keys := pauseKeyWords(p)
	why, end := reasonWords(p), endWords(p)
	rows := []string{" qshim: suspended · " + why + " · " + end + " · " + v.help(p) + " · " + keys + " "}
	if v.help(p) == "" {
		rows = nil
	}
	for _, row := range append(rows,
		" qshim: suspended · "+why+" · "+end+" · "+keys+" ",
		" qshim: suspended · "+shortWhy(p)+" · "+end+" · "+keys+" ",
		" suspended · "+briefWhy(p)+" · "+end+" · "+keys+" ",
		" suspended · "+end+" · "+keys+" ",
		" suspended · "+end+" · r · q ",
		" "+end+" · r · q ",
	) {
		if displaywidth.String(row) <= cols {
			return row
		}
	}
	return displaywidth.TruncateString(" "+end, cols, "…")
}

// help is what helps, or where to look. While somebody else goes first there is
// nothing to be done about it.
func (v voice) help(p shim.Pause) string {
	if c := p.Decision.Reason.Code; c != policies.Held && c != policies.Blocked {
		return ""
	}
	h := p.Decision.Hold
	if h.Class == finding.Window || h.Class == finding.Daily {
		if v.look != "" {
			return "see " + v.look
		}
	}
	return advice(h.Class, h.Measure, h.Scope)
}

func pauseKeyWords(p shim.Pause) string {
	switch p.Keys {
	case shim.HintQuit:
		return "quit? y yes · any other key no"
	case shim.HintAgain:
		return "Ctrl-C again quits"
	}
	keys := "r run anyway · q quit"
	if p.Dropped > 0 {
		keys += fmt.Sprintf(" · %s not sent", count(p.Dropped, "key"))
	}
	return keys
}

// mend is what a person can do about a limit that waiting does not end.
func (v voice) mend(p shim.Pause) string {
	h := p.Decision.Hold
	if what := explainSaidOf(advice(h.Class, h.Measure, h.Scope), whereToLook(v.look, p.Decision.Limiter, h.Class)); len(what) > 0 {
		return " (" + strings.Join(what, ": ") + ")"
	}
	return ""
}

func (v voice) Title(p shim.Pause) string {
	return fmt.Sprintf("suspended: %s, %s", printable(p.Agent), endWords(p))
}

func (v voice) Notice(n shim.Notice) string {
	agent := printable(n.Pause.Agent)
	switch n.Kind {
	case shim.Suspended:
		return fmt.Sprintf("%s is suspended: %s, %s", agent, reasonWords(n.Pause), endWords(n.Pause))
	case shim.Continued:
		return agent + " goes on"
	case shim.Resumable:
		return fmt.Sprintf("%s was stopped by a limit that has ended: type continue, or what you like, to go on", agent)
	case shim.NotResumed:
		return fmt.Sprintf("%s was stopped by a limit and is not resumed by itself: look at it", agent)
	}
	return fmt.Sprintf("%s needs you: %s%s. Waiting does not help; when it is mended: qshim release %s",
		agent, reasonWords(n.Pause), v.mend(n.Pause), printable(n.Pause.Decision.Limiter))
}

// Line is the launch wait: what for, until when, and the two keys. A line that
// does not fit loses words and, cut, its colours.
func (v voice) Line(p shim.Pause, cols int) string {
	keys := " · Enter launches now, Ctrl-C gives up"
	verb := " waits to launch: "
	if p.Again {
		keys, verb = " · Enter runs it now, Ctrl-C gives up", " failed and waits to be run again: "
	}
	if p.Keys == shim.HintNone {
		keys = ""
	}
	lead := "qshim: " + printable(p.Agent) + verb
	why, end := reasonWords(p), endWords(p)
	for _, why := range []string{why, shortWhy(p), briefWhy(p)} {
		if cols == 0 || displaywidth.String(lead+why+", "+end+keys) < cols {
			return lead + why + ", " + v.p.bold(end) + v.p.dim(keys)
		}
	}
	return displaywidth.TruncateString("qshim: "+end+keys+" · "+shortWhy(p), max(cols-1, 1), "…")
}

// Note is of a launch that is let go, so the decision itself has no end: the
// hold that it goes against has.
func (v voice) Note(p shim.Pause) string {
	if h := p.Decision.Hold; p.Decision.Until.IsZero() {
		p.Decision.Until, p.Decision.Source = h.Until, h.UntilSource
	}
	return fmt.Sprintf("qshim: %s, %s: the first request may be refused", reasonWords(p), endWords(p))
}

func (v voice) Ask(p shim.Pause) string {
	return fmt.Sprintf("qshim: %s. Waiting does not help. Launch %s anyway? [y/N] ", reasonWords(p), printable(p.Agent))
}

func (v voice) GiveUp(p shim.Pause) string {
	if p.Decision.AskFirst {
		return fmt.Sprintf("qshim: %s is not launched: %s%s. Waiting does not help; when it is mended: qshim release %s",
			printable(p.Agent), reasonWords(p), v.mend(p), printable(p.Decision.Limiter))
	}
	return fmt.Sprintf("qshim: %s is not launched: %s, %s, which is beyond --max-wait (to launch it all the same: qshim --now)", printable(p.Agent), reasonWords(p), endWords(p))
}

func (v voice) Warn(err error) string {
	return fmt.Sprintf("qshim: going on without coordination: %s (qshim doctor explains)", errorWords(err))
}

// steppedAside is the line of a launch that qshim cannot govern.
func (v voice) steppedAside(err error) string {
	return fmt.Sprintf("running without coordination: %s (qshim doctor explains)", errorWords(err))
}

// crashed is the line after a session in which qshim had a bug of its own.
func (v voice) crashed(report string) string {
	return fmt.Sprintf("qshim itself crashed, the agent ran on without it; please report %s", printable(report))
}

// fell is the line of a launch in which qshim had a bug of its own, or met a disk
// that hangs; report is "" where none could be written.
func (v voice) fell(bug error, report string) string {
	stalled := errors.Is(bug, errLaunchStalled)
	switch {
	case stalled && report == "":
		return "running without coordination: the state directory does not answer (qshim doctor explains)"
	case stalled:
		return fmt.Sprintf("running without coordination: the state directory does not answer; %s says where", printable(report))
	case report == "":
		first, _, _ := strings.Cut(bug.Error(), "\n")
		return fmt.Sprintf("qshim itself crashed, the agent runs without it; please report this: %s", printable(first))
	}
	return fmt.Sprintf("qshim itself crashed, the agent runs without it; please report %s", printable(report))
}

// unadjusted is the line of a second start.
func (v voice) unadjusted(names []string) string {
	return fmt.Sprintf("the agent refused what qshim added to its arguments (%s); started again without", strings.Join(names, ", "))
}

// reasonWords says what stands in the way and on whose account.
func reasonWords(p shim.Pause) string {
	what := shortWhy(p)
	if p.Label != "" {
		return what + " on " + printable(p.Label)
	}
	return what
}

func shortWhy(p shim.Pause) string {
	r := p.Decision.Reason
	switch r.Code {
	case policies.Probing:
		return "another session goes first after " + afterWord(r.Class, p.Decision.Hold.Measure)
	case policies.Queued:
		return "sessions go on one after another after " + afterWord(r.Class, p.Decision.Hold.Measure)
	case policies.Capped:
		return "as many run as the limit bears, older sessions finish first"
	case policies.Launching:
		return "launches are spaced after a recent rate limit"
	case policies.Storming:
		return "its client retries faster than the provider allows"
	}
	class := p.Decision.Hold.Class
	if class == "" {
		class = r.Class
	}
	switch class {
	case "":
		class = finding.Rate
	case finding.Person:
		return heldBy(p.Decision.Hold.Why)
	case finding.Retrying:
		return "another session is being refused and retries by itself" // it shows that to its user
	}
	return className(class, p.Decision.Hold.Measure)
}

// heldBy says that a person holds it, and the beginning of why.
func heldBy(why string) string {
	if why == "" {
		return className(finding.Person, "")
	}
	return className(finding.Person, "") + ": " + displaywidth.TruncateString(printable(why), 40, "…")
}

// briefWhy is shortWhy in as few words as say it.
func briefWhy(p shim.Pause) string {
	switch p.Decision.Reason.Code {
	case policies.Probing:
		return "another session goes first"
	case policies.Queued:
		return "one after another"
	case policies.Capped:
		return "older sessions finish first"
	}
	switch p.Decision.Hold.Class {
	case finding.Retrying:
		return "another session is refused"
	case finding.Person:
		return className(finding.Person, "")
	}
	return shortWhy(p)
}

// endWords says when it goes on: a countdown, a place in the queue, or a person.
func endWords(p shim.Pause) string {
	d := p.Decision
	switch {
	case d.Reason.Code == policies.Blocked:
		return "until you release it"
	case d.Until.After(p.Now):
		about := ""
		if d.Source == finding.Estimate {
			about = "about "
		}
		left := d.Until.Sub(p.Now)
		if left < time.Hour {
			return about + span(left) + " left"
		}
		return "until " + about + clock(d.Until, p.Now) + ", " + span(left) + " left"
	case d.Place == 1:
		return "next"
	case d.Place > 1:
		return fmt.Sprintf("place %d in the queue", d.Place)
	}
	return "any moment"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
