package realagents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"

	"qshim/detect/screen"
)

// Session is one command on a PTY of its own, with its screen.
type Session struct {
	Setup Setup

	mark string
	cmd  *exec.Cmd
	tty  *os.File

	mu      sync.Mutex
	screen  *screen.Screen
	changed chan struct{} // closed and replaced at each change
	exited  bool
	code    int // as a shell says it
	done    chan struct{}
}

// Launch describes how an agent is started.
type Launch struct {
	Prefix     []string // what stands before the agent: qshim and its flags; empty: the agent alone
	Args       []string // the caller's own arguments, after the setup's
	Env        []string // added to the setup's environment
	Cols, Rows int      // 0: 120 by 40
}

// sessionMark is in the environment of everything that a session starts, so that
// a process is found again whose parents were killed.
const sessionMark = "REALAGENTS_SESSION"

var sessions atomic.Int64

// Start runs an agent on a new PTY. The caller must Close it.
func Start(s Setup, l Launch) (*Session, error) {
	if l.Cols == 0 || l.Rows == 0 {
		l.Cols, l.Rows = 120, 40
	}
	argv := append(append(append([]string{}, l.Prefix...), string(s.Agent)), append(append([]string{}, s.Args...), l.Args...)...)
	mark := fmt.Sprintf("%s=%d-%d", sessionMark, os.Getpid(), sessions.Add(1))
	env := append(append(append([]string{}, s.Env...), l.Env...), mark)
	path, err := lookPath(argv[0], env)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Dir, cmd.Env = s.Project, env
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(l.Cols), Rows: uint16(l.Rows)})
	if err != nil {
		return nil, err
	}
	x := &Session{
		Setup: s, mark: mark, cmd: cmd, tty: tty, screen: screen.New(l.Cols, l.Rows),
		changed: make(chan struct{}), done: make(chan struct{}),
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		x.read()
	}()
	go x.wait(read)
	return x, nil
}

// lookPath finds a command in the environment's PATH, not in ours.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, e := range env {
		if list, ok := strings.CutPrefix(e, "PATH="); ok {
			for _, dir := range strings.Split(list, ":") {
				if p, err := exec.LookPath(dir + "/" + name); err == nil {
					return p, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

func (s *Session) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.tty.Read(buf)
		s.take(buf[:n])
		if err != nil {
			return
		}
	}
}

// take shows what the agent wrote and answers what a terminal answers: where
// the cursor is and what it is (DA1). Other queries stay unanswered, as in tmux.
func (s *Session) take(b []byte) {
	s.mu.Lock()
	_, _ = s.screen.Write(b) // never fails
	x, y := s.screen.Cursor()
	s.wake()
	s.mu.Unlock()
	var answer []byte
	for range bytes.Count(b, []byte("\x1b[6n")) {
		answer = fmt.Appendf(answer, "\x1b[%d;%dR", y+1, x+1)
	}
	for range bytes.Count(b, []byte("\x1b[c")) {
		answer = append(answer, "\x1b[?62;22c"...)
	}
	if len(answer) > 0 {
		_, _ = s.tty.Write(answer) // an agent that is gone needs none
	}
}

// drain is how long the last output may take to be read after the command's
// end; a grandchild can keep the terminal open for ever.
const drain = 200 * time.Millisecond

func (s *Session) wait(read <-chan struct{}) {
	err := s.cmd.Wait()
	select {
	case <-read:
	case <-time.After(drain):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exited, s.code = true, exitCode(err)
	s.wake()
	close(s.done)
}

func exitCode(err error) int {
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return -1
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return exit.ExitCode()
}

// wake tells those who wait. The lock is held.
func (s *Session) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// PID is the process on the PTY: qshim, or the agent where it runs alone.
func (s *Session) PID() int { return s.cmd.Process.Pid }

// Screen is what a person sees: the rows, no-break spaces as blanks, trailing
// blank rows cut.
func (s *Session) Screen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows()
}

func (s *Session) rows() []string {
	_, n := s.screen.Size()
	out := make([]string, n)
	last := 0
	for y := range n {
		out[y] = strings.ReplaceAll(s.screen.Row(y), "\u00a0", " ") // Claude Code's own after its glyphs
		if out[y] != "" {
			last = y + 1
		}
	}
	return out[:last]
}

// Title is the window's title.
func (s *Session) Title() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.Title()
}

// Until waits until ok holds of the rows and the title, or fails with what was
// on the screen after the deadline or the agent's exit.
func (s *Session) Until(what string, limit time.Duration, ok func(rows []string, title string) bool) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		changed, exited := s.changed, s.exited
		hit := ok(s.rows(), s.screen.Title())
		s.mu.Unlock()
		if hit {
			return nil
		}
		if exited {
			return s.failure("%s: the command ended with %d first", what, s.code)
		}
		select {
		case <-changed:
		case <-deadline.C:
			return s.failure("%s: not within %v", what, limit)
		}
	}
}

func (s *Session) failure(format string, args ...any) error {
	return fmt.Errorf("%s\ntitle: %q\n%s", fmt.Sprintf(format, args...), s.Title(), strings.Join(s.Screen(), "\n"))
}

// Row waits for a row that matches and returns it.
func (s *Session) Row(re *regexp.Regexp, limit time.Duration) (string, error) {
	found := ""
	err := s.Until("row "+re.String(), limit, func(rows []string, _ string) bool {
		for _, r := range rows {
			if re.MatchString(r) {
				found = r
				return true
			}
		}
		return false
	})
	return found, err
}

// Text waits for a text that may be wrapped over rows: rows are joined without
// their blanks, and re should hold none either.
func (s *Session) Text(re *regexp.Regexp, limit time.Duration) error {
	return s.Until("text "+re.String(), limit, func(rows []string, _ string) bool {
		return re.MatchString(strings.Join(strings.Fields(strings.Join(rows, "\n")), ""))
	})
}

// Ask types a prompt, waits until the agent shows it, and presses Enter: sent
// in one write, Codex and Gemini take it for a paste.
func (s *Session) Ask(text string, limit time.Duration) error {
	if err := s.Keys(text); err != nil {
		return err
	}
	want := strings.Join(strings.Fields(text), "")
	err := s.Until("the prompt "+text, limit, func(rows []string, _ string) bool {
		return strings.Contains(strings.Join(strings.Fields(strings.Join(rows, "\n")), ""), want)
	})
	if err != nil {
		return err
	}
	// Codex 0.171.0 takes an Enter within 50 to 100 ms of the text for part of a
	// paste and Gemini CLI 0.61.0 one within 30 ms; nothing on the screen says
	// that the time is over.
	time.Sleep(pasteGuard)
	return s.Keys("\r")
}

const pasteGuard = 150 * time.Millisecond

// Keys writes bytes as the keyboard would.
func (s *Session) Keys(keys string) error {
	_, err := io.WriteString(s.tty, keys)
	return err
}

// Exited waits for the end of the command and returns its exit status as a
// shell would say it.
func (s *Session) Exited(limit time.Duration) (int, error) {
	select {
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.code, nil
	case <-time.After(limit):
		return 0, s.failure("still running after %v", limit)
	}
}

// Processes are all that the session has started and that still run.
func (s *Session) Processes() []Process { return Marked(s.mark) }

// Hangup closes the terminal, as a closed window does, and waits for the command
// to end by itself.
func (s *Session) Hangup(limit time.Duration) (int, error) {
	_ = s.tty.Close() // a second time: it is closed
	return s.Exited(limit)
}

// Close ends the session: the terminal hangs up, then whatever remains of the
// processes that it started is killed, stopped ones too.
func (s *Session) Close() {
	for _, p := range s.Processes() {
		signalTo(p, syscall.SIGCONT) // a stopped process would never see the hangup
	}
	_ = s.tty.Close() // again, from a test's cleanup: nothing to do
	select {
	case <-s.done:
	case <-time.After(3 * time.Second):
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 1000 { // a kill may start another one's end; a process in D may never go
		left := s.Processes()
		if len(left) == 0 {
			break
		}
		for _, p := range left {
			signalTo(p, syscall.SIGKILL)
		}
		<-tick.C
	}
	<-s.done
}

// signalTo signals a process unless its number belongs to another one by now.
func signalTo(p Process, sig syscall.Signal) {
	if now, ok := Stat(p.PID); ok && now.Start == p.Start {
		_ = syscall.Kill(p.PID, sig) // gone in between: nothing to do
	}
}
