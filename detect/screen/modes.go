package screen

import (
	"slices"
	"strconv"
)

// Modes is what an agent has put on in the terminal and not put off, as a
// plain value. The zero Modes is a terminal as it was at the start.
type Modes struct {
	Private  []PrivateMode // those that differ from a fresh terminal's, in the order of their first change
	AltMode  int           // 47, 1047 or 1049 while on the alternate screen, else 0
	Kitty    [2]Kitty      // main screen, alternate screen
	ModKeys  []ModKey      // XTMODKEYS resources set (4 is modifyOtherKeys), not 0
	Keypad   bool          // application keypad
	Insert   bool
	Newline  bool
	Charset  [2]byte // designations of G0 and G1: 'B' or '0'; zero stands for 'B'
	Shift    uint8   // 1 after SO
	Style    int     // cursor style (DECSCUSR), 0 the default
	Top, Bot int     // scroll region in rows from 1, both 0 for the whole screen
	Titles   int     // titles pushed and not popped
	Title    string
	Colours  [3]string // OSC 10, 11, 12 values set
	Palette  bool      // an OSC 4 colour was set (which cannot be put on again)
	Progress bool      // an OSC 9;4 progress indicator is shown
	Pen      Style
	Link     string // parameters and address of the open hyperlink, if Pen.Link and under 4 KB

	back textState // what leaving by ?1049l brings back
}

// textState is what DECRC and ?1049l restore beside the position.
type textState struct {
	charset [2]byte
	shift   uint8
	pen     Style
}

// PrivateMode is one DEC private mode that is not as it was.
type PrivateMode struct {
	Num int
	On  bool
}

// ModKey is one XTMODKEYS resource.
type ModKey struct{ Resource, Value int }

// Modes is the state of every mode now. The result shares nothing with s.
func (s *Screen) Modes() Modes {
	st := &s.st
	m := Modes{
		AltMode: st.altMode, Keypad: st.keypad, Insert: st.insert,
		Newline: st.newline, Charset: st.g, Shift: st.shift, Style: st.style,
		Titles: st.titles, Title: st.title, Colours: st.colours,
		Palette: st.palette, Progress: st.progress, Pen: s.pen, Link: string(st.link),
	}
	if st.altMode == 1049 {
		m.back = textState{s.left.g, s.left.shift, s.left.pen}
	}
	for i, k := range st.kitty {
		m.Kitty[i] = Kitty{Base: k.Base, Stack: append([]uint8(nil), k.Stack...)}
	}
	for _, p := range st.priv {
		if p.on != defaultOn(p.num) {
			m.Private = append(m.Private, PrivateMode{p.num, p.on})
		}
	}
	for r, v := range st.modKeys {
		if v > 0 {
			m.ModKeys = append(m.ModKeys, ModKey{r, int(v)})
		}
	}
	if s.top != 0 || s.bot != s.rows-1 {
		m.Top, m.Bot = s.top+1, s.bot+1
	}
	return m
}

// Has reports whether the private mode is in force.
func (m Modes) Has(num int) bool {
	for _, p := range m.Private {
		if p.Num == num {
			return p.On
		}
	}
	return defaultOn(num)
}

// inputModes change what keys, mouse and pastes send: all of them must be off
// while somebody else than the agent reads the keyboard.
func inputMode(num int) bool {
	switch num {
	case 1, 9, 66, 67, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016,
		1034, 1035, 1036, 1039, 2004, 2031, 2048, 5522, 9001:
		return true
	}
	return false
}

// InputOff puts off what changes the bytes that keys, mouse, pastes, focus and
// size changes send, on the present screen, and ends a synchronised update. It
// moves no cursor and changes no cell. Nil if there is nothing to put off.
func (m Modes) InputOff() []byte {
	var b []byte
	if m.Has(2026) {
		b = private(b, 2026, false)
	}
	b = m.kittyNow().off(b)
	b = m.modKeysOff(b)
	b = m.privatesOff(b, inputMode)
	if m.Keypad {
		b = append(b, "\x1b>"...)
	}
	return b
}

// InputOn undoes InputOff, except for the synchronised update: the agent ends
// it once more, which does no harm.
func (m Modes) InputOn() []byte {
	var b []byte
	b = m.privatesOn(b, inputMode)
	b = m.modKeysOn(b)
	b = m.kittyNow().on(b)
	if m.Keypad {
		b = append(b, "\x1b="...)
	}
	return b
}

// Off is the bytes that put off everything that m has on and nothing else, nil
// if that is nothing. The alternate screen is left the way it was entered, so
// the terminal shows what was there before. Only the scroll region's reset
// moves the cursor; on the main screen it is kept by ESC 7 and ESC 8, which
// takes the place of a position that the agent itself may have kept there.
func (m Modes) Off() []byte {
	b := m.InputOff()
	b = m.privatesOff(b, func(num int) bool { return !inputMode(num) && num != 2026 })
	b = m.drawingOff(b)
	if m.AltMode != 0 {
		b = private(b, m.AltMode, false)
		b = m.Kitty[0].off(b)
	}
	b = m.textOff(b)
	return m.windowOff(b)
}

// textOff puts off character sets and style, both those in force and those
// that came back with the main screen.
func (m Modes) textOff(b []byte) []byte {
	if m.Charset[0] == '0' || m.back.charset[0] == '0' {
		b = append(b, "\x1b(B"...)
	}
	if m.Charset[1] == '0' || m.back.charset[1] == '0' {
		b = append(b, "\x1b)B"...)
	}
	if m.Shift != 0 || m.back.shift != 0 {
		b = append(b, 0x0f)
	}
	m.Pen.Link, m.back.pen.Link = false, false
	if m.Pen != (Style{}) || m.back.pen != (Style{}) {
		b = append(b, "\x1b[0m"...)
	}
	return b
}

// drawingOff puts off what else changes how text is drawn.
func (m Modes) drawingOff(b []byte) []byte {
	if m.Insert {
		b = append(b, "\x1b[4l"...)
	}
	if m.Newline {
		b = append(b, "\x1b[20l"...)
	}
	if m.Pen.Link {
		b = append(b, "\x1b]8;;\x1b\\"...)
	}
	switch {
	case m.Top == 0:
	case m.AltMode != 0:
		b = append(b, "\x1b[r"...)
	default:
		b = append(b, "\x1b7\x1b[r\x1b8"...)
	}
	if m.Style != 0 {
		b = append(b, "\x1b[0 q"...)
	}
	return b
}

// windowOff takes back what belongs to the window: titles, colours, progress.
func (m Modes) windowOff(b []byte) []byte {
	for i, c := range m.Colours {
		if c != "" {
			b = osc(b, 110+i, "")
		}
	}
	if m.Palette {
		b = osc(b, 104, "")
	}
	if m.Progress {
		b = osc(b, 9, "4;0;")
	}
	for range m.Titles {
		b = append(b, "\x1b[23;0t"...)
	}
	return b
}

// On is the bytes that put on again what Off put off, in the order that an
// agent would. The cells and the cursor are not part of it:
// paint them afterwards (AppendOpen, AppendRows, AppendClose). A palette, a
// progress indicator and a synchronised update are not put on again.
func (m Modes) On() []byte {
	var b []byte
	for range m.Titles {
		b = append(b, "\x1b[22;0t"...)
	}
	if m.Titles > 0 && m.Title != "" {
		b = osc(b, 0, m.Title)
	}
	for i, c := range m.Colours {
		if c != "" {
			b = osc(b, 10+i, c)
		}
	}
	if m.AltMode != 0 {
		b = m.Kitty[0].on(b)
		b = private(b, m.AltMode, true)
	}
	b = m.privatesOn(b, func(num int) bool { return !inputMode(num) && num != 2026 && num != 6 })
	b = append(b, m.InputOn()...)
	return m.drawingOn(b)
}

func (m Modes) drawingOn(b []byte) []byte {
	if m.Style != 0 {
		b = append(b, "\x1b["...)
		b = strconv.AppendInt(b, int64(m.Style), 10)
		b = append(b, " q"...)
	}
	if m.Top != 0 {
		b = csi2(b, m.Top, m.Bot, 'r')
	}
	if m.Has(6) {
		b = private(b, 6, true)
	}
	b = m.charsetOn(b)
	if m.Newline {
		b = append(b, "\x1b[20h"...)
	}
	if m.Insert {
		b = append(b, "\x1b[4h"...)
	}
	pen := m.Pen
	pen.Link = false
	if pen != (Style{}) {
		b = appendSGR(b, pen)
	}
	if m.Link != "" {
		b = osc(b, 8, m.Link)
	}
	return b
}

func (m Modes) charsetOn(b []byte) []byte {
	if m.Charset[0] == '0' {
		b = append(b, "\x1b(0"...)
	}
	if m.Charset[1] == '0' {
		b = append(b, "\x1b)0"...)
	}
	if m.Shift != 0 {
		b = append(b, 0x0e)
	}
	return b
}

func (m Modes) kittyNow() Kitty {
	if m.AltMode != 0 {
		return m.Kitty[1]
	}
	return m.Kitty[0]
}

func (k Kitty) off(b []byte) []byte {
	if n := len(k.Stack); n > 0 {
		b = append(b, "\x1b[<"...)
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, 'u')
	}
	if k.Base != 0 {
		b = append(b, "\x1b[=0u"...)
	}
	return b
}

func (k Kitty) on(b []byte) []byte {
	if k.Base != 0 {
		b = append(b, "\x1b[="...)
		b = strconv.AppendInt(b, int64(k.Base), 10)
		b = append(b, 'u')
	}
	for _, f := range k.Stack {
		b = append(b, "\x1b[>"...)
		b = strconv.AppendInt(b, int64(f), 10)
		b = append(b, 'u')
	}
	return b
}

func (m Modes) modKeysOff(b []byte) []byte {
	for _, k := range m.ModKeys {
		b = modKey(b, k.Resource, 0)
	}
	return b
}

func (m Modes) modKeysOn(b []byte) []byte {
	for _, k := range m.ModKeys {
		b = modKey(b, k.Resource, k.Value)
	}
	return b
}

func modKey(b []byte, resource, value int) []byte {
	b = append(b, "\x1b[>"...)
	b = strconv.AppendInt(b, int64(resource), 10)
	b = append(b, ';')
	b = strconv.AppendInt(b, int64(value), 10)
	return append(b, 'm')
}

// privatesOff restores the chosen modes, the last one changed first.
func (m Modes) privatesOff(b []byte, want func(int) bool) []byte {
	for _, p := range slices.Backward(m.Private) {
		if want(p.Num) {
			b = private(b, p.Num, !p.On)
		}
	}
	return b
}

func (m Modes) privatesOn(b []byte, want func(int) bool) []byte {
	for _, p := range m.Private {
		if want(p.Num) {
			b = private(b, p.Num, p.On)
		}
	}
	return b
}

func private(b []byte, num int, on bool) []byte {
	b = append(b, "\x1b[?"...)
	b = strconv.AppendInt(b, int64(num), 10)
	if on {
		return append(b, 'h')
	}
	return append(b, 'l')
}

func osc(b []byte, num int, text string) []byte {
	b = append(b, "\x1b]"...)
	b = strconv.AppendInt(b, int64(num), 10)
	if text != "" {
		b = append(b, ';')
		b = append(b, text...)
	}
	return append(b, "\x1b\\"...)
}

func csi2(b []byte, v, w int, final byte) []byte {
	b = append(b, "\x1b["...)
	b = strconv.AppendInt(b, int64(v), 10)
	b = append(b, ';')
	b = strconv.AppendInt(b, int64(w), 10)
	return append(b, final)
}
