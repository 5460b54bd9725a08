package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the agents put on at their start, from their recordings and pages.
const (
	claudeStart = "\x1b7\x1b[r\x1b8\x1b[?25h\x1b[?2004h\x1b[?2031h\x1b[?1004h\x1b[>5u\x1b[>4;2m" +
		"\x1b[?1049h\x1b[2J\x1b[H\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?25l"
	codexStart = "\x1b[?2004h\x1b[>4;0m\x1b[>7u\x1b[?1004h\x1b[?2026h\x1b[?25l\x1b[?1049h\x1b[>4;0m\x1b[>7u\x1b[?1007l" +
		"\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h"
	codexExit = "\x1b[<1u\x1b[?1007l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1049l\x1b[<1u\x1b[<u\x1b[>4;0m" +
		"\x1b[?2004l\x1b[?1004l\x1b[?2026l\x1b[0 q\x1b[?25h"
)

var unexported = cmp.AllowUnexported(Modes{}, textState{})

func after(in string) *Screen {
	s := New(80, 24)
	_, _ = s.Write([]byte(in))
	return s
}

func TestModesOffAndOn(t *testing.T) {
	for _, c := range []struct{ name, in, off, on string }{
		{"nothing", "text\r\n\x1b[2J", "", ""},
		{"put off again", "\x1b[?1000h\x1b[?1000l\x1b[>1u\x1b[<u\x1b[?25l\x1b[?25h\x1b=\x1b>\x1b[4 q\x1b[0 q\x1b[1mx\x1b[m", "", ""},
		{"off that was never on", "\x1b[?1007l\x1b[?1000l\x1b[?7h\x1b[4l\x1b[>4;0m", "", ""},
		{"codex after its own exit", codexStart + codexExit, "", ""},
		{
			"claude", claudeStart,
			"\x1b[>4;0m\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2031l\x1b[?2004l\x1b[?25h\x1b[?1049l\x1b[<1u",
			"\x1b[>5u\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?2031h\x1b[?1004h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[>4;2m",
		},
		{
			"codex", codexStart,
			"\x1b[?2026l\x1b[<1u\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[?1049l\x1b[<1u",
			"\x1b[>7u\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1004h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[>7u",
		},
		{"kitty base and stack", "\x1b[=3u\x1b[>1u\x1b[>9u", "\x1b[<2u\x1b[=0u", "\x1b[=3u\x1b[>1u\x1b[>9u"},
		{"kitty add and take away", "\x1b[=3u\x1b[=8;2u\x1b[=1;3u", "\x1b[=0u", "\x1b[=10u"},
		{"kitty pop more than pushed", "\x1b[=3u\x1b[>1u\x1b[<9u", "", ""},
		{"drawing left behind", "\x1b(0\x1b[1m\x1b[?1049h\x1b(B\x1b[m", "\x1b[?1049l\x1b(B\x1b[0m", "\x1b[?1049h"},
		{"keypad and cursor", "\x1b=\x1b[6 q\x1b[?12h", "\x1b>\x1b[?12l\x1b[0 q", "\x1b[?12h\x1b=\x1b[6 q"},
		{"region on the main screen", "\x1b[2;5r", "\x1b7\x1b[r\x1b8", "\x1b[2;5r"},
		{"region on the alternate screen", "\x1b[?1049h\x1b[2;5r", "\x1b[r\x1b[?1049l", "\x1b[?1049h\x1b[2;5r"},
		{"other ways to the alternate screen", "\x1b[?47h", "\x1b[?47l", "\x1b[?47h"},
		{"charsets", "\x1b(0\x1b)0\x0e", "\x1b(B\x1b)B\x0f", "\x1b(0\x1b)0\x0e"},
		{"drawing", "\x1b[4h\x1b[20h\x1b[?6h\x1b[?7l", "\x1b[?7h\x1b[?6l\x1b[4l\x1b[20l", "\x1b[?7l\x1b[?6h\x1b[20h\x1b[4h"},
		{"pen and link", "\x1b[1;31m\x1b]8;;http://x\x1b\\", "\x1b]8;;\x1b\\\x1b[0m", "\x1b[0;1;31m\x1b]8;;http://x\x1b\\"},
		{"titles", "\x1b[22;0t\x1b]0;✳ x\a", "\x1b[23;0t", "\x1b[22;0t\x1b]0;✳ x\x1b\\"},
		{"popped title", "\x1b[22;2t\x1b]0;✳ x\a\x1b[23;2t", "", ""},
		{"colours", "\x1b]11;#102030\a\x1b]10;?\a\x1b]4;1;red\a", "\x1b]111\x1b\\\x1b]104\x1b\\", "\x1b]11;#102030\x1b\\"},
		{"progress", "\x1b]9;4;1;50\a", "\x1b]9;4;0;\x1b\\", ""},
		{"progress gone", "\x1b]9;4;1;50\a\x1b]9;4;0\a", "", ""},
		{"saved and restored modes", "\x1b[?1000h\x1b[?1000s\x1b[?1000l\x1b[?1000r", "\x1b[?1000l", "\x1b[?1000h"},
		{"dangerous ones", "\x1b[?2h\x1b[?3h\x1b[?0h\x1b[?h", "", ""},
		{"after RIS", claudeStart + "\x1bc", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := after(c.in).Modes()
			if got := string(m.Off()); got != c.off {
				t.Errorf("Off\n got %q\nwant %q", got, c.off)
			}
			if got := string(m.On()); got != c.on {
				t.Errorf("On\n got %q\nwant %q", got, c.on)
			}
		})
	}
}

// TestInputModes: what stays while somebody else reads the keyboard is all but
// what changes the keys.
func TestInputModes(t *testing.T) {
	s := after(claudeStart + "\x1b[>1u\x1b[?2026h\x1b=\x1b[?1h")
	off := s.Modes().InputOff()
	_, _ = s.Write(off)
	m := s.Modes()
	want := []PrivateMode{{25, false}}
	if d := cmp.Diff(want, m.Private); d != "" || m.AltMode != 1049 || m.Keypad || len(m.Kitty[1].Stack) > 0 || m.ModKeys != nil {
		t.Errorf("after %q: %+v %s", off, m, d)
	}
}

// randomModes is output that changes modes.
func randomModes(r *rand.Rand) string {
	nums := []int{1, 6, 7, 12, 25, 66, 1000, 1002, 1003, 1004, 1006, 1007, 1049, 1047, 2004, 2031, 2048, 9001}
	var b strings.Builder
	for range 1 + r.IntN(12) {
		switch r.IntN(12) {
		default:
			fmt.Fprintf(&b, "\x1b[?%d%c", nums[r.IntN(len(nums))], "hhl"[r.IntN(3)])
		case 0:
			fmt.Fprintf(&b, "\x1b[>%du", r.IntN(32))
		case 1:
			fmt.Fprintf(&b, "\x1b[<%du", r.IntN(3))
		case 2:
			fmt.Fprintf(&b, "\x1b[=%d;%du", r.IntN(32), 1+r.IntN(3))
		case 3:
			fmt.Fprintf(&b, "\x1b[>%d;%dm", r.IntN(6), r.IntN(4))
		case 4:
			fmt.Fprintf(&b, "\x1b[%d q", r.IntN(7))
		case 5:
			b.WriteString([]string{"\x1b=", "\x1b>", "\x1b(0", "\x1b(B", "\x1b)0", "\x0e", "\x0f", "\x1b[4h", "\x1b[20h"}[r.IntN(9)])
		case 6:
			fmt.Fprintf(&b, "\x1b[%d;%dr", 1+r.IntN(10), 5+r.IntN(10))
		case 7:
			fmt.Fprintf(&b, "\x1b[%d;0t", 22+r.IntN(2))
		case 8:
			fmt.Fprintf(&b, "\x1b[%d;%dm", r.IntN(10), 30+r.IntN(8))
		}
	}
	return b.String()
}

// TestModesRoundTrip: Off leaves nothing on, and On makes of a fresh terminal
// what it was.
func TestModesRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		in := randomModes(r)
		s := after(in)
		m := s.Modes()
		_, _ = s.Write(m.Off())
		fresh := New(80, 24).Modes()
		left := s.Modes()
		left.Title = ""
		left.Kitty[1] = Kitty{} // out of force, and not to be reached from the main screen
		if d := cmp.Diff(fresh, left, unexported); d != "" {
			t.Fatalf("after %q and %q still on:\n%s", in, m.Off(), d)
		}
		s = after(string(m.On()))
		got := s.Modes()
		got.Private, m.Private = byNum(got.Private), byNum(m.Private)
		if m.AltMode == 0 {
			m.Kitty[1] = Kitty{}
		}
		m.back = textState{}
		got.back = textState{}
		if d := cmp.Diff(m, got, unexported); d != "" {
			t.Fatalf("after %q, On %q gives:\n%s", in, m.On(), d)
		}
	}
}

// byNum forgets the order, which On may change between groups.
func byNum(list []PrivateMode) []PrivateMode {
	var out []PrivateMode
	for num := range 10000 {
		for _, p := range list {
			if p.Num == num {
				out = append(out, p)
			}
		}
	}
	return out
}

func TestModesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "\x1b[?%dh\x1b[>%du\x1b[22;0t", 3000+i, i)
	}
	m := after(b.String()).Modes()
	if len(m.Private) > maxPrivate || len(m.Kitty[0].Stack) > maxKitty || m.Titles > maxTitles {
		t.Errorf("%d modes, %d kitty, %d titles", len(m.Private), len(m.Kitty[0].Stack), m.Titles)
	}
	// The first ones are remembered, and room comes back when they go off.
	s := after(b.String())
	for i := range 5000 {
		_, _ = fmt.Fprintf(s, "\x1b[?%dl", 3000+i)
	}
	_, _ = s.Write([]byte("\x1b[?1000h"))
	if got := string(s.Modes().privatesOff(nil, inputMode)); got != "\x1b[?1000l" {
		t.Errorf("%q", got)
	}
}
