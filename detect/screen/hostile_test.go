package screen

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// modelBytes is the most that a Screen of 120x40 may hold after anything: two
// grids, the scrolled rows, the tables and the strings, far below the 12 MiB
// that a whole session may use.
const modelBytes = 4 << 20

func heldBytes(s *Screen) int {
	n := cap(s.p.str) + len(s.title) + cap(s.st.link) + cap(s.ev.list)*64 + cap(s.ev.spare)*64
	s.eachRow(func(r *row) { n += cap(r.cells) * int(unsafe.Sizeof(cell{})) })
	n += cap(s.styles.list)*int(unsafe.Sizeof(Style{})) + cap(s.styles.slots)*2
	for _, c := range s.clusters.list {
		n += 64 + len(c)
	}
	for _, t := range s.ev.strings {
		n += 64 + len(t)
	}
	return n
}

// TestHostile writes what a terminal must survive: it ends (the test's time
// limit is the judge), holds its invariants and stays small.
func TestHostile(t *testing.T) {
	junk := strings.Repeat("\xff\xc3\xe2\x82\xf0\x9f\x98\x80\x80", 50000)
	var colours, marks, titles, links, modes strings.Builder
	for i := range 1000000 {
		fmt.Fprintf(&colours, "\x1b[38;2;%d;%d;%dmx", i>>16, i>>8&255, i&255)
	}
	for i := range 60000 {
		fmt.Fprintf(&marks, "%c%c%c", 'a'+i%26, 0x300+i%0x70, 0x300+i/0x70%0x70)
	}
	for i := range 20000 {
		fmt.Fprintf(&titles, "\x1b]0;title %d %s\a\a\x1b]7501;state=%d\x1b\\", i, strings.Repeat("x", i%5000), i)
		fmt.Fprintf(&links, "\x1b]8;;http://%d\x1b\\x", i)
		fmt.Fprintf(&modes, "\x1b[?%dh\x1b[>%du\x1b[?1049%c\x1b7\x1b8", i, i, "hl"[i%2])
	}
	for _, c := range []struct{ name, in string }{
		{"rep", "x" + strings.Repeat("\x1b[2000000000b", 10000)},
		{"counts", strings.Repeat("\x1b[2000000000L\x1b[99999999999999999999M\x1b[4294967295@\x1b[65536P\x1b[2147483648S\x1b[9999999T\x1b[9999999I\x1b[9999999Z", 5000)},
		{"parameters", "\x1b[" + strings.Repeat("1;", 5<<20) + "mx"},
		{"colons", "\x1b[" + strings.Repeat("38:2:", 2<<20) + "mx"},
		{"digits", "\x1b[" + strings.Repeat("9", 10<<20) + "Hx"},
		{"intermediates", "\x1b[" + strings.Repeat(" !", 5<<20) + "qx"},
		{"endless osc", "\x1b]0;" + strings.Repeat("x", 20<<20)},
		{"endless dcs", "\x1bP" + strings.Repeat("tmux;\x1b\x1b", 2<<20)},
		{"endless apc", "\x1b_" + strings.Repeat("G\n", 5<<20)},
		{"styles", colours.String()},
		{"marks", marks.String()},
		{"one tower", "a" + strings.Repeat("\u0301", 1<<20)},
		{"joiners", strings.Repeat("👨\u200d", 1<<18)},
		{"wide", strings.Repeat("世", 1<<20)},
		{"invalid", junk},
		{"titles", titles.String()},
		{"links", links.String()},
		{"modes", modes.String()},
		{"escapes", strings.Repeat("\x1b", 10<<20)},
		{"nul", strings.Repeat("\x00", 10<<20)},
		{"clears", strings.Repeat("\x1b[2J\x1b[41m\x1b[2J\x1b[m", 5000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(120, 40)
			in := []byte(c.in)
			for at := 0; at < len(in); at += 65536 {
				_, _ = s.Write(in[at:min(at+65536, len(in))])
			}
			checkInvariants(t, s)
			if n := heldBytes(s); n > modelBytes {
				t.Errorf("the model holds %d bytes", n)
			}
			if n := len(s.TakeEvents()); n > maxEvents+1 {
				t.Errorf("%d events", n)
			}
			// It works on afterwards.
			_, _ = s.Write([]byte("\x1b\\\x18\x1bc\x1b[31mafter"))
			if s.Row(0) != "after" || s.Cell(0, 0).Style.Fg != Index(1) {
				t.Errorf("afterwards: %q %+v", s.Row(0), s.Cell(0, 0))
			}
		})
	}
}

// TestHeapStaysFlat measures what heldBytes might have forgotten.
func TestHeapStaysFlat(t *testing.T) {
	data := bytes.Repeat(castBytes(t, "codex"), 20)
	s := New(120, 40)
	_, _ = s.Write(data)
	measure := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := measure()
	for range 20 {
		_, _ = s.Write(data)
	}
	if after := measure(); after > before+(1<<20) {
		t.Errorf("heap grew from %d to %d bytes", before, after)
	}
	runtime.KeepAlive(s)
}

// TestStyleTableFull: when every cell has a colour of its own, text and
// attributes are still right, and colours come back when there is room.
func TestStyleTableFull(t *testing.T) {
	s := New(200, 200)
	for i := range 200*200 - 1 {
		_, _ = fmt.Fprintf(s, "\x1b[1;38;2;%d;%d;%dmx", i>>16, i>>8&255, i&255)
	}
	if c := s.Cell(100, 199); c.Text != "x" || c.Style.Attr != Bold {
		t.Errorf("beyond the table: %+v", c)
	}
	if c := s.Cell(5, 0); c.Style.Fg != RGB(0, 0, 5) {
		t.Errorf("within the table: %+v", c)
	}
	_, _ = s.Write([]byte("\x1b[H\x1b[m\x1b[2J"))
	for i := range sweepPause + 10 {
		_, _ = fmt.Fprintf(s, "\x1b[H\x1b[38;2;9;%d;%dmx", i>>8, i&255)
	}
	_, _ = s.Write([]byte("\x1b[H\x1b[38;2;7;7;7mx"))
	if c := s.Cell(0, 0); c.Style.Fg != RGB(7, 7, 7) {
		t.Errorf("after a sweep: %+v", c)
	}
	checkInvariants(t, s)
}
