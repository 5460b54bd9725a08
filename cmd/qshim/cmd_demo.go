package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"qshim/cmd/internal/cmdline"
	"qshim/cmd/internal/fakeprovider/tier"
)

// The demo's work. A minute holds both fleets at once: the same tasks for the
// same provider, on two accounts of it.
//
//	provider, account one <- socket - painters under qshim
//	          account two <- socket - painters alone
//	ledger of the first, counts of both -> picture
const (
	demoAgents   = 6
	demoCalls    = 4                      // calls a task
	demoAnswer   = 600 * time.Millisecond // how long an answer streams
	demoThink    = 200 * time.Millisecond // own work between two calls
	demoAttempts = 2                      // a client's own retries: few, so that a minute shows what ten do in half an hour
	demoLimit    = 55 * time.Second
	demoRefresh  = 150 * time.Millisecond
)

// demoBucket is the tier: about one request a second, a small burst, a refusal
// that costs a request like at the real providers, and a stated wait.
var demoBucket = tier.Limits{RPM: 50, Burst: 0.08, RetryAfter: 4, CountRefused: true}

func demoCmd(a *app) *cmdline.Command {
	return &cmdline.Command{
		Use:   "demo",
		Short: "See it work: no account, no agent, no network",
		Long: `See it work in under a minute, with no account, no agent and no network: small
scripted agents that paint like Claude Code share one account of a fake provider
on this machine, once under qshim and once alone, at the same time.`,
		Run: func(ctx context.Context, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return a.demo(ctx, self)
		},
	}
}

func (a *app) demo(ctx context.Context, self string) error {
	dir, err := os.MkdirTemp("", "qshim-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	with, err := newFleet(filepath.Join(dir, "with"), self, true)
	if err != nil {
		return err
	}
	defer with.end()
	alone, err := newFleet(filepath.Join(dir, "alone"), self, false)
	if err != nil {
		return err
	}
	defer alone.end()
	return a.showDemo(ctx, with, alone)
}

// showDemo runs both fleets and draws until both have ended.
func (a *app) showDemo(ctx context.Context, with, alone *fleet) error {
	limit, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	began := a.now()
	var both sync.WaitGroup
	for _, f := range []*fleet{with, alone} {
		if err := f.start(limit, &both); err != nil {
			cancel()
			both.Wait()
			return err
		}
	}
	done := make(chan struct{})
	go func() { both.Wait(); close(done) }()
	cols := 0
	if c, _, err := term.GetSize(int(a.stdout.Fd())); err == nil {
		cols = max(c, 20)
	}
	pic := newPicture(a.stdout, paletteFor(a.stdout, a.getenv), cols)
	defer pic.end()
	tick := time.NewTicker(demoRefresh)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-tick.C:
		}
		pic.draw(a.now().Sub(began), with.look(a.now()), alone.look(a.now()))
	}
	if ctx.Err() != nil {
		return &exitError{code: exitGaveUp}
	}
	pic.summary(with.result(), alone.result())
	return nil
}
