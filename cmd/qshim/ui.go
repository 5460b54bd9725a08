package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// This file and its siblings ui_*.go own every word that qshim prints.
//
// Rules of the voice:
//   - One line a thing, starting with "qshim: " where it shares a terminal
//     with an agent or a shell. No blank lines, no banners.
//   - Say what is so, since when or until when, and what the reader can do.
//   - A clock time always comes with how long that is from now.
//   - The words of DESIGN section 2 and no synonyms: session, limiter, hold,
//     suspended, continued, launch, probe, release.
//   - Nothing that came from an agent's screen is printed raw: it is escaped
//     where it is found (detect) and again here.
//   - Colour only on a terminal, never with NO_COLOR or TERM=dumb.

// palette colours words, or leaves them alone.
type palette bool

// paletteFor decides by where the words go and what the environment says
// (https://no-color.org: set and not empty).
func paletteFor(w io.Writer, env func(string) string) palette {
	f, ok := w.(*os.File)
	return palette(ok && term.IsTerminal(int(f.Fd())) && env("NO_COLOR") == "" && env("TERM") != "dumb")
}

func (p palette) sgr(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string   { return p.sgr("1", s) }
func (p palette) dim(s string) string    { return p.sgr("2", s) }
func (p palette) red(s string) string    { return p.sgr("31", s) }
func (p palette) green(s string) string  { return p.sgr("32", s) }
func (p palette) yellow(s string) string { return p.sgr("33", s) }

// say writes one line to the user, where an agent or a shell writes too.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, "qshim: "+format+"\n", args...) // nowhere left to report a broken stderr
}

// className is a hold's class as a reader would say it.
func className(c finding.Class, m finding.Measure) string {
	switch c {
	case finding.Rate:
		return "rate limit" + measureSuffix(m)
	case finding.Overload:
		return "provider overloaded"
	case finding.Window:
		return "usage window used up"
	case finding.Daily:
		return "daily quota used up"
	case finding.Credit:
		return "credits are gone"
	case finding.Spend:
		return "spend cap reached"
	case finding.Person:
		return "held by you"
	case finding.Retrying:
		return "a session is being refused and retries by itself"
	case finding.Warning:
		return "close to a limit"
	case finding.Auth:
		return "key or login refused"
	}
	return string(c)
}

// afterWord names what came before a probe or a release.
func afterWord(c finding.Class, m finding.Measure) string {
	switch c {
	case finding.Rate:
		return "a rate limit" + measureSuffix(m)
	case finding.Overload:
		return "an overload"
	case finding.Window:
		return "a used-up window"
	case finding.Daily:
		return "a used-up daily quota"
	case finding.Credit:
		return "missing credits"
	case finding.Spend:
		return "a spend cap"
	case finding.Retrying:
		return "a refusal"
	case finding.Person:
		return "a hold of yours"
	}
	return "a limit"
}

func measureSuffix(m finding.Measure) string {
	if m == "" {
		return ""
	}
	return " (" + strings.ReplaceAll(string(m), "_", " ") + ")"
}

// span prints a duration the way people say it: 34s, 4m 05s, 2h 03m, 3d 4h.
// Rounded up to whole seconds, never negative.
func span(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	s := int64((d + time.Second - 1) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%dh %02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s%86400/3600)
}

// clock prints an instant in the machine's zone, with the day when it is not today.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04:05")
	case t.Sub(now) < 6*24*time.Hour && t.After(now):
		return t.Format("Mon 15:04")
	}
	return t.Format("2 Jan 2006 15:04")
}

// until prints both: "18:45:00 (in 1h 12m)". A zero time has no end of its own.
func until(t, now time.Time, src finding.ResetSource) string {
	if t.IsZero() {
		return "until you release it or an agent gets through"
	}
	about := ""
	if src == finding.Estimate {
		about = "about "
	}
	if !t.After(now) {
		return "now due"
	}
	return "until " + about + clock(t, now) + " (in " + span(t.Sub(now)) + ")"
}

// printable escapes what could move a terminal: evidence comes from screens.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if movesTerminal(r) {
			return '�'
		}
		return r
	}, s)
}

// movesTerminal: control bytes, line ends of Unicode's, and what turns the
// direction of writing.
func movesTerminal(r rune) bool {
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// errorWords prints an error in one line that names the state directory once.
func errorWords(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i, text := range lines {
		head, rest, _ := strings.Cut(text, ": ")
		if path := strings.TrimPrefix(head, "state directory "); path != head && strings.HasPrefix(rest, path+": ") {
			text = head + strings.TrimPrefix(rest, path)
		}
		lines[i] = printable(text)
	}
	return strings.Join(lines, "; ")
}

// name is how a limiter is shown: its label, and its ID where it has none.
func limiterName(l lockfile.Limiter) string {
	if l.Label != "" {
		return printable(l.Label)
	}
	return printable(l.ID)
}
