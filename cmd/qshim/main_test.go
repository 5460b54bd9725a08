package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestMain plays two parts: called by any name that is not a test binary's (a
// link "qshim" or "claude" that a test made), this file is qshim itself, so the
// tests run it with the race detector and without a build.
func TestMain(m *testing.M) {
	if !isTestRun(os.Args) {
		main()
	}
	// What nohup ignores its programs would ignore too; a caught signal is theirs
	// by default again.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	adopt()
	code := m.Run()
	if left := orphans(); len(left) > 0 && code == 0 {
		fmt.Fprintln(os.Stderr, "processes left behind:", left)
		code = 1
	}
	os.Exit(code)
}

func isTestRun(argv []string) bool {
	name := filepath.Base(argv[0])
	return strings.HasSuffix(name, ".test") || strings.HasPrefix(name, "__debug_bin") ||
		slices.ContainsFunc(argv[1:], func(a string) bool { return strings.HasPrefix(a, "-test.") })
}

// fastRace: a program with the race detector otherwise sleeps for a second
// before it ends, and qshim ends hundreds of times here.
const fastRace = "atexit_sleep_ms=0"

// linkQshim makes a directory in which the running test binary is called qshim.
func linkQshim(dir string, names ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range append(names, "qshim") {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// process is one that was left behind.
type process struct {
	pid  int
	line string
}
