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

// Marked lists the processes whose environment held entry ("NAME=value") when
// they were executed, zombies aside, whoever is their parent by now.
func Marked(entry string) []Process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	want := []byte(entry)
	var out []Process
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", n))
		if err != nil {
			continue // gone, or not ours
		}
		if !slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return bytes.Equal(v, want) }) {
			continue
		}
		if p, ok := Stat(n); ok && p.State != "Z" {
			out = append(out, p)
		}
	}
	return out
}

// Agent keeps of a session's processes those of the agent itself, the ones that
// a pause must stop. They are known by the path of their executable or script,
// since each CLI names its process as it likes.
func (s *Session) Agent(install string) []Process {
	return slices.DeleteFunc(s.Processes(), func(p Process) bool {
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
