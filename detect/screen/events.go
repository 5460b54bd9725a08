package screen

// Kind says what an Event is.
type Kind uint8

// The kinds of events.
const (
	// Title: the window title changed; Text is the new one.
	Title Kind = iota + 1
	// OSC7501: an agent's own state line ("state=working:app=codex"), without
	// the number.
	OSC7501
	// OSC9: a notification, or "4;..." for progress.
	OSC9
	// Bell: a BEL outside of any string.
	Bell
	// Clear: the rows that scrolled off are thrown away (ED 3). The visible
	// ones and Scrolled are as before.
	Clear
	// FullRepaint: the screen was erased whole (Text "ED2", or "ED0" from the
	// home position), the alternate screen entered ("alt") or the terminal
	// reset ("RIS"): from here on the model shows what the terminal shows, and
	// an agent that does this paints everything.
	FullRepaint
	// LeftAlt: the main screen is shown again, as it was.
	LeftAlt
	// CursorQuery: the agent asked where the cursor is (CSI 6 n). X and Y are
	// the model's answer, counted from 0: the terminal's answer, passing by on
	// its way to the agent, tells how far the two differ (see CursorAt).
	CursorQuery
	// EventsLost: more events came than are kept, the oldest are missing.
	EventsLost
)

// Event is something that happened on the screen and left no cell.
type Event struct {
	Kind Kind
	Text string
	X, Y int
}

const (
	maxEvents   = 256
	maxInterned = 64 // titles and states are few and come again and again
)

type events struct {
	list, spare []Event
	lost        bool
	strings     map[string]string
}

// TakeEvents returns what happened since the last call, in order, at most the
// newest 256 after one EventsLost. Equal neighbours are one. The slice is
// valid until the next call.
func (s *Screen) TakeEvents() []Event {
	e := &s.ev
	out := e.list
	if e.lost {
		out[0] = Event{Kind: EventsLost}
	}
	e.list, e.spare = e.spare[:0], out
	e.lost = false
	return out
}

func (s *Screen) event(k Kind, text string) {
	s.addEvent(Event{Kind: k, Text: text})
}

func (s *Screen) addEvent(ev Event) {
	e := &s.ev
	if n := len(e.list); n > 0 && e.list[n-1] == ev {
		return
	}
	if len(e.list) > maxEvents {
		copy(e.list, e.list[1:])
		e.list = e.list[:maxEvents]
		e.lost = true
	}
	e.list = append(e.list, ev)
}

// fullRepaint records why the screen can be trusted again.
func (s *Screen) fullRepaint(why string) {
	s.lost = false
	s.event(FullRepaint, why)
}

// intern makes a string of b, the same one for the same bytes while the table
// lasts.
func (e *events) intern(b []byte) string {
	if t, ok := e.strings[string(b)]; ok {
		return t
	}
	if e.strings == nil || len(e.strings) >= maxInterned {
		e.strings = make(map[string]string)
	}
	t := string(b)
	e.strings[t] = t
	return t
}
