package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// adopt makes whatever a test leaves behind a child of ours.
func adopt() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "subreaper:", err)
		os.Exit(1)
	}
}

// orphans are the processes below us that still run.
func orphans() (out []string) {
	files, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is well formed
	for _, f := range files {
		b, _ := os.ReadFile(f) // a thread that has ended
		for _, w := range strings.Fields(string(b)) {
			pid, _ := strconv.Atoi(w)
			var ws unix.WaitStatus
			if got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil); err == nil && got == 0 {
				line, _ := os.ReadFile("/proc/" + w + "/cmdline")
				out = append(out, w+" "+strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
	}
	return out
}

// marked lists the processes whose environment holds kv.
func marked(kv string) (out []process) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well formed
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || !strings.Contains("\x00"+string(b), "\x00"+kv+"\x00") {
			continue
		}
		dir := filepath.Dir(f)
		if state(dir) == 'Z' {
			continue
		}
		line, _ := os.ReadFile(dir + "/cmdline")   // gone: then it is not left behind
		pid, _ := strconv.Atoi(filepath.Base(dir)) // the pattern lets digits through
		out = append(out, process{pid, strings.ReplaceAll(string(line), "\x00", " ")})
	}
	return out
}

// state is the letter that ps shows for a directory of /proc; 0: no such process.
func state(dir string) byte {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), " ")
	return rest[0]
}
