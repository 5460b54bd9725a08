package shim

import (
	"time"

	"qshim/policies"
)

// Voice makes every word that a session shows. The shim hands it facts and
// writes what it returns; cmd/qshim implements it (ui_session.go).
//
// What it returns is trusted to hold no control bytes, except Line, which may
// colour.
type Voice interface {
	// PauseRow is the one row over a suspended agent, at most cols cells wide.
	PauseRow(p Pause, cols int) string
	// Title is the terminal's title for p.
	Title(p Pause) string
	// Notice is one sentence for a notification (OSC 9, notify_command).
	Notice(n Notice) string
	// Line is the launch wait's line, at most cols cells wide; 0: as it comes.
	Line(p Pause, cols int) string
	// Note is the line on stderr of a launch that opens in spite of a hold.
	Note(p Pause) string
	// Ask is the question of a launch that waiting does not help.
	Ask(p Pause) string
	// GiveUp is the line of a launch that is not made (exit 75).
	GiveUp(p Pause) string
	// Warn is one line about what qshim cannot do ("state is read-only …").
	Warn(err error) string
}

// Pause is why a session stands still, as the voice needs it.
type Pause struct {
	Agent    string // the agent's title
	Label    string // the limiter's label, or its ID
	Decision policies.Decision
	Now      time.Time
	Keys     Hint
	Dropped  int  // keys swallowed since the pause began
	Again    bool // it is a failed task that waits to be done again
}

// Hint says what the pause row tells of its keys.
type Hint int

// The hints.
const (
	HintKeys  Hint = iota // the keys there are
	HintQuit              // q was pressed: y confirms
	HintAgain             // Ctrl-C was pressed: another one quits
	HintNone              // nobody can press a key: a log line
)

// Notice is something worth telling a person who is looking elsewhere.
type Notice struct {
	Kind  NoticeKind
	Pause Pause
}

// NoticeKind is what happened.
type NoticeKind string

// The notices.
const (
	Suspended  NoticeKind = "suspended"   // this agent was stopped
	Continued  NoticeKind = "continued"   // and goes on
	NeedsYou   NoticeKind = "needs_you"   // only a person can help
	Resumable  NoticeKind = "resumable"   // the limit that broke its turn has ended: its user may resume it
	NotResumed NoticeKind = "not_resumed" // its turn is not resumed by itself any more
)
