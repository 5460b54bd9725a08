package realagents

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Process is a line of /proc/PID/stat.
type Process struct {
	PID, Parent, Group, Session int
	Name                        string
	State                       string // R, S, D, T (stopped), Z
	Start                       uint64 // kernel ticks since boot: with PID the process's identity
}

// Stat reads one process; false: it is gone.
func Stat(pid int) (Process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, false
	}
	// The name stands in parentheses and may hold any byte, parentheses too.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 {
		return Process{}, false
	}
	number := func(i int) int { n, _ := strconv.Atoi(string(f[i])); return n } // the kernel writes digits
	start, _ := strconv.ParseUint(string(f[19]), 10, 64)
	return Process{
		PID: pid, Parent: number(1), Group: number(2), Session: number(3),
		Name: string(b[open+1 : end]), State: string(f[0]), Start: start,
	}, true
}

// Tree lists a process and everything below it, parents first. A process that
// lost its parent is not found.
func Tree(pid int) []Process {
	root, ok := Stat(pid)
	if !ok {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []Process{root}
	}
	children := map[int][]Process{}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := Stat(n); ok {
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	out := []Process{root}
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i].PID]...)
	}
	return out
}

// AgentProcesses are the processes of an agent below pid: the ones that a
// pause must stop. They are known by the path of their executable or script,
// since each CLI names its process as it likes.
func AgentProcesses(pid int, install string) []Process {
	return slices.DeleteFunc(Tree(pid), func(p Process) bool {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID)) // gone: not the agent
		if bytes.HasPrefix([]byte(exe), []byte(install)) {
			return false
		}
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		// node SCRIPT: the script is an argument of an interpreter. qshim's own
		// command line names the agent too, by name and not by path.
		return !bytes.Contains(args, []byte(install+"/"))
	})
}
