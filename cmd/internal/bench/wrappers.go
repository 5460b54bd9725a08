package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// wrapper is one way to run a command on a terminal.
type wrapper struct {
	name string
	line func(words []string) []string
}

// bareName is the wrapper that the others are compared with.
const bareName = "bare loop"

// wrappers are those that are installed.
func wrappers(self, qshim, dir string) ([]wrapper, error) {
	before := func(prefix ...string) func([]string) []string {
		return func(words []string) []string { return slices.Concat(prefix, words) }
	}
	all := []wrapper{{"direct", before()}, {bareName, before(self, bareWord)}, {"qshim", before(qshim, "--")}}
	if p, err := exec.LookPath("script"); err == nil {
		all = append(all, wrapper{"script", func(w []string) []string {
			return []string{p, "-qefc", "exec " + quote(w), os.DevNull}
		}})
	}
	if p, err := exec.LookPath("tmux"); err == nil {
		conf := filepath.Join(dir, "tmux.conf")
		err := os.WriteFile(conf, []byte("set -g status off\nset -sg escape-time 0\nset -g exit-empty on\nset -g destroy-unattached on\n"), 0o600)
		if err != nil {
			return nil, err
		}
		all = append(all, wrapper{"tmux", before(p, "-S", filepath.Join(dir, "tmux"), "-f", conf, "new-session")})
	}
	return all, nil
}

// quote is a command for a shell.
func quote(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}
