package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"qshim/policies/agents"
)

// agentName is the agent that a command line runs, by its own name or as the
// script of an interpreter; "" for any other.
func agentName(argv []string, names map[string]string) string {
	for i := 0; i < len(argv) && i < 2; i++ {
		base := agents.BaseName(argv[i])
		if _, ok := names[base]; ok {
			return base
		}
		if base != "node" && base != "bun" && base != "deno" {
			break
		}
	}
	return ""
}

// processName is agentName of a process.
func processName(pid int, names map[string]string) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return agentName(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), names)
}

// isQshim reports whether a process runs qshim, with whatever state directory.
func isQshim(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == "qshim"
}

func ownedBy(info fs.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}

// atoi reads a number that a pattern has already found to be one.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
