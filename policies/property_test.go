package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
)

// chaos draws what sessions, users and clocks do, and checks after each that
// the rules hold. Seeded randomness goes into the policy, so that a call can be
// repeated.
type chaos struct {
	*world
	t     *rapid.T
	n     int
	short bool           // only holds that end within hours, for runs that wait for the end
	halts map[string]int // suspensions less continues, by session
}

func newChaos(t *rapid.T, short bool) *chaos {
	w := newWorld(t)
	c := &chaos{world: w, t: t, short: short, halts: map[string]int{}}
	w.onEvent = c.count
	w.p.C.Concurrency.Cap = max(0, rapid.IntRange(-4, 2).Draw(t, "cap"))
	w.p.C.Concurrency.StartCap = max(0, rapid.IntRange(-4, 2).Draw(t, "start cap"))
	w.rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Float64
	for range rapid.IntRange(2, 6).Draw(t, "sessions") {
		c.newSession()
		c.settle()
		if id, ok := c.pick(running); ok && rapid.Bool().Draw(t, "busy") {
			c.act(id, policies.Activity{Busy: true, TurnBegan: true})
		}
	}
	return c
}

// count: every stop has its continue, in turns.
func (c *chaos) count(e lockfile.Event) {
	switch e.Event {
	case "suspend":
		c.halts[e.Session]++
	case "continue":
		c.halts[e.Session]--
	case "exit":
		c.halts[e.Session] = 0
	}
	if n := c.halts[e.Session]; n != 0 && n != 1 {
		c.fail("%s was %sed out of turn", e.Session, e.Event)
	}
}

func (c *chaos) sessions(match func(lockfile.Session) bool) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(c.l.Sessions)) {
		if s := c.l.Sessions[id]; s.Alive && match(s) {
			out = append(out, id)
		}
	}
	return out
}

func any1(lockfile.Session) bool { return true }
func running(s lockfile.Session) bool {
	return s.State == lockfile.Running || s.State == lockfile.Idle
}

func (c *chaos) pick(match func(lockfile.Session) bool) (string, bool) {
	ids := c.sessions(match)
	if len(ids) == 0 {
		return "", false
	}
	return rapid.SampledFrom(ids).Draw(c.t, "who"), true
}

func (c *chaos) newSession() {
	if len(c.l.Sessions) >= 8 {
		return
	}
	c.n++
	flag := func(name string) bool { return rapid.Bool().Draw(c.t, name) }
	s := lockfile.Session{
		ID: fmt.Sprintf("s%d", c.n), Agent: "claude", Headless: flag("headless"), Prompt: flag("prompt"),
		State: lockfile.Waiting, Observe: rapid.IntRange(0, 9).Draw(c.t, "observe") == 0,
		Family:   rapid.SampledFrom([]string{"", "opus", "sonnet"}).Draw(c.t, "family"),
		Limiters: rapid.SampledFrom([][]string{{acct, mach}, {acct, mach}, {acct, mach}, {acct, mach}, {acct, mach}, {"openai/1", "openai@source"}, {acct, acct + "/p", mach}}).Draw(c.t, "on"),
	}
	if flag("background") {
		s.Priority = lockfile.Background
	}
	if parent, ok := c.pick(any1); ok && rapid.IntRange(0, 4).Draw(c.t, "nested") == 0 {
		s.Parent = parent
	}
	c.add(s)
}

func (c *chaos) finding() {
	id, ok := c.pick(running)
	if !ok {
		return
	}
	classes := []finding.Class{finding.Rate, finding.Rate, finding.Overload, finding.Window, finding.Daily, finding.Retrying, finding.Retrying}
	if !c.short {
		classes = append(classes, finding.Credit, finding.Spend, finding.Warning, finding.Auth)
	}
	f := finding.Finding{Class: rapid.SampledFrom(classes).Draw(c.t, "class"), Rows: []string{"row"}, Rule: "r"}
	if f.Class == finding.Retrying {
		f.Cause = rapid.SampledFrom([]finding.Class{finding.Unknown, finding.Rate, finding.Overload, ""}).Draw(c.t, "cause")
		f.Attempt = rapid.IntRange(0, 10).Draw(c.t, "attempt")
	}
	longest := 90 * time.Minute
	if !c.short {
		longest = 400 * time.Hour
	}
	switch rapid.IntRange(0, 3).Draw(c.t, "stated") {
	case 0:
		f.RetryAfter = time.Duration(rapid.Int64Range(0, int64(longest)).Draw(c.t, "after"))
	case 1:
		f.Reset = c.now.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(longest)).Draw(c.t, "in")))
		f.ResetSource = rapid.SampledFrom([]finding.ResetSource{finding.Epoch, finding.Zoned, finding.Local, finding.Relative}).Draw(c.t, "source")
		f.Precision = rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(c.t, "precision")
	}
	f.Scope = rapid.SampledFrom([]finding.Scope{"", "", "", "", finding.Account, finding.Model, finding.Project, finding.Source}).Draw(c.t, "scope")
	f.Model = rapid.SampledFrom([]string{"", "", "", "", "Opus", "claude-sonnet-5"}).Draw(c.t, "model")
	before := c.l.Clone()
	c.find(id, f)
	c.stated(before, f)
}

// stated: an estimate never shortens a stated time; no hold goes beyond its bound.
func (c *chaos) stated(before lockfile.Ledger, f finding.Finding) {
	bound := map[finding.Class]time.Duration{finding.Rate: time.Hour, finding.Overload: 10 * time.Minute, finding.Retrying: 10 * time.Minute,
		finding.Daily: 26 * time.Hour, finding.Window: 192 * time.Hour, finding.Credit: 768 * time.Hour, finding.Spend: 768 * time.Hour}
	for id, lim := range c.l.Limiters {
		for _, h := range lim.Holds {
			if h.Until.Sub(h.Since) > bound[h.Class]+80*time.Second {
				c.fail("%s %s lasts %s", id, h.Class, h.Until.Sub(h.Since))
			}
			if h.Blocked == !h.Until.IsZero() {
				c.fail("blocked and until: %+v", h)
			}
			for _, old := range before.Limiters[id].Holds {
				if old.Class == h.Class && !old.Stated.IsZero() && old.Until.After(c.now) && !h.Blocked &&
					f.Reset.IsZero() && f.RetryAfter == 0 && h.Until.Before(old.Until) {
					c.fail("an estimate shortened %+v to %+v", old, h)
				}
			}
		}
	}
}

func (c *chaos) activity() {
	id, ok := c.pick(func(s lockfile.Session) bool { return s.State != lockfile.Waiting })
	if !ok {
		return
	}
	all := []policies.Activity{
		{Busy: true, TurnBegan: true}, {Busy: true}, {AnswerBegun: true}, {TurnEnded: true, Idle: true}, {Idle: true},
		{Typed: c.now}, {Typed: c.now, Busy: true, TurnBegan: true},
		{Success: true, TurnEnded: true, Idle: true}, {RetryEnded: true}, {RetryEnded: true, AnswerBegun: true},
	}
	c.run(time.Millisecond) // a turn that begins in the very instant of a refusal is the refused one
	c.act(id, rapid.SampledFrom(all).Draw(c.t, "activity"))
}

func (c *chaos) step1() {
	switch rapid.IntRange(0, 11).Draw(c.t, "op") {
	case 0, 1:
		c.newSession()
	case 2, 3, 4:
		c.finding()
	case 5, 6:
		c.activity()
	case 7:
		c.outside()
	case 8:
		if ids := slices.Sorted(maps.Keys(c.l.Limiters)); len(ids) > 0 && rapid.IntRange(0, 3).Draw(c.t, "release?") == 0 {
			l, ev := c.p.Release(c.l, c.in(""), rapid.SampledFrom(ids).Draw(c.t, "limiter"))
			c.apply("", l, ev)
		}
	default:
		c.run(time.Duration(rapid.Int64Range(0, int64(4*time.Minute)).Draw(c.t, "wait")))
	}
	c.settle()
	c.check()
}

func (c *chaos) outside() {
	id, ok := c.pick(any1)
	if !ok {
		return
	}
	s := c.l.Sessions[id]
	switch rapid.IntRange(0, 4).Draw(c.t, "outside") {
	case 0:
		s.Alive = false
	case 1:
		s.UserStopped = !s.UserStopped
	case 2:
		l, ev := c.p.RunAnyway(c.l, c.in(id))
		c.apply(id, l, ev)
		return
	case 3:
		jump := time.Duration(rapid.Int64Range(int64(-2*time.Hour), int64(2*time.Hour)).Draw(c.t, "clock"))
		if rapid.Bool().Draw(c.t, "dst") { // a clock that keeps local time, or a laptop that slept for a night
			jump = rapid.SampledFrom([]time.Duration{-time.Hour, time.Hour, 9 * time.Hour}).Draw(c.t, "jump")
		}
		c.now = c.now.Add(jump)
		return
	case 4:
		c.act(id, policies.Activity{Exit: true})
		delete(c.l.Sessions, id)
		delete(c.wake, id)
		return
	}
	c.l.Sessions[id] = s
}

// check holds what must be true at rest.
func (c *chaos) check() {
	probers := map[string]string{}
	for id, s := range c.l.Sessions {
		if !s.Alive || s.UserStopped {
			continue
		}
		d := c.last[id]
		switch {
		case s.State == lockfile.Idle && d.Action != policies.Run:
			c.fail("%s is idle and told to %s", id, d.Action)
		case s.Observe && (d.Action != policies.Run || s.State == lockfile.Suspended):
			c.fail("%s only observes and is told to %s", id, d.Action)
		case s.State == lockfile.Suspended && (d.Action != policies.Suspend || d.Reason.Code == ""):
			c.fail("%s is suspended without a reason: %+v", id, d)
		case s.State == lockfile.Suspended && d.Limiter == "":
			c.fail("%s is suspended by no limiter: %+v", id, d)
		}
		if d.Reason.Code == policies.Prober {
			if other := probers[d.Limiter]; other != "" {
				c.fail("%s and %s both go first on %s", id, other, d.Limiter)
			}
			probers[d.Limiter] = id
		}
		if s.State == lockfile.Suspended {
			c.reasonLives(id, s, d)
		}
	}
	for id := range c.l.Limiters {
		c.withinCap(id)
	}
	c.roundTrip()
}

// reasonLives: what a suspended session is told stands in the ledger.
func (c *chaos) reasonLives(id string, s lockfile.Session, d policies.Decision) {
	lim := c.l.Limiters[d.Limiter]
	k, capped := c.p.Cap(c.l, d.Limiter)
	ok := true
	switch d.Reason.Code {
	case policies.Held, policies.Blocked, policies.Storming:
		ok = len(lim.Holds) > 0
	case policies.Probing:
		ok = len(lim.Holds) > 0 || lim.Probe != nil
	case policies.Capped:
		ok = capped && k > 0
	case policies.Queued:
	default:
		ok = false
	}
	if !ok || !policies.DrawsOn(s, d.Limiter) {
		c.fail("%s is suspended without a live reason: %+v", id, d)
	}
}

// answered a moment ago without a terminal, and let end above the cap. Who is
// still busy then takes its slot again.
func (c *chaos) answered(s lockfile.Session) bool {
	since := c.now.Sub(s.Answered)
	return s.Headless && s.Answered.After(s.TurnBegan) && since >= 0 && since < c.p.C.Probe.Settle
}

// refused a moment ago, and about to be idle or gone: it needs no slot.
func (c *chaos) refused(s lockfile.Session) bool {
	var hit time.Time
	for _, at := range s.Hits {
		if at.After(hit) {
			hit = at
		}
	}
	since := c.now.Sub(hit)
	return s.Broken && since < c.p.C.Probe.Start && since > -c.p.C.Probe.Start
}

// withinCap: never more than k busy, beyond those that are never chosen.
func (c *chaos) withinCap(id string) {
	k, capped := c.p.Cap(c.l, id)
	if !capped {
		return
	}
	free, chosen := map[string]bool{}, map[string]bool{}
	for self, s := range c.l.Sessions {
		d := c.last[self]
		if !s.Alive || s.UserStopped || s.State != lockfile.Running || !policies.DrawsOn(s, id) || c.refused(s) || d.Action == policies.Suspend {
			continue // one that is told to stop waits for a quiet moment
		}
		root := c.root(s)
		switch {
		case c.neverChosen(id, s):
			free[root.ID] = true
		case c.answered(s):
		case root.ID == s.ID: // nested ones share
			chosen[root.ID] = true
		}
	}
	for root := range chosen {
		if free[root] {
			delete(chosen, root)
		}
	}
	if len(chosen) > max(0, k-len(free)) && len(chosen) > 0 {
		who := slices.Sorted(maps.Keys(chosen))
		c.fail("%s bears %d, and %v are busy beside %d that are never chosen: %+v %+v", id, k, who, len(free), slices.Sorted(maps.Keys(free)), c.last[who[0]])
	}
}

func (c *chaos) root(s lockfile.Session) lockfile.Session {
	for {
		parent, ok := c.l.Sessions[s.Parent]
		if !ok || !parent.Alive {
			return s
		}
		s = parent
	}
}

func (c *chaos) neverChosen(id string, s lockfile.Session) bool {
	typed := c.now.Sub(s.Typed)
	if s.Observe || s.RunAnyway[id].Equal(s.Born) || !s.Typed.IsZero() && typed < 2*time.Minute && typed > -time.Minute {
		return true
	}
	for x := s; ; { // what the user of a session around it said counts for it
		for on, at := range x.RunAnyway {
			if policies.DrawsOn(s, on) && !at.Before(s.TurnBegan) {
				return true
			}
		}
		parent, ok := c.l.Sessions[x.Parent]
		if !ok || !parent.Alive {
			break
		}
		x = parent
	}
	for _, lim := range c.l.Limiters {
		if lim.Probe != nil && lim.Probe.Session == s.ID {
			return true
		}
	}
	return false
}

func (c *chaos) roundTrip() {
	for id, lim := range c.l.Limiters {
		data, err := json.Marshal(lim)
		var again lockfile.Limiter
		if err == nil {
			err = json.Unmarshal(data, &again)
		}
		if twice, _ := json.Marshal(again); err != nil || string(twice) != string(data) {
			c.fail("%s does not survive JSON: %v", id, err)
		}
	}
	for _, s := range c.l.Sessions {
		data, _ := json.Marshal(s)
		var again lockfile.Session
		_ = json.Unmarshal(data, &again)
		if twice, _ := json.Marshal(again); string(twice) != string(data) {
			c.fail("session does not survive JSON: %s", data)
		}
	}
}

func TestRulesHoldUnderChaos(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, false)
		for range rapid.IntRange(5, 60).Draw(rt, "ops") {
			c.step1()
		}
	})
}

// With time passing, every hold that is not blocked ends and everybody is let
// go, whoever died on the way.
func TestNobodyWaitsForEver(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, true)
		for range rapid.IntRange(5, 40).Draw(rt, "ops") {
			c.step1()
		}
		// So that somebody waits: everybody is busy, and some are refused.
		for _, id := range c.sessions(running) {
			c.act(id, policies.Activity{Busy: true, TurnBegan: true})
		}
		for range rapid.IntRange(1, 3).Draw(rt, "refused") {
			c.finding()
			c.settle()
			c.newSession()
		}
		for id, s := range c.l.Sessions {
			s.UserStopped = false
			c.l.Sessions[id] = s
		}
		early, end := c.now.Add(5*time.Minute), c.now.Add(6*time.Hour) // later deaths would only free who waits
		for c.now.Before(end) {
			c.settle()
			c.behave()
			c.run(19 * time.Second)
			if c.now.Before(early) && rapid.IntRange(0, 40).Draw(rt, "death") == 33 {
				if id, ok := c.pick(any1); ok {
					s := c.l.Sessions[id]
					s.Alive = false
					c.l.Sessions[id] = s
				}
			}
			if len(c.sessions(func(s lockfile.Session) bool { return s.State == lockfile.Waiting || s.State == lockfile.Suspended })) == 0 {
				break
			}
		}
		for id, s := range c.l.Sessions {
			stopped := s.State == lockfile.Waiting || s.State == lockfile.Suspended
			if d := c.last[id]; s.Alive && stopped && d.Reason.Code != policies.Blocked {
				c.fail("%s still waits: %+v", id, d)
			}
			if want := s.State == lockfile.Suspended; s.Alive && (c.halts[id] == 1) != want {
				c.fail("%s is %s after %d stops without a continue", id, s.State, c.halts[id])
			}
		}
	})
}

// behave: whoever runs gets an answer, and in the end succeeds.
func (c *chaos) behave() {
	for _, id := range c.sessions(running) {
		s := c.l.Sessions[id]
		age := c.now.Sub(s.Since)
		switch {
		case s.State == lockfile.Idle:
		case age > 40*time.Second && s.Headless:
			c.act(id, policies.Activity{Success: true, TurnEnded: true, Exit: true})
			delete(c.l.Sessions, id)
			delete(c.wake, id)
		case age > 40*time.Second:
			c.act(id, policies.Activity{Success: true, TurnEnded: true, Idle: true})
		case age > 3*time.Second:
			c.act(id, policies.Activity{AnswerBegun: true, RetryEnded: true})
		}
	}
}

// The same call with the same ledger and randomness gives the same result, and
// leaves its input alone.
func TestCallsAreDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, false)
		for range rapid.IntRange(3, 25).Draw(rt, "ops") {
			c.step1()
		}
		id, ok := c.pick(any1)
		if !ok {
			return
		}
		before, _ := json.Marshal(c.l)
		call := func() string {
			in := policies.Input{Now: c.now, Self: id, Rand: rand.New(rand.NewPCG(7, 7)).Float64}
			l1, e1 := c.p.Finding(c.l, in, finding.Finding{At: c.now, Class: finding.Rate, RetryAfter: 30 * time.Second, Confidence: finding.Strong})
			l2, e2 := c.p.Activity(c.l, in, policies.Activity{Success: true, TurnEnded: true})
			l3, d, e3 := c.p.Step(c.l, in)
			out, err := json.Marshal([]any{l1, e1, l2, e2, l3, d, e3, c.p.Decide(c.l, id, c.now)})
			if err != nil {
				rt.Fatal(err)
			}
			return string(out)
		}
		if a, b := call(), call(); a != b {
			rt.Fatalf("two answers to one question:\n%s\n%s", a, b)
		}
		if after, _ := json.Marshal(c.l); string(after) != string(before) {
			rt.Fatalf("the input was changed")
		}
	})
}
