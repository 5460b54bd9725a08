package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"qshim/cmd/internal/cmdline"
	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
)

// statusJSON is what `qshim status --json` prints. Fields are only ever added.
type statusJSON struct {
	Schema   int             `json:"schema"`
	Now      time.Time       `json:"now"`
	Limiters []limiterStatus `json:"limiters"`
	Sessions []sessionStatus `json:"sessions"`
}

type limiterStatus struct {
	ID      string                `json:"id"`
	Label   string                `json:"label"`
	State   policies.LimiterState `json:"state"` // open, held, probing, blocked
	Holds   []holdStatus          `json:"holds"`
	Running int                   `json:"running"`
	Waiting int                   `json:"waiting"`
	Cap     int                   `json:"cap"`                 // how many may be busy at once; 0: as many as want to
	Spacing float64               `json:"spacing_s,omitempty"` // seconds between the starts of short runs without a terminal; 0: none
	Used    *float64              `json:"used,omitempty"`      // percent of its window, as an agent told it last
}

type holdStatus struct {
	Class       finding.Class       `json:"class"`
	Measure     finding.Measure     `json:"measure"`
	Scope       finding.Scope       `json:"scope"`
	Until       *time.Time          `json:"until"` // null: until released
	UntilSource finding.ResetSource `json:"until_source"`
	Bounded     bool                `json:"bounded"` // a later time was named than such a limit lasts: until is the class's bound
	Since       time.Time           `json:"since"`
	Evidence    evidence            `json:"evidence"`
	Advice      string              `json:"advice"`
}

type evidence struct {
	Row     string `json:"row"`
	Rule    string `json:"rule"`
	Session string `json:"session"`
}

type sessionStatus struct {
	ID       string            `json:"id"`
	PID      int               `json:"pid"`
	ChildPID int               `json:"child_pid"`
	Agent    string            `json:"agent"`
	Cwd      string            `json:"cwd"`
	Limiters []string          `json:"limiters"`
	State    lockfile.State    `json:"state"`
	Priority lockfile.Priority `json:"priority"`
	Reason   string            `json:"reason"`
	Until    *time.Time        `json:"until"`
	Since    time.Time         `json:"since"`
	Parent   string            `json:"parent,omitempty"`
	Context  int64             `json:"context,omitempty"` // tokens of its conversation; 0: not known
}

func statusCmd(a *app) *cmdline.Command {
	var asJSON bool
	return &cmdline.Command{
		Use:   "status",
		Short: "Show limiters, holds and sessions",
		Flags: []*cmdline.Flag{cmdline.Bool(&asJSON, "json", jsonFlag)},
		Run: func(context.Context, []string) error {
			l, err := a.readLedger()
			if err != nil {
				return err
			}
			st := statusOf(a.policy, l, a.now(), a.lookOf)
			if asJSON {
				return writeJSON(a.stdout, st)
			}
			printStatus(a.stdout, paletteFor(a.stdout, a.getenv), st, a.now())
			return nil
		},
	}
}

// statusOf turns a snapshot into what people and programs are shown: live
// sessions oldest first, limiters by ID.
func statusOf(p policies.Policy, l lockfile.Ledger, now time.Time, look func(agent string) string) statusJSON {
	st := statusJSON{Schema: 1, Now: now.UTC(), Limiters: []limiterStatus{}, Sessions: []sessionStatus{}}
	for _, lim := range l.Limiters {
		st.Limiters = append(st.Limiters, limiterStatusOf(p, lim, l, now, look))
	}
	sort.Slice(st.Limiters, func(i, j int) bool { return st.Limiters[i].ID < st.Limiters[j].ID })
	for _, s := range l.Sessions {
		if s.Alive {
			st.Sessions = append(st.Sessions, sessionStatus{ID: s.ID, PID: s.PID, ChildPID: s.ChildPID, Agent: s.Agent, Cwd: s.Cwd,
				Limiters: s.Limiters, State: s.State, Priority: s.Priority, Reason: s.Reason, Until: timePtr(s.Until), Since: s.Since, Parent: s.Parent, Context: s.Context})
		}
	}
	born := func(i int) time.Time { return l.Sessions[st.Sessions[i].ID].Born }
	sort.Slice(st.Sessions, func(i, j int) bool {
		if bi, bj := born(i), born(j); !bi.Equal(bj) {
			return bi.Before(bj)
		}
		return st.Sessions[i].ID < st.Sessions[j].ID
	})
	return st
}

func limiterStatusOf(p policies.Policy, lim lockfile.Limiter, l lockfile.Ledger, now time.Time, look func(agent string) string) limiterStatus {
	ls := limiterStatus{ID: lim.ID, Label: lim.Label, State: p.State(l, lim.ID, now), Holds: []holdStatus{}}
	agent, batch := drawnOnBy(l, lim.ID)
	for _, h := range lim.Holds {
		ls.Holds = append(ls.Holds, holdStatus{Class: h.Class, Measure: h.Measure, Scope: h.Scope, Until: timePtr(h.Until),
			UntilSource: h.UntilSource, Bounded: h.Bounded, Since: h.Since, Evidence: evidence{Row: h.Why, Rule: h.Rule, Session: h.By},
			Advice: fullAdvice(h.Class, h.Measure, h.Scope, lim.ID, look(agent), batch)})
	}
	ls.Cap, _ = p.Cap(l, lim.ID)
	ls.Spacing = p.Spacing(l, lim.ID, now).Round(100 * time.Millisecond).Seconds()
	if used, known := p.Used(l, lim.ID, now); known {
		ls.Used = &used
	}
	for _, s := range l.Sessions {
		if !s.Alive || !policies.DrawsOn(s, lim.ID) {
			continue
		}
		switch s.State {
		case lockfile.Running:
			ls.Running++
		case lockfile.Waiting, lockfile.Suspended:
			ls.Waiting++
		}
	}
	return ls
}

// drawnOnBy is the agent of the oldest session on a limiter, and whether any of
// them is headless.
func drawnOnBy(l lockfile.Ledger, id string) (agent string, batch bool) {
	var born time.Time
	for _, s := range l.Sessions {
		if !s.Alive || !policies.DrawsOn(s, id) {
			continue
		}
		batch = batch || s.Headless
		if agent == "" || s.Born.Before(born) {
			agent, born = s.Agent, s.Born
		}
	}
	return agent, batch
}

// lookOf is an agent's own command that shows what is used.
func (a *app) lookOf(agent string) string {
	if agent == "" {
		return ""
	}
	p, err := a.profiles().Load(agent)
	if err != nil {
		return "" // a session of a profile that is gone: its advice does without
	}
	return p.Look
}

func timePtr(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}

// writeJSON prints v for a program, which may be a terminal: whatever could move
// one is escaped, in strings that come from screens and paths.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, safeJSON(b.String()))
	return err
}

// safeJSON escapes what JSON leaves alone: DEL, the 8-bit control bytes, and what
// turns the direction of writing. They can only stand inside a string, where the
// escape is the same text.
func safeJSON(text string) string {
	if strings.IndexFunc(text, movesTerminal) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && movesTerminal(r) {
			_, _ = fmt.Fprintf(&b, `\u%04x`, r) // a Builder takes everything
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
