package shim

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of a notification program.
const (
	bellTime  = 10 * time.Second // then it is killed
	bellGrace = time.Second      // how long it may hold up the end of a session
	bellMost  = 4                // at once; more say nothing new
)

// notifier runs the user's notify_command.
type notifier struct {
	mu      sync.Mutex
	running map[*exec.Cmd]chan struct{} // closed when it has ended
}

// ring starts argv with text as its last argument. No shell reads it, and it
// cannot be taken for an option.
func (n *notifier) ring(argv []string, text string) error {
	if len(argv) == 0 {
		return nil
	}
	if strings.HasPrefix(text, "-") {
		text = " " + text
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.running) >= bellMost {
		return nil
	}
	cmd := exec.Command(argv[0], append(argv[1:len(argv):len(argv)], text)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no keys, no Ctrl-C, and one group to kill
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("notify_command: %w", err)
	}
	if n.running == nil {
		n.running = map[*exec.Cmd]chan struct{}{}
	}
	done := make(chan struct{})
	n.running[cmd] = done
	go n.wait(cmd, done)
	return nil
}

func (n *notifier) wait(cmd *exec.Cmd, done chan struct{}) {
	kill := time.AfterFunc(bellTime, func() { hangUp(cmd) })
	_ = cmd.Wait() // its exit code is its own affair
	kill.Stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.running, cmd)
	close(done)
}

// hangUp kills a program and what it started. The group is its own, and stays
// so while the program has not been waited for.
func hangUp(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }

// end waits for what runs, but not for long.
func (n *notifier) end() {
	n.mu.Lock()
	left := make(map[*exec.Cmd]chan struct{}, len(n.running))
	for cmd, done := range n.running {
		left[cmd] = done
	}
	n.mu.Unlock()
	late := time.After(bellGrace)
	for cmd, done := range left {
		select {
		case <-done:
			continue
		case <-late:
			late = time.After(0) // for the others too
		}
		hangUp(cmd)
		<-done
	}
}

// Tell runs the user's notify_command for something that no session is there to
// tell any more. It waits for the program, but not for long.
func Tell(argv []string, text string) error {
	var n notifier
	defer n.end()
	return n.ring(argv, clean(text))
}
