package realagents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// How the scenarios are run: see the package comment.
const (
	gate   = "QSHIM_REAL_AGENTS"
	direct = "direct"
	// everything adds the scenarios in which an agent tries for minutes.
	everything = "all"
	builtAs    = "QSHIM_TEST_BINARY" // set by the outer process for the one in the namespace
)

// skip is why the scenarios do not run; empty: they do.
var skip = "set " + gate + "=1 to run the real agents"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(gate) == "" {
		return m.Run()
	}
	if Isolated() {
		skip = ""
		if err := Loopback(); err != nil {
			skip = err.Error()
		}
		return m.Run()
	}
	if _, err := InstallDir(repo); err != nil {
		skip = err.Error()
		return m.Run()
	}
	// Built out here: inside the namespace nothing could be fetched.
	dir, err := os.MkdirTemp("", "qshim-real-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if os.Getenv(gate) != direct && os.Getenv(builtAs) == "" {
		bin := filepath.Join(dir, "qshim")
		build := exec.Command("go", "build", "-o", bin, "./cmd/qshim")
		build.Dir, build.Stderr = repo, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "building qshim:", err)
			return 1
		}
		os.Setenv(builtAs, bin)
	}
	status, err := Isolate()
	if errors.Is(err, ErrNoNamespace) {
		skip = err.Error()
		return m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// repo is the clone, seen from this package's directory.
const repo = "../../.."
