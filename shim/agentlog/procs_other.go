//go:build !linux && !darwin

package agentlog

// Parent knows nothing here: only the agent's own pid can be matched.
func (system) Parent(int) (int, string, bool) { return 0, "", false }

// Family is the process alone.
func (system) Family(pid int) []int { return []int{pid} }

// OpenFiles is not known here.
func (system) OpenFiles(int) ([]string, error) { return nil, ErrNoOpenFiles }

// Running is not known either.
func (system) Running(string, string) ([]int, error) { return nil, ErrNoOpenFiles }
