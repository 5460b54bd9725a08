package detect_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"

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
			col += cells(string(c))
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
	all, n, labelled := messages(t), 0, len(messages(t))
	for _, v := range variants(t) {
		all = append(all, v.message)
	}
	for i, m := range all {
		// A row without its glyph is believed in an excerpt, never on a screen.
		marked := frames[m.Agent].frames != nil // those agents have one on every row
		bare := marked && len(m.Lines) > 0 && !strings.ContainsAny(m.Lines[0]+strings.Join(m.Lines[1:], ""), "❯●⏺⎿✻■⚠•◦›✕│╭✦ℹ⚡⠏↯") && !strings.HasPrefix(m.Lines[0], strings.Repeat(" ", 20))
		if bare || m.Mode != "tui" || misses["painted:"+m.ID] != "" {
			continue
		}
		p := profile(t, m.Agent)
		plain := summary(read(t, p, m, detect.TUI))
		for k, cols := range []int{40, 60, 80, 120, 200} {
			if i >= labelled && k != i%5 && os.Getenv("QSHIM_LONG") == "" {
				continue // of those not labelled by others one width each
			}
			rows := m.Lines
			if width(rows) > cols {
				if boxed(rows) || m.Class == "retrying" || m.Class == "none" && !marked {
					continue // boxes are laid out anew, retry lines and tools' heads are cut short
				}
				rows = drawn(m.Agent, rows, cols)
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

// drawn wraps rows as their agent does: at the terminal's edge, below the text
// of a row with a mark, or where the row began.
func drawn(agent string, rows []string, cols int) (out []string) {
	for _, r := range rows {
		bare := strings.TrimLeft(r, " ")
		indent := len(r) - len(bare)
		switch agent {
		case "goose", "kimi", "aider": // lines that the terminal breaks
			x := []rune(r)
			for ; len(x) > cols; x = x[cols:] {
				out = append(out, string(x[:cols]))
			}
			out = append(out, string(x))
			continue
		case "copilot", "antigravity", "qwen":
			if strings.IndexAny(bare, "✗✘×✕⚠●✦❯>") == 0 {
				indent += 2
			}
		case "pi", "crush", "opencode", "generic":
		default:
			out = append(out, wrapFor(agent, []string{r}, cols)...)
			continue
		}
		out = append(out, wrapWords(r, cols-1, strings.Repeat(" ", indent))...)
	}
	return out
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

// cells is how many columns a text takes.
func cells(s string) int { return displaywidth.String(s) }

func width(rows []string) (w int) {
	for _, r := range rows {
		w = max(w, cells(r))
	}
	return w
}

func boxed(rows []string) bool {
	return strings.ContainsAny(strings.Join(rows, ""), "│█▛") || strings.Contains(strings.Join(rows, ""), strings.Repeat("─", 20)) || strings.Contains(strings.Join(rows, "\n"), strings.Repeat(" ", 20))
}

func summary(got []detect.Explained) string {
	if len(got) == 0 {
		return "nothing"
	}
	g := got[len(got)-1]
	return fmt.Sprintf("%s %s %s", g.Class, g.Cause, g.Reset.UTC().Round(time.Minute).Format(time.RFC3339))
}
