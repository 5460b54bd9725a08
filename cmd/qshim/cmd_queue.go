package main

import (
	"context"
	"time"

	"qshim/cmd/internal/cmdline"
	"qshim/lockfile"
	"qshim/policies"
)

// queueJSON is what `qshim queue --json` prints: an element a limiter on which
// somebody waits. Fields are only ever added.
type queueJSON struct {
	Limiter string                `json:"limiter"`
	Label   string                `json:"label"`
	State   policies.LimiterState `json:"state"`
	Until   *time.Time            `json:"until"`
	Queue   []queuedJSON          `json:"queue"`

	shown *lockfile.Hold // the hold that Until is of
}

type queuedJSON struct {
	Place   int            `json:"place"`
	Session string         `json:"session"`
	Agent   string         `json:"agent"`
	Cwd     string         `json:"cwd"`
	State   lockfile.State `json:"state"`
	First   bool           `json:"first"` // a person put it first
	Reason  string         `json:"reason"`
	Until   *time.Time     `json:"until"`
	Since   time.Time      `json:"since"`

	why policies.Decision
}

func queueCmd(a *app) *cmdline.Command {
	var first *string
	var asJSON bool
	return &cmdline.Command{
		Use:      "queue [LIMITER]",
		Short:    "Show who waits, in which order, why and until when",
		Long:     queueHelp,
		MaxArgs:  cmdline.AnyArgs,
		Complete: a.completeAllLimiters,
		Flags: []*cmdline.Flag{
			{Name: "first", Kind: "string", Help: "put this session first, wherever it waits", Complete: a.completeWaiting,
				Set: func(s string) error { first = &s; return nil }},
			cmdline.Bool(&asJSON, "json", jsonFlag),
		},
		Run: func(ctx context.Context, args []string) error {
			if len(args) > 1 {
				return usagef("queue takes at most one LIMITER (see: qshim status)")
			}
			store, err := a.openStore()
			if err != nil {
				return err
			}
			defer store.Close()
			if first != nil {
				return a.putFirst(ctx, store, *first)
			}
			l, err := store.Read()
			if err != nil {
				return err
			}
			only := ""
			if len(args) == 1 {
				if only, err = anyLimiter(l, args[0]); err != nil {
					return err
				}
			}
			list := queues(a.policy, l, only, a.now())
			if asJSON {
				return writeJSON(a.stdout, list)
			}
			printQueues(a.stdout, paletteFor(a.stdout, a.getenv), list, a.now())
			return nil
		},
	}
}

// putFirst writes limiters only: a session's record is its own shim's.
func (a *app) putFirst(ctx context.Context, store *lockfile.Dir, name string) error {
	l, err := store.Read()
	if err != nil {
		return err
	}
	id, err := oneSession(l, name)
	if err != nil {
		return err
	}
	var on []string
	l, err = store.Update(ctx, func(old lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		var events []lockfile.Event
		old, events, on = a.policy.First(old, policies.Input{Now: a.now()}, id)
		return old, events
	})
	if err != nil {
		return err
	}
	if len(on) == 0 {
		return usagef("session %s does not wait: it is %s", id, l.Sessions[id].State)
	}
	printFirst(a.stdout, l, id, on)
	return nil
}

// queues lists who is stopped on each limiter, in the order in which they go on.
func queues(p policies.Policy, l lockfile.Ledger, only string, now time.Time) []queueJSON {
	out := []queueJSON{}
	for _, id := range allLimiters(l) {
		line := p.Queue(l, id, now)
		if only != "" && id != only || len(line) == 0 || only == "" && !keeps(p, l, id, line, now) {
			continue
		}
		lim := l.Limiters[id]
		q := queueJSON{Limiter: id, Label: lim.Label, State: p.State(l, id, now), Queue: []queuedJSON{}}
		for place, name := range line {
			s, d := l.Sessions[name], p.Decide(l, name, now)
			if d.Limiter == id && d.Hold.Class != "" && q.shown == nil {
				h := d.Hold
				q.shown, q.Until = &h, timePtr(h.Until)
			}
			q.Queue = append(q.Queue, queuedJSON{Place: place + 1, Session: name, Agent: s.Agent, Cwd: s.Cwd, State: s.State,
				First: isFirst(lim, name), Reason: string(d.Reason.Code), Until: timePtr(d.Until), Since: s.Since, why: d})
		}
		out = append(out, q)
	}
	return out
}

// keeps: the limiter is what at least one of them waits for. Each stands in the
// line of its machine's limiter too, which says nothing while that is open.
func keeps(p policies.Policy, l lockfile.Ledger, id string, line []string, now time.Time) bool {
	for _, name := range line {
		if p.Decide(l, name, now).Limiter == id {
			return true
		}
	}
	return false
}

func isFirst(lim lockfile.Limiter, session string) bool {
	for _, x := range lim.First {
		if x == session {
			return true
		}
	}
	return false
}

// completeWaiting offers the sessions that wait.
func (a *app) completeWaiting() cmdline.Offer {
	o := cmdline.Offer{Files: cmdline.NoFiles}
	l, err := a.readLedger()
	if err != nil {
		return o
	}
	for _, q := range queues(a.policy, l, "", a.now()) {
		for _, s := range q.Queue {
			o.Words = append(o.Words, cmdline.Word{Text: s.Session, About: s.Agent})
		}
	}
	return o
}
