//go:build linux

package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
	"qshim/shim/term"
)

// fleet is a private home with one state directory, and the stations in it.
type fleet struct {
	t        testing.TB
	home     string
	state    string
	store    *lockfile.Dir
	qshim    string // the build that its stations run
	limiter  string
	notices  []string // of our own store: there must be none
	patience time.Duration
	mu       sync.Mutex
	stations int
}

const soakLimiter = "anthropic/soak"

// fastPolicy makes a life of minutes pass in seconds.
const fastPolicy = `title = false
osc9 = false
limiter = "anthropic/soak"
[rate]
base = "300ms"
cap = "600ms"
probes = 1000000
give_up = "100h"
[probe]
answer = "200ms"
time = "400ms"
start = "1s"
settle = "100ms"
step = "50ms"
old_news = "50ms"
[release]
gap = "50ms"
calm = "10ms"
[launch]
gap = "20ms"
answer = "200ms"
[concurrency]
grow = "500ms"
grow_hidden = "500ms"
`

// slowPolicy lets a suspension stand until it is looked at.
const slowPolicy = `title = false
osc9 = false
limiter = "anthropic/soak"
[rate]
base = "1m"
`

func newFleet(t testing.TB, qshim, policy string) *fleet {
	t.Helper()
	f := &fleet{t: t, home: t.TempDir(), patience: patience, qshim: qshim, limiter: soakLimiter}
	f.state = filepath.Join(f.home, "state")
	write(t, filepath.Join(f.home, "config.toml"), policy, 0o600)
	bin := filepath.Join(f.home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(bin, "claude"), claudeScript(), 0o755)
	return f
}

// open opens the state directory as a sibling without a session.
func (f *fleet) open() *lockfile.Dir {
	f.t.Helper()
	d, err := lockfile.Open(f.state, lockfile.Options{Notice: func(n lockfile.Notice) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.notices = append(f.notices, fmt.Sprintf("%s %s: %v", n.Kind, filepath.Base(n.Path), n.Err))
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = d.Close() })
	f.store = d
	return d
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// claudeRows is Claude Code 2.1.332's screen as far as qshim reads it: b a turn
// in progress, f the end of one that was refused, d of one that went well, r its
// own retry (measured; see policies/agents/claude.toml). Each is a synchronised
// update, as where the terminal can.
func claudeRows(key byte) string {
	state := map[byte]string{
		'b': "\x1b[38;2;215;119;87m✶ Working… (3s · ↓ 10 tokens)",
		'r': "\x1b[38;2;255;193;7m✻ 429 This request would exceed your account's… · retrying in 1s · attempt 3/10",
		'f': "\x1b[38;2;255;193;7m●\x1b[0m API Error: Request rejected (429) · This request would exceed your account's rate limit.",
		'd': "\x1b[38;2;153;153;153m✻ Worked for 3s · done 3:04 PM",
	}[key]
	title, input := "✳ Claude Code", "❯\u00a0"
	if key == 'b' || key == 'r' {
		title = "◐ Claude Code"
	}
	if key == 'f' {
		input += "\x1b[2mResend your message to try again\x1b[0m"
	}
	line := "\x1b[38;2;136;136;136m" + strings.Repeat("─", 90) + "\x1b[0m"
	var b strings.Builder
	b.WriteString("\x1b[?1049h\x1b]0;" + title + "\x07\x1b[?2026h\x1b[2J")
	for y, row := range []string{1: "❯ do the task", 3: "\x1b[38;2;255;255;255m●\x1b[0m I am on it.", 5: state + "\x1b[0m", 27: line, 28: input, 29: line, 30: "  ⏵⏵ auto mode on"} {
		if row != "" {
			fmt.Fprintf(&b, "\x1b[%d;1H%s", y, row)
		}
	}
	return b.String() + "\x1b[28;3H\x1b[?2026l"
}

// scriptHead answers a command of ours, which has no place for a pid, and the
// questions that a launch asks first: it takes a debug log, as Claude Code does.
const scriptHead = "[ -n \"$SOAK_PID\" ] || exit 0\ncase $1 in --help) echo \"  --debug-file <path>\"; exit 0;; --version) exit 0;; esac\n"

// claudeScript is the agent. It leaves its pid, paints a turn, and obeys the
// letters on its FIFO. With -p it has a tool at work, as headless agents do.
func claudeScript() string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n" + scriptHead + "[ -n \"$SOAK_DEAF\" ] && trap '' HUP\nhead=\ncase \" $* \" in *\" -p \"*) head=1;; esac\n" +
		"[ -n \"$head\" ] && { sleep 600 </dev/null >/dev/null 2>&1 & echo $! >\"$SOAK_PID.tool\"; }\n" +
		"echo $$ >\"$SOAK_PID.new\" && mv \"$SOAK_PID.new\" \"$SOAK_PID\"\nexec 3<>\"$SOAK_CTL\"\n" +
		"[ -n \"$head\" ] || printf %s " + shellQuote(claudeRows('b')) + "\nwhile read -r k <&3; do case $k in\n")
	for _, k := range "bfdr" {
		fmt.Fprintf(&b, "%c) printf %%s %s;;\n", k, shellQuote(claudeRows(byte(k))))
	}
	b.WriteString("q) [ -n \"$head\" ] && kill %1; exit 0;;\nesac; done\n")
	return b.String()
}

// station is one session: a terminal (or pipes), a shim, an agent.
type station struct {
	f      *fleet
	name   string
	dir    string
	opt    stationOpt
	shim   *child
	master *os.File // nil: no terminal
	ctl    *os.File
	closed bool

	mu      sync.Mutex
	out     bytes.Buffer  // the last of what the terminal got
	drained chan struct{} // closed when there comes no more
}

type stationOpt struct {
	headless bool     // no terminal
	pipe     bool     // with headless: what it writes goes into a pipe
	deaf     bool     // the agent ignores a hangup
	shell    bool     // under a shell, so that there is the pair of job control
	env      []string // more
	words    []string // instead of "claude"
	under    []string // a program that runs qshim
	state    string   // instead of the fleet's
	build    string   // of qshim, instead of the fleet's
	path     string   // directory of another agent than the fleet's
	dir      string   // instead of one of its own
}

// start starts one more station.
func (f *fleet) start(o stationOpt) *station {
	f.t.Helper()
	f.mu.Lock()
	f.stations++
	s := &station{f: f, name: strconv.Itoa(f.stations), opt: o}
	f.mu.Unlock()
	s.dir = filepath.Join(f.home, "station"+s.name)
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	fifo := filepath.Join(s.dir, "ctl")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		f.t.Fatal(err)
	}
	ctl, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	s.ctl = ctl
	f.t.Cleanup(s.end) // what a failed test has not ended
	if err := s.launch(); err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (s *station) env() []string {
	state := s.f.state
	if s.opt.state != "" {
		state = s.opt.state
	}
	env := append(s.f.env(state), "SOAK_PID="+s.pidFile(), "SOAK_CTL="+filepath.Join(s.dir, "ctl"), "TERM=xterm-256color")
	if s.opt.path != "" {
		env = append([]string{"PATH=" + s.opt.path + ":/usr/bin:/bin"}, env...) // the first one counts
	}
	if s.opt.deaf {
		env = append(env, "SOAK_DEAF=1")
	}
	return append(env, s.opt.env...)
}

// env is a private environment: nothing of the machine's agents is in it.
func (f *fleet) env(state string) []string {
	return []string{"HOME=" + f.home, "PATH=" + filepath.Join(f.home, "bin") + ":/usr/bin:/bin", "QSHIM_STATE_DIR=" + state,
		"QSHIM_CONFIG=" + filepath.Join(f.home, "config.toml"), "TZ=UTC", "GORACE=atexit_sleep_ms=0" + raceLog()}
}

func (s *station) pidFile() string { return filepath.Join(s.dir, "pid") }

func (s *station) launch() error {
	words := s.opt.words
	if words == nil {
		words = []string{"claude"}
		if s.opt.headless {
			words = []string{"claude", "-p", "work"}
		}
	}
	qshim := s.f.qshim
	if s.opt.build != "" {
		qshim = s.opt.build
	}
	argv := append([]string{qshim}, words...)
	if s.opt.under != nil {
		argv = append(slices.Clone(s.opt.under), argv...)
	}
	if s.opt.shell {
		argv = []string{"/bin/sh", "-m", "-c", `"$0" "$@"; exit $?`, qshim}
		argv = append(argv, words...)
	}
	dir := s.dir
	if s.opt.dir != "" {
		dir = s.opt.dir
	}
	attr := &syscall.ProcAttr{Dir: dir, Env: s.env(), Sys: &syscall.SysProcAttr{Setsid: true}}
	if s.opt.headless {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		attr.Files = []uintptr{null.Fd(), null.Fd(), null.Fd()}
		if s.opt.pipe {
			r, w, err := os.Pipe()
			if err != nil {
				return err
			}
			defer w.Close()
			go s.drain(r)
			attr.Files = []uintptr{null.Fd(), w.Fd(), w.Fd()}
		}
		s.shim, err = spawn(argv[0], argv, attr)
		return err
	}
	master, slave, err := term.OpenPTY()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(slave) }()
	if err := term.SetSize(master, unix.Winsize{Col: 100, Row: 30}); err != nil {
		return err
	}
	attr.Files = []uintptr{uintptr(slave), uintptr(slave), uintptr(slave)}
	attr.Sys.Setctty = true
	s.master = os.NewFile(uintptr(master), "master")
	s.drained = make(chan struct{})
	go func() {
		defer close(s.drained)
		s.read(s.master)
	}()
	s.shim, err = spawn(argv[0], argv, attr)
	return err
}

func (s *station) drain(r *os.File) {
	s.read(r)
	_ = r.Close() // at its end
}

func (s *station) read(m *os.File) {
	b := make([]byte, 32<<10)
	for {
		n, err := m.Read(b)
		s.mu.Lock()
		if s.out.Len() > 1<<20 {
			s.out.Reset()
		}
		s.out.Write(b[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *station) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// shows reports whether the terminal got a text lately.
func (s *station) shows(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.out.Bytes(), []byte(text))
}

// tell gives the agent an order; it takes it when it runs.
func (s *station) tell(key byte) {
	if _, err := s.ctl.Write([]byte{key, '\n'}); err != nil {
		s.f.t.Errorf("station %s: %v", s.name, err)
	}
}

// pid is the agent's, 0 until it has begun.
func (s *station) pid() int { return pidIn(s.pidFile()) }

func pidIn(file string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

// agents are the processes that a shim of this station may have stopped.
func (s *station) agents() (pids []int) {
	for _, file := range []string{s.pidFile(), s.pidFile() + ".tool"} {
		if pid := pidIn(file); pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

func stopped(pid int) bool {
	state, _, _, ok := procStat(pid)
	return ok && state == 'T'
}

// ready waits for the agent and for its session's record.
func (s *station) ready() *station {
	s.f.t.Helper()
	eventually(s.f.t, "the agent of station "+s.name, func() bool { return s.pid() > 0 || s.shim.ended() })
	return s
}

// session is this station's in a ledger.
func (s *station) session(l lockfile.Ledger) lockfile.Session {
	pid := s.pid()
	for _, one := range l.Sessions {
		if one.ChildPID == pid && pid > 0 {
			return one
		}
	}
	return lockfile.Session{}
}

func (f *fleet) ledger() lockfile.Ledger {
	f.t.Helper()
	l, err := f.store.Read()
	if err != nil {
		f.t.Fatal(err)
	}
	return l
}

// over waits for the end of a shim that has been told to come to it, and returns
// its code. One that does not is a failure, told with what the ledger says of it,
// and is killed: -1.
func (s *station) over() int {
	s.f.t.Helper()
	code := s.shim.code()
	if code >= 0 {
		return code
	}
	text := "no ledger"
	if s.f.store != nil {
		if l, err := s.f.store.Read(); err == nil {
			b, _ := json.Marshal(l) // plain data
			text = string(b)
		}
	}
	s.f.t.Errorf("station %s does not end; agents %v, stopped %v; %s; screen %s", s.name, s.agents(), stopped(s.pid()), text, tail(s.output()))
	s.shim.kill(unix.SIGKILL)
	<-s.shim.done
	return -1
}

// end ends the station in whatever state it is.
func (s *station) end() {
	if s.closed || s.shim == nil {
		return
	}
	s.shim.kill(unix.SIGKILL)
	<-s.shim.done
	for _, pid := range s.agents() {
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && bytes.Contains(env, []byte("SOAK_PID="+s.pidFile())) {
			_ = unix.Kill(pid, unix.SIGKILL) // ours by its environment
		}
	}
	s.close()
}

func (s *station) close() {
	s.closed = true
	if s.master != nil {
		_ = s.master.Close()
	}
	_ = s.ctl.Close()
}

// command runs a qshim command on the fleet's state.
func (f *fleet) command(words ...string) result {
	f.t.Helper()
	return run(f.t, f.env(f.state), nil, append([]string{plainQshim}, words...)...)
}

// pause is a random time, which is what some tests are about.
func pause(d time.Duration) { time.Sleep(d) }

func raceLog() string {
	if races == "" {
		return ""
	}
	return " log_path=" + races
}
