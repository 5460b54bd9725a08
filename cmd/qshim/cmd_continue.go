package main

import (
	"errors"

	"github.com/spf13/cobra"

	"qshim/lockfile"
	"qshim/policies"
	"qshim/shim"
)

func continueCmd(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "continue --all",
		Short: "Continue everything that qshim stopped, at once",
		Long: `Continue everything that qshim stopped, at once, and leave it running until the
holds that stopped it end. Agents that a killed qshim left stopped are continued
too. To end holds and let sessions go on one after another: qshim release.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !all {
				return usagef("continue needs --all: it continues everything at once (one after another: qshim release --all)")
			}
			store, err := a.openStore()
			if err != nil {
				return err
			}
			defer store.Close()
			n, err := a.continueAll(cmd, store)
			printContinued(a.stdout, n)
			return err
		},
	}
	c.Flags().BoolVar(&all, "all", false, "yes, everything")
	return c
}

// continueAll tells every session that is stopped to run anyway, through the
// limiters that they watch, and continues the orphans of dead ones itself.
func (a *app) continueAll(cmd *cobra.Command, store lockfile.Store) (int, error) {
	var n int
	_, err := store.Update(cmd.Context(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
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
