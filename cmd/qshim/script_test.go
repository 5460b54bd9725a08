package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// TestScripts plays testdata/script/*.txtar. In each, $HOME is private, the
// state directory is the default one in it, qshim is in PATH and so are the
// files below bin/. Besides testscript's own commands there are
//
//	code N PROGRAM [ARGS…]        it exits with N
//	hold LIMITER CLASS [for=30s] [blocked] [measure=M] [scope=S] [source=S] [stated]
//	                              a sibling was refused just now
//	event NAME [KEY=VALUE…]       wait until the event log has such a line, behind the last one found so
//	no-event NAME [KEY=VALUE…]    it has none
//	prompt NAME… within SECONDS   the last two events named were so close
//	json PATH REGEXP              a value of the last standard output, as JSON
//	keys PATH KEY…                an object of the last standard output has exactly these keys, in this order
//	session AGENT STATE           wait until a session of that agent is in that state
//	signal SIG AGENT              sent to the session of that agent
//	frozen FILE, thawed FILE      wait until the process whose pid stands in FILE is stopped, runs
//	line FILE REGEXP              wait until FILE has such a line
//	open FIFO                     let a reader of FIFO go on
//	loose DIR                     others may write to the directory
//	unused                        the state directory was not made
//	idle                          no session is left
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Getuid() == 0, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": scriptCode, "hold": scriptHold, "event": scriptEvent, "no-event": scriptNoEvent, "prompt": scriptPrompt,
			"json": scriptJSON, "keys": scriptKeys, "session": scriptSession, "signal": scriptSignal, "frozen": scriptFrozen, "thawed": scriptThawed,
			"line": scriptLine, "open": scriptOpen, "loose": scriptLoose, "unused": scriptUnused, "idle": scriptIdle,
		},
	})
}

func setupScript(e *testscript.Env) error {
	links := filepath.Join(e.WorkDir, ".qshim")
	if err := linkQshim(links); err != nil {
		return err
	}
	if err := makeExecutable(filepath.Join(e.WorkDir, "bin")); err != nil {
		return err
	}
	home := filepath.Join(e.WorkDir, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	e.Values["seen"] = map[string]int{}
	e.Setenv("HOME", home)
	e.Setenv("STATE", filepath.Join(home, ".local/state/qshim"))
	e.Setenv("TZ", "UTC")
	e.Setenv("GORACE", fastRace)
	e.Setenv("PATH", links+":"+filepath.Join(e.WorkDir, "bin")+":"+os.Getenv("PATH"))
	e.Defer(func() {
		if left := endMarked("WORK=" + e.WorkDir); len(left) > 0 { // a script that failed waits for them
			e.T().Fatal("processes left behind: ", left)
		}
	})
	return nil
}

func makeExecutable(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Chmod(f, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long a script waits for something that is about to happen; it
// only matters where something is broken.
const patience = 20 * time.Second

// waitFor waits for something that tells nobody: a process's state, a file.
func waitFor(what string, ok func() bool) error {
	end := time.Now().Add(patience)
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if ok() {
			tick.Stop()
			return nil
		}
		if time.Now().After(end) {
			return errors.New("waited in vain for " + what)
		}
	}
}

func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM [ARGS…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		if got = e.ExitCode(); got < 0 {
			got = 128 + int(e.Sys().(syscall.WaitStatus).Signal())
		}
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func openState(ts *testscript.TestScript) *lockfile.Dir {
	dir := ts.Getenv("QSHIM_STATE_DIR")
	if dir == "" {
		dir = ts.Getenv("STATE")
	}
	store, err := lockfile.Open(dir, lockfile.Options{})
	ts.Check(err)
	return store
}

// keyed splits KEY=VALUE words from the others.
func keyed(words []string) (opt map[string]string, rest []string) {
	opt = map[string]string{}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			opt[k] = v
		} else {
			rest = append(rest, w)
		}
	}
	return opt, rest
}

func scriptHold(ts *testscript.TestScript, neg bool, args []string) {
	opt, words := keyed(args)
	if neg || len(words) < 2 {
		ts.Fatalf("usage: hold LIMITER CLASS [for=30s] [blocked] [measure=M] [scope=S] [source=S] [stated]")
	}
	now := time.Now()
	h := lockfile.Hold{Class: finding.Class(words[1]), Measure: finding.Measure(opt["measure"]), Scope: finding.Scope(opt["scope"]),
		UntilSource: finding.ResetSource(cmp.Or(opt["source"], "relative")), Since: now, First: now, By: "sibling", Why: "429 Too Many Requests", Rule: "test"}
	if opt["for"] != "" {
		d, err := time.ParseDuration(opt["for"])
		ts.Check(err)
		h.Until = now.Add(d)
	}
	for _, w := range words[2:] {
		switch w {
		case "blocked":
			h.Blocked, h.UntilSource = true, ""
		case "stated":
			h.Stated = h.Until
		default:
			ts.Fatalf("unknown word %s", w)
		}
	}
	store := openState(ts)
	defer store.Close()
	_, err := store.Update(context.Background(), func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		lim := l.Limiters[words[0]]
		lim.ID, lim.Holds = words[0], append(lim.Holds, h)
		l.Limiters[words[0]] = lim
		return l, nil
	})
	ts.Check(err)
}

// matches: every KEY=VALUE stands in the event, by its name in JSON.
func matches(e lockfile.Event, name string, opt map[string]string) bool {
	if e.Event != name {
		return false
	}
	b, err := json.Marshal(e)
	if err != nil {
		return false
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		return false
	}
	for k, v := range opt {
		if got, ok := fields[k]; !ok && v != "" || ok && fmt.Sprint(got) != v {
			return false
		}
	}
	return true
}

func scriptEvent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: event NAME [KEY=VALUE…]")
	}
	opt, _ := keyed(args[1:])
	store := openState(ts)
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seen := ts.Value("seen").(map[string]int)
	n := 0
	for e, err := range store.Events(ctx, time.Time{}, true) {
		if n++; err == nil && n > seen[args[0]] && matches(e, args[0], opt) {
			seen[args[0]] = n
			return
		}
	}
	ts.Fatalf("waited in vain for the event")
}

func allEvents(ts *testscript.TestScript) (out []lockfile.Event) {
	store := openState(ts)
	defer store.Close()
	for e, err := range store.Events(context.Background(), time.Time{}, false) {
		ts.Check(err)
		out = append(out, e)
	}
	return out
}

func scriptNoEvent(ts *testscript.TestScript, neg bool, args []string) {
	opt, _ := keyed(args[1:])
	for _, e := range allEvents(ts) {
		if matches(e, args[0], opt) {
			ts.Fatalf("there is one: %+v", e)
		}
	}
}

func scriptPrompt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 || args[2] != "within" {
		ts.Fatalf("usage: prompt FIRST SECOND within DURATION")
	}
	limit, err := time.ParseDuration(args[3])
	ts.Check(err)
	var first, second time.Time
	for _, e := range allEvents(ts) {
		switch e.Event {
		case args[0]:
			first = e.At
		case args[1]:
			second = e.At
		}
	}
	if d := second.Sub(first); first.IsZero() || d < 0 || d > limit {
		ts.Fatalf("%s at %v, %s at %v", args[0], first, args[1], second)
	}
}

// lookUp walks PATH ("limiters.0.state") through the last standard output.
func lookUp(ts *testscript.TestScript, path string) json.RawMessage {
	raw := json.RawMessage(ts.ReadFile("stdout"))
	for _, name := range strings.Split(path, ".") {
		if name == "" {
			continue
		}
		var list []json.RawMessage
		var object map[string]json.RawMessage
		if n, err := strconv.Atoi(name); err == nil && json.Unmarshal(raw, &list) == nil {
			if n >= len(list) {
				ts.Fatalf("%s: only %d", path, len(list))
			}
			raw = list[n]
			continue
		}
		ts.Check(json.Unmarshal(raw, &object))
		var ok bool
		if raw, ok = object[name]; !ok {
			ts.Fatalf("%s: there is no %s", path, name)
		}
	}
	return raw
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: json PATH REGEXP")
	}
	var text bytes.Buffer
	ts.Check(json.Compact(&text, lookUp(ts, args[0])))
	got := text.String()
	var s string
	if json.Unmarshal(text.Bytes(), &s) == nil && strings.HasPrefix(got, `"`) {
		got = s
	}
	re, err := regexp.Compile("^(?:" + args[1] + ")$")
	ts.Check(err)
	if re.MatchString(got) == neg {
		ts.Fatalf("%s is %s", args[0], got)
	}
}

func scriptKeys(ts *testscript.TestScript, neg bool, args []string) {
	d := json.NewDecoder(bytes.NewReader(lookUp(ts, args[0])))
	_, err := d.Token()
	ts.Check(err)
	var got []string
	for d.More() {
		name, err := d.Token()
		ts.Check(err)
		got = append(got, fmt.Sprint(name))
		var skip json.RawMessage
		ts.Check(d.Decode(&skip))
	}
	if strings.Join(got, " ") != strings.Join(args[1:], " ") {
		ts.Fatalf("keys: %s", strings.Join(got, " "))
	}
}

func scriptSession(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: session AGENT STATE")
	}
	store := openState(ts)
	defer store.Close()
	ts.Check(waitFor("a session of "+args[0]+" that is "+args[1], func() bool {
		l, err := store.Read()
		ts.Check(err)
		for _, s := range l.Sessions {
			if s.Alive && s.Agent == args[0] && string(s.State) == args[1] && (s.State != lockfile.Waiting || s.Reason != "") {
				return true
			}
		}
		return false
	}))
}

func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal SIG AGENT")
	}
	store := openState(ts)
	defer store.Close()
	l, err := store.Read()
	ts.Check(err)
	for _, s := range l.Sessions {
		if s.Alive && s.Agent == args[1] {
			ts.Check(unix.Kill(s.PID, unix.SignalNum(args[0])))
			return
		}
	}
	ts.Fatalf("no session of %s", args[1])
}

// waitState waits until the process named in a file is stopped or is not.
func waitState(ts *testscript.TestScript, args []string, stopped bool) {
	if len(args) != 1 {
		ts.Fatalf("usage: frozen|thawed FILE")
	}
	dir := "/proc/" + strings.TrimSpace(ts.ReadFile(args[0]))
	ts.Check(waitFor(args[0], func() bool { s := state(dir); return s != 0 && (s == 'T') == stopped }))
}

func scriptFrozen(ts *testscript.TestScript, neg bool, args []string) { waitState(ts, args, !neg) }

func scriptThawed(ts *testscript.TestScript, neg bool, args []string) { waitState(ts, args, neg) }

func scriptLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: line FILE REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	ts.Check(waitFor(args[1], func() bool {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && re.Match(b)
	}))
}

func scriptOpen(ts *testscript.TestScript, neg bool, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteString("go\n")
	ts.Check(errors.Join(err, f.Close()))
}

func scriptLoose(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.Chmod(ts.MkAbs(args[0]), 0o777))
}

func scriptUnused(ts *testscript.TestScript, neg bool, args []string) {
	if _, err := os.Stat(ts.Getenv("STATE")); err == nil {
		ts.Fatalf("the state directory was made")
	}
}

func scriptIdle(ts *testscript.TestScript, neg bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.Getenv("STATE"), "sessions", "*"))
	ts.Check(err)
	if len(files) > 0 {
		ts.Fatalf("session files left: %v", files)
	}
}

// endMarked ends the processes whose environment holds kv, and returns those
// that it found first: what a test has left behind.
func endMarked(kv string) (left []process) {
	left = marked(kv)
	for rest := left; len(rest) > 0; rest = marked(kv) {
		for _, p := range rest {
			_ = unix.Kill(p.pid, unix.SIGKILL) // it may have ended
		}
	}
	return left
}
