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

// Marked knows nothing here.
func Marked(string) []Process { return nil }

// Agent knows nothing here.
func (s *Session) Agent(string) []Process { return nil }
