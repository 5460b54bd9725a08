package detect_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// moves paints rows as full-screen agents do: blanks are skipped by cursor
// moves, words are separate runs.
func moves(rows []string) string {
	var b strings.Builder
	b.WriteString("\x1b[2J\x1b[H")
	for y, r := range rows {
		col := 0
		word := false
		for _, c := range r {
			if c == ' ' {
				word = false
			} else {
				if !word {
					fmt.Fprintf(&b, "\x1b[%d;%dH", y+1, col+1)
				}
				word = true
				b.WriteRune(c)
			}
			col++
		}
	}
	return b.String()
}

// TestPainted paints the labelled screens through the terminal model at
// several widths, wrapped as their agent wraps, with blanks as cursor moves:
// the finding is that of the rows. Some of them are fed byte by byte too, all
// with QSHIM_LONG=1.
func TestPainted(t *testing.T) {
	detect.OneGoroutine(t)
	misses := known(t, "testdata/known-misses.txt")
	n := 0
	for _, m := range messages(t) {
		// A row without its glyph is believed in an excerpt, never on a screen.
		bare := len(m.Lines) > 0 && !strings.ContainsAny(m.Lines[0], "❯●⏺⎿✻■⚠•◦›✕│╭✦ℹ⚡⠏↯") && !strings.HasPrefix(m.Lines[0], strings.Repeat(" ", 20))
		if bare || m.Mode != "tui" || frames[m.Agent].frames == nil || misses["painted:"+m.ID] != "" {
			continue
		}
		p := profile(t, m.Agent)
		plain := summary(read(t, p, m, detect.TUI))
		for _, cols := range []int{40, 60, 80, 120, 200} {
			rows := m.Lines
			if width(rows) > cols {
				if boxed(rows) || m.Class == "retrying" {
					continue // boxes are laid out anew, retry lines are cut short
				}
				rows = wrapFor(m.Agent, rows, cols)
			}
			if len(rows) > 38 || width(rows) > cols {
				continue
			}
			n++
			now, _ := time.Parse(time.RFC3339, m.Now)
			zone, _ := time.LoadLocation(m.TZ)
			o := detect.ExplainOptions{Mode: detect.TUI, Now: now, Zone: zone, Cols: cols, Rows: 40}
			if cols == 120 && n%4 == 0 || os.Getenv("QSHIM_LONG") != "" {
				if got := summary(bytewise(p, o, moves(rows))); got != plain {
					t.Errorf("%s byte by byte: %q, as rows %q", m.ID, got, plain)
				}
			}
			if got := summary(p.ExplainRaw([]byte(moves(rows)), o)); got != plain {
				t.Errorf("%s at %d columns: %q, as rows %q\n%s", m.ID, cols, got, plain, strings.Join(rows, "\n"))
			}
		}
	}
	t.Logf("%d screens", n)
}

// bytewise feeds a watcher one byte at a time.
func bytewise(p *detect.Profile, o detect.ExplainOptions, s string) (out []detect.Explained) {
	w := p.Watch(detect.Options{Mode: o.Mode, Cols: o.Cols, Rows: o.Rows, Zone: o.Zone, Lenient: true})
	var r detect.Report
	take := func(x detect.Report) {
		r = x
		for _, f := range x.Findings {
			out = append(out, detect.Explained{Finding: f})
		}
	}
	for i := range len(s) {
		take(w.Output(o.Now, []byte{s[i]}))
	}
	for n := 0; n < 50 && !r.Wake.IsZero(); n++ {
		take(w.Tick(r.Wake))
	}
	return out
}

func width(rows []string) (w int) {
	for _, r := range rows {
		w = max(w, len([]rune(r)))
	}
	return w
}

func boxed(rows []string) bool {
	return strings.ContainsAny(strings.Join(rows, ""), "│█▛") || strings.Contains(strings.Join(rows, "\n"), strings.Repeat(" ", 20))
}

func summary(got []detect.Explained) string {
	if len(got) == 0 {
		return "nothing"
	}
	g := got[len(got)-1]
	return fmt.Sprintf("%s %s %s", g.Class, g.Cause, g.Reset.UTC().Round(time.Minute).Format(time.RFC3339))
}
