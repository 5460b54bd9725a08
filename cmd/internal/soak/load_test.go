//go:build linux

package soak

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"qshim/lockfile"
	"qshim/policies"
)

// usage is what one shim takes, from /proc.
type usage struct {
	fds     int
	private int64 // bytes, of the shim and its two helpers together
	cpu     time.Duration
	threads int
}

func usageOf(pid int) (u usage) {
	dir := "/proc/" + strconv.Itoa(pid)
	if names, err := os.ReadDir(dir + "/fd"); err == nil {
		u.fds = len(names)
	}
	if names, err := os.ReadDir(dir + "/task"); err == nil {
		u.threads = len(names)
	}
	if b, err := os.ReadFile(dir + "/smaps_rollup"); err == nil {
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 1 && (f[0] == "Private_Dirty:" || f[0] == "Private_Clean:") {
				n, _ := strconv.ParseInt(f[1], 10, 64)
				u.private += n << 10
			}
		}
	}
	if b, err := os.ReadFile(dir + "/stat"); err == nil {
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		user, _ := strconv.Atoi(f[11])
		sys, _ := strconv.Atoi(f[12])
		u.cpu = time.Duration(user+sys) * 10 * time.Millisecond
	}
	return u
}

func most(all []usage) (u usage) {
	for _, x := range all {
		u.fds, u.private, u.cpu, u.threads = max(u.fds, x.fds), max(u.private, x.private), max(u.cpu, x.cpu), max(u.threads, x.threads)
	}
	return u
}

// watches counts our inotify instances: those of a user are limited to 128.
func watches(all []*station) (n int) {
	for _, s := range all {
		links, _ := filepath.Glob("/proc/" + strconv.Itoa(s.shim.pid) + "/fd/*")
		for _, l := range links {
			if to, err := os.Readlink(l); err == nil && strings.Contains(to, "inotify") {
				n++
			}
		}
	}
	return n
}

// TestManyShims: very many sessions on one account. One meets a limit: all that
// are at work stop, and go on one after another when it is over.
func TestManyShims(t *testing.T) {
	n := number(t, "QSHIM_SOAK_SHIMS", 20)
	policy := strings.NewReplacer(`"300ms"`, `"6s"`, `"600ms"`, `"12s"`, `gap = "50ms"`, fmt.Sprintf("gap = \"%dms\"", max(20, n))).Replace(fastPolicy)
	f := newFleet(t, plainQshim, policy)
	f.patience += time.Duration(n) * patience / 40
	t.Logf("a bare watcher's child is stopped: %s", spread(bareStops(t, min(n, 100))))
	all := make([]*station, 0, n)
	began := time.Now()
	for i := range n {
		all = append(all, f.start(stationOpt{}))
		if i%20 == 19 {
			all[i].ready()
		}
	}
	f.open()
	eventuallyEach(t, f.glance(n), f.patience, "all are at work", func() bool {
		running := 0
		for _, s := range f.ledger().Sessions {
			if s.State == lockfile.Running {
				running++
			}
		}
		return running == n
	})
	t.Logf("%d sessions at work after %v", n, time.Since(began).Round(time.Millisecond))
	watched := watches(all)
	if watched > n {
		t.Errorf("%d inotify instances for %d sessions", watched, n)
	}
	rounds := 3
	if n > 100 {
		rounds = 1 // four minutes on two processors
	}
	for round := range rounds {
		before := usages(all)
		since := time.Now()
		f.round(all, all[(round*7)%n], round)
		f.inOrder(since)
		after := usages(all)
		a, b := most(before), most(after)
		t.Logf("a shim takes at most: %d -> %d descriptors, %d -> %d threads, %.1f -> %.1f MiB private; CPU of the round %v", a.fds, b.fds, a.threads, b.threads,
			float64(a.private)/(1<<20), float64(b.private)/(1<<20), (b.cpu - a.cpu).Round(time.Millisecond))
		if b.fds > a.fds+4 {
			t.Errorf("descriptors grow: %d, then %d", a.fds, b.fds)
		}
	}
	t.Logf("%d of them have an inotify instance", watched)
	if n >= 100 {
		const rest = 20 * time.Second
		before := usages(all)
		pause(rest)
		cpu := time.Duration(0)
		for i, u := range usages(all) {
			cpu += u.cpu - before[i].cpu
		}
		t.Logf("while nothing happens a shim takes %.2f %% of a CPU", 100*float64(cpu)/float64(n)/float64(rest))
	}
	for _, s := range all {
		s.tell('q')
	}
	for _, s := range all {
		if c := s.shim.code(); c != 0 {
			t.Errorf("station %s: code %d", s.name, c)
		}
		s.close()
	}
	f.clean()
}

// turnEach is how long the turns of a fleet are, for each of its sessions. The edge
// of a turn is a whole update, 3 ms of a processor among 200: sessions that all
// begin or end one three times a second leave the two no time for anything else.
const turnEach = 10 * time.Millisecond

// glance is how often the test looks at n sessions, which takes it as much as one
// of them.
func (f *fleet) glance(n int) time.Duration {
	return max(5*time.Millisecond, time.Duration(n)*time.Millisecond)
}

// inOrder: the sessions were continued oldest first, behind the one that tried.
func (f *fleet) inOrder(since time.Time) {
	f.t.Helper()
	born := map[string]time.Time{}
	for id, s := range f.ledger().Sessions {
		born[id] = s.Born
	}
	var order []time.Time
	for e, err := range f.store.Events(f.t.Context(), since, false) {
		if err == nil && e.Event == "continue" && e.Reason != string(policies.Prober) {
			order = append(order, born[e.Session])
		}
	}
	late := 0
	for i := range order {
		for _, other := range order[:i] {
			if other.After(order[i]) {
				late++
			}
		}
	}
	pairs := len(order) * (len(order) - 1) / 2
	f.t.Logf("%d continued; of %d pairs %d in another order than by age", len(order), pairs, late)
	if late > pairs/5 { // who has no inotify instance looks each second, twenty times the gap here
		f.t.Error("they do not go on oldest first")
	}
}

func usages(all []*station) []usage {
	out := make([]usage, len(all))
	for i, s := range all {
		out[i] = usageOf(s.shim.pid)
	}
	return out
}

// round is one limit, from the row on one screen to the last one that goes on.
func (f *fleet) round(all []*station, hit *station, round int) {
	f.t.Helper()
	pids := make([]int, 0, len(all))
	if len(all) >= 100 {
		pause(3 * time.Second) // what the start, or the round before, has left to do is done
	}
	for _, s := range all {
		if pid := s.pid(); s != hit && !stopped(pid) { // the cap may have stopped one meanwhile
			pids = append(pids, pid)
		}
	}
	watch := newStopwatch(f.t, pids)
	began := time.Now()
	hit.tell('f')
	times := watch.all(began, f.patience)
	watch.close()
	if len(times) < len(pids) {
		f.t.Fatalf("waited in vain for %d of %d to be stopped", len(pids)-len(times), len(pids))
	}
	f.t.Logf("round %d: row -> stopped: %s", round+1, spread(times))
	// Whoever goes on does well, and is at work again.
	var all2 sync.WaitGroup
	done := make(chan struct{})
	for _, s := range all {
		all2.Go(func() {
			for turn := 0; ; turn++ {
				select {
				case <-done:
					return
				case <-time.After(max(300*time.Millisecond, time.Duration(len(all))*turnEach)):
				}
				if pid := s.pid(); pid > 0 && !stopped(pid) && s != hit {
					s.tell("db"[turn%2])
				}
			}
		})
	}
	eventuallyEach(f.t, f.glance(len(all)), f.patience, "all go on", func() bool {
		for _, pid := range pids {
			if stopped(pid) {
				return false
			}
		}
		m := f.ledger().Limiters[soakLimiter]
		return m.Probe == nil && len(m.Holds) == 0
	})
	close(done)
	all2.Wait()
	for _, s := range all {
		s.tell('b')
	}
	f.t.Logf("round %d: all go on after %v", round+1, time.Since(began).Round(10*time.Millisecond))
	var not []string
	defer func() {
		if f.t.Failed() {
			f.t.Logf("not at work: %q; limiter %+v", not, f.ledger().Limiters[soakLimiter])
		}
	}()
	eventuallyEach(f.t, f.glance(len(all)), f.patience, "all are at work again", func() bool {
		l := f.ledger()
		not = not[:0]
		for _, s := range all {
			if x := s.session(l); x.State != lockfile.Running || len(x.Stopped) > 0 {
				not = append(not, fmt.Sprintf("%s %s %s %v %v", s.name, x.State, x.Reason, x.Stopped, stopped(s.pid())))
			}
		}
		return len(not) == 0
	})
}

// TestNoWatches: sessions whose user has no inotify instance left see what their
// siblings do all the same, within the second after which they look.
func TestNoWatches(t *testing.T) {
	t.Parallel()
	const none = `echo 0 >/proc/sys/user/max_inotify_instances && exec "$0" "$@"`
	unshare := []string{"/usr/bin/unshare", "-U", "-r", "/bin/sh", "-c", none}
	if r := run(t, nil, nil, append(slices.Clone(unshare), "/bin/true")...); r.code != 0 {
		t.Skip("no user namespace: ", r.err)
	}
	f := newFleet(t, plainQshim, strings.NewReplacer(`"300ms"`, `"60s"`, `"600ms"`, `"60s"`).Replace(fastPolicy))
	all := make([]*station, 4)
	for i := range all {
		all[i] = f.start(stationOpt{under: unshare}).ready()
	}
	f.open()
	for _, s := range all {
		eventually(t, "at work", func() bool { return s.session(f.ledger()).State == lockfile.Running })
	}
	if n := watches(all); n > 0 {
		t.Fatalf("%d of them have an inotify instance", n)
	}
	began := time.Now()
	all[0].tell('f')
	for _, s := range all[1:] {
		eventually(t, "suspended", func() bool { return stopped(s.pid()) })
	}
	t.Logf("suspended within %v", time.Since(began).Round(time.Millisecond))
	doctor := run(t, f.env(f.state), nil, append(slices.Clone(unshare), plainQshim, "doctor")...)
	if !strings.Contains(doctor.out, "no inotify instance is left") {
		t.Errorf("doctor: %s", doctor.out)
	}
	began = time.Now()
	f.command("release", "--all")
	for _, s := range all[1:] {
		eventually(t, "continued", func() bool { return !stopped(s.pid()) })
	}
	t.Logf("continued within %v", time.Since(began).Round(time.Millisecond))
	for _, s := range all {
		s.tell('q')
		if c := s.over(); c != 0 {
			t.Errorf("code %d", c)
		}
		if s.shows("coordination") {
			t.Errorf("its user is told: %s", tail(s.output()))
		}
		s.close()
	}
	f.clean()
}

// TestManySessions: sessions that come and go as fast as they can leave nothing.
func TestManySessions(t *testing.T) {
	t.Parallel()
	n := number(t, "QSHIM_SOAK_SESSIONS", 40)
	f := newFleet(t, plainQshim, fastPolicy)
	write(t, filepath.Join(f.home, "bin", "short"), "#!/bin/sh\nexit 0\n", 0o755)
	f.start(stationOpt{words: []string{"short"}}).end()
	f.open()
	began := time.Now()
	jobs := make(chan int)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range jobs {
				s := f.start(stationOpt{words: []string{"short", "x"}})
				if c := s.shim.code(); c != 0 {
					t.Errorf("code %d: %s", c, tail(s.output()))
				}
				s.close()
			}
		})
	}
	for i := range n {
		jobs <- i
	}
	close(jobs)
	all.Wait()
	took := time.Since(began)
	f.clean()
	names, _ := filepath.Glob(filepath.Join(f.state, "*", "*"))
	t.Logf("%d sessions in %v (%.0f a minute); files in the rooms: %d", n, took.Round(time.Millisecond), float64(n)/took.Minutes(), len(names))
}

// TestConcurrentLog: processes that write to the event log at once, with lines
// longer than a pipe's atomic write.
func TestConcurrentLog(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plainQshim, fastPolicy)
	f.start(stationOpt{}).ready().end()
	f.open()
	const writers, lines = 8, 40
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			d, err := lockfile.Open(f.state, lockfile.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			for i := range lines {
				if err := d.Append(lockfile.Event{Event: "storm", Session: fmt.Sprint(w), Reason: strings.Repeat(string(rune('a'+w)), 6000), RetryAfter: float64(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if k := f.events(); k["storm"] != writers*lines {
		t.Errorf("%d of %d lines", k["storm"], writers*lines)
	}
	file, err := os.Open(filepath.Join(f.state, "events.jsonl"))
	must(t, err)
	defer file.Close()
	for sc := bufio.NewScanner(file); sc.Scan(); {
		if i := strings.Index(sc.Text(), `"reason":"`); i > 0 {
			word := sc.Text()[i+10:]
			if strings.HasPrefix(word, "free") {
				continue
			}
			if strings.Trim(word[:strings.IndexByte(word, '"')], word[:1]) != "" {
				t.Fatalf("two lines in one: %.80s", word)
			}
		}
	}
}
