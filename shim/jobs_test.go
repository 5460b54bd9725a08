//go:build linux

package shim

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Job control as a user meets it: an interactive shell on a terminal, and in it
// a command, once plain and once under qshim. Each scenario must read the same.

const prompt = "PROMPT# "

var shells = map[string][]string{
	"bash": {"bash", "--norc", "--noprofile", "-i"},
	"zsh":  {"zsh", "-f", "-i", "-o", "nozle", "-o", "nopromptcr", "-o", "nopromptsp"},
	"dash": {"dash", "-i"},
}

// inShells runs f in every shell there is.
func inShells(t *testing.T, f func(t *testing.T, d *desk, cmd func(a ...string) string)) {
	for name, argv := range shells {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			t.Logf("%s is not installed", name)
			continue
		}
		for _, under := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/qshim=%v", name, under), func(t *testing.T) {
				d := newDesk(t, deskOpt{env: []string{"PS1=" + prompt, "PROMPT=" + prompt, "HISTFILE=/dev/null"}}, append([]string{path}, argv[1:]...)...)
				d.expect(prompt)
				f(t, d, func(a ...string) string {
					if under {
						return strings.Join(wrapped(t, a...), " ")
					}
					return strings.Join(agent(t, a...), " ")
				})
				d.send("exit\n")
				d.code()
			})
		}
	}
}

// agents lists the test agents below a shell, whether qshim is between or not.
func agents(t *testing.T, shell int) (out []int) {
	t.Helper()
	for _, pid := range descendants(shell) {
		if a := cmdline(pid); len(a) > 1 && a[1] == agentArg {
			out = append(out, pid)
		}
	}
	return out
}

func cmdline(pid int) []string {
	b, err := readProc(pid, "cmdline")
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(b, "\x00"), "\x00")
}

func wantState(t *testing.T, d *desk, want byte) {
	t.Helper()
	list := agents(t, d.pid)
	if len(list) != 1 {
		t.Fatalf("agents: %v", list)
	}
	if got := state(list[0]); (got == 'T') != (want == 'T') {
		t.Errorf("agent is in state %c, want %c", got, want)
	}
}

func TestCookedCtrlZ(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		d.send(cmd("lines") + "\n")
		d.expect("READY")
		pairIfAny(t, d)
		for range 3 {
			d.send("\x1a")
			d.expect(prompt)
			wantState(t, d, 'T')
			d.send("fg\n")
			d.expect("lines")
			waitFront(t, d)
			d.send("hello\n")
			d.expect("LINE<hello>")
		}
		d.send("quit\n")
		d.expect("END-OF-LINES")
		d.expect(prompt)
	})
}

func TestAgentStopsItself(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGTSTP} {
		t.Run(sig.String(), func(t *testing.T) {
			inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
				d.send(cmd("selfstop", fmt.Sprint(int(sig))) + "\n")
				d.expect("READY")
				pairIfAny(t, d)
				for range 2 {
					d.send("\x1a")
					d.expect(prompt)
					wantState(t, d, 'T')
					d.send("fg\n")
					d.expect("BACK")
					d.send("k")
					d.expect("KEY<k>")
				}
				d.send("q")
				d.expect(prompt)
			})
		})
	}
}

// An agent that stops itself with its first instruction is stopped as under a
// shell: the pair, without which the kernel ignores that, is there before it.
func TestAgentStopsItselfAtOnce(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		at := strings.Index(cmd("x"), agentArg) - len(self(t)) - 1 // in front of the agent's own words
		for range 5 {
			d.send(cmd("x")[:at] + "/bin/sh -c 'kill -TSTP $$; echo B\"\"ACK'\n")
			d.expect(prompt)
			d.send("fg\n")
			d.expect("BACK") // and not before
			d.expect(prompt)
		}
	})
}

// bg after Ctrl-Z: the job runs until it reads its terminal, and is stopped for
// that; the shell keeps the terminal and its settings.
func TestBackground(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		d.send(cmd("lines") + "\n")
		d.expect("READY")
		pairIfAny(t, d)
		d.send("\x1a")
		d.expect(prompt)
		d.send("bg\n")
		d.expect(prompt)
		waitState(t, d, 'T') // SIGTTIN
		waitJob(t, d, 'T')
		d.send("echo still-$((40+2))\n")
		d.expect("still-42")
		d.expect(prompt)
		d.send("fg\n")
		d.expect("lines")
		waitFront(t, d)
		d.send("hello\n")
		d.expect("LINE<hello>")
		d.send("quit\n")
		d.expect(prompt)
	})
}

// A command started with & is in the background of its terminal from its first
// instruction on; fg brings it to the front.
func TestBackgroundStart(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		d.send(cmd("lines") + " &\n")
		d.expect("READY")
		waitState(t, d, 'T')            // it reads
		d.send("echo mark-$((40+2))\n") // by then the shell has said that it stopped
		d.expect("mark-42")
		d.expect(prompt)
		d.send("fg\n")
		d.expect("lines")
		waitFront(t, d)
		d.send("hello\n")
		d.expect("LINE<hello>")
		d.send("quit\n")
		d.expect(prompt)
	})
}

// kill -STOP and kill -CONT of the agent from outside, under a shell.
func TestOutsideStopUnderAShell(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		d.send(cmd("lines") + "\n")
		d.expect("READY")
		if err := unix.Kill(agents(t, d.pid)[0], unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		d.expect(prompt)
		d.send("fg\n")
		d.expect("lines")
		waitFront(t, d)
		waitState(t, d, 'S')
		d.send("hello\n")
		d.expect("LINE<hello>")
		d.send("quit\n")
		d.expect(prompt)
	})
}

// In a pipeline the agent has no terminal of its own: the terminal's keys reach
// the whole pipeline without qshim's help.
func TestPipeline(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		d.send(cmd("lines") + " | cat\n")
		d.expect("READY")
		for range 3 {
			d.send("\x1a")
			d.expect(prompt)
			waitState(t, d, 'T')
			d.send("fg\n")
			d.expect("lines")
			waitState(t, d, 'S')
			d.send("hello\n")
			d.expect("LINE<hello>")
		}
		d.send("\x03") // nobody handles it
		d.expect(prompt)
	})
}

// bash and zsh send no SIGCONT when fg takes a job that runs in the background.
func TestForegroundOfRunningJob(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		d.send(cmd("late") + " &\n")
		d.expect("READY")
		d.send("echo mark-$((40+2))\n")
		d.expect("mark-42")
		d.expect(prompt)
		d.send("fg\n")
		d.expect("late")
		eventually(t, "a job in the foreground", func() bool { return d.front() == kids(d.pid)[0] })
		d.send("hello\n")
		waitFront(t, d) // the keys' echo is what qshim notices
		if err := unix.Kill(agents(t, d.pid)[0], unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		d.expect("LINE<hello>")
		d.send("quit\n")
		d.expect(prompt)
	})
}

// kill -STOP and kill -CONT of qshim itself: the shell sees its job stop, and
// fg brings everything back. (The agent runs on meanwhile: nobody can know.)
func TestQshimItselfStopped(t *testing.T) {
	inShells(t, func(t *testing.T, d *desk, cmd func(...string) string) {
		d.send(cmd("lines") + "\n")
		d.expect("READY")
		if err := unix.Kill(kids(d.pid)[0], unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		d.expect(prompt)
		d.send("fg\n")
		d.expect("lines")
		waitFront(t, d)
		d.send("hello\n")
		d.expect("LINE<hello>")
		d.send("quit\n")
		d.expect(prompt)
	})
}

// pairIfAny waits until the pair is complete, when qshim is between.
func pairIfAny(t *testing.T, d *desk) {
	t.Helper()
	for _, pid := range kids(d.pid) {
		if a := cmdline(pid); len(a) > 1 && a[1] == wrapArg {
			pairOf(t, pid)
		}
	}
}

// waitState waits for a state of the agent. The kernel tells only its parent.
func waitState(t *testing.T, d *desk, want byte) {
	t.Helper()
	eventually(t, "agent in state "+string(want), func() bool {
		l := agents(t, d.pid)
		return len(l) == 1 && (state(l[0]) == 'T') == (want == 'T')
	})
}

// waitJob waits for a state of what the shell has started: qshim follows the
// agent a moment later.
func waitJob(t *testing.T, d *desk, want byte) {
	t.Helper()
	eventually(t, "job in state "+string(want), func() bool {
		l := kids(d.pid)
		return len(l) == 1 && (state(l[0]) == 'T') == (want == 'T')
	})
}

// waitFront waits until a job is in the foreground of the desk's terminal and,
// under qshim, until qshim has taken it (raw): a key typed before that is the
// shell's or the line discipline's, with and without qshim.
func waitFront(t *testing.T, d *desk) {
	t.Helper()
	shell, err := unix.Getpgid(d.pid)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a job in the foreground", func() bool {
		front := d.front()
		if front <= 0 || front == shell {
			return false
		}
		a := cmdline(front)
		return len(a) < 2 || a[1] != wrapArg || d.termios().Lflag&unix.ICANON == 0
	})
}
