package main

import (
	"bytes"
	"strconv"
	"strings"
)

// usage is what processes have used: resident memory, and how often the kernel
// has taken the processor from their threads, for whatever reason.
type usage struct{ kib, switches int }

// parseStat reads /proc/PID/stat: id and parent. The name between them may hold
// anything, parentheses included.
func parseStat(b []byte) (pid, parent int, ok bool) {
	before, _, found := bytes.Cut(b, []byte(" ("))
	end := bytes.LastIndexByte(b, ')')
	if !found || end < len(before) {
		return 0, 0, false
	}
	after := strings.Fields(string(b[end+1:])) // state, parent, …
	if len(after) < 2 {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(string(before))
	parent, err2 := strconv.Atoi(after[1])
	return pid, parent, err1 == nil && err2 == nil && pid > 0 && parent >= 0
}

// parseStatus reads /proc/PID/status; what it does not have is 0.
func parseStatus(b []byte) (u usage) {
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
		if err != nil || n < 0 {
			continue
		}
		switch key {
		case "VmRSS":
			u.kib = n
		case "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches":
			u.switches += n
		}
	}
	return u
}

// playsWorkload reads /proc/PID/cmdline of this program: whether it is a
// workload, or else the bare loop.
func playsWorkload(line []byte) bool {
	words := strings.Split(string(line), "\x00")
	if len(words) < 2 {
		return false
	}
	switch words[1] {
	case echoWord, linesWord, framesWord, hogWord:
		return true
	}
	return false
}

// descends reports whether pid is below top; a chain that does not end is not.
func descends(parents map[int]int, pid, top int) bool {
	for range len(parents) {
		parent, known := parents[pid]
		switch {
		case !known:
			return false
		case parent == top:
			return true
		}
		pid = parent
	}
	return false
}
