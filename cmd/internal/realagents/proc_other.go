//go:build !linux

package realagents

// Process is a running process. Only Linux has what is needed to read one.
type Process struct {
	PID, Parent, Group, Session int
	Name                        string
	State                       string
	Start                       uint64
}

// Stat knows nothing here.
func Stat(int) (Process, bool) { return Process{}, false }

// Tree knows nothing here.
func Tree(int) []Process { return nil }

// AgentProcesses knows nothing here.
func AgentProcesses(int, string) []Process { return nil }
