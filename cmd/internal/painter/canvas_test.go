package painter

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"qshim/detect/screen"
)

// Whatever is painted after whatever: the terminal shows the wanted rows, and
// an unchanged picture costs nothing.
func TestCanvasShowsWhatIsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := rapid.IntRange(1, 40).Draw(t, "cols"), rapid.IntRange(1, 10).Draw(t, "rows")
		var c canvas
		c.clear(cols, rows)
		s := screen.New(cols, rows)
		styles := []style{plain, red, grey, bold, dim}
		row := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span {
			return span{rapid.StringMatching(`[a-c ●❯·]{0,12}`).Draw(t, "text"), rapid.SampledFrom(styles).Draw(t, "style")}
		}), 0, 4)
		for range rapid.IntRange(1, 6).Draw(t, "frames") {
			want := rapid.SliceOfN(row, 0, 12).Draw(t, "rows")
			if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
				c.clear(cols, rows)
			}
			s.Write(c.paint(nil, want))
			for y := range rows {
				for x, cell := range c.line(want, y) {
					got := s.Cell(x, y)
					shown := got.Text
					if shown == "" {
						shown = " "
					}
					if shown != string(cell.r) {
						t.Fatalf("row %d column %d shows %q, want %q", y, x, shown, cell.r)
					}
				}
			}
			if more := c.paint(nil, want); len(more) > 0 {
				t.Fatalf("an unchanged picture wrote %q", more)
			}
		}
	})
}

func TestOnlyChangesAreWritten(t *testing.T) {
	var c canvas
	c.clear(80, 24)
	m := model{o: Options{Name: "x", Attempts: 10}, busy: true}
	now := time.Unix(0, 0)
	m.take(update{kind: retrying, text: "API error", until: now.Add(9 * time.Second), attempt: 1}, now)
	c.paint(nil, m.rows(80, 24, now))
	got := string(c.paint(nil, m.rows(80, 24, now.Add(time.Second))))
	if len(got) > 40 || !strings.Contains(got, "8") || strings.Contains(got, "retrying") {
		t.Errorf("one second of the countdown wrote %q", got)
	}
}

func TestLongReasonIsCutAndTextIsWrapped(t *testing.T) {
	m := model{o: Options{Name: "x", Attempts: 3}, busy: true}
	now := time.Unix(0, 0)
	m.take(update{kind: retrying, text: "429 This request would exceed your account's rate limit. Please try again later.", until: now.Add(3 * time.Second), attempt: 3}, now)
	row := ""
	for _, s := range m.retryRow(80, now) {
		row += s.text
	}
	// As recorded from the real one at 80 columns.
	if want := "✻ 429 This request would exceed your account's… · retrying in 3s · attempt 3/3"; len([]rune(row)) > 80 || !strings.HasPrefix(row, "✻ 429 This request would exceed your account's") || !strings.HasSuffix(row, "… · retrying in 3s · attempt 3/3") {
		t.Errorf("%q, want like %q", row, want)
	}
	got := wrap("aa bb ccccccc d", 4)
	if strings.Join(got, "|") != "aa|bb|cccc|ccc|d" {
		t.Errorf("wrapped %q", got)
	}
}

// No size and no text can break the layout.
func TestLayoutAtAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := rapid.IntRange(0, 200).Draw(t, "cols"), rapid.IntRange(0, 60).Draw(t, "rows")
		m := model{o: Options{Name: rapid.String().Draw(t, "name"), Attempts: 3}}
		now := time.Unix(0, 0)
		m.begin(m.o.Name, now)
		for range rapid.IntRange(0, 10).Draw(t, "updates") {
			m.take(update{kind: updateKind(rapid.IntRange(0, 5).Draw(t, "kind")), text: rapid.String().Draw(t, "text"), own: rapid.Bool().Draw(t, "own"), hint: resend}, now)
		}
		var c canvas
		c.clear(cols, rows)
		c.paint(nil, m.rows(c.cols, c.rows, now))
	})
}
