package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideEnv marks the child that has the mounts or the user that a test wants.
const insideEnv = "QSHIM_LOCKFILE_INSIDE"

// inside runs the calling test again in a child with other rights, and returns
// true in that child. The binary is reached through /proc/self/exe, because
// another user may not look into the directory where go test puts it.
func inside(t *testing.T, attr *syscall.SysProcAttr) bool {
	t.Helper()
	if os.Getenv(insideEnv) == t.Name() {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), insideEnv+"="+t.Name(), "TMPDIR=/tmp")
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("such a child cannot be made here: %v", err)
	}
	if strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Skip(string(out))
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// ownMounts is a mount namespace, in which nothing outlives the child.
func ownMounts() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return a
}

// tmpfs mounts a small disk and returns a directory on it.
func tmpfs(t *testing.T) string {
	t.Helper()
	disk := t.TempDir()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skip("mounts cannot be made private here: ", err)
	}
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=256k,mode=700"); err != nil {
		t.Skip("no tmpfs can be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// fill leaves no byte free.
func fill(t *testing.T, disk string) (free, again func()) {
	t.Helper()
	path := filepath.Join(disk, "filler")
	again = func() {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1 << 16; n > 0; {
			if _, err := f.Write(make([]byte, n)); err != nil {
				n /= 2
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	again()
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}, again
}

// TestFullDisk: every operation on a full disk says so and changes nothing.
func TestFullDisk(t *testing.T) {
	if !inside(t, ownMounts()) {
		return
	}
	disk := tmpfs(t)
	place := filepath.Join(disk, "state")
	d := open(t, place)
	l, err := d.Lease(Session{ID: "victim"})
	if err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, d, step)
	before := mustRead(t, d)
	free, fillAgain := fill(t, disk)
	if _, err := d.Update(t.Context(), step); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Update: %v", err)
	}
	grow := func(l Ledger) (Ledger, []Event) {
		m := l.Limiters["a"]
		m.Label = strings.Repeat("x", 20000)
		l.Limiters["a"], l.Limiters["new"] = m, m
		return l, []Event{{Event: "hold", Reason: strings.Repeat("x", 20000)}}
	}
	if _, err := d.Update(t.Context(), grow); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("growing Update: %v", err)
	}
	if err := d.Append(Event{Event: "hold", Reason: strings.Repeat("x", 20000)}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Append: %v", err)
	}
	if err := l.Record(func(s *Session) { s.Cwd = strings.Repeat("x", 20000) }); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Record: %v", err)
	}
	// Whether a session still fits depends on what the failures above gave back.
	if late, err := d.Lease(Session{ID: "late"}); err == nil {
		if err := late.Close(); err != nil {
			t.Error(err)
		}
		fillAgain()
	} else if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Lease: %v", err)
	}
	if _, err := d.Salt(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Salt: %v", err)
	}
	after := mustRead(t, d)
	if len(after.Sessions) != 1 || len(after.Limiters) != len(before.Limiters) || whole(t, d, after, true) != 1 {
		t.Errorf("something changed on a full disk: %+v", after)
	}
	readOnly := false
	for _, p := range Check(place, Options{}) {
		readOnly = readOnly || p.Kind == ReadOnly
	}
	if !readOnly {
		t.Error("Check does not see that nothing can be written")
	}
	free()
	if n := whole(t, d, mustUpdate(t, d, step), true); n != 2 {
		t.Errorf("after space was made: %d updates", n)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := d.sweep(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(place, sessionRoom)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestReadOnlyDisk: what is there can be read, every change says why not.
func TestReadOnlyDisk(t *testing.T) {
	if !inside(t, ownMounts()) {
		return
	}
	disk := tmpfs(t)
	place := filepath.Join(disk, "state")
	d := open(t, place, Ignored)
	mustUpdate(t, d, step)
	write(t, filepath.Join(place, limiterRoom, "bad.json"), "{", 0o600)
	if err := unix.Mount("none", disk, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	later, err := Open(place, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = later.Close() }()
	for _, d := range []*Dir{d, later} {
		if _, err := d.Update(t.Context(), step); !errors.Is(err, syscall.EROFS) {
			t.Errorf("Update: %v", err)
		}
		if _, err := d.Lease(Session{}); !errors.Is(err, syscall.EROFS) {
			t.Errorf("Lease: %v", err)
		}
		if n := whole(t, d, mustRead(t, d), true); n != 1 {
			t.Errorf("%d updates can be read", n)
		}
	}
	if _, err := Open(filepath.Join(disk, "other"), Options{}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("Open of a new one: %v", err)
	}
}

// TestNoPermission is run as another user than root, whom nothing stops.
func TestNoPermission(t *testing.T) {
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	if !inside(t, attr) {
		return
	}
	place := filepath.Join(t.TempDir(), "state")
	var notices []NoticeKind
	d, err := Open(place, Options{Notice: func(n Notice) { notices = append(notices, n.Kind) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	l, err := d.Lease(Session{ID: "victim"})
	if err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, d, step)
	for _, name := range []string{lockName, intentName, eventsName, "limiters/a.json", "sessions/victim.json", "sessions/victim.lock"} {
		if err := os.Chmod(filepath.Join(place, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	other, err := Open(place, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if s := mustRead(t, other).Sessions["victim"]; !s.Alive {
		t.Errorf("mode 000 makes a living session look dead: %+v", s)
	}
	if n := whole(t, d, mustUpdate(t, d, step), true); n != 2 {
		t.Errorf("%d updates: what had mode 000 was lost, not mended", n)
	}
	if err := os.Chmod(filepath.Join(place, limiterRoom), 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Update(t.Context(), func(l Ledger) (Ledger, []Event) {
		l.Limiters["new"] = Limiter{}
		return step(l)
	}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a directory without write permission: %v", err)
	}
	if n := whole(t, d, mustRead(t, d), true); n != 2 {
		t.Errorf("%d updates after a failed one", n)
	}
	if err := os.Chmod(filepath.Join(place, limiterRoom), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for _, mode := range []os.FileMode{0, 0o500} {
		blocked := filepath.Join(t.TempDir(), "blocked")
		if err := errors.Join(os.Mkdir(blocked, 0o700), os.Chmod(blocked, mode)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(filepath.Join(blocked, "state"), Options{}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Open below mode %o: %v", mode, err)
		}
		if _, err := Open(blocked, Options{}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Open of mode %o: %v", mode, err)
		}
	}
}

// TestOddUmask: files are 0600 and usable whatever the umask.
func TestOddUmask(t *testing.T) {
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	if !inside(t, attr) {
		return
	}
	for _, mask := range []int{0, 0o077, 0o277, 0o777} {
		place := filepath.Join(t.TempDir(), "state")
		// Directories need our own bits to be of use at all: made by hand.
		for _, room := range []string{limiterRoom, sessionRoom, cacheRoom, logRoom, crashRoom} {
			mkdir(t, filepath.Join(place, room), 0o700)
		}
		old := unix.Umask(mask)
		_, err := scenario(place, func(int, string) error { return nil })
		unix.Umask(old)
		if err != nil {
			t.Errorf("umask %04o: %v", mask, err)
		}
		nothingLeft(t, place)
		for _, name := range []string{lockName, intentName, eventsName, saltName} {
			if info, err := os.Stat(filepath.Join(place, name)); err != nil || info.Mode() != 0o600 {
				t.Errorf("umask %04o: %s %v, %v", mask, name, info, err)
			}
		}
	}
}
