//go:build linux

package soak

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The builds of qshim: as it is, with faults to inject, and with the state's next
// schema.
var plainQshim, faultyQshim, nextQshim string

// builtEnv names the directory where they are built already: these tests, run
// once more by another user.
const builtEnv = "QSHIM_SOAK_BUILT"

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if watched := os.Getenv(bareEnv); watched != "" {
		return bareWatcher(watched)
	}
	dir, built := os.Getenv(builtEnv), true
	if dir == "" {
		built = false
		var err error
		if dir, err = os.MkdirTemp("", "qshim-soak-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil { // another user runs it too
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	plainQshim, faultyQshim, nextQshim = filepath.Join(dir, "plain", "qshim"), filepath.Join(dir, "faults", "qshim"), filepath.Join(dir, "next", "qshim")
	for _, args := range [][]string{{"-o", plainQshim}, {"-tags", "faults", "-o", faultyQshim}, {"-tags", "nextschema", "-o", nextQshim}} {
		if built {
			break
		}
		build := []string{"build"}
		if os.Getenv("QSHIM_SOAK_RACE") != "" {
			build, races = append(build, "-race"), filepath.Join(dir, "race")
		}
		out, err := exec.Command("go", append(append(build, args...), "qshim/cmd/qshim")...).CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
	}
	// What a killed shim leaves behind becomes ours and is found.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "subreaper:", err)
		return 1
	}
	// What nohup ignores its programs would ignore too; a caught signal is theirs
	// by default again.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	go reap()
	atOnce()
	code := m.Run()
	if left := leftovers(); len(left) > 0 && code == 0 {
		fmt.Fprintln(os.Stderr, "processes left behind:", left)
		code = 1
	}
	if found, _ := filepath.Glob(races + ".*"); races != "" && len(found) > 0 {
		for _, name := range found {
			b, _ := os.ReadFile(name) // it was there
			fmt.Fprintf(os.Stderr, "%s\n", b)
		}
		code = 1
	}
	return code
}

// races is where the builds report data races, if QSHIM_SOAK_RACE has them look.
var races string

// atOnce runs more tests at a time than there are processors, unless the caller
// says how many: most of what they do is to wait.
func atOnce() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // it exists
	}
}

// child is a process that we started, waited for by reap.
type child struct {
	pid  int
	done chan struct{}
	ws   unix.WaitStatus // when done is closed
}

var children = struct {
	sync.Mutex
	m map[int]*child
}{m: map[int]*child{}}

// reap waits for everybody: our children and the orphans that became ours.
func reap() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGCHLD)
	for {
		for {
			children.Lock()
			var ws unix.WaitStatus
			pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
			c := children.m[pid]
			delete(children.m, pid)
			children.Unlock()
			if err == unix.EINTR {
				continue
			}
			if pid <= 0 || err != nil {
				break
			}
			if c != nil {
				c.ws = ws
				close(c.done)
			}
		}
		<-ch
	}
}

// spawn starts a program that reap will wait for.
func spawn(path string, argv []string, attr *syscall.ProcAttr) (*child, error) {
	children.Lock()
	defer children.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &child{pid: pid, done: make(chan struct{})}
	children.m[pid] = c
	return c, nil
}

// kill signals a child that has not been waited for; false: it has.
func (c *child) kill(sig syscall.Signal) bool {
	children.Lock()
	defer children.Unlock()
	if children.m[c.pid] != c {
		return false
	}
	return unix.Kill(c.pid, sig) == nil
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// code is as a shell says it; -1: it did not end.
func (c *child) code() int {
	select {
	case <-c.done:
	case <-time.After(patience):
		return -1
	}
	if c.ws.Signaled() {
		return 128 + int(c.ws.Signal())
	}
	return c.ws.ExitStatus()
}

// result is what a command that has ended has printed.
type result struct {
	code     int
	out, err string
	peak     int64 // bytes of memory at most
	took     time.Duration
}

// run runs a command without a terminal to its end.
func run(t testing.TB, env []string, cred *syscall.Credential, argv ...string) result {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	began := time.Now()
	c, err := spawn(argv[0], argv, &syscall.ProcAttr{Env: env, Files: []uintptr{null.Fd(), files[0].Fd(), files[1].Fd()},
		Sys: &syscall.SysProcAttr{Credential: cred, Setsid: true}})
	if err != nil {
		t.Fatal(err)
	}
	r := result{}
	select {
	case <-c.done:
	case <-time.After(patience):
		c.kill(unix.SIGKILL)
		t.Errorf("%q does not end", argv)
	}
	r.code, r.took = c.code(), time.Since(began)
	for i, to := range []*string{&r.out, &r.err} {
		b, err := os.ReadFile(files[i].Name())
		if err != nil {
			t.Fatal(err)
		}
		*to = string(b)
	}
	return r
}

// patience is how long something that must happen may take on a loaded machine.
const patience = 40 * time.Second

// eventually waits for something that tells nobody.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventuallyIn(t, patience, what, ok)
}

// eventuallyIn is eventually where there is so much to do that it takes longer.
func eventuallyIn(t testing.TB, most time.Duration, what string, ok func() bool) {
	t.Helper()
	eventuallyEach(t, 5*time.Millisecond, most, what, ok)
}

// eventuallyEach looks once each tick: what takes milliseconds to look at must
// not be looked at all the time.
func eventuallyEach(t testing.TB, each, most time.Duration, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(most)
	for tick := time.NewTicker(each); ; <-tick.C {
		if ok() {
			tick.Stop()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// procStat is what /proc tells of a process; ok false: it is gone.
func procStat(pid int) (state byte, ppid int, start uint64, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, 0, false
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 {
		return 0, 0, 0, false
	}
	ppid, _ = strconv.Atoi(f[1])
	start, _ = strconv.ParseUint(f[19], 10, 64)
	return f[0][0], ppid, start, true
}

// orphans are our children that we have not started.
func orphans() (pids []int) {
	children.Lock()
	defer children.Unlock()
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list) // the thread may have ended
		for _, f := range strings.Fields(string(b)) {
			if pid, _ := strconv.Atoi(f); children.m[pid] == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// leftovers are our descendants, by command line.
func leftovers() (left []string) {
	for range 100 { // what was killed just now is being reaped
		left = nil
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if state, ppid, _, ok := procStat(pid); ok && ppid == os.Getpid() && state != 'Z' {
				line, _ := os.ReadFile(dir + "/cmdline")
				left = append(left, fmt.Sprintf("%d %c %s", pid, state, strings.ReplaceAll(string(line), "\x00", " ")))
			}
		}
		if len(left) == 0 {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
}
