package policies_test

import (
	"testing"
	"time"

	"qshim/lockfile"
	"qshim/policies"
	"qshim/policies/config"
)

// A running session under a cap looks again without being told: it may have
// missed that its slot went to another, who then waits for it in vain.
func TestRunningLooksAgainUnderACap(t *testing.T) {
	p := config.Defaults().Policy
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	const id = "anthropic/aaaaaaaaaaaa"
	l := lockfile.Ledger{
		Limiters: map[string]lockfile.Limiter{id: {ID: id}},
		Sessions: map[string]lockfile.Session{"a": {ID: "a", Limiters: []string{id}, State: lockfile.Running, TurnBegan: now, Born: now, Alive: true}},
	}
	if d := p.Decide(l, "a", now); !d.Wake.IsZero() {
		t.Errorf("without a limit it looks again at %v", d.Wake)
	}
	l.Limiters[id] = lockfile.Limiter{ID: id, Cap: &lockfile.Cap{K: 2, Cut: now}}
	if d := p.Decide(l, "a", now); d.Wake.IsZero() || d.Wake.After(now.Add(p.C.Suspend.Recheck)) {
		t.Errorf("under a cap it looks again at %v", d.Wake)
	}
}

// A launch that is told of after it stands as launched also where a hold has
// come up since: its agent runs, and is no launch that waits.
func TestLaunchedInSpiteOfAHold(t *testing.T) {
	p := config.Defaults().Policy
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	const id = "anthropic/aaaaaaaaaaaa"
	l := lockfile.Ledger{
		Limiters: map[string]lockfile.Limiter{id: {ID: id, Holds: []lockfile.Hold{{Class: "rate", Since: now, First: now, Until: now.Add(time.Minute)}}}},
		Sessions: map[string]lockfile.Session{"a": {ID: "a", Limiters: []string{id}, State: lockfile.Waiting, Born: now, Alive: true}},
	}
	next, events := p.Launched(l, policies.Input{Now: now, Self: "a", Rand: func() float64 { return 0.5 }})
	if s := next.Sessions["a"]; s.State != lockfile.Idle || len(events) != 1 || events[0].Event != "launch" || events[0].Limiter != id {
		t.Errorf("%+v, %+v", s, events)
	}
}
