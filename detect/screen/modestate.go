package screen

import "slices"

// Bounds of what is remembered of an agent's modes. A terminal's own kitty
// stack is no deeper; more than maxPrivate different modes is no real agent.
const (
	maxPrivate  = 64
	maxKitty    = 16
	maxTitles   = 10 // xterm's title stack
	maxColour   = 64 // bytes of an OSC 10, 11, 12 value
	modKeyKinds = 8  // resources of CSI > Pp ; Pv m
)

// modeState is every mode the agent has touched, as it is now.
type modeState struct {
	priv     []privateMode
	wrap     bool // ?7 and ?6, which are asked at every turn
	origin   bool
	insert   bool // CSI 4 h
	newline  bool // CSI 20 h
	keypad   bool // ESC =
	g        [2]byte
	shift    uint8 // 0 or 1: which of g is in use
	kitty    [2]Kitty
	modKeys  [modKeyKinds]int32 // -1: not set
	style    int                // DECSCUSR, 0 default
	titles   int                // pushed and not popped
	title    string
	link     []byte // the open hyperlink's parameters and address
	altMode  int    // 47, 1047 or 1049 while on the alternate screen, else 0
	palette  bool
	progress bool
	colours  [3]string // OSC 10, 11, 12
}

type privateMode struct {
	num   int
	on    bool
	saved bool // by CSI ? Pm s
}

// Kitty is the kitty keyboard protocol's state on one screen.
type Kitty struct {
	Base  uint8   // flags set without a push
	Stack []uint8 // pushed flags, the last one in force
}

func (m *modeState) reset() {
	*m = modeState{priv: m.priv[:0], link: m.link[:0], wrap: true, g: [2]byte{'B', 'B'}}
	for i := range m.modKeys {
		m.modKeys[i] = -1
	}
}

// soft is what DECSTR resets.
func (m *modeState) soft() {
	m.insert, m.keypad = false, false
	m.g, m.shift = [2]byte{'B', 'B'}, 0
	m.style = 0
	m.setPrivate(25, true)
	m.setPrivate(6, false)
	m.setPrivate(7, true)
	m.setPrivate(1, false)
}

// defaultOn tells the private modes that a terminal has on at its start: wrap,
// auto-repeat, cursor, and xterm's meta and modifier modes.
func defaultOn(num int) bool {
	switch num {
	case 7, 8, 25, 1034, 1035, 1036:
		return true
	}
	return false
}

// untracked are the modes that must never be put back blindly: ?2 off turns a
// terminal into a VT52, ?3 clears the screen and changes its width, and the
// alternate screens are kept apart.
func untracked(num int) bool {
	switch num {
	case 2, 3, 47, 1047, 1048, 1049:
		return true
	}
	return false
}

func (m *modeState) find(num int) *privateMode {
	for i := range m.priv {
		if m.priv[i].num == num {
			return &m.priv[i]
		}
	}
	return nil
}

// private reports whether the mode is on.
func (m *modeState) private(num int) bool {
	if p := m.find(num); p != nil {
		return p.on
	}
	return defaultOn(num)
}

func (m *modeState) setPrivate(num int, on bool) {
	switch num {
	case 6:
		m.origin = on
	case 7:
		m.wrap = on
	}
	p := m.find(num)
	if p == nil {
		if on == defaultOn(num) {
			return
		}
		if len(m.priv) >= maxPrivate && !m.forget() {
			return
		}
		m.priv = append(m.priv, privateMode{num: num, saved: defaultOn(num)})
		p = &m.priv[len(m.priv)-1]
	}
	p.on = on
}

// forget makes room by dropping modes that are as they were at the start.
func (m *modeState) forget() bool {
	n := len(m.priv)
	m.priv = slices.DeleteFunc(m.priv, func(p privateMode) bool {
		return p.on == defaultOn(p.num) && p.saved == p.on
	})
	return len(m.priv) < n
}

func (m *modeState) saveMode(num int) {
	if p := m.find(num); p != nil {
		p.saved = p.on
	}
}

func (m *modeState) savedMode(num int) bool {
	if p := m.find(num); p != nil {
		return p.saved
	}
	return defaultOn(num)
}

// setColour remembers a colour of the terminal that the agent changed: 0 text,
// 1 background, 2 cursor. A question changes nothing.
func (m *modeState) setColour(i int, value []byte) {
	if len(value) == 0 || len(value) > maxColour || value[0] == '?' {
		return
	}
	if m.colours[i] != string(value) {
		m.colours[i] = string(value)
	}
}

func (k *Kitty) push(flags uint8) {
	if len(k.Stack) >= maxKitty { // a full stack forgets its oldest entry
		copy(k.Stack, k.Stack[1:])
		k.Stack = k.Stack[:maxKitty-1]
	}
	k.Stack = append(k.Stack, flags)
}

func (k *Kitty) pop(n int) {
	if n > len(k.Stack) || n == len(k.Stack) {
		k.Base = 0
	}
	k.Stack = k.Stack[:max(0, len(k.Stack)-n)]
}

// set is CSI = flags ; how u: 1 all, 2 add, 3 take away.
func (k *Kitty) set(flags uint8, how int) {
	at := &k.Base
	if n := len(k.Stack); n > 0 {
		at = &k.Stack[n-1]
	}
	switch how {
	case 1:
		*at = flags
	case 2:
		*at |= flags
	case 3:
		*at &^= flags
	}
}

// Flags are the flags in force.
func (k Kitty) Flags() uint8 {
	if n := len(k.Stack); n > 0 {
		return k.Stack[n-1]
	}
	return k.Base
}
