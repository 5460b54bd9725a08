package proc

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestGiveWay: slices are twice as long, once, and a child's are as ever.
func TestGiveWay(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil || before.Runtime == 0 || before.Policy != unix.SCHED_NORMAL || before.Nice < 0 {
		t.Skipf("this kernel says nothing of slices: %+v, %v", before, err)
	}
	for range 2 {
		GiveWay()
		after, err := unix.SchedGetAttr(0, 0)
		if err != nil || after.Runtime != 2*before.Runtime || after.Nice != before.Nice {
			t.Errorf("%+v, %v; was %+v", after, err, before)
		}
	}
	const field = "se.slice"
	out, err := exec.Command("/bin/grep", field, "/proc/self/sched").Output()
	if err != nil {
		t.Skip("no /proc/self/sched")
	}
	f := strings.Fields(string(out))
	if _, rest, ok := strings.Cut(strings.Join(f, ""), ":"); !ok || rest != strconv.FormatUint(before.Runtime, 10) {
		t.Errorf("a child's is %q, want %d", out, before.Runtime)
	}
}
