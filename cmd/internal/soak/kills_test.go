//go:build linux

package soak

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// number reads how long a long form is.
func number(t testing.TB, env string, short int) int {
	t.Helper()
	v := os.Getenv(env)
	if v == "" {
		return short
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number", env, v)
	}
	return n
}

// killer runs stations one after another and kills each one's shim.
type killer struct {
	f      *fleet
	w      *ward
	left   *atomic.Int64 // kills still to be made
	own    atomic.Int64  // shims that killed themselves at a step
	out    atomic.Int64  // killed from outside
	ends   atomic.Int64  // ended in the ordinary way first
	deaths string        // file that lists the steps
}

// TestRandomKills kills shims at random, half of them from inside at a random
// step and half from outside at a random time, while they hit limits, wait,
// probe, and continue.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	kills := number(t, "QSHIM_SOAK_KILLS", 60)
	workers := number(t, "QSHIM_SOAK_SHIMS", min(24, 4+kills/20)) // at a time
	f := newFleet(t, faultyQshim, fastPolicy)
	f.open()
	f.start(stationOpt{}).ready().end() // makes the directory's rooms
	k := &killer{f: f, w: newWard(t), left: new(atomic.Int64), deaths: filepath.Join(t.TempDir(), "deaths")}
	k.left.Store(int64(kills))
	began := time.Now()
	i := newInspector(f)
	var all sync.WaitGroup
	for n := range workers {
		all.Go(func() { k.work(rand.New(rand.NewPCG(uint64(n), 7))) })
	}
	// Somebody lives through all of it, and looks after the others.
	survivor := f.start(stationOpt{}).ready()
	all.Wait()
	took := time.Since(began)
	k.w.close()
	i.close()
	if survivor.shim.ended() {
		t.Error("the session that nobody killed has ended")
	}
	eventually(t, "the survivor runs", func() bool { return !stopped(survivor.pid()) })
	survivor.tell('q')
	if c := survivor.shim.code(); c != 0 {
		t.Errorf("the survivor ended with %d", c)
	}
	survivor.close()
	f.clean()
	t.Logf("%d kills in %v: %d at a step of their own, %d from outside (%d sessions ended first); %d processes left by them, %d of them stopped, the longest for %v; %d reads of the ledger",
		k.own.Load()+k.out.Load(), took.Round(time.Second), k.own.Load(), k.out.Load(), k.ends.Load(), k.w.seen, k.w.frozen, k.w.longest.Round(time.Millisecond), i.reads)
	t.Logf("steps: %s", tally(countSteps(t, k.deaths, "")))
	t.Logf("events: %s", tally(f.events()))
}

func (k *killer) work(r *rand.Rand) {
	for k.left.Load() > 0 {
		o := stationOpt{headless: r.IntN(4) == 0, deaf: r.IntN(4) == 0, shell: r.IntN(12) == 0}
		own := r.IntN(2) == 0
		if own {
			share := []string{"0.1", "0.02", "0.005"}[r.IntN(3)]
			o.env = []string{fmt.Sprintf("QSHIM_FAULT=random:%d:%s:%d", r.Uint64(), share, r.IntN(120)), "QSHIM_FAULT_TRACE=" + k.deaths}
		}
		k.one(r, o, own)
	}
}

// one is one station's life.
func (k *killer) one(r *rand.Rand, o stationOpt, own bool) {
	s := k.f.start(o)
	for end := time.Now().Add(time.Duration(r.IntN(1500)) * time.Millisecond); time.Now().Before(end) && !s.shim.ended(); {
		switch r.IntN(24) {
		case 0:
			s.tell('f')
		case 1, 2:
			s.tell('d')
		case 3, 4, 5:
			s.tell('b')
		case 6:
			s.tell('r')
		}
		pause(time.Duration(r.IntN(60)) * time.Millisecond)
	}
	if r.IntN(30) == 0 {
		s.tell('q')
		pause(time.Duration(r.IntN(40)) * time.Millisecond)
	}
	victim := s.shim.pid
	if below := shimBelow(s.shim.pid); o.shell && below > 0 { // the shell is not what we want to kill
		victim = below
	}
	killed := !s.shim.ended() && (victim == s.shim.pid && s.shim.kill(unix.SIGKILL) || victim != s.shim.pid && unix.Kill(victim, unix.SIGKILL) == nil)
	<-s.shim.done
	switch {
	case s.shim.code() == 128+9 && own && !killed:
		k.own.Add(1)
		k.left.Add(-1)
	case killed && s.shim.code() == 128+9:
		k.out.Add(1)
		k.left.Add(-1)
	default:
		k.ends.Add(1)
	}
	k.w.admit(s)
	s.close()
}

// shimBelow is the qshim that a shell has started.
func shimBelow(shell int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", shell, shell))
	for _, f := range strings.Fields(string(b)) {
		pid, _ := strconv.Atoi(f)
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == faultyQshim {
			return pid
		}
	}
	return 0
}

// countSteps counts the steps in a trace: those of all files of a room as one,
// named by the room and any.
func countSteps(t testing.TB, file, any string) map[string]int {
	t.Helper()
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := map[string]int{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		_, step, _ := strings.Cut(sc.Text(), " ")
		if room, _, ok := strings.Cut(step, "/"); ok {
			step = room + any
		}
		m[step]++
	}
	return m
}
