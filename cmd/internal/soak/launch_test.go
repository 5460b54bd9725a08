//go:build linux

package soak

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// launchAgent says that it runs, and whether its terminal is as it should be.
const launchAgent = "#!/bin/sh\n[ \"$1\" = --help ] && exit 0\n[ -t 0 ] && stty -a | grep -q -e -icanon -e -echo\\  && echo RAW\necho the agent ran\n"

// TestLaunchBugs: a bug of ours in a launch, or a disk that hangs, at each step
// before the agent's start. The agent runs, its user is told once, the report is
// in a file.
func TestLaunchBugs(t *testing.T) {
	t.Parallel()
	seen := launchSteps(t)
	steps := []string{"flock", "place salt", "take lock", "write tmp.0", "launch admitted"}
	if os.Getenv("QSHIM_SOAK_STEPS") == "all" {
		steps = seen
	}
	for _, step := range steps {
		if !slices.Contains(seen, step) {
			t.Errorf("no launch comes to %q: %q", step, seen)
		}
		for _, kind := range []string{"panic", "stall"} {
			if kind == "stall" && step == "launch admitted" {
				continue // nothing is done there that could hang
			}
			t.Run(kind+" at "+strings.ReplaceAll(step, "/", "_"), func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, faultyQshim, slowPolicy)
				write(t, filepath.Join(f.home, "bin", "claude"), launchAgent, 0o755)
				began := time.Now()
				r := run(t, append(f.env(f.state), "QSHIM_SESSION=gone", "QSHIM_FAULT="+kind+"@"+step), nil, faultyQshim, "claude")
				t.Logf("after %v: %s", time.Since(began).Round(10*time.Millisecond), strings.TrimSpace(r.err))
				if r.code != 0 || r.out != "the agent ran\n" {
					t.Errorf("code %d, %q", r.code, r.out)
				}
				if strings.Count(r.err, "qshim: ") != 1 || !strings.Contains(r.err, "/crash/") || strings.Contains(r.err, "goroutine ") {
					t.Errorf("its user is told %q", r.err)
				}
				version, _, _ := strings.Cut(f.command("version").out, "\n")
				if c := f.crashReports(); !strings.HasPrefix(c, version+"\n") || !strings.Contains(c, "goroutine ") {
					t.Errorf("the report has no version or no stack: %.300s", c)
				}
			})
		}
	}
}

// launchSteps are those of a launch before its agent starts.
func launchSteps(t *testing.T) (steps []string) {
	f := newFleet(t, faultyQshim, slowPolicy)
	write(t, filepath.Join(f.home, "bin", "claude"), launchAgent, 0o755)
	trace := filepath.Join(f.home, "trace")
	run(t, append(f.env(f.state), "QSHIM_SESSION=gone", "QSHIM_FAULT_TRACE="+trace), nil, faultyQshim, "claude")
	for line := range strings.Lines(read(trace)) {
		_, step, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if step == "introduce" { // of the session
			break
		}
		named := strings.HasPrefix(step, "place sessions/") || strings.HasPrefix(step, "place probe-") // after this very launch
		if !named && !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return steps
}

// TestWaitingLaunchStalls: a launch that waits with the user's keyboard, whose
// disk then hangs, gives the terminal back as it was.
func TestWaitingLaunchStalls(t *testing.T) {
	t.Parallel()
	f := newFleet(t, faultyQshim, slowPolicy)
	write(t, filepath.Join(f.home, "bin", "claude"), launchAgent, 0o755)
	f.command("hold", soakLimiter, "--for", "1h")
	s := f.start(stationOpt{words: []string{"claude", "do it"}, env: []string{"QSHIM_FAULT=stall@take lock", "QSHIM_FAULT_AFTER=launch claim"}})
	eventually(t, "the wait", func() bool { return s.shows("waits to launch") })
	f.command("release", "--all")
	eventually(t, "the agent", func() bool { return s.shows("the agent ran") })
	if c := s.shim.code(); c != 0 || s.shows("RAW") {
		t.Errorf("code %d: %s", c, tail(s.output()))
	}
	if lines := said(s.output()); !strings.Contains(last(lines), "does not answer") {
		t.Errorf("said %q", lines)
	}
	s.close()
}
