package shim

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"qshim/detect"
	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
)

var stopped4 = []string{"record", "STOP", "notice suspended"}

func TestHintSuspendsAndTheEndContinues(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.decide(b.ctx)
		b.did()
		b.hit(rateHit(20 * time.Second))
		b.decide(b.ctx) // the hint
		b.did(stopped4...)
		if s := b.store.session(me); s.State != lockfile.Suspended || len(s.Stopped) != 1 {
			t.Fatalf("session %+v", s)
		}
		if b.wake.IsZero() || time.Until(b.wake) > 30*time.Second {
			t.Errorf("decides again in %v", time.Until(b.wake))
		}
		if b.face.pause.Decision.Limiter != testLimiter || !b.face.pause.Decision.Until.After(time.Now()) {
			t.Errorf("shown %+v", b.face.pause)
		}
		// The limit ends; nobody else is there to go first.
		b.edit(func(l lockfile.Ledger) { delete(l.Sessions, sibling) })
		b.pass(2 * time.Minute)
		b.did("CONT", "clear", "notice continued")
		if s := b.store.session(me); s.State != lockfile.Running || s.Stopped != nil {
			t.Errorf("session %+v", s)
		}
	})
}

// TestUnrecognisedIsLogged: rows that no rule knows go to the log and nowhere else.
func TestUnrecognisedIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		before := b.store.updates
		b.report(b.ctx, detect.Report{Unrecognised: []detect.Unrecognised{{Sign: "osc7501", Rows: []string{"▲ rate limit"}}}})
		if n := b.store.updates - before; n != 1 || b.store.count("unrecognised") != 1 {
			t.Fatalf("%d updates, %d lines", n, b.store.count("unrecognised"))
		}
		for _, e := range b.store.events {
			if e.Event == "unrecognised" && (e.Session != me || e.Agent == "" || e.Reason != "osc7501" || len(e.Rows) != 1 || e.At.IsZero()) {
				t.Errorf("%+v", e)
			}
		}
		if len(b.store.l.Limiters[testLimiter].Holds) != 0 {
			t.Error("it holds somebody")
		}
		b.did()
	})
}

func TestFindingIsOneChange(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		before := b.store.updates
		b.report(b.ctx, detect.Report{
			Activity: detect.Idle, TurnBegan: true, TurnEnded: true,
			Findings: []finding.Finding{{Class: finding.Rate, Scope: finding.Account, Confidence: finding.Strong, RetryAfter: time.Minute, At: time.Now(), Rule: "r"}},
		})
		if n := b.store.updates - before; n != 1 {
			t.Errorf("%d updates for one report", n)
		}
		if n := b.store.count("finding"); n != 1 {
			t.Errorf("%d findings logged", n)
		}
		if len(b.store.l.Limiters[testLimiter].Holds) != 1 {
			t.Errorf("limiter %+v", b.store.l.Limiters[testLimiter])
		}
		if s := b.store.session(me); s.State != lockfile.Idle {
			t.Errorf("the turn ended, but the session is %s", s.State)
		}
		b.did() // idle: never stopped
		before = b.store.updates
		for range 100 {
			b.report(b.ctx, detect.Report{Activity: detect.Busy, Wake: time.Now().Add(time.Second)})
		}
		if n := b.store.updates - before; n != 1 { // busy, once
			t.Errorf("%d updates for no news", n)
		}
	})
}

func TestModelChangesTheFamily(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.family = func(m string) string { return strings.ToLower(m) }
		b.report(b.ctx, detect.Report{Model: "Opus"})
		b.report(b.ctx, detect.Report{Model: "Opus"})
		if s := b.store.session(me); s.Family != "opus" || b.store.updates != 1 {
			t.Errorf("family %q after %d updates", s.Family, b.store.updates)
		}
	})
}

// The record comes before the stop, and a record that fails means no stop.
func TestNoRecordNoStop(t *testing.T) {
	for _, err := range []error{lockfile.ErrBusy, lockfile.ErrSchema, errors.New("read-only file system")} {
		t.Run(err.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *govBench) {
				b.hit(rateHit(5 * time.Minute))
				b.store.fail(nil, err)
				for range 5 {
					b.decide(b.ctx)
				}
				b.did(fmt.Sprintf("warn %v", err)) // said once
				if got := time.Until(b.wake); got <= 0 || got > retry {
					t.Errorf("tries again in %v", got)
				}
				b.store.fail(nil, nil)
				b.pass(retry + time.Second)
				b.did(stopped4...)
			})
		})
	}
}

// The stop does not wait for the log, which hears of it a moment later; what it
// cannot be told then it is told with the next change, and before what comes next.
func TestStopIsLoggedLater(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		logged := func(when string, want int) {
			t.Helper()
			if n := b.store.count("suspend"); n != want {
				t.Errorf("%s: %d suspensions logged, want %d", when, n, want)
			}
		}
		b.hit(rateHit(20 * time.Second))
		b.decide(b.ctx)
		b.did(stopped4...)
		logged("at the stop", 0)
		if d := b.logAt.Sub(time.Now()); d < asideLeast || d > asideMost {
			t.Errorf("logged in %v", d)
		}
		full := errors.New("no space left on device")
		b.store.failAppend = full
		b.logNow(t.Context())
		b.did(fmt.Sprintf("warn %v", full))
		logged("on a full disk", 0)
		b.open()
		b.again(b.ctx)
		logged("with the next change", 1)
		if last := b.store.events[len(b.store.events)-1]; last.Event != "continue" {
			t.Errorf("the last event is %q", last.Event)
		}
		b.logNow(t.Context())
		logged("once", 1)
	})
}

// In a crowd who runs is stopped by a hold as ever, and looks at all others a
// moment later, once for many hints.
func TestCrowdLooksLater(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.decide(b.ctx)
		b.crowd = 100
		b.wake = time.Time{}
		b.store.fail(errors.New("read"), nil)
		b.glanced = true // or a glance would fail as well
		for range 3 {
			b.hinted(b.ctx)
		}
		b.did()
		if d := time.Until(b.wake); d <= 0 || d > 100*lookShare {
			t.Errorf("looks in %v", d)
		}
		b.store.fail(nil, nil)
		b.glanced = false
		b.hit(rateHit(20 * time.Second))
		b.hinted(b.ctx)
		b.did(stopped4...)
	})
}

func TestReasonGoneUnderTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.hit(rateHit(time.Minute))
		d := b.policy.Decide(b.store.l, me, time.Now())
		b.open() // between the look and the lock
		b.suspend(b.ctx, b.store.l, d, false)
		b.did()
		if b.hands.Held() || b.store.session(me).Stopped != nil {
			t.Error("stopped for no reason")
		}
	})
}

// While suspended the state directory goes away: the agent is continued at its
// own deadline, said once, and all is tried again every 30 s.
func TestFailOpenWhileSuspended(t *testing.T) {
	gone := errors.New("state directory removed")
	for name, fail := range map[string][2]error{"unreadable": {gone, gone}, "read-only": {nil, gone}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *govBench) {
				b.edit(func(l lockfile.Ledger) { delete(l.Sessions, sibling) })
				b.edit(func(l lockfile.Ledger) {
					l.Limiters[testLimiter] = lockfile.Limiter{ID: testLimiter, LastHit: time.Now(), Holds: []lockfile.Hold{{
						Class: finding.Rate, Since: time.Now(), First: time.Now(), Until: time.Now().Add(50 * time.Second), UntilSource: finding.Relative}}}
				})
				b.decide(b.ctx)
				b.did(stopped4...)
				end := b.deadline
				if d := time.Until(end); d < 45*time.Second || d > 70*time.Second {
					t.Fatalf("deadline in %v", d)
				}
				b.store.fail(fail[0], fail[1])
				b.pass(time.Until(end) - time.Second)
				if !b.hands.Held() {
					t.Fatalf("continued %v before its deadline: %q", time.Until(end), b.j.take())
				}
				b.pass(3 * time.Second)
				b.did("warn state directory removed", "CONT", "notice continued")
				wakes := b.pass(10 * time.Minute)
				b.did()
				if wakes > 21 {
					t.Errorf("%d tries in ten minutes", wakes)
				}
				b.store.fail(nil, nil)
				b.pass(31 * time.Second)
				b.did("clear")
				if s := b.store.session(me); s.State != lockfile.Running || s.Stopped != nil {
					t.Errorf("session %+v", s)
				}
			})
		})
	}
}

func TestFailOpenSuspendsAgainWhenItWorksAgain(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.hit(rateHit(10 * time.Minute))
		b.decide(b.ctx)
		b.did(stopped4...)
		b.deadline = time.Now().Add(5 * time.Second) // as if the last look had said so
		b.store.fail(lockfile.ErrBusy, lockfile.ErrBusy)
		b.decide(b.ctx)
		b.pass(6 * time.Second)
		b.did("warn "+lockfile.ErrBusy.Error(), "CONT", "notice continued")
		b.store.fail(nil, nil)
		b.pass(31 * time.Second)
		if !b.hands.Held() || len(b.store.session(me).Stopped) != 1 {
			t.Fatalf("not suspended again: %q", b.j.take())
		}
	})
}

// What was found while the ledger did not work is told when it works again.
func TestFindingIsOwed(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.store.fail(nil, lockfile.ErrBusy)
		b.report(b.ctx, detect.Report{Findings: []finding.Finding{{Class: finding.Rate, Scope: finding.Account, Confidence: finding.Strong, RetryAfter: 5 * time.Minute, At: time.Now(), Rule: "r"}}})
		b.did("warn " + lockfile.ErrBusy.Error())
		for range 2 * mostOwed {
			b.report(b.ctx, detect.Report{TurnBegan: true})
		}
		if len(b.owed) > mostOwed {
			t.Errorf("%d changes owed", len(b.owed))
		}
		b.owed = b.owed[:0]
		b.report(b.ctx, detect.Report{Findings: []finding.Finding{{Class: finding.Rate, Scope: finding.Account, Confidence: finding.Strong, RetryAfter: 5 * time.Minute, At: time.Now(), Rule: "r"}}})
		b.store.fail(nil, nil)
		b.pass(31 * time.Second)
		if len(b.store.l.Limiters[testLimiter].Holds) != 1 || b.owed != nil {
			t.Errorf("limiter %+v, owed %d", b.store.l.Limiters[testLimiter], len(b.owed))
		}
	})
}

// A long stop waits for a quiet moment, but not beyond QuietUntil.
func TestQuietMoment(t *testing.T) {
	long := finding.Finding{Class: finding.Daily, Scope: finding.Account, ResetSource: finding.Epoch, Precision: time.Second}
	for name, c := range map[string]struct {
		loudFor, from, to time.Duration
	}{
		"quiet at once":     {0, 0, time.Second},
		"quiet after a bit": {5 * time.Second, 6 * time.Second, 8 * time.Second},
		"never quiet":       {time.Hour, 29 * time.Second, 32 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *govBench) {
				b.edit(func(l lockfile.Ledger) {
					s := l.Sessions[me]
					s.Headless = true // an interactive session is left alone for so long a hold
					l.Sessions[me] = s
				})
				f := long
				f.Reset = time.Now().Add(3 * time.Hour)
				b.hit(f)
				start := time.Now()
				if c.loudFor > 0 {
					b.loud = start
				}
				b.decide(b.ctx)
				for !b.hands.Held() {
					if time.Since(start) < c.loudFor {
						b.loud = time.Now()
					}
					if time.Since(start) > time.Minute {
						t.Fatal("never stopped")
					}
					b.pass(250 * time.Millisecond)
				}
				if got := time.Since(start); got < c.from || got > c.to {
					t.Errorf("stopped after %v", got)
				}
			})
		})
	}
}

func TestShortStopDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.loud = time.Now()
		b.hit(rateHit(20 * time.Second))
		b.decide(b.ctx)
		b.did(stopped4...)
	})
}

func TestObserveTouchesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.edit(func(l lockfile.Ledger) {
			s := l.Sessions[me]
			s.Observe = true
			l.Sessions[me] = s
		})
		b.hit(rateHit(time.Minute))
		b.decide(b.ctx)
		b.report(b.ctx, detect.Report{Findings: []finding.Finding{{Class: finding.Rate, Scope: finding.Account, Confidence: finding.Strong, At: time.Now(), RetryAfter: time.Minute, Rule: "r"}}})
		b.pass(10 * time.Minute)
		b.did()
		if b.hands.ordered != 0 || b.store.count("finding") != 2 {
			t.Errorf("%d stops, %d findings logged", b.hands.ordered, b.store.count("finding"))
		}
	})
}

func TestSurfaceIsToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		for range 3 {
			b.report(b.ctx, detect.Report{Findings: []finding.Finding{{Class: finding.Credit, Scope: finding.Account, Confidence: finding.Strong, At: time.Now(), Rule: "r"}}})
			b.pass(5 * time.Minute)
		}
		b.did("notice needs_you")
	})
}

// The user decides: r in the row, or a SIGCONT from outside.
func TestRunAnyway(t *testing.T) {
	for _, how := range []string{"key", "outside", "key, ledger broken"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *govBench) {
				b.hit(rateHit(10 * time.Minute))
				b.decide(b.ctx)
				b.did(stopped4...)
				time.Sleep(2 * time.Second)
				switch how {
				case "outside":
					b.hands.held = false // the session says so
					b.runAnyway(b.ctx)
					b.did("clear", "notice continued")
				case "key":
					b.key(b.ctx, KeyRun)
					b.did("CONT", "clear", "notice continued")
				default:
					b.store.fail(nil, lockfile.ErrBusy)
					b.key(b.ctx, KeyRun)
					b.did("warn "+lockfile.ErrBusy.Error(), "CONT", "notice continued")
					b.store.fail(nil, nil)
					b.pass(31 * time.Second)
					b.did("clear")
				}
				for range 20 {
					b.decide(b.ctx)
					b.pass(20 * time.Second)
				}
				b.did()
				if s := b.store.session(me); s.State != lockfile.Running || s.Stopped != nil {
					t.Errorf("session %+v", s)
				}
			})
		})
	}
}

func TestPauseKeysReachTheGovernor(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.key(b.ctx, KeyQuit) // not suspended: nothing
		b.hit(rateHit(10 * time.Minute))
		b.decide(b.ctx)
		b.did(stopped4...)
		b.key(b.ctx, KeyOther)
		if b.face.pause.Dropped != 1 {
			t.Errorf("shown %+v", b.face.pause)
		}
		time.Sleep(2 * time.Second)
		b.key(b.ctx, KeyQuit)
		if b.face.pause.Keys != HintQuit {
			t.Errorf("shown %+v", b.face.pause)
		}
		b.key(b.ctx, KeyYes)
		b.did("quit")
		b.pass(quitPatience + time.Second) // it ignores SIGTERM
		b.did("quit harder")
		b.decide(b.ctx)
		b.did() // the hold still stands, but an agent that is to end is not stopped again
		b.pass(quitPatience)
		b.did("kill")
		b.pass(time.Minute)
		b.did()
	})
}

// The user has suspended the session: the record stays until it is back.
func TestUserHasTheAgentStopped(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.hit(rateHit(20 * time.Second))
		b.hands.refuse = ErrUserStopped
		b.decide(b.ctx)
		b.did()
		b.hands.refuse = nil
		b.decide(b.ctx) // the tap said UserStop
		b.did(stopped4...)
		b.hands.refuse = ErrUserStopped
		b.edit(func(l lockfile.Ledger) { delete(l.Sessions, sibling) })
		b.pass(5 * time.Minute)
		b.did()
		if len(b.store.session(me).Stopped) == 0 {
			t.Error("the record went while the agent was still stopped")
		}
		b.hands.refuse = nil
		b.decide(b.ctx)
		b.did("CONT", "clear", "notice continued")
	})
}

// After its end a session claims nothing more.
func TestEndedSessionClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.hit(rateHit(time.Second))
		time.Sleep(2 * time.Minute) // due: whoever runs is the probe
		b.over = true
		b.report(b.ctx, detect.Report{TurnEnded: true})
		b.update(b.ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			return b.policy.Activity(l, b.input(), policies.Activity{Exit: true})
		})
		if p := b.store.l.Limiters[testLimiter].Probe; p != nil {
			t.Errorf("probe %+v", p)
		}
		b.did()
	})
}

func TestExitFreesTheProbe(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.edit(func(l lockfile.Ledger) {
			l.Limiters[testLimiter] = lockfile.Limiter{ID: testLimiter,
				Holds: []lockfile.Hold{{Class: finding.Rate, Since: time.Now().Add(-time.Minute), Until: time.Now().Add(-time.Second)}},
				Probe: &lockfile.Probe{Session: me, Since: time.Now(), Class: finding.Rate}}
		})
		b.over = true
		b.update(b.ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
			return b.policy.Activity(l, b.input(), policies.Activity{Exit: true})
		})
		if p := b.store.l.Limiters[testLimiter].Probe; p != nil {
			t.Errorf("probe %+v", p)
		}
	})
}

// Nothing held, nothing pending: nothing is to be done, ever.
func TestIdleGovernorAsksForNoWake(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		b.report(b.ctx, detect.Report{Activity: detect.Idle})
		b.decide(b.ctx)
		if !b.wake.IsZero() {
			t.Errorf("decides again in %v", time.Until(b.wake))
		}
	})
}

// However decisions, failures and time are mixed: nothing is stopped without a
// record, and with a working ledger and an open limiter everything runs.
func TestStoppedOnlyOnTheRecord(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			b := newGovBench(t)
			b.family = func(string) string { return "" }
			r := newRand(seed)
			for range 60 {
				randomStep(b, r)
				if b.hands.Held() && len(b.store.session(me).Stopped) == 0 {
					t.Fatalf("seed %d: stopped without a record; %q", seed, b.j.take())
				}
			}
			b.hands.refuse = nil
			b.store.fail(nil, nil)
			b.edit(func(l lockfile.Ledger) { l.Limiters = map[string]lockfile.Limiter{}; delete(l.Sessions, sibling) })
			b.again(b.ctx)
			b.pass(2 * time.Minute)
			if s := b.store.session(me); b.hands.Held() || s.Stopped != nil || s.State == lockfile.Suspended {
				t.Fatalf("seed %d: at the end held=%v, session %+v; %q", seed, b.hands.Held(), s, b.j.take())
			}
		})
	}
}

// A session whose user presses keys is not chosen by a cap, and the ledger hears
// of the keys only while there is one, and at most twice a minute.
func TestTypingUserIsNotChosen(t *testing.T) {
	bubble(t, func(t *testing.T, b *govBench) {
		before := b.store.updates
		b.keyed(b.ctx)
		if b.store.updates != before {
			t.Error("there is no cap, and the ledger hears of a key")
		}
		b.policy.C.Concurrency.Cap = 1
		b.edit(func(l lockfile.Ledger) {
			l.Limiters[testLimiter] = lockfile.Limiter{ID: testLimiter}
			s := l.Sessions[sibling]
			s.State, s.Alive, s.Born = lockfile.Running, true, time.Now().Add(-time.Hour)
			l.Sessions[sibling] = s
			s = l.Sessions[me]
			s.State, s.Born = lockfile.Running, time.Now()
			l.Sessions[me] = s
		})
		before = b.store.updates
		b.decide(b.ctx)
		for range 100 {
			b.keyed(b.ctx)
		}
		b.did()
		if n := b.store.updates - before; n != 1 {
			t.Errorf("%d updates for a hundred keys", n)
		}
		b.pass(3 * time.Minute)
		b.did(stopped4...)
		if got := b.face.pause.Decision.Reason.Code; got != policies.Capped {
			t.Errorf("suspended: %s", got)
		}
	})
}

// An older session that begins its turn above the number that may be busy is
// told to nobody: the younger one finds out within seconds, and is stopped. Not
// where there is no such number: a busy session does not tick.
func TestYoungerYields(t *testing.T) {
	for k, want := range map[int][]string{1: stopped4, 0: nil} {
		bubble(t, func(t *testing.T, b *govBench) {
			b.policy.C.Concurrency.Cap = k
			b.edit(func(l lockfile.Ledger) {
				l.Limiters[testLimiter] = lockfile.Limiter{ID: testLimiter}
				s := l.Sessions[me]
				s.State, s.Born, s.TurnBegan = lockfile.Running, time.Now(), time.Now()
				l.Sessions[me] = s
				s = l.Sessions[sibling]
				s.State, s.Alive = lockfile.Idle, true
				l.Sessions[sibling] = s
			})
			b.decide(b.ctx)
			b.did()
			b.edit(func(l lockfile.Ledger) { // without a hint
				s := l.Sessions[sibling]
				s.State, s.Alive, s.Born, s.TurnBegan = lockfile.Running, true, time.Now().Add(-time.Hour), time.Now()
				l.Sessions[sibling] = s
			})
			b.pass(b.policy.C.Concurrency.Look + time.Second)
			b.did(want...)
		})
	}
}
