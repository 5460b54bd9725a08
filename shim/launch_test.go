//go:build linux

package shim

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// fakeKeyboard is a user in front of a launch that waits.
type fakeKeyboard struct {
	keys               chan byte
	interrupts, resume chan struct{}
}

func (k *fakeKeyboard) Keys() <-chan byte           { return k.keys }
func (k *fakeKeyboard) Interrupts() <-chan struct{} { return k.interrupts }
func (k *fakeKeyboard) Resumed() <-chan struct{}    { return k.resume }

// launchBench is a launch that waits, among fakes.
type launchBench struct {
	*govBench
	w    *LaunchWait
	out  *strings.Builder
	kbd  *fakeKeyboard
	done chan Verdict
	at   time.Time
	took time.Duration
	stop context.CancelFunc
}

func launchBubble(t *testing.T, terminal bool, f func(t *testing.T, b *launchBench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &launchBench{govBench: newGovBench(t), out: &strings.Builder{}, done: make(chan Verdict, 1)}
		b.edit(func(l lockfile.Ledger) {
			s := l.Sessions[me]
			s.State, s.Prompt, s.TurnBegan, s.Born, s.Since = lockfile.Waiting, true, time.Time{}, time.Now(), time.Now()
			l.Sessions[me] = s
		})
		b.w = &LaunchWait{Store: b.store, Policy: b.policy, Self: me, Agent: "Agent", Label: func(id string) string { return id },
			Voice: testVoice{}, Out: b.out, Now: time.Now, Rand: b.rand}
		if terminal {
			b.kbd = &fakeKeyboard{make(chan byte), make(chan struct{}, 1), make(chan struct{}, 1)}
			b.w.Keys = b.kbd
		}
		f(t, b)
	})
}

func (b *launchBench) start() {
	ctx, cancel := context.WithCancel(b.ctx)
	b.stop, b.at = cancel, time.Now()
	go func() {
		v := b.w.Await(ctx)
		b.took = time.Since(b.at)
		b.done <- v
	}()
	synctest.Wait()
}

// ends waits for the verdict and checks the time that it took.
func (b *launchBench) ends(want Verdict, from, to time.Duration) {
	b.t.Helper()
	defer b.stop()
	if v := <-b.done; v != want || b.took < from || b.took > to {
		b.t.Errorf("verdict %v after %v, want %v after %v to %v; said %q", v, b.took, want, from, to, b.out)
	}
}

func (b *launchBench) waits() {
	b.t.Helper()
	synctest.Wait()
	select {
	case v := <-b.done:
		b.t.Fatalf("verdict %v after %v; said %q", v, b.took, b.out)
	default:
	}
}

func TestLaunchAtOnce(t *testing.T) {
	launchBubble(t, false, func(t *testing.T, b *launchBench) {
		b.edit(func(l lockfile.Ledger) { delete(l.Sessions, sibling) })
		b.start()
		b.ends(Launch, 0, time.Second)
		if b.out.Len() > 0 {
			t.Errorf("said %q", b.out)
		}
	})
}

func TestLaunchWaitsForTheHold(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		lines    int
	}{"no terminal": {false, 6}, "terminal": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			launchBubble(t, c.terminal, func(t *testing.T, b *launchBench) {
				b.hit(rateHit(5 * time.Minute))
				b.start()
				b.ends(Launch, 5*time.Minute, 7*time.Minute)
				if n := strings.Count(b.out.String(), "\n"); n < c.lines || n > c.lines+1 {
					t.Errorf("%d lines: %q", n, b.out)
				}
				if c.terminal && !strings.HasSuffix(b.out.String(), "\r\x1b[K") {
					t.Errorf("the line was not cleared: %q", b.out)
				}
			})
		})
	}
}

func TestLaunchWaitKeys(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *launchBench)
		want Verdict
	}{
		"Enter launches":          {func(b *launchBench) { b.kbd.keys <- 'x'; b.kbd.keys <- '\r' }, Launch},
		"Ctrl-C gives up":         {func(b *launchBench) { b.kbd.interrupts <- struct{}{} }, Abandoned},
		"a signal ends it":        {func(b *launchBench) { b.stop() }, Terminated},
		"back from Ctrl-Z, Enter": {func(b *launchBench) { b.kbd.resume <- struct{}{}; synctest.Wait(); b.kbd.keys <- '\n' }, Launch},
	} {
		t.Run(name, func(t *testing.T) {
			launchBubble(t, true, func(t *testing.T, b *launchBench) {
				b.hit(rateHit(5 * time.Minute))
				b.start()
				time.Sleep(10 * time.Second)
				b.waits()
				c.do(b)
				b.ends(c.want, 10*time.Second, 11*time.Second)
				if anyway := len(b.store.session(me).RunAnyway) > 0; anyway != (c.want == Launch) {
					t.Errorf("run anyway: %v", anyway)
				}
			})
		})
	}
}

func TestLaunchNow(t *testing.T) {
	launchBubble(t, false, func(t *testing.T, b *launchBench) {
		b.hit(rateHit(5 * time.Minute))
		b.w.Skip = true
		b.start()
		b.ends(Launch, 0, time.Second)
	})
}

// A sibling's news ends the wait; it is not polled for.
func TestLaunchHearsOfTheEnd(t *testing.T) {
	launchBubble(t, false, func(t *testing.T, b *launchBench) {
		b.hit(rateHit(5 * time.Minute))
		b.start()
		time.Sleep(20 * time.Second)
		b.open()
		b.edit(func(l lockfile.Ledger) { delete(l.Sessions, sibling) })
		b.store.hint <- struct{}{}
		b.ends(Launch, 20*time.Second, 21*time.Second)
	})
}

func TestLaunchFailsOpen(t *testing.T) {
	for name, fail := range map[string][2]error{"read": {lockfile.ErrSchema, nil}, "claim": {nil, lockfile.ErrBusy}} {
		t.Run(name, func(t *testing.T) {
			launchBubble(t, false, func(t *testing.T, b *launchBench) {
				b.hit(rateHit(time.Minute))
				b.start()
				b.waits()
				b.store.fail(fail[0], fail[1])
				b.ends(Launch, 0, 2*time.Minute)
				if n := strings.Count(b.out.String(), "WARN"); n != 1 {
					t.Errorf("said %q", b.out)
				}
			})
		})
	}
}

// cutOff is a store at which a signal arrives while something is claimed.
type cutOff struct {
	lockfile.Store
	begun  bool
	signal func()
}

func (s *cutOff) Update(ctx context.Context, fn func(lockfile.Ledger) (lockfile.Ledger, []lockfile.Event)) (lockfile.Ledger, error) {
	if !s.begun {
		s.begun = true
		return s.Store.Update(ctx, fn)
	}
	s.signal()
	return lockfile.Ledger{}, ctx.Err()
}

// TestLaunchCutOff: a signal in the middle of a claim is no broken directory.
func TestLaunchCutOff(t *testing.T) {
	launchBubble(t, false, func(t *testing.T, b *launchBench) {
		b.hit(rateHit(time.Minute))
		b.w.Store = &cutOff{Store: b.store, signal: func() { b.stop() }}
		b.start()
		b.ends(Terminated, time.Minute, 2*time.Minute)
		if strings.Contains(b.out.String(), "WARN") {
			t.Errorf("said %q", b.out)
		}
	})
}

// TestLaunchSignalledLate: one that nobody has looked at yet when the wait is over.
func TestLaunchSignalledLate(t *testing.T) {
	for sig, want := range map[os.Signal]Verdict{unix.SIGHUP: Terminated, unix.SIGTERM: Terminated, unix.SIGTSTP: Launch, nil: Launch} {
		sigs := make(chan os.Signal, 1)
		if sig != nil {
			sigs <- sig
		}
		var last atomic.Int32
		w := &LaunchWait{Out: io.Discard}
		if v := w.late(Launch, nil, sigs, &last); v != want {
			t.Errorf("%v: verdict %v", sig, v)
		}
	}
}

var credit = finding.Finding{Class: finding.Credit, Scope: finding.Account}

func TestLaunchAsks(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *launchBench)
		want Verdict
		says string
	}{
		"y":           {func(b *launchBench) { b.kbd.keys <- 'y' }, Launch, `^ask y\n$`},
		"Enter is no": {func(b *launchBench) { b.kbd.keys <- '\r' }, Abandoned, `^ask n\n$`},
		"Ctrl-C":      {func(b *launchBench) { b.kbd.interrupts <- struct{}{} }, Abandoned, `^ask \n$`},
		"a signal":    {func(b *launchBench) { b.stop() }, Terminated, `^ask $`},
		"mended meanwhile": {func(b *launchBench) {
			b.store.hint <- struct{}{}
			b.waits()
			b.open()
			b.store.hint <- struct{}{}
		}, Launch, `^ask $`},
		"asked again after Ctrl-Z": {func(b *launchBench) {
			b.kbd.resume <- struct{}{}
			b.waits()
			b.kbd.keys <- 'y'
		}, Launch, `^ask ask y\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			launchBubble(t, true, func(t *testing.T, b *launchBench) {
				b.hit(credit)
				b.edit(func(l lockfile.Ledger) { delete(l.Sessions, sibling) })
				b.start()
				time.Sleep(time.Hour / 4)
				b.waits()
				c.do(b)
				b.ends(c.want, 0, time.Hour)
				if !regexp.MustCompile(c.says).MatchString(b.out.String()) {
					t.Errorf("said %q", b.out)
				}
			})
		})
	}
	launchBubble(t, false, func(t *testing.T, b *launchBench) {
		b.hit(credit)
		b.start()
		b.ends(TooLong, 0, time.Second)
	})
}

func TestLaunchBeyondMaxWait(t *testing.T) {
	launchBubble(t, false, func(t *testing.T, b *launchBench) {
		b.edit(func(l lockfile.Ledger) {
			s := l.Sessions[me]
			s.Headless = true
			l.Sessions[me] = s
		})
		b.hit(finding.Finding{Class: finding.Window, Scope: finding.Account, Reset: time.Now().Add(20 * time.Hour), ResetSource: finding.Epoch})
		b.start()
		b.ends(TooLong, 0, time.Second)
	})
}
