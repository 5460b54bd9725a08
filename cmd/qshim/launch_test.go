package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"qshim/lockfile"
	"qshim/policies/agents"
)

// put writes a file and returns its name.
func put(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func code(err error) int {
	if e := (*launchError)(nil); errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// TestFindPast: whatever leads back to the running file is passed over.
func TestFindPast(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	real := t.TempDir()
	agent := put(t, real, "claude", "#!/bin/sh\nexit 0\n", 0o755)
	ways := map[string]func(file string) error{
		"link": func(file string) error { return os.Symlink(own, file) },
		"link of a link": func(file string) error {
			if err := os.Symlink(own, file+".1"); err != nil {
				return err
			}
			return os.Symlink(file+".1", file)
		},
		"hard link": func(file string) error {
			err := os.Link(own, file)
			if errors.Is(err, syscall.EXDEV) {
				t.Skip("the test binary is on another file system")
			}
			return err
		},
		"exec script": func(file string) error {
			return os.WriteFile(file, []byte("#!/bin/sh\n# a wrapper\nexec qshim claude \"$@\"\n"), 0o755)
		},
		"script with a path": func(file string) error {
			return os.WriteFile(file, []byte("#!/usr/bin/env bash\n\"$HOME/go/bin/qshim\" --now claude \"$@\"\n"), 0o755)
		},
	}
	for name, make := range ways {
		t.Run(name, func(t *testing.T) {
			first := t.TempDir()
			if err := make(filepath.Join(first, "claude")); err != nil {
				t.Fatal(err)
			}
			got, err := newFinder(first + ":" + real).find("claude")
			if err != nil || got != agent {
				t.Errorf("found %q, %v", got, err)
			}
			_, err = newFinder(first).find("claude")
			if code(err) != exitNotFound || !strings.Contains(err.Error(), "which is qshim") {
				t.Errorf("alone: %v", err)
			}
		})
	}
}

// TestSameFile: the running file is known by its inode alone, whatever it holds.
func TestSameFile(t *testing.T) {
	dir := t.TempDir()
	own := put(t, dir, "running", "anything", 0o755)
	other := put(t, dir, "other", "anything", 0o755)
	link, hard := filepath.Join(dir, "link"), filepath.Join(dir, "hard")
	if err := errors.Join(os.Symlink(own, link), os.Link(own, hard)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(own)
	if err != nil {
		t.Fatal(err)
	}
	if !leadsToQshim(link, info) || !leadsToQshim(hard, info) || leadsToQshim(other, info) || leadsToQshim(link, nil) {
		t.Error("the running file is not told from another by its inode")
	}
}

// TestFindNotPast: what only looks like qshim is the agent.
func TestFindNotPast(t *testing.T) {
	for name, text := range map[string]string{
		"comment":      "#!/bin/sh\n# qshim is not used here\nexit 0\n",
		"part of word": "#!/bin/sh\nexec myqshim-tool x\n",
		"no script":    "exec qshim claude\n",
		"empty":        "",
		"one byte":     "#",
	} {
		dir := t.TempDir()
		file := put(t, dir, "claude", text, 0o755)
		if got, err := newFinder(dir).find("claude"); got != file || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestFindCopy: another build of qshim under the agent's name is qshim too.
func TestFindCopy(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command to build with")
	}
	src, first, real := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, src, "go.mod", "module qshim\n\ngo 1.26\n", 0o644)
	put(t, src, "cmd/qshim/main.go", "package main\n\nfunc main() {}\n", 0o644)
	put(t, src, "cmd/other/main.go", "package main\n\nfunc main() {}\n", 0o644)
	for _, b := range []struct{ pkg, out string }{{"./cmd/qshim", first}, {"./cmd/other", real}} {
		cmd := exec.Command(goTool, "build", "-o", filepath.Join(b.out, "claude"), b.pkg)
		cmd.Dir = src
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if got, err := newFinder(first + ":" + real).find("claude"); err != nil || got != filepath.Join(real, "claude") {
		t.Errorf("found %q, %v", got, err)
	}
}

func TestFindErrors(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "plain", "x", 0o644)
	put(t, dir, "sub/claude", "x", 0o755)
	if err := os.Mkdir(filepath.Join(dir, "adir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	f := newFinder(dir)
	f.executable = func(file string) bool { // root may execute anything that has one bit
		info, err := os.Stat(file)
		return err == nil && info.Mode()&0o111 != 0
	}
	for _, c := range []struct {
		command string
		code    int
		word    string
	}{
		{"missing", exitNotFound, "missing: not found in PATH"},
		{"plain", exitNotStarted, "plain is not executable"},
		{"adir", exitNotFound, "adir: not found in PATH"}, // a shell passes directories over
		{"dangling", exitNotFound, "not found in PATH"},
		{"", exitNotFound, "empty"},
		{dir + "/missing", exitNotFound, "no such file"},
		{dir + "/plain", exitNotStarted, "is not executable"},
		{dir + "/adir", exitNotStarted, "is a directory"},
		{dir + "/plain/x", exitNotFound, "no such file"},
	} {
		_, err := f.find(c.command)
		if code(err) != c.code || !strings.Contains(err.Error(), c.word) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v (%d), want %d %q", c.command, err, code(err), c.code, c.word)
		}
	}
	// An executable further along counts more than one that is not.
	other := t.TempDir()
	want := put(t, other, "plain", "x", 0o755)
	f.path = dir + ":" + other
	if got, err := f.find("plain"); got != want || err != nil {
		t.Errorf("found %q, %v", got, err)
	}
}

// TestFindRelative: an empty and a relative PATH entry are where qshim stands.
func TestFindRelative(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "claude", "x", 0o755)
	put(t, dir, "bin/codex", "x", 0o755)
	t.Chdir(dir)
	for path, want := range map[string]string{"": "", ":/nowhere": "./claude", ".": "./claude", "./": "./claude"} {
		if got, _ := newFinder(path).find("claude"); got != want {
			t.Errorf("PATH=%q finds %q, want %q", path, got, want)
		}
	}
	if got, err := newFinder("bin").find("codex"); got != "./bin/codex" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := newFinder("/nowhere").find("./claude"); got != "./claude" || err != nil {
		t.Errorf("typed path: %q, %v", got, err)
	}
}

func TestResolve(t *testing.T) {
	dir, first := t.TempDir(), t.TempDir()
	for _, n := range []string{"claude", "env", "npx", "mytool", "node"} {
		put(t, dir, n, "#!/bin/sh\n", 0o755)
	}
	own, _ := os.Executable()
	if err := os.Symlink(own, filepath.Join(first, "claude")); err != nil {
		t.Fatal(err)
	}
	f := newFinder(first + ":" + dir)
	for _, c := range []struct {
		line, forced, profile, path, command string
		args                                 string
	}{
		{"claude -p --help --", "", "claude", dir + "/claude", "claude", "-p --help --"},
		{"mytool a", "", "generic", dir + "/mytool", "mytool", "a"},
		{"mytool a", "codex", "codex", dir + "/mytool", "mytool", "a"},
		{"claude", "generic", "generic", dir + "/claude", "claude", ""},
		{"npx -y @openai/codex@1 exec hi", "", "codex", dir + "/npx", "codex@1", "exec hi"},
		{"node /x/gemini.js -p hi", "", "gemini", dir + "/node", "gemini", "-p hi"},
		{"env A=1 claude x", "", "claude", dir + "/env", "claude", "x"},
	} {
		got, err := resolveLaunch(strings.Fields(c.line), c.forced, profiles{}, f)
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		if got.Profile.Name != c.profile || got.Path != c.path || got.Command != c.command || strings.Join(got.Args(), " ") != c.args {
			t.Errorf("%s: %s %s %s %q", c.line, got.Profile.Name, got.Path, got.Command, got.Args())
		}
	}
	// env would find the link to qshim first: it is given the agent's own file.
	got, err := resolveLaunch([]string{"env", "A=1", "claude", "x"}, "", profiles{}, f)
	if err != nil || !slices.Equal(got.Argv, []string{"env", "A=1", dir + "/claude", "x"}) {
		t.Errorf("%q, %v", got.Argv, err)
	}
	f.path = dir
	got, err = resolveLaunch([]string{"env", "A=1", "claude", "x"}, "", profiles{}, f)
	if err != nil || !slices.Equal(got.Argv, []string{"env", "A=1", "claude", "x"}) {
		t.Errorf("without a link the line is left alone: %q, %v", got.Argv, err)
	}
	if _, err := resolveLaunch([]string{"claude"}, "nobody", profiles{}, f); code(err) != 2 {
		t.Errorf("unknown profile: %v", err)
	}
}

func TestCalledAs(t *testing.T) {
	for argv0, want := range map[string]string{
		"qshim": "", "/usr/bin/qshim": "", "qshim-1.2": "", "qshim.test": "", "qshim_linux_amd64": "", "": "", "/": "",
		"claude": "claude", "/home/u/bin/codex": "codex", "-claude": "claude", "qshimmer": "qshimmer",
	} {
		words, ok := calledAs([]string{argv0, "--help", "--"})
		if ok != (want != "") || ok && !slices.Equal(words, []string{want, "--help", "--"}) {
			t.Errorf("%q: %q %v", argv0, words, ok)
		}
	}
	if _, ok := calledAs(nil); ok {
		t.Error("no argv is no agent")
	}
}

func TestNested(t *testing.T) {
	l := lockfile.Ledger{Sessions: map[string]lockfile.Session{
		"a": {ID: "a", PID: 100, Alive: true}, "dead": {ID: "dead", PID: 100}, "other": {ID: "other", PID: 555, Alive: true},
	}}
	for _, c := range []struct {
		marker, started string
		above           []int
		want            string
	}{
		{"a", "100:/x", []int{300, 200, 100, 50}, "a"},
		{"a", "100:/x", []int{300, 200}, ""}, // a tmux server started inside: not our ancestor
		{"dead", "100:/x", []int{100}, ""},   // its number may be anybody's by now
		{"other", "100:/x", []int{100}, ""},
		{"late", "100:/x", []int{300, 100}, "late"}, // not announced yet
		{"gone", "100:/x", []int{300}, ""},
		{"gone", "x", []int{100}, ""},
		{"", "100:/x", []int{100}, ""},
	} {
		if got := parentSession(c.marker, c.started, l, c.above); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	ring := func(pid int) (int, error) { return 1000 - pid, nil }
	if n := len(ancestorsOf(400, ring)); n != 64 {
		t.Errorf("a ring of parents gives %d", n)
	}
	if got := ancestorsOf(os.Getpid(), parentOf); len(got) == 0 || got[0] != os.Getppid() {
		t.Errorf("our ancestors are %v, our parent is %d", got, os.Getppid())
	}
}

func TestDepthAndEnv(t *testing.T) {
	env := func(v string) func(string) string { return func(string) string { return v } }
	for v, stops := range map[string]bool{"": false, "1": false, "7": false, "8": true, "99": true, "x": false, "-9": false} {
		if err := checkDepth(env(v), "claude"); (err != nil) != stops || err != nil && code(err) != exitNotStarted {
			t.Errorf("depth %q: %v", v, err)
		}
	}
	got := childEnv([]string{"A=1", "QSHIM_SESSION=old", "QSHIM_DEPTH=2", "G=x"}, "new", "/bin/claude", 2, map[string]string{"G": "y"})
	slices.Sort(got)
	if !slices.Equal(got, []string{"A=1", "G=y", "QSHIM_DEPTH=3", "QSHIM_SESSION=new", "QSHIM_STARTED=" + strconv.Itoa(os.Getpid()) + ":/bin/claude"}) {
		t.Errorf("%q", got)
	}
	if got := childEnv([]string{"QSHIM_SESSION=old"}, "", "/x", 0, nil); !slices.Contains(got, "QSHIM_SESSION=old") {
		t.Errorf("a call that is no session loses its parent's marker: %q", got)
	}
	for v, want := range map[string]string{"": "", "7:/x/claude": "/x/claude", "8:/x/claude": "/x/claude", "9:/x/claude": "", "x:/y": "", "8": ""} {
		if got := cameBack(env(v), 7, 8); got != want {
			t.Errorf("%q: %q", v, got)
		}
	}
	look := agentEnv([]string{"A=1", "B=2", "C=3"}, agents.Invocation{Unset: []string{"A"}, Set: []string{"B=x", "D=4"}})
	if look("A")+look("B")+look("C")+look("D") != "x34" {
		t.Errorf("%q %q %q %q", look("A"), look("B"), look("C"), look("D"))
	}
	if look := agentEnv([]string{"A=1"}, agents.Invocation{Cleared: true, Set: []string{"B=2"}}); look("A")+look("B") != "2" {
		t.Error("env -i leaves something")
	}
}

// memory is a probeCache.
type memory map[string]probed

func (m memory) ReadCache(name string, v any) error {
	p, ok := m[name]
	if !ok {
		return os.ErrNotExist
	}
	*v.(*probed) = p
	return nil
}

func (m memory) WriteCache(name string, v any) error { m[name] = v.(probed); return nil }

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	file := put(t, dir, "codex", "#!/bin/sh\necho 'Options:  --no-daemon'; echo secret >&2\n", 0o755)
	asked := 0
	p := &prober{cache: memory{}, stat: os.Stat, run: func(argv, env []string, limit time.Duration) (string, error) {
		asked++
		return runProbe(argv, env, limit)
	}}
	target := &launchTarget{Path: file, Argv: []string{"codex", "exec", "hi"}}
	for range 2 {
		if k := p.known(target); k.Help != "Options:  --no-daemon\n" {
			t.Fatalf("%q", k.Help)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	put(t, dir, "codex", "#!/bin/sh\necho another build\n", 0o755)
	if k := p.known(target); k.Help != "another build\n" || asked != 2 {
		t.Errorf("a changed binary is not asked again: %q", k.Help)
	}
	if v := p.version(target); v != "another build" || asked != 3 {
		t.Errorf("version %q, asked %d", v, asked)
	}
	target.Inv.Fetches = true
	if k := p.known(target); k.Help != "" || asked != 3 {
		t.Error("npx is asked")
	}
}

func TestProbeOfAScript(t *testing.T) {
	target := &launchTarget{Path: "/bin/node", Argv: []string{"node", "--flag", "/x/codex.js", "exec"}, Inv: agents.Invocation{At: 2}}
	file, argv := target.probeLine("--help")
	if file != "/x/codex.js" || strings.Join(argv, " ") != "/bin/node --flag /x/codex.js --help" {
		t.Errorf("%s %q", file, argv)
	}
}

// TestProbeEnds: a binary that hangs, and one that is endless, are both cut,
// and nothing of them stays.
func TestProbeEnds(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1) // the fifo ends when nobody holds it any more
	go func() {
		_, err := os.ReadFile(fifo)
		gone <- err
	}()
	file := put(t, dir, "hangs", "#!/bin/sh\nexec 3> "+fifo+"\nsleep 600 &\nwait\n", 0o755)
	p := &prober{stat: os.Stat, run: func(argv, env []string, _ time.Duration) (string, error) {
		return runProbe(argv, env, time.Second)
	}}
	if k := p.known(&launchTarget{Path: file, Argv: []string{"hangs"}}); k.Help != "" {
		t.Errorf("%q", k.Help)
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Fatal("what the binary started lives on")
	}
	file = put(t, dir, "endless", "#!/bin/sh\nyes\n", 0o755)
	if out, _ := runProbe([]string{file}, nil, 500*time.Millisecond); len(out) != maxAnswer {
		t.Errorf("kept %d bytes", len(out))
	}
	// No terminal of ours, and no input.
	file = put(t, dir, "tty", "#!/bin/sh\n(: < /dev/tty) 2>/dev/null && echo tty\ncat\necho end\n", 0o755)
	if out, err := runProbe([]string{file}, os.Environ(), 10*time.Second); out != "end\n" || err != nil {
		t.Errorf("%q %v", out, err)
	}
}

func TestAdjustedArgv(t *testing.T) {
	target := &launchTarget{Argv: []string{"npx", "-y", "codex", "exec", "--", "x"}, Inv: agents.Invocation{At: 2}}
	argv, set := target.adjusted(agents.Applied{Args: []string{"--no-daemon"}, Env: map[string]string{"L": "{log}"}}, target.Args(), newIn("/log", rand.Float64))
	if strings.Join(argv, " ") != "npx -y codex --no-daemon exec -- x" || set["L"] != "/log" {
		t.Errorf("%q %q", argv, set)
	}
	if strings.Join(target.Argv, " ") != "npx -y codex exec -- x" {
		t.Errorf("the user's line has changed: %q", target.Argv)
	}
	argv, _ = target.adjusted(agents.Applied{Args: []string{"--debug-file={log}"}}, []string{"-p"}, newIn("/log", rand.Float64))
	if strings.Join(argv, " ") != "npx -y codex --debug-file=/log -p" {
		t.Errorf("%q", argv)
	}
	for _, r := range []func() float64{rand.Float64, func() float64 { return 0 }, func() float64 { return math.Nextafter(1, 0) }} {
		argv, _ = target.adjusted(agents.Applied{Args: []string{"--session-id", "{uuid}"}}, nil, newIn("", r))
		if ok, _ := regexp.MatchString(`^[0-9a-f]{8}(-[0-9a-f]{4}){1}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, argv[4]); !ok {
			t.Errorf("%q is no UUID", argv[4])
		}
	}
	both := agents.Applied{Args: []string{"--x", "--debug-file={log}"}, Env: map[string]string{"A": "{log}", "B": "b"}}
	if env, args := withoutLog(both); !needsLog(both) || len(env) != 1 || env["B"] != "b" || strings.Join(args, " ") != "--x" || len(both.Args) != 2 {
		t.Errorf("without a log: %q %q", env, args)
	}
	done := agents.Applied{Names: []string{"x"}}
	for _, c := range []struct {
		a    agents.Applied
		code int
		ran  time.Duration
		want bool
	}{{done, 2, 300 * time.Millisecond, true}, {done, 1, 0, false}, {done, 2, 2 * time.Second, false}, {agents.Applied{}, 2, 0, false}} {
		if got := runUnadjusted(c.a, c.code, c.ran); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestAgentFiles(t *testing.T) {
	dir := t.TempDir()
	file := put(t, dir, "a.json", "{}", 0o600)
	if b, err := (agentFiles{}).ReadFile(file); string(b) != "{}" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	big := put(t, dir, "big", "", 0o600)
	if err := os.Truncate(big, maxAgentFile+1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fifo, dir, big, filepath.Join(dir, "none"), "/dev/zero"} {
		if b, err := (agentFiles{}).ReadFile(name); err == nil {
			t.Errorf("%s reads as %d bytes", name, len(b))
		}
	}
}
