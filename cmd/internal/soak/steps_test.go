//go:build linux

package soak

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The parts of the play in which one shim is killed.
const (
	hitter   = "hit"    // meets the limit
	sibling  = "wait"   // is suspended for it, and may be the probe
	launcher = "launch" // comes while the limiter is held
)

// shortSteps are those of a short run: one on each side of everything that
// siblings could miss. The names are those of package fault.
var shortSteps = map[string][]string{
	hitter:   {"write intent", "decide intent", "place limiters*", "append events", "told the ledger"},
	sibling:  {"claim", "SIGSTOP", "SIGSTOP sent", "suspended", "SIGCONT", "SIGCONT sent", "continued", "agent ended"},
	launcher: {"lock lease", "launch claim", "launch admitted", "introduce"},
}

// TestKilledAtEveryStep plays a limit with four sessions again and again, and
// each time kills one of the shims at another step, from the finding to the
// last record. QSHIM_SOAK_STEPS=all takes every step that a dry run passes.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	steps := shortSteps
	if os.Getenv("QSHIM_SOAK_STEPS") == "all" {
		steps = drySteps(t)
	}
	total := 0
	t.Run("steps", func(t *testing.T) {
		for role, names := range steps {
			for _, step := range names {
				total++
				t.Run(role+" "+strings.ReplaceAll(step, "/", "_"), func(t *testing.T) {
					t.Parallel()
					p := newPlay(t, role, "kill@"+step, "")
					p.run()
					t.Logf("| %s | %s | %v | %v | %v |", role, step, p.killed, p.w.longest.Round(time.Millisecond), p.took.Round(10*time.Millisecond))
					if !p.killed && steps[role] != nil && os.Getenv("QSHIM_SOAK_STEPS") == "" {
						t.Error("the step was not reached")
					}
				})
			}
		}
	})
	t.Logf("%d steps", total)
}

// drySteps plays once without a kill and notes what each part passes.
func drySteps(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, role := range []string{hitter, sibling, launcher} {
		trace := filepath.Join(t.TempDir(), "trace")
		newPlay(t, role, "", trace).run()
		out[role] = passed(t, trace)
	}
	return out
}

// passed are the steps in a trace: each the first time, and where there are as
// many, the third and the sixth.
func passed(t *testing.T, trace string) (steps []string) {
	t.Helper()
	times := countSteps(t, trace, "*") // the session's id differs
	for _, step := range slices.Sorted(maps.Keys(times)) {
		steps = append(steps, step)
		for _, n := range []int{3, 6} {
			if times[step] >= n+2*(n/6) {
				steps = append(steps, fmt.Sprintf("%s#%d", step, n))
			}
		}
	}
	return steps
}

// play is one limit met by four sessions.
type play struct {
	t       *testing.T
	f       *fleet
	w       *ward
	role    string
	victim  *station
	others  []*station
	fault   []string
	killed  bool
	took    time.Duration
	stopped bool // the victim's agent was seen stopped
}

func newPlay(t *testing.T, role, fault, trace string) *play {
	t.Helper()
	p := &play{t: t, f: newFleet(t, faultyQshim, strings.NewReplacer(`"300ms"`, `"700ms"`, `"600ms"`, `"2s"`).Replace(fastPolicy)), role: role}
	if fault != "" {
		p.fault = append(p.fault, "QSHIM_FAULT="+fault)
	}
	if role != sibling && role != launcher && fault != "" {
		p.fault = append(p.fault, "QSHIM_FAULT_AFTER=finding seen")
	}
	if trace != "" {
		p.fault = append(p.fault, "QSHIM_FAULT_TRACE="+trace)
	}
	p.f.open()
	p.w = newWard(t)
	return p
}

// add starts a session; the one in the victim's part gets the fault.
func (p *play) add(role string) *station {
	o := stationOpt{}
	if role == p.role {
		o.env = p.fault
	}
	s := p.f.start(o)
	if role == p.role {
		p.victim = s
	} else {
		p.others = append(p.others, s)
	}
	return s
}

func (p *play) run() {
	began := time.Now()
	h, s := p.add(hitter), p.add(sibling)
	rest := p.f.start(stationOpt{})
	p.others = append(p.others, rest)
	for _, one := range []*station{h, s, rest} {
		eventually(p.t, "a session at work", func() bool { return one.shim.ended() || one.session(p.f.ledger()).State == "running" })
	}
	h.tell('f')
	// What the hitter cannot tell any more, a sibling meets by itself.
	eventually(p.t, "the limit is known", func() bool {
		return h.shim.ended() || len(p.f.ledger().Limiters[soakLimiter].Holds) > 0 || p.count("hold") > 0
	})
	if h.shim.ended() && p.count("hold") == 0 {
		rest.tell('f')
		eventually(p.t, "a sibling meets it", func() bool { return p.count("hold") > 0 })
	}
	// A shim killed between deciding a change and putting it in place has woken
	// nobody: it stands in the ledger, and the next look of anybody shows it.
	if !h.shim.ended() {
		eventually(p.t, "the siblings are suspended", func() bool { // or it is killed only now
			return h.shim.ended() || (s.shim.ended() || stopped(s.pid())) && stopped(rest.pid()) || p.count("suspend") > 1
		})
	}
	l := p.add(launcher)
	p.goOn(append([]*station{h, s, l}, rest))
	p.took = time.Since(began)
	p.finish()
}

func (p *play) count(kind string) (n int) {
	for e, err := range p.f.store.Events(p.t.Context(), time.Time{}, false) {
		if err == nil && e.Event == kind {
			n++
		}
	}
	return n
}

// turnTime is how long a turn takes, and a pause: longer than fastPolicy's probe
// is looked at, or none would ever be judged.
const turnTime = 600 * time.Millisecond

// goOn works on until the limit is over and everybody that lives runs.
func (p *play) goOn(all []*station) {
	last, turn := time.Now(), 0
	eventually(p.t, "everybody goes on", func() bool {
		if time.Since(last) > turnTime {
			last = time.Now()
			turn++
			for _, s := range all {
				if !s.shim.ended() && s.pid() > 0 && !stopped(s.pid()) {
					s.tell("db"[turn%2])
				}
			}
		}
		l := p.f.ledger()
		m := l.Limiters[soakLimiter]
		if m.Probe != nil || len(m.Holds) > 0 {
			return false
		}
		for _, s := range all {
			if !s.shim.ended() && (s.pid() == 0 || stopped(s.pid()) || len(s.session(l).Stopped) > 0) {
				return false
			}
		}
		return true
	})
}

// finish ends the sessions in the ordinary way and looks what is left.
func (p *play) finish() {
	p.t.Helper()
	if !p.victim.shim.ended() {
		p.victim.tell('q')
	}
	code := p.victim.over()
	p.killed = code == 128+9
	if !p.killed && code != 0 {
		p.t.Errorf("the victim ended with %d: %s", code, tail(p.victim.output()))
	}
	p.w.admit(p.victim)
	p.victim.close()
	for _, s := range p.others {
		s.tell('q')
		if c := s.over(); c != 0 {
			p.t.Errorf("a sibling ended with %d: %s", c, tail(s.output()))
		}
		s.close()
	}
	if p.took > 4*time.Second {
		b, _ := os.ReadFile(filepath.Join(p.f.state, "events.jsonl"))
		p.t.Logf("%s", b)
	}
	p.f.clean()
	p.w.close()
	kinds := p.f.events()
	alone := p.role == runner || p.role == typist // nobody else meets what it could not tell any more
	if (kinds["finding"] == 0 || kinds["hold"] == 0) && !(p.killed && alone) {
		p.t.Errorf("the limit is not in the log: %s", tally(kinds))
	}
}

func tail(s string) string { return fmt.Sprintf("%q", s[max(0, len(s)-400):]) }
