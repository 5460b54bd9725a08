package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
	"qshim/shim"
)

// printStatus shows limiters first, since they explain the sessions below.
func printStatus(w io.Writer, p palette, st statusJSON, now time.Time) {
	if len(st.Limiters) == 0 && len(st.Sessions) == 0 {
		_, _ = fmt.Fprintln(w, "No session is running and no limiter is held. Start one: qshim claude")
		return
	}
	for _, l := range st.Limiters {
		printLimiter(w, p, l, now)
	}
	if len(st.Sessions) == 0 {
		_, _ = fmt.Fprintln(w, "no sessions")
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	known := slices.ContainsFunc(st.Sessions, func(s sessionStatus) bool { return s.Context > 0 })
	context := func(word string) string {
		if known {
			return word + "\t"
		}
		return ""
	}
	_, _ = fmt.Fprintln(tw, "SESSION\tAGENT\tPID\tSTATE\tFOR\tWHY\t"+context("CONTEXT")+"DIRECTORY")
	for _, s := range st.Sessions {
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\t%s%s\n", printable(s.ID), printable(s.Agent), s.PID, stateWord(s),
			span(now.Sub(s.Since)), whyWord(s, now), context(tokensWord(s.Context)), printable(shortDir(s.Cwd)))
	}
	_ = tw.Flush()
}

func printLimiter(w io.Writer, p palette, l limiterStatus, now time.Time) {
	name := printable(l.Label)
	if name == "" {
		name = printable(l.ID)
	}
	state := string(l.State)
	switch l.State {
	case policies.LimiterOpen:
		state = p.green(state)
	case policies.LimiterBlocked:
		state = p.red(state)
	default:
		state = p.yellow(state)
	}
	counts := fmt.Sprintf("%s · running %d, waiting %d", printable(l.ID), l.Running, l.Waiting)
	if l.Cap > 0 {
		counts += fmt.Sprintf(", at most %d at once", l.Cap)
	}
	if l.Spacing > 0 {
		counts += fmt.Sprintf(", short runs %.1fs apart", l.Spacing)
	}
	if l.Used != nil {
		counts += fmt.Sprintf(", %.0f%% of its window used", *l.Used)
	}
	_, _ = fmt.Fprintf(w, "%s  %s  %s\n", p.bold(name), state, p.dim(counts))
	for _, h := range l.Holds {
		end := ""
		if h.Until != nil {
			end = until(*h.Until, now, h.UntilSource)
		} else {
			end = until(time.Time{}, now, "")
		}
		_, _ = fmt.Fprintf(w, "  %s, %s, since %s\n", className(h.Class, h.Measure), end, clock(h.Since, now))
		if h.Bounded {
			_, _ = fmt.Fprintln(w, "  it named a later time than such a limit lasts: not believed beyond this one")
		}
		if h.Advice != "" {
			_, _ = fmt.Fprintf(w, "  %s\n", printable(h.Advice))
		}
		if h.Evidence.Row != "" {
			_, _ = fmt.Fprintf(w, "  %s\n", p.dim(strings.TrimSuffix("“"+strings.TrimSpace(printable(h.Evidence.Row))+"” · "+printable(h.Evidence.Session), " · ")))
		}
	}
}

// tokensWord is the size of a conversation: "54k", "-" where it is not known.
func tokensWord(n int64) string {
	switch {
	case n <= 0:
		return "-"
	case n < 1000:
		return "<1k"
	}
	return fmt.Sprintf("%dk", (n+500)/1000)
}

func stateWord(s sessionStatus) string {
	if s.Parent != "" {
		return string(s.State) + " (nested)"
	}
	return string(s.State)
}

// whyWord says a session's reason, "held:rate" in the ledger, in words.
func whyWord(s sessionStatus, now time.Time) string {
	if s.Reason == "" {
		return "-"
	}
	code, class, _ := strings.Cut(s.Reason, ":")
	if class, ok := policies.IsResume(s.Reason); ok {
		return resumeWhy(class) + leftWords(s, now)
	}
	why := shortWhy(shim.Pause{Decision: policies.Decision{Reason: policies.Reason{Code: policies.Code(code), Class: finding.Class(class)}}})
	return printable(why) + leftWords(s, now)
}

func leftWords(s sessionStatus, now time.Time) string {
	if s.Until == nil || !s.Until.After(now) {
		return ""
	}
	return ", " + span(s.Until.Sub(now)) + " left"
}

// shortDir keeps the last two elements: worktrees differ at the end.
func shortDir(dir string) string {
	if dir == "" {
		return "-"
	}
	up, last := filepath.Split(filepath.Clean(dir))
	if parent := filepath.Base(up); parent != "" && parent != "/" && parent != "." {
		return filepath.Join(parent, last)
	}
	return dir
}

// printEvent shows one line of the event log for people.
func printEvent(w io.Writer, p palette, e lockfile.Event, now time.Time) {
	parts := []string{p.dim(clock(e.At, now)), eventWord(p, e)}
	add := func(s string) {
		if s != "" {
			parts = append(parts, printable(s))
		}
	}
	add(strings.TrimSpace(e.Agent + " " + e.Session))
	if e.Class != "" {
		c := className(e.Class, e.Measure)
		if e.Class == finding.Retrying && e.Event == "finding" {
			c = "its client retries by itself"
		}
		if e.Cause != "" {
			c += " (cause: " + string(e.Cause) + ")"
		}
		add(c)
	}
	add(e.Limiter)
	if !e.Until.IsZero() {
		add("until " + clock(e.Until, now))
	}
	if e.Event == "resume" {
		add(resumeWords(e.Reason))
	} else {
		add(e.Reason)
	}
	if e.Event == "hold" || e.Event == "surface" {
		add(advice(e.Class, e.Measure, e.Scope))
	}
	if len(e.Rows) > 0 {
		parts = append(parts, p.dim("“"+strings.TrimSpace(printable(e.Rows[0]))+"”"))
	}
	_, _ = fmt.Fprintln(w, strings.Join(parts, "  "))
}

// printUnrecognised shows the rows whole: they are what a rule is made of.
func printUnrecognised(w io.Writer, p palette, e lockfile.Event, now time.Time) {
	_, _ = fmt.Fprintf(w, "%s  %s  %s\n", p.dim(clock(e.At, now)), p.bold(printable(strings.TrimSpace(e.Agent+" "+e.Session))), printable(e.Reason))
	for _, row := range e.Rows {
		_, _ = fmt.Fprintf(w, "  | %s\n", printable(row))
	}
}

func printUnrecognisedEnd(w io.Writer, shown int) {
	if shown == 0 {
		_, _ = fmt.Fprintln(w, "Nothing unrecognised: every failed turn that spoke of a limit was understood.")
		return
	}
	_, _ = fmt.Fprintln(w, "A rule for it: [[detect.rule]] in ~/.config/qshim/agents/NAME.toml, tried with qshim explain and qshim config check.")
}

func eventWord(p palette, e lockfile.Event) string {
	switch e.Event {
	case "hold", "suspend", "launch_wait":
		return p.yellow(e.Event)
	case "surface", driftEvent:
		return p.red(e.Event)
	case "release", "continue", "launch", "resume":
		return p.green(e.Event)
	}
	return p.bold(printable(e.Event))
}
