package main

import (
	"fmt"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
)

// What is said of tasks that failed by a limit.

// failure is a task that failed and is not done again by itself.
type failure struct {
	agent   string
	label   string
	limiter string
	again   policies.Again
	hold    lockfile.Hold // of the limit, as far as it still holds
	command string        // that does it again; "": the same once more
	now     time.Time
}

// failed says what broke a task, why it is not done again, and how to do that.
func (v voice) failed(f failure) string {
	what := "a limit"
	if f.hold.Class != "" {
		what = className(f.hold.Class, f.hold.Measure)
	}
	text := fmt.Sprintf("%s failed by a limit: %s on %s", printable(f.agent), what, printable(f.label))
	switch f.again {
	case policies.TooFar:
		text += ", which ends too late to wait for"
	case policies.Exhausted:
		text += ", and so did the runs after it"
	case policies.NeedsMoney:
		return text + fmt.Sprintf(". Waiting does not help; when it is mended: qshim release %s, then run it again%s", printable(f.limiter), byHandWords(f.command))
	}
	when := "now"
	if f.hold.Until.After(f.now) {
		when = "at " + clock(f.hold.Until, f.now) + " (in " + span(f.hold.Until.Sub(f.now)) + ")"
	}
	return text + ". Run it again " + when + byHandWords(f.command)
}

func byHandWords(command string) string {
	if command == "" {
		return ""
	}
	return ": " + printable(command)
}

// runsAgain stands between the output of two runs.
func (v voice) runsAgain(agent string) string { return printable(agent) + " is run again" }

// failedAgain: the run after a limit met its end by something else.
func (v voice) failedAgain(agent string, code int) string {
	return fmt.Sprintf("%s was run again and failed, not by a limit (exit %d)", printable(agent), code)
}

// resumeWords say of an event what became of a failed task.
func resumeWords(reason string) string {
	switch reason {
	case "wait":
		return "the failed task will be done again"
	case "begin":
		return "the failed task is done again"
	case "seen":
		return "the agent has taken it up"
	case "user":
		return "not done again: its user has taken over"
	case "gave_up":
		return "not done again: the wait would be too long"
	case "dialog":
		return "not done again: a dialog is open"
	case "unverified":
		return "not seen to be taken up; not tried once more"
	}
	return printable(reason)
}

// resumeWhy is the reason that status shows of a task that waits to be done again.
func resumeWhy(class finding.Class) string {
	if class == "" {
		return "does its failed task again"
	}
	return "does its failed task again after " + afterWord(class, "")
}
