package proc

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// GiveWay asks for slices twice as long for the threads of this process, which
// by the scheduler's rule means that others of their weight that wake in the same
// moment run first (Linux 6.12; before that nothing changes). What they are given in
// all stays the same. A process must run to be stopped: of 100 that are, on two
// processors, by 100 that woke together, the first one's turn comes otherwise when
// most of the latter have had theirs (10 ms, measured). Children and later threads
// are not affected.
func GiveWay() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range tasks {
		tid, _ := strconv.Atoi(t.Name()) // the kernel's
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil || attr.Policy != unix.SCHED_NORMAL || attr.Nice < 0 || attr.Runtime == 0 || attr.Flags&unix.SCHED_FLAG_RESET_ON_FORK != 0 {
			continue // ended; somebody's choice; an older kernel; done
		}
		attr.Runtime *= 2
		attr.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
		_ = unix.SchedSetAttr(tid, attr, 0) // forbidden: as it was
	}
}
