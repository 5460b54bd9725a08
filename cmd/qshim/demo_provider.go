package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"qshim/cmd/internal/fakeprovider/tier"
	"qshim/cmd/internal/painter"
)

// demoProvider is one account at the demo's provider: its tier, and who has
// asked what of it.
type demoProvider struct {
	mu    sync.Mutex
	meter *tier.Meter
	sum   demoTally
	calls map[string]int       // answered, by agent
	until map[string]time.Time // an agent's last request was refused until then
}

// demoTally is what an account was asked for.
type demoTally struct{ requests, refused int }

// demoWait is what a refusal states.
func demoWait() time.Duration { return time.Duration(demoBucket.RetryAfter * float64(time.Second)) }

func newDemoProvider(now time.Time) *demoProvider {
	return &demoProvider{meter: tier.NewMeter(demoBucket, now), calls: map[string]int{}, until: map[string]time.Time{}}
}

// reply answers a painter, whose prompt begins with its name.
func (p *demoProvider) reply(ctx context.Context, prompt string, part func(string)) error {
	agent, _, _ := strings.Cut(prompt, ":")
	if !p.admit(agent, time.Now()) {
		return &painter.Refusal{
			Status:     429,
			Message:    "This request would exceed your account's rate limit. Please try again later.",
			RetryAfter: demoWait(),
		}
	}
	words := strings.SplitAfter("OK: "+prompt, " ")
	for _, w := range words {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(demoAnswer / time.Duration(len(words))):
		}
		part(w)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[agent]++
	return nil
}

func (p *demoProvider) admit(agent string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum.requests++
	if short, _ := p.meter.Admit(now, 0); short != "" {
		p.sum.refused++
		p.until[agent] = now.Add(demoWait())
		return false
	}
	delete(p.until, agent)
	return true
}

func (p *demoProvider) tally() demoTally {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum
}

// of is how often an agent was answered, and until when it was refused; zero: it
// was not.
func (p *demoProvider) of(agent string) (calls int, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[agent], p.until[agent]
}
