package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"qshim/cmd/internal/cmdline"
)

func logCmd(a *app) *cmdline.Command {
	var asJSON, follow, unrecognised bool
	since := "24h"
	followFlag := cmdline.Bool(&follow, "follow", "wait for more, until Ctrl-C")
	followFlag.Short = 'f'
	return &cmdline.Command{
		Use:   "log",
		Short: "Show what was found and decided, and why",
		Long:  logHelp,
		Flags: []*cmdline.Flag{
			cmdline.Bool(&asJSON, "json", "print one JSON object a line"),
			followFlag,
			cmdline.String(&since, "since", "how far back: a duration (2h, 3d) or an RFC 3339 time; all: everything kept"),
			cmdline.Bool(&unrecognised, "unrecognised", "only turns that failed on limit words that no rule knows, with all their rows"),
		},
		Run: func(ctx context.Context, _ []string) error {
			from, err := parseSince(since, a.now())
			if err != nil {
				return err
			}
			return a.printLog(ctx, from, follow, asJSON, unrecognised)
		},
	}
}

// driftEvent is the log's word for a turn that an agent calls failed, with rows
// about a limit that no rule takes.
const driftEvent = "unrecognised"

func (a *app) printLog(ctx context.Context, from time.Time, follow, asJSON, unrecognised bool) error {
	store, err := a.openStore()
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p := paletteFor(a.stdout, a.getenv)
	shown := 0
	for e, err := range store.Events(ctx, from, follow) {
		if err != nil {
			say(a.stderr, "%v", err)
			continue
		}
		if unrecognised && e.Event != driftEvent {
			continue
		}
		shown++
		switch {
		case unrecognised && !asJSON:
			printUnrecognised(a.stdout, p, e, a.now())
			continue
		case !asJSON:
			printEvent(a.stdout, p, e, a.now())
			continue
		}
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.stdout, "%s\n", safeJSON(string(line))); err != nil {
			return nil // the reader has gone (| head): that is its right
		}
	}
	if unrecognised && !asJSON {
		printUnrecognisedEnd(a.stdout, shown)
	}
	return nil
}

// parseSince reads a duration back from now ("90m", "3d"), an instant, or "all".
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "all" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	unit := s
	days := strings.HasSuffix(s, "d")
	if days {
		unit = strings.TrimSuffix(s, "d") + "h"
	}
	d, err := time.ParseDuration(unit)
	if err != nil || d < 0 {
		return time.Time{}, usagef("--since %q is neither a duration such as 2h or 3d, nor a time such as 2026-11-29T18:00:00Z, nor all", s)
	}
	if days {
		d *= 24
	}
	return now.Add(-d), nil
}
