//go:build linux

package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A shell ends a loop when a program in it died of Ctrl-C, and goes on when it
// exited with whatever code. A script between the shell and qshim is in the
// terminal's foreground group and gets the signal itself.
func TestCtrlCEndsALoop(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		loop := "for i in 1 2 3; do " + cmd("lines") + "; done"
		file := filepath.Join(t.TempDir(), "loop")
		if err := os.WriteFile(file, []byte("#!/bin/bash\n"+loop+"\necho go''es-on\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{loop, file, "/bin/dash " + file} {
			d.send(line + "\n")
			d.expect("READY")
			waitFront(t, d)
			d.send("\x03")
			d.wait("the prompt, or more", func() bool {
				return strings.Contains(string(d.out), prompt) || strings.Contains(string(d.out), "READY")
			})
			if got := d.output(); strings.Contains(got, "READY") || strings.Contains(got, "goes-on") {
				t.Fatalf("%s: after Ctrl-C came %q", line, got)
			}
			d.expect(prompt)
		}
	})
}

// What a shell says of a program that a signal has ended.
func TestShellNamesTheSignal(t *testing.T) {
	for sig, want := range map[string]string{"15": "erminated", "9": "illed"} {
		t.Run(want, func(t *testing.T) {
			inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
				d.send(cmd("kill", sig) + "\n")
				d.expect(want)
				d.expect(prompt)
			})
		})
	}
}

// kill of a stopped job continues it, to be ended: in the background it reads its
// terminal at once, and must not stop for that again before it has the signal.
func TestKillStoppedJob(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		at := strings.Index(cmd("x"), agentArg) - len(self(t)) - 1 // in front of the agent's own words
		d.send(cmd("x")[:at] + "/bin/sh -c 'echo REA\"\"DY; exec cat'\n")
		d.expect("READY")
		pairIfAny(t, d)
		d.send("\x1a")
		d.expect(prompt)
		waitJob(t, d, 'T')
		job := kids(d.pid)[0]
		for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} { // as bash's kill does
			if err := unix.Kill(-job, sig); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the job to end", func() bool { return state(job) == 'Z' || state(job) == 0 })
		d.send("jobs; echo mark-$((40+2))\n") // the shell has heard of it
		d.expect("mark-42")
		d.expect(prompt)
	})
}
