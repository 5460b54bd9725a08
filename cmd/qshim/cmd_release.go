package main

import (
	"context"
	"strings"

	"qshim/cmd/internal/cmdline"
	"qshim/lockfile"
	"qshim/policies"
)

func releaseCmd(a *app) *cmdline.Command {
	var all bool
	return &cmdline.Command{
		Use:   "release LIMITER|--all",
		Short: "End holds now: the sessions that wait go on one after another",
		Long: `End the holds of a limiter now. The sessions that wait go on one after another,
so that they do not all hit the provider in the same second.

LIMITER is an ID or a label as 'qshim status' shows it, or a part that fits only
one.`,
		MaxArgs:  cmdline.AnyArgs,
		Complete: a.completeLimiters,
		Flags:    []*cmdline.Flag{cmdline.Bool(&all, "all", "every limiter that is held")},
		Run: func(ctx context.Context, args []string) error {
			if all == (len(args) == 1) || len(args) > 1 || len(args) == 1 && args[0] == "" {
				return usagef("release takes one LIMITER (see: qshim status) or --all")
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
			ids, err := chooseLimiters(l, args)
			if err != nil {
				return err
			}
			_, err = store.Update(ctx, func(old lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
				var events []lockfile.Event
				for _, id := range ids {
					var ev []lockfile.Event
					old, ev = a.policy.Release(old, policies.Input{Now: a.now()}, id)
					events = append(events, ev...)
				}
				return old, events
			})
			if err != nil {
				return err
			}
			printReleased(a.stdout, l, ids)
			return nil
		},
	}
}

// chooseLimiters returns the held limiters that args name: all where it names none.
func chooseLimiters(l lockfile.Ledger, args []string) ([]string, error) {
	held := heldLimiters(l)
	if len(args) == 0 {
		return held, nil
	}
	fit := matching(l, held, args[0])
	switch {
	case len(fit) == 1:
		return fit, nil
	case len(fit) > 1:
		return nil, usagef("%q fits several held limiters: %s; give more of it", args[0], strings.Join(fit, ", "))
	case len(held) == 0:
		return nil, usagef("%q is not held: no limiter is", args[0])
	}
	return nil, usagef("no held limiter fits %q; held are: %s", args[0], strings.Join(held, ", "))
}

// completeLimiters offers the held limiters to the shell.
func (a *app) completeLimiters(args []string) cmdline.Offer {
	l, err := a.readLedger()
	if err != nil || len(args) > 0 {
		return cmdline.Offer{Files: cmdline.NoFiles}
	}
	return offerLimiters(l, heldLimiters(l))
}
