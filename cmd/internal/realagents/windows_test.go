package realagents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"qshim/cmd/internal/fakeprovider"
)

// Ten sessions wait for a window. At its reset they come one by one, 8 s and up
// to a quarter apart, and none is refused again.
func TestTenAfterAReset(t *testing.T) {
	wholeOnly(t)
	for _, a := range []Agent{Codex, Claude} {
		t.Run(string(a), func(t *testing.T) {
			if skip == "" && !shimmed() {
				t.Skip("without qshim nobody waits")
			}
			b := newBench(t, a, a == Claude, 2) // a window is a plan's: with a key Claude Code retries
			b.ten(45*time.Second, "")
			b.apart(8*time.Second, 10*time.Second)
		})
	}
}

// The same where the wait outlasted the prompt caches (here: 10 s): one goes,
// then one more each wake_every, here 20 s.
func TestWakeFewAfterAReset(t *testing.T) {
	wholeOnly(t)
	b := siblings(t, Codex)
	b.reply(`{"hold_s":400}`) // who was woken stays awake
	b.ten(45*time.Second, "[window]\ncold_after = \"10s\"\nwake_every = \"20s\"\n")
	b.apart(20*time.Second, 22*time.Second)
}

// headless is a call that asks once and ends.
func headless(a Agent, prompt string) []string {
	switch a {
	case Codex:
		return []string{"exec", "--skip-git-repo-check", prompt}
	case Claude:
		return []string{"-p", prompt}
	}
	return []string{"-p", prompt}
}

func (b *bench) reply(json string) { b.control(`{"reply":` + json + `}`) }

// ten lets one session be refused by a window that ends after wait, launches
// nine more, and waits until the provider has seen all of these.
func (b *bench) ten(wait time.Duration, config string) {
	b.Helper()
	if config != "" {
		b.must(writeFile(filepath.Join(b.setup.Home, ".config", "qshim", "config.toml"), []byte(config)))
	}
	b.control(fmt.Sprintf(`{"scenario":{"kind":"window","for_s":%g,"resets_in_s":%g}}`, wait.Seconds(), wait.Seconds()))
	b.launch(Launch{Args: headless(b.agent, "pane0 go on")})
	b.logged("a hold", func(e event) bool { return e.Event == "hold" && e.Class == "window" })
	for i := range 9 {
		b.launch(Launch{Args: headless(b.agent, fmt.Sprintf("pane%d go on", i+1))})
	}
	b.eventually("nine have come", 6*time.Minute, func() bool { return len(b.arrivals()) >= 9 })
}

// arrivals are the first served requests of the sessions that waited, in order.
func (b *bench) arrivals() (at []fakeprovider.Request) {
	seen := map[string]bool{"pane0": true}
	for _, r := range b.provider.Counts().Requests {
		name, _, _ := strings.Cut(r.Text, " ")
		if r.Side || r.Kind != "" || !strings.HasPrefix(name, "pane") || seen[name] {
			continue
		}
		seen[name] = true
		at = append(at, r)
	}
	return at
}

// apart checks that those who were let go after the first are least to most
// apart in qshim's log, and shows when they reached the provider: how long a CLI
// takes to start lies between the two.
func (b *bench) apart(least, most time.Duration) {
	b.Helper()
	var let []time.Time
	for _, e := range b.events() {
		if e.Event == "launch" && e.Class == "window" {
			let = append(let, e.At)
		}
	}
	slices.SortFunc(let, time.Time.Compare)
	for i, at := range let {
		if i == 0 {
			b.Logf("%s let go", at.Format(time.StampMilli))
			continue
		}
		gap := at.Sub(let[i-1])
		b.Logf("%s let go, %v after", at.Format(time.StampMilli), gap)
		if gap < least {
			b.Errorf("%d let go %v after the one before, want %v at least", i, gap, least)
		}
		if i > 1 && gap > most+time.Second {
			b.Errorf("%d let go %v after the one before, want %v at most", i, gap, most)
		}
	}
	if len(let) < 9 {
		b.Errorf("%d launches waited for the window, want nine", len(let))
	}
	var before time.Time
	for i, r := range b.arrivals() {
		b.Logf("arrived %s %q", r.At.Format(time.StampMilli), r.Text)
		if gap := r.At.Sub(before); i > 0 && gap < least-startSpread {
			b.Errorf("%q arrived %v after the one before", r.Text, gap)
		}
		before = r.At
	}
	if n := b.provider.Counts().Sum("", "").Limited; n != 1 {
		b.Errorf("%d refusals, want the one", n)
	}
}

// startSpread is by how much two starts of a CLI may differ on a loaded machine.
const startSpread = 3 * time.Second

// What the agents' own records say of a conversation's size reaches the ledger:
// what waking it cold will cost. Tokens are told by the account.
func TestContextSizeIsKnown(t *testing.T) {
	for _, a := range []Agent{Claude, Codex, Gemini} {
		t.Run(string(a), func(t *testing.T) {
			if skip == "" && !shimmed() {
				t.Skip("without qshim there is no ledger")
			}
			b := newBench(t, a, false, 1)
			b.reply(`{"input_tokens":54321,"output_tokens":321}`)
			s := b.start()
			b.must(s.Ask("pane1 go on", patience))
			b.served(1)
			size, tokens := regexp.MustCompile(`"context": ?54321\b`), regexp.MustCompile(`"tokens": ?54642\b`)
			last := ""
			defer func() {
				if t.Failed() {
					t.Log(last)
				}
			}()
			b.eventually("the context's size is in the ledger", patience, func() bool {
				last = b.ledger()
				return size.MatchString(last) && tokens.MatchString(last)
			})
		})
	}
}

// ledger is the text of all state files; one that is replaced meanwhile is read
// the next time.
func (b *bench) ledger() string {
	var all strings.Builder
	found, _ := filepath.Glob(filepath.Join(b.state, "*", "*.json"))
	for _, f := range found {
		data, _ := os.ReadFile(f)
		all.Write(data)
	}
	return all.String()
}

// The share of the window that is used reaches the ledger: Codex writes it into
// its rollout, Claude Code warns on the screen.
func TestShareIsKnown(t *testing.T) {
	for a, used := range map[Agent]string{Claude: "93", Codex: "92"} {
		t.Run(string(a), func(t *testing.T) {
			if skip == "" && !shimmed() {
				t.Skip("without qshim there is no ledger")
			}
			b := newBench(t, a, a == Claude, 1)
			b.control(`{"scenario":{"kind":"warning","resets_in_s":7200}}`)
			s := b.start()
			warned := regexp.MustCompile(`used93%ofyour5-hourlimit`)
			for n := 1; n <= 3; n++ { // Claude Code queues the row behind others, and may drop it
				b.must(s.Ask("pane1 go on", patience))
				b.served(n)
				if a == Codex || s.Text(warned, 12*time.Second) == nil {
					break
				}
			}
			told := regexp.MustCompile(`"share": ?\{"used": ?` + used + `\b`)
			last := ""
			defer func() {
				if t.Failed() {
					t.Log(last, "\n", strings.Join(s.Screen(), "\n"))
				}
			}()
			b.eventually("the window's share is in the ledger", patience, func() bool {
				last = b.ledger()
				return told.MatchString(last)
			})
		})
	}
}
