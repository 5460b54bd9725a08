package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStyles(t *testing.T) {
	for _, c := range []struct {
		sgr  string
		want Style
	}{
		{"1;2;3;4;5;7;8;9;53", Style{Attr: Bold | Dim | Italic | Underline | Blink | Reverse | Invisible | Strike | Overline, Line: 1}},
		{"1;2;22;3;23;4;24;5;25;7;27;8;28;9;29;53;55", Style{}},
		{"31;102", Style{Fg: Index(1), Bg: Index(10)}},
		{"97;40;39;49", Style{}},
		{"38;5;208;48;5;17", Style{Fg: Index(208), Bg: Index(17)}},
		{"38;2;1;2;3;48;2;4;5;6;1", Style{Fg: RGB(1, 2, 3), Bg: RGB(4, 5, 6), Attr: Bold}},
		{"38:5:208", Style{Fg: Index(208)}},
		{"38:2:1:2:3;1", Style{Fg: RGB(1, 2, 3), Attr: Bold}},
		{"38:2::1:2:3;1", Style{Fg: RGB(1, 2, 3), Attr: Bold}},
		{"48:2:0:1:2:3", Style{Bg: RGB(1, 2, 3)}},
		{"58;5;9", Style{UnderColor: Index(9)}},
		{"58:2::1:2:3;59", Style{}},
		{"4:3", Style{Attr: Underline, Line: 3}},
		{"4:3;4:0", Style{}},
		{"21", Style{Attr: Underline, Line: 2}},
		{"4:9", Style{}},
		{"31;", Style{}},
		{"1;;31", Style{Fg: Index(1)}},
		{"38;5", Style{Fg: Index(0)}},
		{"38;9;1", Style{Attr: Bold}},
		{"38;5;999", Style{}},
		{"38;2;1;2", Style{Fg: RGB(1, 2, 0)}},
		{"38;2;256;2;3;1", Style{Attr: Bold}},
		{"38:5:999;1", Style{Attr: Bold}},
		{"1:2;31", Style{Fg: Index(1)}},
		{strings.Repeat("0;", 40) + "31", Style{}}, // beyond the 32nd parameter
		{"1;38;2;250;250;250;48;2;250;250;250;58;2;250;250;250;4;9", Style{
			Fg: RGB(250, 250, 250), Bg: RGB(250, 250, 250), UnderColor: RGB(250, 250, 250),
			Attr: Bold | Underline | Strike, Line: 1,
		}},
	} {
		s := after("\x1b[" + c.sgr + "mx")
		if got := s.Cell(0, 0).Style; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.sgr, got, c.want)
		}
	}
}

func TestColor(t *testing.T) {
	var c Color
	if _, ok := c.Index(); ok || !c.Default() {
		t.Error("the zero Color is the default")
	}
	if i, ok := Index(7).Index(); !ok || i != 7 {
		t.Errorf("index %d %v", i, ok)
	}
	if r, g, b, ok := RGB(1, 2, 3).RGB(); !ok || r != 1 || g != 2 || b != 3 {
		t.Errorf("rgb %d %d %d %v", r, g, b, ok)
	}
}

func TestLinks(t *testing.T) {
	s := after("\x1b]8;;http://x\x1b\\a\x1b[31mb\x1b[0mc\x1b]8;;\x1b\\d\x1b]8;;http://" + strings.Repeat("y", 9000) + "\x1b\\e")
	for x, want := range []bool{true, true, true, false, true} {
		if got := s.Cell(x, 0).Style.Link; got != want {
			t.Errorf("column %d: link %v", x, got)
		}
	}
}

func TestEvents(t *testing.T) {
	s := after("\x1b]0;✳ Claude Code\a\x1b]1;icon\a\x1b]2;✳ Claude Code\a\a\a" +
		"\x1b]7501;state=working:app=codex\x1b\\\x1b]9;done\a\x1b]9;4;1;50\a" +
		"ab\x1b[6n\x1b[H\x1b[J\x1b[2J\x1b[3J\x1b[?1049h\x1b[?1049l\x1bc")
	want := []Event{
		{Kind: Title, Text: "✳ Claude Code"},
		{Kind: Bell},
		{Kind: OSC7501, Text: "state=working:app=codex"},
		{Kind: OSC9, Text: "done"},
		{Kind: OSC9, Text: "4;1;50"},
		{Kind: CursorQuery, X: 2},
		{Kind: FullRepaint, Text: "ED0"},
		{Kind: FullRepaint, Text: "ED2"},
		{Kind: Clear},
		{Kind: FullRepaint, Text: "alt"},
		{Kind: LeftAlt},
		{Kind: Title},
		{Kind: FullRepaint, Text: "RIS"},
	}
	if d := cmp.Diff(want, s.TakeEvents()); d != "" {
		t.Error(d)
	}
	if more := s.TakeEvents(); len(more) != 0 {
		t.Errorf("again: %v", more)
	}
	_, _ = s.Write([]byte(strings.Repeat("\x1b]7501;a\a\x1b]7501;b\a", 500) + "\x1b]7501;last\a"))
	got := s.TakeEvents()
	if len(got) > maxEvents+1 || got[0].Kind != EventsLost || got[len(got)-1].Text != "last" {
		t.Errorf("too many: %d, first %v, last %v", len(got), got[0], got[len(got)-1])
	}
}

// TestStrings: only BEL and ESC \ end an OSC, and what is broken off or too
// long has no effect.
func TestStrings(t *testing.T) {
	for _, c := range []struct{ in, title, row string }{
		{"\x1b]0;✳ a\x07b", "✳ a", "b"},
		{"\x1b]0;✳ a\x1b\\b", "✳ a", "b"},
		{"\x1b]0;a\x9cb\x07c", "a\x9cb", "c"},
		{"\x1b]0;a\x18b", "", "b"},
		{"\x1b]0;a\x1ab", "", "b"},
		{"\x1b]0;a\x1b[31mb", "", "b"},
		{"\x1b]0;a\x1b\x1b\\b", "", "b"},
		{"\x1b]0;a\nb\x07c", "ab", "c"},
		{"\x1b]0;" + strings.Repeat("x", 4090) + "\x07b", strings.Repeat("x", 4090), "b"},
		{"\x1b]0;" + strings.Repeat("x", 4100) + "\x07b", "", "b"},
		{"\x1b]0\x07b", "", "b"},
		{"\x1b]\x07b", "", "b"},
		{"\x1b]x;y\x07b", "", "b"},
		{"\x1b]999999999999;y\x07b", "", "b"},
		{"\x1bPtmux;\x1b\x1b]0;a\x07\x1b\x1b\\x\x1b\\b", "", "b"},
		{"\x1bPx\x1b\x1b\\b", "", "b"},
		{"\x1b_a\x1b[1mb", "", "b"},
	} {
		s := after(c.in)
		if s.Title() != c.title || s.Row(0) != c.row {
			t.Errorf("%.40q: title %.20q, row %q", c.in, s.Title(), s.Row(0))
		}
	}
}

func TestGround(t *testing.T) {
	for in, want := range map[string]bool{
		"": true, "a": true, "\x1b": false, "\x1b[": false, "\x1b[1": false, "\x1b[1m": true, "\x1b(": false,
		"\x1b]0;x": false, "\x1b]0;x\x1b": false, "\x1b]0;x\x1b\\": true, "\x1bP": false,
		"\xe4": false, "\xe4\xb8": false, "\xe4\xb8\x96": true, "\xff": true, "\xe4x": true,
	} {
		if got := after(in).Ground(); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestVersions(t *testing.T) {
	s := New(10, 3)
	_, _ = s.Write([]byte("one\r\ntwo\x1b[31m"))
	same := func(in string, rows ...bool) {
		t.Helper()
		all, before := s.Version(), rowVersions(s)
		_, _ = s.Write([]byte(in))
		changed := false
		for y, v := range rowVersions(s) {
			if (v == before[y]) != rows[y] {
				t.Errorf("%q: row %d same: %v", in, y, v == before[y])
			}
			changed = changed || v != before[y]
		}
		if changed != (s.Version() != all) {
			t.Errorf("%q: rows changed %v, the screen's version says otherwise", in, changed)
		}
	}
	same("\x1b[H", true, true, true)
	same("\x1b[mone\x1b[K", true, true, true)
	same("\x1b[HonE", false, true, true)
	same("\x1b[1m\x1b[HonE", false, true, true)
	same("\x1b[2;1H\x1b[2K", true, false, true)
	same("\x1b[2K\x1b[J", true, true, true)
	same("\x1b[S", false, false, false)
	same("\x1b[?25l\x1b[?2004h", true, true, true)
	main := rowVersions(s)
	same("\x1b[?1049h", false, true, false) // row 1 was never written on either
	_, _ = s.Write([]byte("x\x1b[?1049l"))
	if d := cmp.Diff(main, rowVersions(s)); d != "" {
		t.Errorf("back on the main screen: %s", d)
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		in   string
		want bool
	}{
		{"abcdefg", true},
		{"abcde\r\nfg", false},
		{"abcde", false},
		{"abcd世", true},
		{"abcdefg\x1b[1;1H\x1b[K", false},
		{"abcdefg\x1b[1;1Habcde\r\nfg", false},
		{"abcdefg\x1b[1;1Habcdefg", true},
		{"abcdefg\x1b[1;2Hx", true},
		{"abcdefg\x1b[1;2H\x1b[P", false},
		{"abcdefg\x1b[1;2H\x1b[@", false},
		{"abcdefg\x1b[1;1H\x1b[1J", true},
		{"abcdefg\x1b[1;5H\x1b[1K", false},
	} {
		if got := after2(5, 3, c.in).Wrapped(0); got != c.want {
			t.Errorf("%q: %v", c.in, got)
		}
	}
}

func TestScrolled(t *testing.T) {
	s := after2(10, 2, "\x1b[31mone\r\n\x1b[mtwo\r\nthree\r\nfour")
	rows, total := s.Scrolled()
	if total != 2 || len(rows) != 2 || rows[0].String() != "one" || rows[1].String() != "two" {
		t.Fatalf("%v %d", rows, total)
	}
	if c := rows[0].Cell(0); c.Style.Fg != Index(1) {
		t.Errorf("style %+v", c)
	}
	// Not from the alternate screen, not below a region, not by deleting.
	_, _ = s.Write([]byte("\x1b[?1049hx\r\ny\r\nz\r\n\x1b[?1049l\x1b[1;1H\x1b[M\x1b[2J"))
	if s.ScrolledTotal() != 2 {
		t.Errorf("%d", s.ScrolledTotal())
	}
	_, _ = s.Write([]byte(strings.Repeat("line\r\n", 1000)))
	if rows, total := s.Scrolled(); len(rows) != scrolledRows || total < 1000 || total > 1002 {
		t.Errorf("%d of %d", len(rows), total)
	}
}

func TestCursorAt(t *testing.T) {
	s := after2(10, 6, "one\r\ntwo")
	s.CursorAt(4)
	if got := rowsOf(s); got != "|||one|two|" {
		t.Error(got)
	}
	if x, y := s.Cursor(); x != 3 || y != 4 {
		t.Errorf("cursor %d,%d", x, y)
	}
	s.CursorAt(0)
	if got := rowsOf(s); got != "two|||||" {
		t.Error(got)
	}
	_, _ = s.Write([]byte("\x1b[?1049h\x1b[3;3H"))
	s.CursorAt(5)
	if _, y := s.Cursor(); y != 2 {
		t.Errorf("moved on the alternate screen: %d", y)
	}
}

func TestLost(t *testing.T) {
	s := after("\x1b]0;half a title")
	s.Lost()
	if s.Trusted() || !s.Ground() {
		t.Error("still trusted, or inside a string")
	}
	_, _ = s.Write([]byte("text\x1b[K"))
	if s.Trusted() {
		t.Error("trusted without a repaint")
	}
	for _, in := range []string{"\x1b[2J", "\x1b[H\x1b[J", "\x1b[?1049h", "\x1bc"} {
		s := New(10, 2)
		s.Lost()
		if _, _ = s.Write([]byte(in)); !s.Trusted() {
			t.Errorf("not trusted after %q", in)
		}
	}
}

func TestOutside(t *testing.T) {
	s := New(0, -5)
	if c, r := s.Size(); c != 1 || r != 1 {
		t.Errorf("%dx%d", c, r)
	}
	s.Resize(1<<30, 1<<30)
	if c, r := s.Size(); c != maxCols || r != maxRows {
		t.Errorf("%dx%d", c, r)
	}
	if s.Row(-1) != "" || s.Row(maxRows) != "" || s.Cell(-1, 0) != (Cell{}) || s.Cell(0, -1) != (Cell{}) ||
		s.Wrapped(-1) || s.RowVersion(maxRows) != 0 || (Line{}).Len() != 0 || (Line{}).Wrapped() {
		t.Error("something is outside the screen")
	}
	if b := s.AppendRows(nil, -5, -1); len(b) != 0 {
		t.Errorf("%q", b)
	}
}
