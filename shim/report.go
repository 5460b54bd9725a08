package shim

import (
	"regexp"
	"sync"
	"time"
)

// askCursor is our own question where the cursor is.
var askCursor = []byte("\x1b[6n")

// answerTime is how long the terminal has for its answer. One that comes later
// is taken for the agent's.
const answerTime = 200 * time.Millisecond

// cursorReport is compiled when it is first needed: most sessions are never asked.
var cursorReport = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9]+;[0-9]+R`) })

// reportEater keeps the answer to our own question from an agent that was
// continued before it came: the agent did not ask. Terminals answer in order,
// so the first answer is ours.
type reportEater struct{ until time.Time }

func (e *reportEater) expect() { e.until = time.Now().Add(answerTime) }

// find looks for the answer in what the agent does not get.
func (e *reportEater) find(b []byte) {
	if !e.until.IsZero() && cursorReport().Match(b) {
		e.until = time.Time{}
	}
}

// cut takes the answer out of what the agent gets.
func (e *reportEater) cut(b []byte) []byte {
	if e.until.IsZero() {
		return b
	}
	if time.Now().After(e.until) {
		e.until = time.Time{}
		return b
	}
	at := cursorReport().FindIndex(b)
	if at == nil {
		return b
	}
	e.until = time.Time{}
	return append(b[:at[0]:at[0]], b[at[1]:]...)
}
