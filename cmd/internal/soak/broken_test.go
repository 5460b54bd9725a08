//go:build linux

package soak

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// crashReports returns what qshim has written about its own crashes.
func (f *fleet) crashReports() string {
	names, _ := filepath.Glob(filepath.Join(f.state, "crash", "*"))
	var b strings.Builder
	for _, name := range names {
		text, _ := os.ReadFile(name)
		b.Write(text)
	}
	return b.String()
}

// TestOwnBugs: each goroutine of a shim panics, and each stops coming back,
// while its agent is suspended or runs. The agent goes on, its bytes flow both
// ways, its end ends qshim, the report is in a file and not on the screen.
func TestOwnBugs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, fault, after string
		report             string
	}{
		{"panic of the loop", "panic@turn", "suspended", "injected at turn"},
		{"panic of the loop, always", "panicking@turn", "suspended", "injected at turn"},
		{"panic of the governor", "panic@watch", "", "injected at watch"},
		{"panic of the governor before a stop", "panic@SIGSTOP", "", "injected at SIGSTOP"},
		{"panic of the governor after a stop", "panic@suspended", "", "injected at suspended"},
		{"panic of the log's reader", "panic@tail", "", "injected at tail"},
		{"panic under the ledger's lock", "panic@locked", "suspended", "injected at locked"},
		{"stall of the loop", "stall@turn", "suspended", "did not come back"},
		{"stall of the governor", "stall@suspended", "", "did not come back"},
		{"stall under the ledger's lock", "stall@locked", "suspended", "did not come back"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, faultyQshim, slowPolicy)
			env := []string{"QSHIM_FAULT=" + c.fault}
			if c.after != "" {
				env = append(env, "QSHIM_FAULT_AFTER="+c.after)
			}
			victim := f.start(stationOpt{env: env}).ready()
			f.open()
			hitter := f.start(stationOpt{})
			for _, s := range []*station{victim, hitter} {
				eventually(t, "the session", func() bool { return s.session(f.ledger()).State == "running" || f.crashReports() != "" })
			}
			hitter.tell('f')
			if c.after == "suspended" {
				// Something has to happen that the broken part takes up.
				eventually(t, "suspended", func() bool { return stopped(victim.pid()) || f.crashReports() != "" })
				if !strings.Contains(c.fault, "turn") {
					f.command("release", "--all")
				}
			}
			began := time.Now()
			eventually(t, "a report", func() bool { return strings.Contains(f.crashReports(), c.report) })
			eventually(t, "the agent runs", func() bool { return !stopped(victim.pid()) })
			t.Logf("%v after the limit", time.Since(began).Round(10*time.Millisecond))
			version, _, _ := strings.Cut(f.command("version").out, "\n")
			if r := f.crashReports(); version == "" || !strings.HasPrefix(r, version+"\n") || !strings.Contains(r, "goroutine ") {
				t.Errorf("the report has no version or no stack: %.300s", r)
			}
			victim.tell('d')
			eventually(t, "bytes still flow", func() bool { return victim.shows("Worked for 3s") })
			victim.tell('q')
			if code := victim.shim.code(); code != 0 {
				t.Errorf("code %d: %s", code, tail(victim.output()))
			}
			if out := victim.output(); strings.Contains(out, "goroutine ") || strings.Contains(out, "panic:") {
				t.Errorf("on the screen: %s", tail(out))
			}
			if c.name != "stall of the loop" {
				eventually(t, "the user is told", func() bool { return victim.shows("please report") })
			}
			hitter.tell('q')
			<-hitter.shim.done
			victim.close()
			hitter.close()
		})
	}
}

// TestBrokenEnds: whose shim only passes bytes after a bug of its own is still
// ended by a terminal that closes and by a SIGTERM, and an agent that stops itself
// does not leave its user with a dead screen.
func TestBrokenEnds(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"panicking@turn", "stall@turn"} {
		for _, c := range []struct {
			name string
			opt  stationOpt
			end  func(*station)
			code int
		}{
			{"the terminal closes", stationOpt{}, func(s *station) { _ = s.master.Close() }, 128 + 1},
			{"SIGHUP", stationOpt{}, func(s *station) { s.shim.kill(unix.SIGHUP) }, 128 + 1},
			{"SIGTERM", stationOpt{}, func(s *station) { s.shim.kill(unix.SIGTERM) }, 128 + 15},
			{"SIGTERM without a terminal", stationOpt{headless: true}, func(s *station) { s.shim.kill(unix.SIGTERM) }, 128 + 15},
			{"the agent stops", stationOpt{}, func(s *station) {
				_ = unix.Kill(s.pid(), unix.SIGSTOP)
				s.tell('q')
			}, 0},
		} {
			t.Run(fault+" "+c.name, func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, faultyQshim, slowPolicy)
				f.open()
				c.opt.env = []string{"QSHIM_FAULT=" + fault, "QSHIM_FAULT_AFTER=told the ledger"}
				s := f.start(c.opt).ready()
				eventually(t, "a report", func() bool {
					s.shim.kill(unix.SIGWINCH) // something that the broken part takes up
					return f.crashReports() != ""
				})
				c.end(s)
				if code := s.shim.code(); code != c.code {
					t.Errorf("code %d, want %d: %s", code, c.code, tail(s.output()))
				}
				if tool := pidIn(s.pidFile() + ".tool"); tool > 0 {
					_ = unix.Kill(tool, unix.SIGKILL) // outlives its agent by itself
				}
				s.end()
			})
		}
	}
}
