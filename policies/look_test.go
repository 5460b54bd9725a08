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

// An older session's turn takes a younger one's slot, and is told by a write of
// the limiter: at most once in a while, and whoever heard looks again then.
func TestMovedSlotIsTold(t *testing.T) {
	p := config.Defaults().Policy
	c := &p.C.Concurrency
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	const id = "anthropic/aaaaaaaaaaaa"
	l := lockfile.Ledger{Limiters: map[string]lockfile.Limiter{id: {ID: id, Cap: &lockfile.Cap{K: 1, Cut: now}}}, Sessions: map[string]lockfile.Session{}}
	for i, name := range []string{"old", "older", "young"} {
		l.Sessions[name] = lockfile.Session{ID: name, Limiters: []string{id}, State: lockfile.Idle, Born: now.Add(time.Duration(i) * time.Minute), Alive: true}
	}
	act := func(who string, a policies.Activity) (told bool) {
		was := l.Limiters[id].Told
		l, _ = p.Activity(l, policies.Input{Now: now, Self: who}, a)
		return !l.Limiters[id].Told.Equal(was)
	}
	began, ended := policies.Activity{Busy: true, TurnBegan: true}, policies.Activity{Idle: true, TurnEnded: true}
	if act("young", began) {
		t.Error("told of a turn that moves nobody")
	}
	if d := p.Decide(l, "young", now); d.Action != policies.Run || d.Wake.IsZero() || d.Wake.After(now.Add(c.Look)) {
		t.Errorf("busy under a cap: %+v", d)
	}
	if !act("older", began) {
		t.Error("not told that an older one begins")
	}
	if d := p.Decide(l, "young", now); d.Action != policies.Suspend {
		t.Errorf("the younger one: %+v", d)
	}
	now = now.Add(c.Tell / 2)
	if act("older", ended) {
		t.Error("told twice at once")
	}
	if d := p.Decide(l, "young", now); d.Wake.IsZero() || d.Wake.After(now.Add(c.Tell/2)) {
		t.Errorf("who heard looks again at %v", d.Wake)
	}
	now = now.Add(c.Tell)
	if !act("older", began) {
		t.Error("not told a while later")
	}
	now = now.Add(-time.Hour)
	if !act("older", ended) {
		t.Error("not told after the clock was set back")
	}
}

// Who is let go looks again like anybody who runs: its own claim need not write a
// limiter, and then nobody tells it anything.
func TestLetGoLooksAgain(t *testing.T) {
	p := config.Defaults().Policy
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	const id = "anthropic/aaaaaaaaaaaa"
	l := lockfile.Ledger{
		Limiters: map[string]lockfile.Limiter{id: {ID: id, Cap: &lockfile.Cap{K: 1, Cut: now}, Used: now}},
		Sessions: map[string]lockfile.Session{"a": {ID: "a", Limiters: []string{id}, State: lockfile.Suspended, Since: now, TurnBegan: now, Born: now, Alive: true}},
	}
	_, d, _ := p.Step(l, policies.Input{Now: now.Add(time.Second), Self: "a"})
	if d.Action != policies.Run || d.Wake.IsZero() || d.Wake.After(now.Add(time.Second+p.C.Concurrency.Look)) {
		t.Errorf("%+v", d)
	}
}
