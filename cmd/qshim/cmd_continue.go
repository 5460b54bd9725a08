package main

import (
	"context"
	"errors"

	"qshim/cmd/internal/cmdline"
	"qshim/lockfile"
	"qshim/policies"
	"qshim/shim"
)

func continueCmd(a *app) *cmdline.Command {
	var all bool
	return &cmdline.Command{
		Use:   "continue --all",
		Short: "Continue everything that qshim stopped, at once",
		Long: `Continue everything that qshim stopped, at once, and leave it running until the
holds that stopped it end. Agents that a killed qshim left stopped are continued
too. To end holds and let sessions go on one after another: qshim release.`,
		Flags: []*cmdline.Flag{cmdline.Bool(&all, "all", "yes, everything")},
		Run: func(ctx context.Context, _ []string) error {
			if !all {
				return usagef("continue needs --all: it continues everything at once (one after another: qshim release --all)")
			}
			store, err := a.openStore()
			if err != nil {
				return err
			}
			defer store.Close()
			n, err := a.continueAll(ctx, store)
			printContinued(a.stdout, n)
			return err
		},
	}
}

// continueAll tells every session that is stopped to run anyway, through the
// limiters that they watch, and continues the orphans of dead ones itself.
func (a *app) continueAll(ctx context.Context, store lockfile.Store) (int, error) {
	var n int
	_, err := store.Update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		n = 0
		for _, s := range l.Sessions {
			if s.Alive && (s.State == lockfile.Suspended || s.State == lockfile.Waiting) {
				n++
			}
		}
		return a.policy.ContinueAll(l, policies.Input{Now: a.now()})
	})
	dead, rerr := store.Recover(shim.ContinueOrphan)
	for _, s := range dead {
		n += len(s.Stopped)
	}
	return n, errors.Join(err, rerr)
}
