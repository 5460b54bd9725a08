//go:build linux

package soak

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestUpgrade: this qshim and one of the next schema on one state directory. The
// newer one reads what the older one wrote and takes the directory over; the
// older ones, those that run too, step aside: their agents run, also those that
// were suspended, and their users are told once.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plainQshim, strings.NewReplacer(`"300ms"`, `"3s"`, `"600ms"`, `"5s"`).Replace(fastPolicy))
	old := f.start(stationOpt{}).ready()
	oldHit := f.start(stationOpt{}).ready()
	f.open()
	for _, s := range []*station{old, oldHit} {
		eventually(t, "a session at work", func() bool { return s.session(f.ledger()).State == "running" })
	}
	oldHit.tell('f')
	eventually(t, "the older sibling is suspended", func() bool { return stopped(old.pid()) })

	status := run(t, f.env(f.state), nil, nextQshim, "status", "--json")
	if !strings.Contains(status.out, soakLimiter) || strings.Count(status.out, `"agent": "claude"`) < 2 && strings.Count(status.out, `"agent":"claude"`) < 2 {
		t.Errorf("the newer one does not read the older ones' state: code %d, %s%s", status.code, status.out, status.err)
	}
	newer := []*station{f.start(stationOpt{build: nextQshim}), f.start(stationOpt{build: nextQshim})}
	for _, s := range newer {
		s.ready() // waits until the older ones' limit is over, not for the older ones
	}
	eventually(t, "the suspended agent goes on by itself", func() bool { return !stopped(old.pid()) })
	eventually(t, "the older one works", func() bool {
		old.tell('d')
		return old.shows("Worked for 3s")
	})

	// The newer ones go on with each other.
	took := time.Now()
	newer[0].tell('b')
	newer[1].tell('f')
	eventually(t, "the newer sibling is suspended", func() bool { return stopped(newer[0].pid()) })
	t.Logf("newer siblings wait together %v after the row", time.Since(took).Round(time.Millisecond))
	if stopped(old.pid()) || stopped(oldHit.pid()) {
		t.Error("an older one's agent is stopped")
	}
	late := f.session(stationOpt{})
	if len(late) != 1 || !strings.Contains(late[0], "newer qshim") {
		t.Errorf("a launch of the older one says %q", late)
	}
	doctor := f.command("doctor")
	if !strings.Contains(doctor.out, "newer qshim") {
		t.Errorf("doctor: %s", doctor.out)
	}
	eventually(t, "the newer one goes on", func() bool {
		newer[0].tell('b')
		return !stopped(newer[0].pid())
	})
	for _, s := range []*station{old, oldHit} { // a limit is what they would tell the others
		s.tell('b')
		s.tell('f')
	}
	for _, s := range append(newer, old, oldHit) {
		s.tell('q')
		if c := s.over(); c != 0 {
			t.Errorf("station %s: code %d", s.name, c)
		}
		if s == old || s == oldHit { // its last words may still be on their way through the terminal
			eventually(t, "its user is told", func() bool { return s.shows("newer qshim") })
		}
		s.close()
	}
	for _, s := range []*station{old, oldHit} {
		if lines := said(s.output()); len(lines) == 0 || strings.Count(s.output(), "newer qshim") != 1 {
			t.Errorf("its user was told %d times: %q", strings.Count(s.output(), "newer qshim"), lines)
		}
	}
	t.Logf("older: when its agent has ended %q, at a launch %q, doctor %q", last(said(old.output())), late, short(bads(doctor.out)))
	if r := run(t, f.env(f.state), nil, nextQshim, "continue", "--all"); r.code != 0 {
		t.Errorf("continue --all: %s%s", r.out, r.err)
	}
	f.files() // what the older ones could not take away is gone too
}

func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// TestOlderLeavesAlone: a directory that only a newer qshim has written is not
// changed by this one: no launch, command or repair does.
func TestOlderLeavesAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, nextQshim, slowPolicy)
	for range 2 {
		s := f.start(stationOpt{}).ready()
		s.tell('q')
		if c := s.over(); c != 0 {
			t.Fatalf("code %d: %s", c, tail(s.output()))
		}
		s.close()
	}
	before := f.contents()
	if lines := f.session(stationOpt{build: plainQshim}); len(lines) != 1 || !strings.Contains(lines[0], "newer qshim") {
		t.Errorf("said %q", lines)
	}
	for _, words := range [][]string{{"status"}, {"log"}, {"doctor", "--repair"}, {"hold", soakLimiter, "--for", "1m"}, {"release", "--all"}, {"continue", "--all"}, {"queue"}} {
		r := f.command(words...)
		t.Logf("qshim %s: code %d, %q", strings.Join(words, " "), r.code, short(strings.Split(strings.TrimSpace(r.out+r.err), "\n")))
	}
	after := f.contents()
	if !maps.Equal(before, after) {
		t.Errorf("changed: %q, then %q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
		for name, text := range after {
			if before[name] != text {
				t.Errorf("%s: %q, then %q", name, before[name], text)
			}
		}
	}
}

// contents are all files of the state directory.
func (f *fleet) contents() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	must(f.t, filepath.WalkDir(f.state, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			b, rerr := os.ReadFile(path)
			rel, _ := filepath.Rel(f.state, path)
			all[rel], err = string(b), rerr
		}
		return err
	}))
	return all
}
