package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stat holds the fields of /proc/PID/stat that are used here (proc(5)).
type stat struct {
	state           byte
	ppid, pgrp, sid int
	start           uint64 // clock ticks after boot
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			err = ErrGone
		}
		return stat{}, err
	}
	// The name in parentheses may hold anything, a parenthesis too.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return stat{}, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(f))
	}
	var s stat
	s.state = f[0][0]
	s.ppid, _ = strconv.Atoi(f[1])
	s.pgrp, _ = strconv.Atoi(f[2])
	s.sid, _ = strconv.Atoi(f[3])
	s.start, _ = strconv.ParseUint(f[19], 10, 64)
	return s, nil
}

// StartTime is the process's start in clock ticks after boot. With the process
// id it names a process for as long as the machine is up.
func StartTime(pid int) (uint64, error) {
	s, err := readStat(pid)
	return s.start, err
}

// PendingStop reports whether a SIGTSTP waits for pid. A process that SIGSTOP
// has stopped keeps a user's Ctrl-Z pending, and SIGCONT throws it away.
func PendingStop(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	const bit = uint64(1) << (uint(unix.SIGTSTP) - 1)
	for _, key := range []string{"\nSigPnd:\t", "\nShdPnd:\t"} {
		if _, v, ok := strings.Cut(string(b), key); ok {
			v, _, _ = strings.Cut(v, "\n")
			if n, err := strconv.ParseUint(v, 16, 64); err == nil && n&bit != 0 {
				return true
			}
		}
	}
	return false
}

// Tree lists pid and those of its descendants that are in process group pgrp,
// parents first. A tool in a group of its own is left out on purpose, and what
// it started with it.
func Tree(pid, pgrp int) []Target {
	s, err := readStat(pid)
	if err != nil {
		return nil
	}
	list := []Target{{PID: pid, Start: s.start}}
	for i := 0; i < len(list); i++ {
		for _, child := range children(list[i].PID) {
			if c, err := readStat(child); err == nil && c.pgrp == pgrp && c.state != 'Z' {
				list = append(list, Target{PID: child, Start: c.start})
			}
		}
	}
	return list
}

// children needs CONFIG_PROC_CHILDREN, which every distribution kernel has;
// without it only the agent itself is found.
func children(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []int
	for _, t := range tasks {
		b, err := os.ReadFile(dir + "/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// parentOf is used by Orphaned.
func parentOf(pid int) (int, error) {
	s, err := readStat(pid)
	return s.ppid, err
}
