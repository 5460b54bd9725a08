package main

import (
	"context"
	"strings"
	"time"

	"qshim/cmd/internal/cmdline"
	"qshim/detect/finding"
	"qshim/detect/when"
	"qshim/lockfile"
	"qshim/policies"
	"qshim/policies/config"
)

func holdCmd(a *app) *cmdline.Command {
	var forText, untilText, why string
	return &cmdline.Command{
		Use:      "hold LIMITER --for 2h|--until 18:00 [--why TEXT]",
		Short:    "Hold a limiter yourself: its sessions wait until then",
		Long:     holdHelp,
		MaxArgs:  cmdline.AnyArgs,
		Complete: a.completeAllLimiters,
		Flags: []*cmdline.Flag{
			cmdline.String(&forText, "for", "how long: 90m, 2h, 1d12h"),
			cmdline.String(&untilText, "until", "until when: 18:00, 6pm, tomorrow 9:00, an RFC 3339 time"),
			cmdline.String(&why, "why", "a word for those who wonder"),
		},
		Run: func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("hold takes one LIMITER (see: qshim status)")
			}
			now := a.now()
			until, source, err := holdEnd(forText, untilText, now, time.Local)
			if err != nil {
				return err
			}
			store, err := a.openStore()
			if err != nil {
				return err
			}
			defer store.Close()
			l, err := store.Read()
			if err != nil {
				return err
			}
			id, err := anyLimiter(l, args[0])
			if err != nil {
				return err
			}
			l, err = store.Update(ctx, func(old lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
				return a.policy.Hold(old, policies.Input{Now: now}, id, until, source, oneLine(why))
			})
			if err != nil {
				return err
			}
			printHeld(a.stdout, l.Limiters[id], until, now, drawing(l, id))
			return nil
		},
	}
}

// longestHold bounds a person's hold: what is meant for good is not a pause.
const longestHold = 366 * 24 * time.Hour

// holdEnd reads --for or --until; exactly one of them must be given.
func holdEnd(forText, untilText string, now time.Time, zone *time.Location) (time.Time, finding.ResetSource, error) {
	switch {
	case (forText == "") == (untilText == ""):
		return time.Time{}, "", usagef("hold needs either --for, like --for 2h, or --until, like --until 18:00")
	case forText != "":
		d, err := config.Duration(forText)
		if err != nil || d <= 0 {
			return time.Time{}, "", usagef("--for %q: write a time with its unit, like 90m, 2h or 1d, at most 366d", forText)
		}
		return now.Add(d), finding.Relative, nil
	}
	at, ok := readUntil(untilText, now, zone)
	switch {
	case !ok:
		return time.Time{}, "", usagef("--until %q is no time; write one like 18:00, 6:30pm, \"tomorrow 9:00\" or 2026-11-29T18:00:00Z", untilText)
	case !at.At.After(now):
		return time.Time{}, "", usagef("--until %q is over (%s)", untilText, clock(at.At, now))
	case at.At.After(now.Add(longestHold)):
		return time.Time{}, "", usagef("--until %q is more than a year away", untilText)
	}
	return at.At, at.Source, nil
}

// readUntil reads a time as an agent's row would say it.
func readUntil(text string, now time.Time, zone *time.Location) (when.Time, bool) {
	if t, ok := when.Parse(text, now, zone, 0); ok {
		return t, true
	}
	return when.Parse("resets at "+text, now, zone, 0)
}

// oneLine makes a person's reason fit to stand in a list.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// drawing counts the live sessions that a hold of a limiter concerns.
func drawing(l lockfile.Ledger, id string) (n int) {
	for _, s := range l.Sessions {
		if s.Alive && policies.DrawsOn(s, id) {
			n++
		}
	}
	return n
}

// completeAllLimiters offers every limiter to the shell.
func (a *app) completeAllLimiters(args []string) cmdline.Offer {
	l, err := a.readLedger()
	if err != nil || len(args) > 0 {
		return cmdline.Offer{Files: cmdline.NoFiles}
	}
	return offerLimiters(l, allLimiters(l))
}

func offerLimiters(l lockfile.Ledger, ids []string) cmdline.Offer {
	o := cmdline.Offer{Files: cmdline.NoFiles}
	for _, id := range ids {
		o.Words = append(o.Words, cmdline.Word{Text: id, About: l.Limiters[id].Label})
	}
	return o
}
