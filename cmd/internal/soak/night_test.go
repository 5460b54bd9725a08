//go:build linux

package soak

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
)

// night is a fleet to which everything happens at once.
type night struct {
	f     *fleet
	w     *ward
	clock string // file with how far the fleet's clock is off
	end   time.Time

	pace float64 // everything takes so many times as long as in the short form
	rare int     // turns without a limit between two of one session: more with more sessions

	lives, ends, kills, hangups, findings, jumps atomic.Int64
}

// TestNight is an overnight run in small: sessions at work, limits, kills,
// terminals that close and clocks that are set, all at random. At the end no
// process is stopped, no lock is held, no file is left, and every suspension in
// the log has its end. QSHIM_SOAK_NIGHT is how long (an hour, say, with 50
// sessions at a time), QSHIM_SOAK_SHIMS how many, QSHIM_SOAK_PACE how many times
// as slow all of it is, which a fleet on a small machine needs.
func TestNight(t *testing.T) {
	t.Parallel()
	long, n := 6*time.Second, 8
	if v := os.Getenv("QSHIM_SOAK_NIGHT"); v != "" {
		var err error
		if long, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
		n = number(t, "QSHIM_SOAK_SHIMS", 50)
	}
	pace := float64(number(t, "QSHIM_SOAK_PACE", 1))
	policy := slower(t, fastPolicy, pace) + "[suspend]\nrecheck = \"1s\"\n"
	f := newFleet(t, faultyQshim, policy)
	w := &night{f: f, w: newWard(t), pace: pace, rare: max(60, 60*n/8), clock: filepath.Join(f.home, "clock"), end: time.Now().Add(long)}
	write(t, w.clock, "0s", 0o600)
	f.start(stationOpt{}).ready().end()
	f.open()
	i := newInspector(f)
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() { w.place(rand.New(rand.NewPCG(uint64(k), 11))) })
	}
	all.Go(func() { w.setClocks(rand.New(rand.NewPCG(99, 11))) })
	all.Wait()
	w.w.close()
	i.close()
	f.clean()
	w.unlocked()
	unfinished := w.account()
	t.Logf("%v with %d sessions at a time: %d sessions, of which %d ended by themselves, %d shims were killed and %d terminals closed; %d limits met, %d clocks set; %d processes left by killed shims, %d of them stopped, the longest for %v; suspensions that a kill ended: %d; %d reads of the ledger",
		long, n, w.lives.Load(), w.ends.Load(), w.kills.Load(), w.hangups.Load(), w.findings.Load(), w.jumps.Load(),
		w.w.seen, w.w.frozen, w.w.longest.Round(time.Millisecond), unfinished, i.reads)
	t.Logf("events: %s", tally(f.events()))
}

// slower is a policy whose times below a minute are pace times as long.
func slower(t testing.TB, policy string, pace float64) string {
	t.Helper()
	return regexp.MustCompile(`"\d+m?s"`).ReplaceAllStringFunc(policy, func(s string) string {
		d, err := time.ParseDuration(strings.Trim(s, `"`))
		must(t, err)
		return fmt.Sprintf("%q", time.Duration(float64(d)*pace))
	})
}

// wait is a time of the short form's.
func (w *night) wait(d time.Duration) time.Duration { return time.Duration(float64(d) * w.pace) }

// place is one place at which sessions follow each other.
func (w *night) place(r *rand.Rand) {
	for time.Now().Before(w.end) {
		s := w.f.start(stationOpt{headless: r.IntN(6) == 0, deaf: r.IntN(6) == 0, shell: r.IntN(8) == 0, env: []string{"QSHIM_FAULT_CLOCK=" + w.clock}})
		w.lives.Add(1)
		w.life(r, s)
	}
}

// life is one session's, some seconds to half a minute.
func (w *night) life(r *rand.Rand, s *station) {
	until := time.Now().Add(w.wait(time.Duration(2+r.IntN(25)) * time.Second))
	if until.After(w.end) {
		until = w.end
	}
	for turn := 0; time.Now().Before(until) && !s.shim.ended(); turn++ {
		switch {
		case r.IntN(w.rare) == 0:
			s.tell('f')
			w.findings.Add(1)
		case r.IntN(2*w.rare) == 0:
			s.tell('r')
		default:
			s.tell("bd"[turn%2])
		}
		pause(w.wait(time.Duration(100+r.IntN(500)) * time.Millisecond))
	}
	switch k := r.IntN(10); {
	case k < 4:
		victim := s.shim.pid
		if below := shimBelow(victim); s.opt.shell && below > 0 {
			victim = below
		}
		if victim == s.shim.pid {
			s.shim.kill(unix.SIGKILL)
		} else {
			_ = unix.Kill(victim, unix.SIGKILL)
		}
		w.kills.Add(1)
	case k < 7 && s.master != nil:
		_ = s.master.Close()
		w.hangups.Add(1)
	default:
		s.tell('q')
		w.ends.Add(1)
	}
	select {
	case <-s.shim.done:
	case <-time.After(w.wait(10 * time.Second)): // it waits for its turn: its user gives up
		if s.master != nil {
			_ = s.master.Close()
		} else {
			s.shim.kill(unix.SIGTERM)
		}
		w.hangups.Add(1)
	}
	select {
	case <-s.shim.done:
	case <-time.After(patience):
		if !s.opt.deaf { // an agent that ignores a hangup is governed on, and may wait for its turn for long
			w.f.t.Errorf("station %s (%+v) does not end: %s", s.name, s.opt, tail(s.output()))
		}
		s.shim.kill(unix.SIGKILL)
		<-s.shim.done
		w.kills.Add(1)
	}
	w.w.admit(s)
	s.close()
}

// setClocks sets the fleet's clock an hour on and back, and a year.
func (w *night) setClocks(r *rand.Rand) {
	for time.Now().Before(w.end) {
		pause(time.Duration(1+r.IntN(10)) * time.Second)
		off := []string{"1h", "-1h", "8760h", "-8760h", "0s", "0s"}[r.IntN(6)]
		tmp := w.clock + ".new"
		if os.WriteFile(tmp, []byte(off), 0o600) == nil && os.Rename(tmp, w.clock) == nil {
			w.jumps.Add(1)
		}
	}
}

// unlocked checks that nobody holds the directory's lock.
func (w *night) unlocked() {
	file, err := os.OpenFile(filepath.Join(w.f.state, "lock"), os.O_RDWR, 0)
	must(w.f.t, err)
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		w.f.t.Errorf("the lock is held: %v", err)
	}
}

// account follows each session through the log: a suspension ends with a
// continue, an exit, or the session's death, and nothing comes after an exit.
func (w *night) account() (unfinished int) {
	names, _ := filepath.Glob(filepath.Join(w.f.state, "events*.jsonl"))
	suspended, gone := map[string]int{}, map[string]bool{}
	for _, name := range names { // rotated files sort before the current one
		b, err := os.ReadFile(name)
		must(w.f.t, err)
		for line := range strings.Lines(string(b)) {
			var e lockfile.Event
			if json.Unmarshal([]byte(line), &e) != nil || e.Session == "" {
				continue
			}
			switch e.Event {
			case "suspend":
				suspended[e.Session]++
			case "continue":
				suspended[e.Session]--
			case "exit":
				gone[e.Session] = true
			}
			if n := suspended[e.Session]; n < 0 || n > 1 {
				w.f.t.Errorf("session %s: %d suspensions are open at %s", e.Session, n, e.Event)
				suspended[e.Session] = 0
			}
		}
	}
	for id, n := range suspended {
		if n > 0 && !gone[id] {
			unfinished++
		}
	}
	if most := int(w.kills.Load() + w.hangups.Load()); unfinished > most {
		w.f.t.Errorf("%d suspensions have no end, %d sessions were killed", unfinished, most)
	}
	return unfinished
}
