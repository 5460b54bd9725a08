package agentlog

import "golang.org/x/sys/unix"

// Parent asks the kernel for one process. Its start time is left out: Claude
// writes it in a form of its own there.
func (system) Parent(pid int) (parent int, start string, ok bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return 0, "", false
	}
	return int(info.Eproc.Ppid), "", true
}

// Family looks for parents among all processes.
func (system) Family(pid int) []int {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return []int{pid}
	}
	children := map[int][]int{}
	for _, p := range all {
		parent := int(p.Eproc.Ppid)
		children[parent] = append(children[parent], int(p.Proc.P_pid))
	}
	family := []int{pid}
	for i := 0; i < len(family) && len(family) < 1024; i++ {
		family = append(family, children[family[i]]...)
	}
	return family
}

// OpenFiles is not possible without libproc.
func (system) OpenFiles(int) ([]string, error) { return nil, ErrNoOpenFiles }

// Running is not possible either.
func (system) Running(string, string) ([]int, error) { return nil, ErrNoOpenFiles }
