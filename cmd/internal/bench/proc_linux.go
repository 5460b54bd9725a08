package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes what the commands leave behind children of ours, so that it is
// counted and ended.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// killChildren kills our own children only: their ids are theirs until we wait
// for them. Theirs become ours, and are killed the next time.
func killChildren() {
	for pid, parent := range parents() {
		if parent == os.Getpid() {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	}
}

// reapAll waits until no child is left; after wait it kills.
func reapAll(wait time.Duration) {
	deadline := time.Now().Add(wait)
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR || pid > 0:
			continue
		case err != nil: // ECHILD
			return
		}
		if time.Now().After(deadline) {
			killChildren()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// parents is the parent of each process.
func parents() map[int]int {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	out := make(map[int]int, len(names))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if pid, parent, ok := parseStat(b); ok {
			out[pid] = parent
		}
	}
	return out
}

// usage sums up the processes of a wrapper: all descendants of ours but the
// workload, which is this same program.
func (h *harness) usage() (u usage, ok bool) {
	all := parents()
	for pid := range all {
		if !descends(all, pid, os.Getpid()) || h.isWorkload(pid) {
			continue
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		p := parseStatus(b)
		u.kib += p.kib
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, name := range tasks {
			if b, err := os.ReadFile(name); err == nil {
				u.switches += parseStatus(b).switches
			}
		}
	}
	return u, true
}

func (h *harness) isWorkload(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	exe, err := os.Readlink(dir + "/exe")
	if err != nil || exe != h.self {
		return false
	}
	line, err := os.ReadFile(dir + "/cmdline")
	return err == nil && playsWorkload(line)
}
