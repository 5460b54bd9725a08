package agentlog

import "errors"

// Procs answers questions about processes.
type Procs interface {
	// Parent is the pid of a process's parent and what its start time is called
	// (clock ticks since boot on Linux; empty where not known). ok is false when
	// there is no such process.
	Parent(pid int) (parent int, start string, ok bool)
	// Family is a process and its descendants.
	Family(pid int) []int
	// OpenFiles are the paths that a process holds open. ErrNoOpenFiles says that
	// this system does not tell.
	OpenFiles(pid int) ([]string, error)
	// Running are the processes in a directory that run a program of this name,
	// or call themselves so.
	// ErrNoOpenFiles as there.
	Running(name, dir string) ([]int, error)
}

// ErrNoOpenFiles says that a process's open files cannot be known here.
var ErrNoOpenFiles = errors.New("open files of other processes cannot be listed on this system")

// system is this machine.
type system struct{}

// maxDepth bounds a walk up or down a process tree.
const maxDepth = 32

// depth is how many generations pid is below top: 0 for top itself, -1 when it
// is not of its family.
func depth(p Procs, pid, top int) int {
	for d := range maxDepth {
		if pid == top {
			return d
		}
		parent, _, ok := p.Parent(pid)
		if !ok || parent <= 1 {
			break
		}
		pid = parent
	}
	return -1
}
