package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// StartTime is the process's start in microseconds since the epoch. With the
// process id it names a process for as long as the machine is up.
func StartTime(pid int) (uint64, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || k.Proc.P_pid != int32(pid) {
		return 0, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	t := k.Proc.P_starttime
	return uint64(t.Sec)*1e6 + uint64(t.Usec), nil
}

// PendingStop is never true: darwin does not show pending signals.
func PendingStop(int) bool { return false }

// Tree lists pid and those of its descendants that are in process group pgrp,
// parents first.
func Tree(pid, pgrp int) []Target {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgrp)
	if err != nil {
		return nil
	}
	kids := map[int][]Target{}
	var list []Target
	for _, k := range all {
		t := Target{PID: int(k.Proc.P_pid), Start: uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec)}
		if t.PID == pid {
			list = append(list, t)
		} else {
			kids[int(k.Eproc.Ppid)] = append(kids[int(k.Eproc.Ppid)], t)
		}
	}
	for i := 0; i < len(list); i++ {
		list = append(list, kids[list[i].PID]...)
	}
	return list
}

func parentOf(pid int) (int, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	return int(k.Eproc.Ppid), nil
}
