package shim

import (
	"bytes"
	"sync"
	"time"
)

// Kind says what an Item reports.
type Kind uint8

// The kinds of items, in no order.
const (
	Output    Kind = iota // Data: the agent's terminal output; the user has it already
	Stdout                // Data: what the agent wrote into a piped stdout
	Stderr                // Data: what the agent wrote into a piped stderr
	Input                 // Data: bytes from the user's terminal; Held says who got them
	Resized               // Cols, Rows: the terminal's new size
	Paused                // qshim's own stop took effect and all output before it was shown
	Resumed               // qshim continued the agent
	RanAnyway             // somebody else continued the agent while it was held: it is held no more
	AgentStop             // the agent stopped, not by us, and qshim could not follow it (no job control)
	UserStop              // the user suspended agent and qshim; reported when they are back: see Held
	Missed                // an Insert came too late: output had followed
	Typed                 // Data: what Type gave the agent
	Untyped               // a Type came too late: the user had pressed a key, or the agent is held
	Exited                // Code: the agent has ended and all its output was shown
)

// Item is one thing that happened, in order. Data is valid until the next Take.
type Item struct {
	Kind       Kind
	Data       []byte
	Dropped    bool // output of the kind before this item's was dropped: distrust the screen, or the line
	Held       bool // Input: the agent did not get these bytes; UserStop: the agent stays held
	Cols, Rows int
	Code       int
	Total      uint64 // Output: bytes shown since the start, this item's included
}

// Bounds of a Tap, bytes.
const (
	tapSize  = 512 << 10 // undelivered output; more is a flood
	tapTail  = 64 << 10  // kept of a flood: more than one full-screen repaint
	tapInput = 4 << 10   // input kept of one item: a key, a report; a paste is longer
	tapItems = 4096      // items of all kinds
)

// tapPace is the least time between two wake-ups of the reader for output. Waking
// another goroutine costs as much as passing a key on; somebody who types or an
// agent that paints a spinner is slower than this, so the first output after a
// rest is told at once.
const tapPace = 10 * time.Millisecond

// Allowance of output in any time, bytes, and what is added to it a second. An
// agent that repaints a large screen or reprints a long history stays within;
// more (a tool's output without end, at 10 to 60 MB/s) is a flood even for a
// reader that could keep up: nobody reads it, and modelling all of it would
// double what it costs.
const (
	floodBurst = 512 << 10
	floodRate  = 4 << 20
	floodCheck = 64 << 10 // the clock is read once in so many bytes
)

// Tap hands one session's events to one reader, in order, and never makes the
// writer wait. When the reader falls behind by tapSize bytes of output, or the
// output is a flood by floodRate, what has not been taken is dropped, and until
// the flood pauses (see floodPause) only its last tapTail bytes are kept: it
// then costs next to nothing, and what the reader sees at last is what the user
// sees.
type Tap struct {
	ready chan struct{}
	now   func() time.Time

	mu      sync.Mutex
	items   []Item
	buf     []byte // data of items; Item.Data holds offsets until Take
	spans   []span
	flood   bool
	dropped [Stderr + 1]bool // by kind
	tail    []byte
	tailOf  Kind
	total   uint64
	told    time.Time // when the reader was last woken for output
	spent   int       // bytes since the allowance was last reckoned
	left    int       // of the allowance, bytes
	reckon  time.Time

	takenItems []Item // handed out by the last Take
	takenBuf   []byte
	takenSpans []span
}

type span struct{ from, to int }

// NewTap makes a tap.
func NewTap() *Tap {
	return &Tap{ready: make(chan struct{}, 1), now: time.Now, left: floodBurst}
}

// Ready has a value when there is something to Take.
func (t *Tap) Ready() <-chan struct{} { return t.ready }

// Take returns what happened since the last Take. Items and their Data are
// valid until the next one.
func (t *Tap) Take() []Item {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items, t.takenItems = t.takenItems[:0], t.items
	t.buf, t.takenBuf = t.takenBuf[:0], t.buf
	t.spans, t.takenSpans = t.takenSpans[:0], t.spans
	for i, s := range t.takenSpans {
		t.takenItems[i].Data = t.takenBuf[s.from:s.to]
	}
	return t.takenItems
}

// shrink lets go of what a flood has made large. What the last Take handed out
// stays its reader's.
func (t *Tap) shrink() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.takenItems, t.takenBuf, t.takenSpans = nil, nil, nil
	if len(t.items) == 0 && !t.flood {
		t.items, t.buf, t.spans, t.tail = nil, nil, nil, nil
	}
}

// signal must be called with mu held.
func (t *Tap) signal() {
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

// tapped is what the writer must do next.
type tapped uint8

const (
	tapTold  tapped = iota // nothing
	tapOwed                // call tell within tapPace
	tapFlood               // call settle when the output pauses
)

// output adds output of one kind.
func (t *Tap) output(kind Kind, b []byte, total uint64) tapped {
	if t == nil {
		return tapTold
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.flood && (len(t.buf)+len(b) > tapSize || t.tooFast(len(b))) {
		t.startFlood(kind)
	}
	t.total = total
	if t.flood {
		t.keepTail(kind, b)
		return tapFlood
	}
	t.add(Item{Kind: kind, Dropped: t.takeDropped(kind), Total: total}, b)
	if now := t.now(); now.Sub(t.told) >= tapPace {
		t.told = now
		t.signal()
		return tapTold
	}
	return tapOwed
}

// tell wakes the reader for output that it was not told of.
func (t *Tap) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = t.now()
	t.signal()
}

// tooFast takes n bytes from the allowance and reports that it is used up.
func (t *Tap) tooFast(n int) bool {
	if t.spent += n; t.spent < floodCheck {
		return false
	}
	now := t.now()
	earned := min(now.Sub(t.reckon).Seconds(), 1) * floodRate
	t.left = min(t.left+int(earned), floodBurst) - t.spent
	t.spent, t.reckon = 0, now
	return t.left < 0
}

func (t *Tap) takeDropped(kind Kind) bool {
	d := t.dropped[kind]
	t.dropped[kind] = false
	return d
}

// drop says that the next output of a kind does not follow its last: some was
// left out.
func (t *Tap) drop(kind Kind) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped[kind] = true
}

// startFlood drops undelivered output and keeps everything else.
func (t *Tap) startFlood(kind Kind) {
	t.flood, t.dropped[kind] = true, true
	t.tail, t.tailOf = t.tail[:0], kind
	items, spans, buf := t.items[:0], t.spans[:0], t.buf[:0]
	for i, it := range t.items {
		if it.Kind <= Stderr {
			t.dropped[it.Kind] = true
			continue
		}
		s := t.spans[i]
		from := len(buf)
		buf = append(buf, t.buf[s.from:s.to]...) // moves down within the same array
		items, spans = append(items, it), append(spans, span{from, len(buf)})
	}
	t.items, t.spans, t.buf = items, spans, buf
}

func (t *Tap) keepTail(kind Kind, b []byte) {
	if kind != t.tailOf {
		t.dropped[t.tailOf] = true
		t.tail, t.tailOf = t.tail[:0], kind
	}
	if len(t.tail)+len(b) > tapTail {
		t.dropped[kind] = true
	}
	if len(b) >= tapTail {
		t.tail = append(t.tail[:0], b[len(b)-tapTail:]...)
		return
	}
	if len(t.tail)+len(b) > 2*tapTail {
		n := copy(t.tail, t.tail[len(t.tail)-tapTail:])
		t.tail = t.tail[:n]
	}
	t.tail = append(t.tail, b...)
}

// settle ends a flood and delivers its tail.
func (t *Tap) settle() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settleLocked()
}

func (t *Tap) settleLocked() {
	if !t.flood {
		return
	}
	t.flood = false
	t.left, t.spent, t.reckon = 0, 0, t.now() // a flood earns nothing
	t.add(Item{Kind: t.tailOf, Dropped: t.takeDropped(t.tailOf), Total: t.total}, t.tail[max(0, len(t.tail)-tapTail):])
	t.tail = t.tail[:0]
	t.signal()
}

// event adds anything but output. A flood ends first, to keep the order.
func (t *Tap) event(it Item) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settleLocked()
	data := it.Data
	it.Data = nil
	t.add(it, data)
	if it.Kind != Input || it.Held || isEnter(data) { // what is typed in between comes with its echo
		t.signal()
	}
}

// isEnter reports whether the bytes of a user hold Enter, plain or encoded.
func isEnter(b []byte) bool {
	return bytes.IndexByte(b, '\r') >= 0 || bytes.IndexByte(b, '\n') >= 0 || bytes.Contains(b, []byte("\x1b[13"))
}

// input adds bytes of the user; of a long paste only the start is kept.
func (t *Tap) input(b []byte, held bool) {
	t.event(Item{Kind: Input, Held: held, Data: b[:min(len(b), tapInput)]})
}

func (t *Tap) add(it Item, data []byte) {
	if n := len(t.items); n > 0 && it.Kind <= Stderr && t.items[n-1].Kind == it.Kind && !it.Dropped {
		t.buf = append(t.buf, data...)
		t.spans[n-1].to = len(t.buf)
		t.items[n-1].Total = it.Total
		return
	}
	if len(t.items) >= tapItems && it.Kind == Input { // a reader that has stopped reading
		return
	}
	from := len(t.buf)
	t.buf = append(t.buf, data...)
	t.items = append(t.items, it)
	t.spans = append(t.spans, span{from, len(t.buf)})
}
