package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
)

// The words of explain.
const (
	explainShort = "Say what rows, bytes or a recording of an agent mean"
	explainLong  = `Reads what an agent showed and says which limit it is, if any.

FILE is an asciicast (a name that ends in .cast; its own clock and size, time
zone UTC), raw terminal bytes (--raw), or plain rows as a user sees them. Plain
rows are one instant: at most one finding, the one that decides. Without --mode
the rules of both modes apply. An agent without a profile is read as generic.`

	explainFlagAgent = "the agent that drew it: claude, codex, gemini, or any other name for the generic rules"
	explainFlagMode  = "tui or headless (default: the rules of both)"
	explainFlagNow   = "when it was read, as RFC 3339 (default: now; a recording has its own clock)"
	explainFlagTZ    = "the machine's time zone, such as Europe/Berlin (default: this machine's)"
	explainFlagCols  = "columns of the terminal that --raw bytes were written for"
	explainFlagRows  = "rows of that terminal"
	explainFlagRaw   = "FILE is raw terminal bytes"
	explainFlagJSON  = "print JSON"

	explainWantsFile = "wants one FILE, or - for standard input (see: qshim explain --help)"
	explainBadMode   = "--mode %q: write tui or headless"
	explainBadSize   = "--cols %d --rows %d: columns are 1 to 1000, rows 1 to 500"
	explainBadNow    = "--now %q: write a time such as 2026-11-29T16:45:00Z"
	explainBadZone   = "--tz %q: no such time zone; write a name such as Europe/Berlin"
	explainBadCast   = "%s: no asciicast: %v"
)

var explainClassWords = sync.OnceValue(func() map[finding.Class]string {
	return map[finding.Class]string{
		finding.Rate:     "throttled: too much for the moment, the client has given up",
		finding.Overload: "overloaded: the provider's trouble, everybody's",
		finding.Window:   "the plan's usage window is used up",
		finding.Daily:    "the day's quota is used up",
		finding.Credit:   "credits or balance are gone: waiting does not help",
		finding.Spend:    "a spending cap is reached: a person has to raise it",
		finding.Retrying: "the client is retrying by itself: hands off",
		finding.Warning:  "a warning: work goes on",
		finding.Auth:     "not allowed: a key or an entitlement, not a limit",
	}
})

var explainResetWords = sync.OnceValue(func() map[finding.ResetSource]string {
	return map[finding.ResetSource]string{
		finding.Epoch:    "stated exactly",
		finding.Zoned:    "stated with its zone",
		finding.Local:    "a clock time, read in the machine's zone",
		finding.Relative: "a delay, counted from when it was seen",
	}
})

// writeExplainText is explain for people.
func writeExplainText(out io.Writer, agent string, found []detect.Explained, o detect.ExplainOptions) error {
	var b strings.Builder
	if len(found) == 0 {
		fmt.Fprintf(&b, "Nothing here is %s speaking of a limit of its own.\n", agent)
	}
	for i, f := range found {
		if i > 0 {
			b.WriteByte('\n')
		}
		explainOne(&b, f, o)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func explainOne(b *strings.Builder, f detect.Explained, o detect.ExplainOptions) {
	fmt.Fprintf(b, "%s: %s\n", f.Class, explainClassWords()[f.Class])
	if f.Offset > 0 {
		fmt.Fprintf(b, "  at       %.1f s\n", f.Offset.Seconds())
	}
	if f.Cause != "" {
		fmt.Fprintf(b, "  because  %s\n", f.Cause)
	}
	if what := strings.Join(explainSaidOf(string(f.Measure), string(f.Scope), f.Model, f.Project, f.ErrorCode), ", "); what != "" {
		fmt.Fprintf(b, "  of       %s\n", what)
	}
	if !f.Reset.IsZero() {
		zone := o.Zone
		if zone == nil {
			zone = time.UTC
		}
		fmt.Fprintf(b, "  resets   %s (%s)\n", f.Reset.In(zone).Format("2006-01-02 15:04:05 MST"), explainResetWords()[f.ResetSource])
	}
	if f.RetryAfter > 0 {
		fmt.Fprintf(b, "  retry in %s\n", f.RetryAfter)
	}
	fmt.Fprintf(b, "  rule     %s (%s)\n", f.Rule, f.Confidence)
	for _, r := range f.Rows {
		fmt.Fprintf(b, "  | %s\n", r)
	}
}

func explainSaidOf(list ...string) (out []string) {
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}
