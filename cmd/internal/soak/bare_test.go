//go:build linux

package soak

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bareEnv makes this program a bare watcher of the directory that it names.
const bareEnv = "SOAK_BARE"

// bareWatcher is the least that can do what a shim does when a limit is told: it
// sleeps until something is put into a directory, and then stops its child. No
// ledger is read, nothing recorded or painted. It ends with its stdin.
func bareWatcher(dir string) int {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return 2
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO); err != nil {
		return 3
	}
	child := exec.Command("/bin/sleep", "600")
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := child.Start(); err != nil {
		return 4
	}
	fmt.Println(child.Process.Pid)
	go func() {
		var buf [4096]byte
		if n, _ := unix.Read(fd, buf[:]); n > 0 {
			_ = unix.Kill(-child.Process.Pid, unix.SIGSTOP) // not waited for: the number is its own
		}
	}()
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is closed
	_ = child.Process.Kill()
	_ = child.Wait() // killed
	return 0
}

// bareStops is how long n bare watchers take to stop their children, each in a
// process of its own: no shim can be faster on this machine, at this moment.
func bareStops(t testing.TB, n int) (times []time.Duration) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	must(t, err)
	in, hold, err := os.Pipe() // closed by us: they end
	must(t, err)
	defer in.Close()
	out, told, err := os.Pipe()
	must(t, err)
	defer out.Close()
	all := make([]*child, 0, n)
	defer func() {
		_ = hold.Close()
		for _, c := range all {
			if code := c.code(); code != 0 {
				t.Errorf("a bare watcher ended with %d", code)
			}
		}
	}()
	unix.CloseOnExec(int(hold.Fd()))
	for range n {
		c, err := spawn(self, []string{self}, &syscall.ProcAttr{Dir: "/", Env: []string{bareEnv + "=" + dir}, Files: []uintptr{in.Fd(), told.Fd(), 2}})
		must(t, err)
		all = append(all, c)
	}
	_ = told.Close() // theirs are open
	var pids []int
	for sc := bufio.NewScanner(out); len(pids) < n && sc.Scan(); {
		pid, _ := strconv.Atoi(strings.TrimSpace(sc.Text()))
		pids = append(pids, pid)
	}
	watch := newStopwatch(t, pids)
	defer watch.close()
	pause(300 * time.Millisecond) // the last ones have begun to read
	write(t, filepath.Join(dir, ".new"), "x", 0o600)
	began := time.Now()
	must(t, os.Rename(filepath.Join(dir, ".new"), filepath.Join(dir, "limit")))
	return watch.all(began, patience)
}

// spread says how long the middle one took, the last but one in a hundred, and
// the last, of times that are sorted.
func spread(times []time.Duration) string {
	n := len(times)
	if n == 0 {
		return "none"
	}
	r := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	return fmt.Sprintf("first %v, p50 %v, p99 %v, last %v", r(times[0]), r(times[n/2]), r(times[n*99/100]), r(times[n-1]))
}
