//go:build linux

package soak

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is another user's account.
var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("two users can only be played by root")
	}
}

// TestTwoUsers: a second person on the machine cannot read the state, write to
// it, be stopped through it, or be made to use it.
func TestTwoUsers(t *testing.T) {
	needRoot(t)
	f := seeded(t, plainQshim)
	for dir := f.home; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755)) // what keeps the other one out is qshim's directory, not ours
	}
	must(t, os.Chmod(filepath.Join(f.home, "config.toml"), 0o644))
	for _, name := range stateFiles {
		if r := run(t, f.env(f.state), nobody, "/bin/cat", filepath.Join(f.state, name)); r.code == 0 || r.out != "" {
			t.Errorf("another user reads %s: %q", name, r.out)
		}
	}
	r := run(t, f.env(f.state), nobody, plainQshim, "sh", "-c", "echo the agent ran")
	if r.code != 0 || r.out != "the agent ran\n" || strings.Count(r.err, "qshim: ") != 1 {
		t.Errorf("another user on our state directory: code %d, %q, %q", r.code, r.out, r.err)
	}
	t.Logf("another user is told: %s", strings.TrimSpace(r.err))
	// A directory that the other one has made, for us to fall into.
	trap := filepath.Join(f.home, "trap")
	must(t, os.Mkdir(trap, 0o777), os.Chmod(trap, 0o777), os.Chown(trap, 65534, 65534))
	r = run(t, f.env(trap), nil, plainQshim, "sh", "-c", "echo the agent ran")
	if r.code != 0 || r.out != "the agent ran\n" || !strings.Contains(r.err, "not safe") {
		t.Errorf("in another user's directory: code %d, %q, %q", r.code, r.out, r.err)
	}
	if names, _ := os.ReadDir(trap); len(names) > 0 {
		t.Errorf("something was written there: %v", names)
	}
	// A record of ours that names the other one's process, as reused numbers do.
	victim, err := spawn("/bin/sleep", []string{"sleep", "600"}, &syscall.ProcAttr{Env: f.env(f.state), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Credential: nobody, Setsid: true}})
	must(t, err)
	defer func() { victim.kill(unix.SIGKILL); <-victim.done }()
	if !victim.kill(unix.SIGSTOP) {
		t.Fatal("the victim is gone")
	}
	eventually(t, "the victim is stopped", func() bool { return stopped(victim.pid) })
	write(t, filepath.Join(f.state, "sessions", "bbbbbbbb.json"), fmt.Sprintf(`{"schema":1,"id":"bbbbbbbb","pid":1,"agent":"claude","limiters":["anthropic/soak"],"priority":"interactive","state":"suspended","since":"2026-01-01T00:00:00Z","born":"2026-01-01T00:00:00Z","stopped":[{"pid":%d,"start":1,"group":true}]}`, victim.pid), 0o600)
	f.command("continue", "--all")
	if !stopped(victim.pid) {
		t.Error("a process whose start time is another's was signalled")
	}
}

// TestAsOrdinaryUser: what root may read in spite of its mode is closed to an
// ordinary user, whom most of these tests would not play in a container.
func TestAsOrdinaryUser(t *testing.T) {
	needRoot(t)
	dir := filepath.Dir(filepath.Dir(plainQshim))
	self, err := os.Executable()
	must(t, err)
	b, err := os.ReadFile(self)
	must(t, err)
	own := filepath.Join(dir, "soak.test")
	must(t, os.WriteFile(own, b, 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o700), os.Chown(filepath.Join(dir, "tmp"), 65534, 65534))
	r := run(t, []string{"PATH=/usr/bin:/bin", builtEnv + "=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp")}, nobody,
		own, "-test.v", "-test.run", "^TestDamagedFiles$/mode_000|^TestClosedDirectories$")
	if r.code != 0 || strings.Count(r.out, "--- PASS: TestDamagedFiles/") != len(stateFiles) || !strings.Contains(r.out, "--- PASS: TestClosedDirectories/") {
		t.Errorf("code %d: %s%s", r.code, r.out, r.err)
	}
	for line := range strings.Lines(r.out) {
		if _, row, ok := strings.Cut(line, "| "); ok {
			t.Logf("| %s", strings.TrimSpace(row))
		}
	}
}

// TestClosedDirectories: directories of the state that its own user may not
// enter, write or list. doctor --repair opens them again.
func TestClosedDirectories(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may enter whatever the mode; see TestAsOrdinaryUser")
	}
	for _, room := range []string{".", "limiters", "sessions"} {
		for _, mode := range []os.FileMode{0, 0o500, 0o300} {
			t.Run(fmt.Sprintf("%s %03o", room, mode), func(t *testing.T) {
				f := seeded(t, plainQshim)
				path := filepath.Join(f.state, room)
				must(t, os.Chmod(path, mode))
				t.Cleanup(func() { _ = os.Chmod(path, 0o700) }) // so that it can be removed
				first := f.session(stationOpt{})
				doctor := f.command("doctor", "--repair")
				after := f.session(stationOpt{})
				t.Logf("| %s | mode %03o | %s | %s |", room, mode, short(first), short(bads(doctor.out)))
				quiet := room == "limiters" && mode == 0o500 // a short session changes none
				if len(first) > 1 || len(first) == 0 && !quiet {
					t.Errorf("said %q", first)
				}
				if len(after) > 0 {
					t.Errorf("after doctor --repair: %q; it said %s", after, doctor.out)
				}
			})
		}
	}
}

// TestPlantedLinks: links in the state directory's own place and in those of
// its rooms lead nobody anywhere.
func TestPlantedLinks(t *testing.T) {
	for _, name := range []string{"", "limiters", "sessions", "logs", "cache", "crash"} {
		t.Run("state "+name, func(t *testing.T) {
			f := newFleet(t, plainQshim, slowPolicy)
			elsewhere := t.TempDir()
			if name == "" {
				must(t, os.Symlink(elsewhere, f.state))
			} else {
				must(t, os.Mkdir(f.state, 0o700), os.Symlink(elsewhere, filepath.Join(f.state, name)))
			}
			lines := f.session(stationOpt{})
			doctor := f.command("doctor")
			t.Logf("| link for %q | %s | %s |", name, short(lines), short(bads(doctor.out)))
			if names, _ := os.ReadDir(elsewhere); len(names) > 0 {
				t.Errorf("something was written through the link: %v", names)
			}
			if !strings.Contains(strings.Join(bads(doctor.out), " "), "could be changed by others") && !strings.Contains(doctor.out, "bad ") {
				t.Errorf("doctor sees nothing: %s", doctor.out)
			}
		})
	}
}

// TestNothingSecret runs agents with keys in their environment, arguments,
// settings and on their screens, and looks for each of them in every byte that
// qshim wrote.
func TestNothingSecret(t *testing.T) {
	f := newFleet(t, faultyQshim, slowPolicy)
	write(t, filepath.Join(f.home, "config.toml"), strings.Replace(slowPolicy, "limiter = \"anthropic/soak\"\n", "", 1), 0o600)
	secrets := []string{"sk-ant-api03-AAAAsecretAAAA", "sk-proj-BBBBsecretBBBB", "AIzaSyCCCCsecretCCCC", "sk-ant-oat01-DDDDsecretDDDD", "hunter2-EEEE"}
	must(t, os.Mkdir(filepath.Join(f.home, ".claude"), 0o700))
	write(t, filepath.Join(f.home, ".claude", ".credentials.json"), `{"claudeAiOauth":{"accessToken":"`+secrets[3]+`","refreshToken":"`+secrets[3]+`x"}}`, 0o600)
	// An error that quotes what was refused: one key by its form, one that only its name gives away.
	own := shellQuote(apiError("This request would exceed your account's rate limit."))
	leak := shellQuote(apiError("Rate limit of key " + secrets[0] + ", " + secrets[4]))
	script := strings.ReplaceAll(claudeScript(), own[1:len(own)-1], leak[1:len(leak)-1])
	if !strings.Contains(script, secrets[4]) {
		t.Fatal("the script has another row")
	}
	write(t, filepath.Join(f.home, "bin", "claude"), script, 0o755)
	env := []string{"ANTHROPIC_API_KEY=" + secrets[0], "OPENAI_API_KEY=" + secrets[1], "GEMINI_API_KEY=" + secrets[2], "ANTHROPIC_AUTH_TOKEN=" + secrets[4]}
	for _, fault := range []string{"", "panic@watch#3"} { // a crash report too
		s := f.start(stationOpt{env: append(env, "QSHIM_FAULT="+fault), words: []string{"--now", "claude", "--settings", `{"apiKey":"` + secrets[0] + `"}`}}).ready()
		s.tell('f')
		eventually(t, "the row", func() bool { return s.shows("Request rejected") })
		if fault == "" {
			f.open()
			eventually(t, "the hold", func() bool {
				l := f.ledger()
				for _, m := range l.Limiters {
					if len(m.Holds) > 0 {
						return true
					}
				}
				return false
			})
		} else {
			eventually(t, "the report", func() bool { return f.crashReports() != "" })
		}
		s.tell('q')
		<-s.shim.done
		s.close()
	}
	scanned := 0
	must(t, filepath.WalkDir(f.state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		scanned += len(b)
		for _, s := range secrets {
			if bytes.Contains(b, []byte(s)) || bytes.Contains(b, []byte(s[8:])) || bytes.Contains(b, []byte(s[:len(s)-3])) {
				t.Errorf("%s holds %s: %s", path, s, b)
			}
		}
		return err
	}))
	if log := f.command("log").out; !strings.Contains(log, "Rate limit of key sk-…, …") {
		t.Errorf("the evidence is not there: %s", log)
	}
	if scanned < 1000 {
		t.Errorf("only %d bytes were written: the test sees nothing", scanned)
	}
}

// TestEnvironment compares what the agent finds with and without qshim: one
// marker, one depth, and whatever the profile says that it adjusts.
func TestEnvironment(t *testing.T) {
	f := newFleet(t, plainQshim, slowPolicy)
	write(t, filepath.Join(f.home, "bin", "env-agent"), "#!/bin/sh\nexec env\n", 0o755)
	env := append(f.env(f.state), "KEEP=me", "EMPTY=")
	alone := run(t, env, nil, filepath.Join(f.home, "bin", "env-agent"))
	under := run(t, env, nil, plainQshim, "env-agent")
	was := map[string]bool{}
	for line := range strings.Lines(alone.out) {
		was[line] = true
	}
	var added []string
	for line := range strings.Lines(under.out) {
		if !was[line] {
			name, _, _ := strings.Cut(line, "=")
			added = append(added, name)
		}
		delete(was, line)
	}
	for line := range was {
		t.Errorf("lost: %s", line)
	}
	for _, name := range added {
		if !strings.HasPrefix(name, "QSHIM_") {
			t.Errorf("added: %s", name)
		}
	}
	t.Logf("added: %v", added)
}

// TestNoFaultsInRelease: nothing of what injects is in the ordinary binary.
func TestNoFaultsInRelease(t *testing.T) {
	for file, want := range map[string]bool{plainQshim: false, faultyQshim: true} {
		b, err := os.ReadFile(file)
		must(t, err)
		if got := bytes.Contains(b, []byte("QSHIM_FAULT")); got != want {
			t.Errorf("%s: QSHIM_FAULT in it: %v", file, got)
		}
	}
}
