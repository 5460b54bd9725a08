package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"
)

// picture draws the demo: in place on a terminal, elsewhere a line a change.
type picture struct {
	w     io.Writer
	p     palette
	live  bool
	cols  int               // of the terminal
	lines int               // drawn last
	said  map[string]string // without a terminal: what was said of each agent
}

// newPicture draws on a terminal of so many columns; 0: none, lines are printed.
func newPicture(w io.Writer, p palette, cols int) *picture {
	live := cols > 0
	v := &picture{w: w, p: p, live: live, cols: cols, said: map[string]string{}}
	if live {
		_, _ = io.WriteString(w, "\x1b[?25l") // a terminal that is gone shows nothing anyway
	}
	return v
}

func (v *picture) end() {
	if v.live {
		_, _ = io.WriteString(v.w, "\x1b[?25h") // as above
	}
}

const (
	demoColumn = 52  // cells of the left half
	demoWide   = 100 // columns from which on the halves stand side by side
)

// cells measures and cuts text that holds colours.
var cells = displaywidth.Options{ControlSequences: true}

func (v *picture) draw(t time.Duration, with, alone fleetLook) {
	if !v.live {
		v.changes(t, "with qshim", with)
		v.changes(t, "alone", alone)
		return
	}
	var b strings.Builder
	if v.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.lines)
	}
	rows := v.rows(t, with, alone)
	for _, r := range rows {
		b.WriteString("\r\x1b[K" + cells.TruncateString(r, v.cols-1, "") + "\x1b[0m\n")
	}
	v.lines = len(rows)
	_, _ = io.WriteString(v.w, b.String()) // as above
}

func (v *picture) rows(t time.Duration, with, alone fleetLook) []string {
	rows := []string{
		v.p.bold(fmt.Sprintf("%d agents, one account, %d requests a minute, tasks of %d calls", demoAgents, demoBucket.RPM, demoCalls)) +
			v.p.dim(fmt.Sprintf("  %2ds", int(t.Seconds()))),
		"",
	}
	left, right := v.half("with qshim", with), v.half("the same agents alone", alone)
	if v.cols < demoWide {
		return append(append(append(rows, left...), ""), right...)
	}
	for i := range left {
		rows = append(rows, v.two(left[i], right[i]))
	}
	return append(rows, "")
}

// half is one fleet.
func (v *picture) half(name string, f fleetLook) []string {
	rows := []string{v.p.bold(name)}
	for _, a := range f.agents {
		rows = append(rows, v.agent(a, f.now))
	}
	return append(rows, v.tally(f))
}

// two puts two halves side by side, whatever their colours take.
func (v *picture) two(left, right string) string {
	return left + strings.Repeat(" ", max(2, demoColumn-cells.String(left))) + right
}

func (v *picture) agent(a agentLook, now time.Time) string {
	bar := v.p.green(strings.Repeat("■", min(a.calls, demoCalls))) + v.p.dim(strings.Repeat("·", max(0, demoCalls-a.calls)))
	return fmt.Sprintf("%s %s %s", a.name, bar, v.state(a, now))
}

func (v *picture) state(a agentLook, now time.Time) string {
	left := ""
	if a.until.After(now) {
		left = ", " + span(a.until.Sub(now)) + " left"
	}
	switch a.state {
	case "done":
		return v.p.green("done")
	case "failed":
		return v.p.red("failed: rate limit, needs a person")
	case "suspended":
		return v.p.yellow("suspended" + left)
	case "waiting":
		return v.p.yellow("waits to launch" + left)
	case "retrying":
		return v.p.red("429, retries by itself" + left)
	}
	return a.state
}

func (v *picture) tally(f fleetLook) string {
	return fmt.Sprintf("requests %d, refused (429) %s", f.tally.requests, v.p.bold(fmt.Sprint(f.tally.refused)))
}

// changes prints what is new, for logs and pipes.
func (v *picture) changes(t time.Duration, fleet string, f fleetLook) {
	for _, a := range f.agents {
		key := fleet + a.name
		if now := fmt.Sprintf("%s %d", a.state, a.calls); v.said[key] != now {
			v.said[key] = now
			_, _ = fmt.Fprintf(v.w, "%5.1fs  %-10s  %s  %d of %d calls  %s\n", t.Seconds(), fleet, a.name, a.calls, demoCalls, v.state(a, f.now)) // as above
		}
	}
}

func (v *picture) summary(with, alone fleetResult) {
	line := func(name string, a, b any) {
		_, _ = fmt.Fprintf(v.w, "%-26s %12v %12v\n", name, a, b) // as above
	}
	line("", "with qshim", "alone")
	line("tasks done", with.done, alone.done)
	line("tasks failed", with.failed, alone.failed)
	line("refused requests (429)", with.refused, alone.refused)
	line("until the last one ended", span(with.took), span(alone.took))
	_, _ = fmt.Fprintln(v.w, "\nNow with yours: qshim claude, qshim codex, qshim gemini, qshim ANYTHING")
}
