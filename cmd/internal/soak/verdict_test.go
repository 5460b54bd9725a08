//go:build linux

package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
)

// oneCheck is how long a dead shim's agent may stay stopped: a sibling's look
// (every 5 s) and the second before it may look again, with room for a loaded
// machine.
const oneCheck = 6*time.Second + 6*time.Second

// ward watches what killed shims have left.
type ward struct {
	t    testing.TB
	mu   sync.Mutex
	wait map[int]*patient
	done chan struct{}
	over sync.WaitGroup

	seen    int           // processes handed over
	frozen  int           // of them found stopped
	longest time.Duration // that one stayed so
}

type patient struct {
	start uint64
	since time.Time // stopped since; zero: it runs
	admit time.Time
}

func newWard(t testing.TB) *ward {
	w := &ward{t: t, wait: map[int]*patient{}, done: make(chan struct{})}
	w.over.Go(w.rounds)
	return w
}

// admit takes the processes of a station whose shim is dead.
func (w *ward) admit(s *station) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pid := range s.agents() {
		if _, _, start, ok := procStat(pid); ok {
			w.wait[pid] = &patient{start: start, admit: time.Now()}
			w.seen++
		}
	}
}

func (w *ward) rounds() {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-tick.C:
			w.adopt()
			w.round(time.Now())
		}
	}
}

// adopt admits the orphans that became ours: tools of agents that died before
// they could say that they had one.
func (w *ward) adopt() {
	for _, pid := range orphans() {
		w.mu.Lock()
		if _, _, start, ok := procStat(pid); ok && w.wait[pid] == nil {
			w.wait[pid] = &patient{start: start, admit: time.Now()}
			w.seen++
		}
		w.mu.Unlock()
	}
}

func (w *ward) round(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for pid, p := range w.wait {
		state, _, start, ok := procStat(pid)
		if !ok || start != p.start || state == 'Z' {
			delete(w.wait, pid)
			continue
		}
		if state != 'T' {
			if !p.since.IsZero() {
				w.longest = max(w.longest, now.Sub(p.since))
				p.since = time.Time{}
			}
			if now.Sub(p.admit) > time.Second { // it has survived, and runs
				_ = unix.Kill(pid, unix.SIGKILL)
				delete(w.wait, pid)
			}
			continue
		}
		if p.since.IsZero() {
			p.since = now
			w.frozen++
		}
		if now.Sub(p.since) > oneCheck {
			w.t.Errorf("process %d of a killed shim has been stopped for %v", pid, now.Sub(p.since))
			_ = unix.Kill(pid, unix.SIGKILL)
			delete(w.wait, pid)
		}
	}
}

// close waits until everybody is gone or runs.
func (w *ward) close() {
	w.t.Helper()
	empty := false
	for end := time.Now().Add(patience); !empty && time.Now().Before(end); pause(10 * time.Millisecond) {
		empty = w.left() == 0 && len(orphans()) == 0
	}
	close(w.done)
	w.over.Wait()
	if !empty { // what was admitted since is another test's: orphans are everybody's
		w.t.Errorf("%d processes of killed shims are neither gone nor running", w.left())
	}
}

func (w *ward) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wait)
}

// mostLate is how long a probe or a session of a dead shim may stand in the
// ledger while siblings live: as oneCheck.
const mostLate = oneCheck

// inspector reads the ledger all the time, as a sibling would.
type inspector struct {
	f      *fleet
	done   chan struct{}
	over   sync.WaitGroup
	probes map[string]time.Time // limiter and session of a dead probe -> since
	deads  map[string]time.Time
	reads  int
}

func newInspector(f *fleet) *inspector {
	i := &inspector{f: f, done: make(chan struct{}), probes: map[string]time.Time{}, deads: map[string]time.Time{}}
	i.over.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-i.done:
				return
			case <-tick.C:
				i.look(time.Now())
			}
		}
	})
	return i
}

func (i *inspector) look(now time.Time) {
	l, err := i.f.store.Read()
	if err != nil {
		i.f.t.Errorf("the ledger does not read: %v", err)
		return
	}
	i.reads++
	probes, deads := map[string]time.Time{}, map[string]time.Time{}
	for id, m := range l.Limiters {
		if m.Probe != nil && !l.Sessions[m.Probe.Session].Alive {
			key := id + " " + m.Probe.Session
			probes[key] = i.since(i.probes, key, "probe", now)
		}
	}
	for id, s := range l.Sessions {
		if !s.Alive && len(s.Stopped) > 0 { // one that left nothing stopped may wait for the next launch
			deads[id] = i.since(i.deads, id, "dead session", now)
		}
	}
	i.probes, i.deads = probes, deads
}

func (i *inspector) since(was map[string]time.Time, key, what string, now time.Time) time.Time {
	at, ok := was[key]
	if !ok {
		return now
	}
	if now.Sub(at) > mostLate {
		i.f.t.Errorf("%s %s has stood in the ledger for %v", what, key, now.Sub(at))
		return now // once is enough
	}
	return at
}

func (i *inspector) close() {
	close(i.done)
	i.over.Wait()
}

// clean checks that nothing is left after one command: no session, no probe, no
// file, no notice, a whole event log.
func (f *fleet) clean() {
	f.t.Helper()
	if r := f.command("continue", "--all"); r.code != 0 {
		f.t.Errorf("qshim continue --all: code %d, %s%s", r.code, r.out, r.err)
	}
	l := f.ledger()
	if len(l.Sessions) > 0 {
		f.t.Errorf("%d sessions left", len(l.Sessions))
	}
	for id, m := range l.Limiters {
		if m.Probe != nil {
			f.t.Errorf("the probe of %s is lost", id)
		}
	}
	f.mu.Lock()
	if len(f.notices) > 0 {
		f.t.Errorf("damaged: %q", f.notices)
	}
	f.mu.Unlock()
	f.files()
	f.events()
}

// files checks the names and modes in the state directory.
func (f *fleet) files() {
	f.t.Helper()
	err := filepath.WalkDir(f.state, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(f.state, path)
		info, err := e.Info()
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if e.IsDir() {
			want = os.ModeDir | 0o700
		}
		if info.Mode() != want {
			f.t.Errorf("%s has mode %v", rel, info.Mode())
		}
		room, name := filepath.Dir(rel), e.Name()
		if room == "sessions" || room == "logs" || strings.HasPrefix(name, "tmp.") || strings.Contains(name, ".bad-") || room == "crash" {
			f.t.Errorf("left behind: %s", rel)
		}
		return nil
	})
	if err != nil {
		f.t.Error(err)
	}
}

// events checks every line of the log and counts them by kind.
func (f *fleet) events() map[string]int {
	f.t.Helper()
	names, err := filepath.Glob(filepath.Join(f.state, "events*.jsonl"))
	if err != nil {
		f.t.Error(err)
	}
	kinds := map[string]int{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.t.Error(err)
		}
		lines := bytes.Split(data, []byte("\n"))
		for n, line := range lines {
			if n == 0 || n == len(lines)-1 && len(line) == 0 {
				continue
			}
			var e lockfile.Event
			if n == len(lines)-1 {
				// The last writer was killed; the next one cuts this off.
				f.t.Logf("torn line at the end of %s", filepath.Base(name))
			} else if err := json.Unmarshal(line, &e); err != nil || e.Event == "" || e.At.IsZero() {
				f.t.Errorf("%s:%d is no event: %v %.200q", filepath.Base(name), n+1, err, line)
			}
			kinds[e.Event]++
		}
	}
	return kinds
}

func tally(m map[string]int) string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s %d", k, m[k])
	}
	return strings.Join(keys, ", ")
}
