package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"qshim/lockfile"
)

// lookPath is what `which` does with another's PATH.
func lookPath(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// linked is a desk on which claude is linked, and its PATH finds the link.
func linked(t *testing.T, agent string) (d *desk, path string) {
	t.Helper()
	d = newDesk(t, map[string]string{"claude": agent})
	dir := filepath.Join(d.dir, ".local/share/qshim/bin")
	for i, kv := range d.env {
		if rest, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = dir + ":" + rest
			d.env[i] = "PATH=" + path
		}
	}
	cmd := exec.Command(filepath.Join(d.dir, "links/qshim"), "link", "claude")
	cmd.Env = d.env
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PATH finds the link first") {
		t.Fatalf("%v: %s", err, out)
	}
	return d, path
}

// A program that asks which claude there is and starts that on a terminal of
// its own, without a shell, gets a governed session that bears the agent's name.
func TestLinkSpawned(t *testing.T) {
	d, path := linked(t, "echo running \"$@\"; read x; echo done")
	file := lookPath(path, "claude")
	if filepath.Dir(file) != filepath.Join(d.dir, ".local/share/qshim/bin") {
		t.Fatalf("which claude: %s", file)
	}
	d.run(file, "--resume", "abc")
	d.shows("running --resume abc")
	if runtime.GOOS == "linux" {
		proc := fmt.Sprintf("/proc/%d/", d.cmd.Process.Pid)
		comm, _ := os.ReadFile(proc + "comm")
		line, _ := os.ReadFile(proc + "cmdline")
		if string(comm) != "claude\n" || string(line) != file+"\x00--resume\x00abc\x00" {
			t.Errorf("ps shows %q, %q", comm, line)
		}
	}
	store, err := lockfile.Open(d.state(), lockfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := store.Read()
	_ = store.Close() // only read
	if err != nil || len(l.Sessions) != 1 {
		t.Errorf("%d sessions, %v", len(l.Sessions), err)
	}
	d.send("\r")
	d.shows("done")
	if c := d.code(); c != 0 {
		t.Errorf("exit code %d", c)
	}
}

// tmux shows the agent's name where it would show qshim's.
func TestLinkInTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("no tmux")
	}
	d, _ := linked(t, "echo running; read x")
	sock := filepath.Join(d.dir, "tmux.sock")
	run := func(args ...string) string {
		cmd := exec.Command(tmux, append([]string{"-S", sock, "-f", "/dev/null"}, args...)...)
		cmd.Env = d.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("new-session", "-d", "-x", "80", "-y", "24", "claude", "hello")
	defer func() { // the agent ends, its session with it, and so the server
		run("send-keys", "Enter")
		if err := waitFor("tmux to end", func() bool { return exec.Command(tmux, "-S", sock, "has-session").Run() != nil }); err != nil {
			t.Error(err)
			run("kill-server")
		}
	}()
	if err := waitFor("the agent", func() bool { return strings.Contains(run("capture-pane", "-p"), "running") }); err != nil {
		t.Fatal(err)
	}
	if got := run("display", "-p", "#{pane_current_command}"); got != "claude" {
		t.Errorf("tmux shows %q", got)
	}
}
