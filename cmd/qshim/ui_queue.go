package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"qshim/lockfile"
	"qshim/policies"
	"qshim/shim"
)

const holdHelp = `Hold a limiter yourself. Busy sessions on it are suspended, launches wait, and
when the time is over they go on one after another; 'qshim release' ends it before.
An agent that gets an answer does not. In a session, r runs it anyway.

LIMITER is an ID or a label as 'qshim status' shows it, or a part that fits only
one. "#family" behind an ID means one model's: anthropic/3f9a1c2d4e5b#opus.`

const queueHelp = `Show who waits on which limiter, in the order in which they will go on, why, and
until when. LIMITER is an ID or a label as 'qshim status' shows it, or a part that
fits only one.

--first SESSION puts one that waits in front, once. At most 4 stand in front.`

// knownWords lists limiters that could have been meant.
func knownWords(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	more := ""
	if len(ids) > 6 {
		ids, more = ids[:6], ", …"
	}
	return "; there are " + strings.Join(ids, ", ") + more
}

func printHeld(w io.Writer, lim lockfile.Limiter, end, now time.Time, sessions int) {
	who := "No session draws on it now."
	if sessions > 0 {
		who = count(sessions, "session") + " on it: who is busy is suspended, launches wait."
	}
	printLine(w, "%s is held by you, %s. %s To end it before: qshim release %s", limiterName(lim), until(end, now, ""), who, lim.ID)
}

func printFirst(w io.Writer, l lockfile.Ledger, session string, on []string) {
	names := make([]string, len(on))
	for i, id := range on {
		names[i] = limiterName(l.Limiters[id])
	}
	printLine(w, "Session %s goes on first (%s).", session, strings.Join(names, "; "))
}

func printQueues(w io.Writer, p palette, list []queueJSON, now time.Time) {
	if len(list) == 0 {
		_, _ = fmt.Fprintln(w, "Nobody waits.")
	}
	for _, q := range list {
		head := p.bold(limiterName(lockfile.Limiter{ID: q.Limiter, Label: q.Label})) + "  " + p.yellow(string(q.State))
		if q.shown != nil {
			head += "  " + className(q.shown.Class, q.shown.Measure) + ", " + until(q.shown.Until, now, q.shown.UntilSource)
		}
		_, _ = fmt.Fprintln(w, head+"  "+p.dim(printable(q.Limiter)))
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(tw, "  PLACE\tSESSION\tAGENT\tSTATE\tFOR\tWHY\tDIRECTORY")
		for _, s := range q.Queue {
			_, _ = fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", placeWord(s), printable(s.Session), printable(s.Agent), s.State,
				span(now.Sub(s.Since)), queuedWhy(s, q.Limiter, now), printable(shortDir(s.Cwd)))
		}
		_ = tw.Flush()
	}
}

func placeWord(s queuedJSON) string {
	if s.First {
		return fmt.Sprintf("%d (put first)", s.Place)
	}
	return fmt.Sprint(s.Place)
}

// queuedWhy says what this session waits for: another limiter may be what keeps it.
func queuedWhy(s queuedJSON, limiter string, now time.Time) string {
	why := shortWhy(shim.Pause{Decision: s.why, Now: now})
	if s.why.Action == policies.Run {
		return "about to go on"
	}
	if s.why.Limiter != limiter && s.why.Limiter != "" {
		why += " on " + printable(s.why.Limiter)
	}
	if s.Until != nil && s.Until.After(now) {
		why += ", " + span(s.Until.Sub(now)) + " left"
	}
	return printable(why)
}
