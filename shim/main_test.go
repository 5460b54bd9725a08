//go:build linux

package shim

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
)

// The test binary plays these parts: the tests, the wrapper under test
// (__wrap CMD…), a whole session under test (__session CMD…), and the agent
// (__agent MODE…, __draw SCREEN…).
const (
	wrapArg  = "__wrap"
	agentArg = "__agent"
	ctlEnv   = "QSHIM_TEST_CTL" // socket on which a test drives the wrapper
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case wrapArg:
			os.Exit(wrapMain(os.Args[2:]))
		case agentArg:
			agentMain(os.Args[2:])
			os.Exit(0)
		case sessionArg:
			os.Exit(sessionMain(os.Args[2:]))
		case drawArg:
			drawMain(os.Args[2:])
			os.Exit(0)
		}
	}
	// Whatever a test leaves behind becomes ours, and is found below.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "subreaper:", err)
		os.Exit(1)
	}
	code := m.Run()
	if left := leftovers(); len(left) > 0 && code == 0 {
		fmt.Fprintln(os.Stderr, "processes left behind:", left)
		code = 1
	}
	os.Exit(code)
}

// wrapMain is the smallest caller of the package: with ctlEnv it reports every
// item and takes orders.
func wrapMain(argv []string) int {
	opt := Options{Argv: argv, Env: os.Environ(), Streams: true, Errors: true}
	var err error
	if opt.Path, err = exec.LookPath(argv[0]); err != nil {
		fmt.Fprintln(os.Stderr, "not found")
		return 127
	}
	var ctl *control
	if path := os.Getenv(ctlEnv); path != "" {
		if ctl, err = dialControl(path, &opt); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 99
		}
	}
	s, err := Start(opt)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if e := (*StartError)(nil); errors.As(err, &e) {
			return e.Code
		}
		return 99
	}
	if ctl == nil {
		return ended(s.Run())
	}
	ctl.say("pid %d", s.PID())
	done := make(chan struct{})
	go ctl.report(opt.Tap, done)
	go ctl.orders(s)
	end := s.Run()
	<-done
	return ended(end)
}

// ended ends the wrapper as the agent ended.
func ended(e End) int {
	e.Die()
	return e.Code
}

// control is the wrapper's end of the test's socket.
type control struct {
	mu      sync.Mutex
	conn    net.Conn
	in      *bufio.Scanner
	failing bool // BeforeStop fails
	hold    string
}

func dialControl(path string, opt *Options) (*control, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	c := &control{conn: conn, in: bufio.NewScanner(conn)}
	// The agent must not see the socket's name as a difference.
	opt.Env = without(opt.Env, ctlEnv)
	opt.Tap = NewTap()
	opt.BeforeStop = func(targets []lockfile.Stopped) error {
		c.mu.Lock()
		failing := c.failing
		c.mu.Unlock()
		if failing {
			return errors.New("the ledger refuses")
		}
		for _, t := range targets {
			c.say("stop %d %v %v", t.PID, t.Group, t.Start > 0)
		}
		return nil
	}
	opt.Farewell = func(code int) []byte { return fmt.Appendf(nil, "<BYE %d>", code) }
	opt.UserSuspend = func(held bool) []byte {
		c.say("usersuspend held=%v", held)
		return []byte("<OFF>")
	}
	opt.UserContinue = func(fg, held bool) (bool, []byte) {
		c.say("usercontinue fg=%v held=%v", fg, held)
		c.mu.Lock()
		defer c.mu.Unlock()
		switch c.hold {
		case "yes":
			held = true
		case "no":
			held = false
		}
		return held, []byte("<ON>")
	}
	return c, nil
}

func without(env []string, key string) (out []string) {
	for _, kv := range env {
		if !strings.HasPrefix(kv, key+"=") {
			out = append(out, kv)
		}
	}
	return out
}

func (c *control) say(f string, a ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.conn, f+"\n", a...) // the test may be gone
}

func (c *control) report(t *Tap, done chan struct{}) {
	defer close(done)
	for range t.Ready() {
		for _, it := range t.Take() {
			switch it.Kind {
			case Output:
				c.say("output %d dropped=%v", it.Total, it.Dropped)
			case Stdout, Stderr:
				c.say("stream%d %x", it.Kind, it.Data)
			case Input:
				c.say("input held=%v %s", it.Held, hex.EncodeToString(it.Data))
			case Resized:
				c.say("resized %dx%d", it.Cols, it.Rows)
			case UserStop:
				c.say("userstop held=%v", it.Held)
			case Exited:
				c.say("exited %d", it.Code)
				return
			default:
				c.say("%s", map[Kind]string{Paused: "paused", Resumed: "resumed", RanAnyway: "ranaway", AgentStop: "agentstop", Missed: "missed"}[it.Kind])
			}
		}
	}
}

func (c *control) orders(s *Session) {
	for c.in.Scan() {
		f := strings.Fields(c.in.Text())
		var err error
		switch f[0] {
		case "suspend":
			err = s.Suspend(0)
		case "continue":
			err = s.Continue()
		case "fail":
			c.mu.Lock()
			c.failing = f[1] == "on"
			c.mu.Unlock()
		case "hold":
			c.mu.Lock()
			c.hold = f[1]
			c.mu.Unlock()
		case "overlay":
			s.Overlay(unhex(f[1]), unhex(f[2]))
		case "insert":
			var total uint64
			_, _ = fmt.Sscan(f[1], &total)
			s.Insert(total, unhex(f[2]))
		case "ctrlz":
			s.SuspendByUser()
		case "nudge":
			s.Nudge()
		case "quit":
			s.End(unix.SIGTERM)
		}
		c.say("did %s %v held=%v", f[0], err, s.Held())
	}
}

func unhex(s string) []byte {
	b, _ := hex.DecodeString(s)
	return b
}
