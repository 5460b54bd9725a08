//go:build linux

package shim

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Held and stopped: two facts, and who continues whom.

func TestSuspendAndContinue(t *testing.T) {
	for _, shell := range []bool{false, true} {
		t.Run(fmt.Sprintf("shell=%v", shell), func(t *testing.T) {
			d, agent := heldDesk(t, shell, "ticks")
			d.send("abc") // ours now
			d.ctl.expect("input held=true")
			d.ctl.order("continue")
			d.ctl.expect("resumed")
			d.expect("T") // it goes on
			if d.ctl.has("ranaway") {
				t.Error("our own SIGCONT counted as somebody else's")
			}
			d.send("k")
			d.expect("KEY<k>")
			if strings.Contains(d.output(), "KEY<a>") {
				t.Error("a key typed while held reached the agent")
			}
			if s := state(agent); s == 'T' {
				t.Error("agent still stopped")
			}
			d.send("q")
			d.code()
		})
	}
}

// heldDesk starts an agent and has qshim stop it.
func heldDesk(t *testing.T, shell bool, mode ...string) (*desk, int) {
	t.Helper()
	argv := wrapped(t, mode...)
	if shell {
		argv = monitored(argv)
	}
	d := newDesk(t, deskOpt{ctl: true}, argv...)
	d.expect("READY")
	var pid int
	if _, err := fmt.Sscanf(d.ctl.expect("pid"), "pid %d", &pid); err != nil {
		t.Fatal(err)
	}
	if got := d.ctl.order("suspend"); got != "did suspend <nil> held=true" {
		t.Fatal(got)
	}
	d.ctl.expect(fmt.Sprintf("stop %d true true", pid))
	d.ctl.expect("paused")
	if s := state(pid); s != 'T' {
		t.Fatalf("agent in state %c after the pause was announced", s)
	}
	return d, pid
}

func TestLedgerRefuses(t *testing.T) {
	d := newDesk(t, deskOpt{ctl: true}, wrapped(t, "ticks")...)
	d.expect("READY")
	d.ctl.order("fail on")
	if got := d.ctl.order("suspend"); got != "did suspend the ledger refuses held=false" {
		t.Error(got)
	}
	d.expect("T")
	d.send("q")
	d.code()
}

func TestOutsideContinueIsRunAnyway(t *testing.T) {
	d, agent := heldDesk(t, false, "ticks")
	if err := unix.Kill(-agent, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	d.ctl.expect("ranaway")
	d.send("k")
	d.expect("KEY<k>")
	d.send("q")
	d.code()
}

func TestHoldManyTimes(t *testing.T) {
	d, _ := heldDesk(t, true, "ticks")
	for range 20 {
		d.ctl.order("continue")
		d.ctl.expect("resumed")
		d.ctl.order("suspend")
		d.ctl.expect("paused")
	}
	if d.ctl.has("ranaway") || d.ctl.has("usersuspend") {
		t.Error("a stop or continue of ours was taken for somebody else's")
	}
	d.ctl.order("continue")
	d.send("q")
	d.code()
}

// The pause is told when all that the agent wrote before it has been shown: who
// models the screen is then exactly where the terminal is.
func TestPauseComesLast(t *testing.T) {
	d := newDesk(t, deskOpt{ctl: true}, wrapped(t, "yes")...)
	d.expect("yes")
	for range 10 {
		d.ctl.order("suspend")
		d.ctl.expect("paused")
		d.ctl.forget()
		d.ctl.order("insert 0 00") // the loop answers this one after everything else
		d.ctl.expect("missed")
		if d.ctl.has("output") {
			t.Fatal("output came after the pause")
		}
		d.ctl.order("continue")
		d.ctl.expect("output")
	}
	d.ctl.order("quit")
	d.code()
}

// A signal that is to end the agent ends it although it is held, and kill -9 of
// qshim too.
func TestHeldAgentEnds(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGKILL} {
		for _, shell := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v shell=%v", sig, shell), func(t *testing.T) {
				d, agent := heldDesk(t, shell, "ticks")
				qshim := d.pid
				if shell {
					qshim = kids(d.pid)[0]
				}
				family := descendants(qshim)
				if err := unix.Kill(qshim, sig); err != nil {
					t.Fatal(err)
				}
				d.code()
				waitGone(t, append(family, agent))
			})
		}
	}
}

// A nudge lets the agent run a little, and nothing but the agent notices.
func TestNudge(t *testing.T) {
	d, agent := heldDesk(t, true, "ticks")
	for range 3 {
		before := d.output()
		d.ctl.order("nudge")
		d.ctl.expect("paused")
		if s := state(agent); s != 'T' {
			t.Fatalf("agent in state %c after a nudge", s)
		}
		if d.output() == before {
			t.Error("a nudged agent did nothing")
		}
	}
	if d.ctl.has("ranaway") || d.ctl.has("usersuspend") || d.ctl.has("resumed") {
		t.Error("a nudge was taken for something else")
	}
	d.ctl.order("continue")
	d.send("q")
	d.expect("<BYE 0>")
	d.code()
}

func TestQuitOrder(t *testing.T) {
	d, _ := heldDesk(t, false, "ticks")
	d.ctl.order("quit")
	if got := d.code(); got != 143 {
		t.Errorf("code %d, want 143", got)
	}
}

// The overlay is taken away before the agent's next byte, whoever continues it.
func TestOverlay(t *testing.T) {
	for _, how := range []string{"continue", "outside", "replaced"} {
		t.Run(how, func(t *testing.T) {
			d, agent := heldDesk(t, false, "ticks")
			d.ctl.order("overlay " + hex.EncodeToString([]byte("<ROW>")) + " " + hex.EncodeToString([]byte("<GONE>")))
			d.expect("<ROW>")
			switch how {
			case "outside":
				if err := unix.Kill(-agent, unix.SIGCONT); err != nil {
					t.Fatal(err)
				}
			case "replaced":
				d.ctl.order("overlay " + hex.EncodeToString([]byte("<ROW2>")) + " " + hex.EncodeToString([]byte("<GONE>")))
				d.expect("<ROW2>")
				fallthrough
			default:
				d.ctl.order("continue")
			}
			d.wait("output", func() bool { return len(d.out) > len("<GONE>") })
			if got := d.output(); !strings.HasPrefix(got, "<GONE>T") {
				t.Errorf("after the overlay came %.40q", got)
			}
			if how == "outside" {
				d.ctl.expect("ranaway") // from here on keys are the agent's
			}
			d.send("q")
			d.code()
		})
	}
	d := newDesk(t, deskOpt{ctl: true}, wrapped(t, "cat")...)
	d.expect("READY")
	d.ctl.order("overlay " + hex.EncodeToString([]byte("<ROW>")) + " 00")
	d.send("k")
	d.expect("KEY<k>")
	if strings.Contains(d.output(), "<ROW>") {
		t.Error("an overlay was painted over a running agent")
	}
	d.send("q")
	d.code()
}

func TestInsert(t *testing.T) {
	d := newDesk(t, deskOpt{ctl: true}, wrapped(t, "cat")...)
	d.expect("READY")
	d.ctl.expect("output 5 ")
	d.ctl.order("insert 5 " + hex.EncodeToString([]byte("<TITLE>")))
	d.expect("<TITLE>")
	d.ctl.order("insert 4 " + hex.EncodeToString([]byte("<LATE>")))
	d.ctl.expect("missed")
	d.send("q")
	d.expect("KEY<q>")
	d.code()
}

// Ctrl-Z while held: the shell gets its terminal back, the agent stays stopped,
// and fg asks what to do.
func TestUserSuspendsAHeldAgent(t *testing.T) {
	for _, hold := range []string{"same", "no"} {
		t.Run(hold, func(t *testing.T) {
			d := newDesk(t, deskOpt{ctl: true, env: []string{"PS1=" + prompt}}, "/bin/bash", "--norc", "--noprofile", "-i")
			d.expect(prompt)
			d.send(strings.Join(wrapped(t, "ticks"), " ") + "\n")
			d.expect("READY")
			d.ctl.order("hold " + hold)
			d.ctl.order("suspend")
			d.ctl.expect("paused")
			d.ctl.order("overlay " + hex.EncodeToString([]byte("<ROW>")) + " " + hex.EncodeToString([]byte("<GONE>")))
			d.expect("<ROW>")
			d.ctl.send("ctrlz")
			d.ctl.expect("usersuspend held=true")
			d.expect("<GONE><OFF>")
			d.expect(prompt)
			wantState(t, d, 'T')
			d.send("fg\n")
			d.ctl.expect("usercontinue fg=true held=true")
			d.expect("<ON>")
			if hold == "no" {
				d.ctl.expect("userstop held=false")
				d.expect("T")
			} else {
				d.ctl.expect("userstop held=true")
				wantState(t, d, 'T')
				d.ctl.order("continue")
				d.expect("T")
			}
			d.send("q")
			d.expect(prompt)
			d.send("exit\n")
			d.code()
		})
	}
}

// The user stops the agent, and a hold that arose meanwhile keeps it stopped
// after fg.
func TestHoldArisesWhileUserStopped(t *testing.T) {
	d := newDesk(t, deskOpt{ctl: true, env: []string{"PS1=" + prompt}}, "/bin/bash", "--norc", "--noprofile", "-i")
	d.expect(prompt)
	d.send(strings.Join(wrapped(t, "selfstop", "20"), " ") + "\n")
	d.expect("READY")
	pairIfAny(t, d)
	d.ctl.order("hold yes")
	d.send("\x1a")
	d.ctl.expect("usersuspend held=false")
	d.expect(prompt)
	d.send("fg\n")
	d.ctl.expect("usercontinue fg=true held=false")
	d.ctl.expect("userstop held=true")
	wantState(t, d, 'T')
	d.ctl.order("continue")
	d.expect("BACK")
	d.send("q")
	d.expect(prompt)
	d.send("exit\n")
	d.code()
}

// A Ctrl-Z of the user and a stop of ours in the same instant: the user's is
// not lost, whichever comes first.
func TestStopsThatCross(t *testing.T) {
	d := newDesk(t, deskOpt{ctl: true, env: []string{"PS1=" + prompt}}, "/bin/bash", "--norc", "--noprofile", "-i")
	d.expect(prompt)
	d.send(strings.Join(wrapped(t, "lines"), " ") + "\n")
	d.expect("READY")
	pairIfAny(t, d)
	d.ctl.order("hold no")
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		d.send("\x1a")
		if i%2 == 0 {
			d.ctl.hasSoon("input held=false 1a", "usersuspend")
		}
		d.ctl.send("suspend")
		// Typed while held it is ours, and the caller says what it means.
		if i%2 == 1 && d.ctl.hasSoon("input held=true 1a", "input held=false 1a", "usersuspend") == "input held=true 1a" {
			d.ctl.send("ctrlz")
		}
		d.expect(prompt)
		d.send("fg\n")
		d.ctl.expect("userstop held=false")
		d.ctl.expect("did suspend")
		d.ctl.order("continue")
		waitFront(t, d)
		d.send("hello\n")
		d.expect("LINE<hello>")
		d.ctl.forget()
	}
	d.send("quit\n")
	d.expect(prompt)
	d.send("exit\n")
	d.code()
}

// Without a terminal the agent's processes are stopped one by one, and qshim,
// in the same group, is not.
func TestSuspendWithoutTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	d := newDesk(t, deskOpt{ctl: true, files: [3]*os.File{r, nil, nil}}, self(t), wrapArg, "/bin/sh", "-c", "cat; :")
	d.ctl.expect("pid")
	sh := kids(d.pid)
	if len(sh) != 1 {
		t.Fatalf("agents %v", sh)
	}
	if _, err := w.WriteString("one\n"); err != nil {
		t.Fatal(err)
	}
	d.expect("one")
	d.ctl.order("suspend")
	cat := kids(sh[0])
	d.ctl.expect(fmt.Sprintf("stop %d false true", sh[0]))
	d.ctl.expect(fmt.Sprintf("stop %d false true", cat[0]))
	d.ctl.expect("paused")
	for _, pid := range append(cat, sh[0]) {
		eventually(t, fmt.Sprintf("process %d stopped", pid), func() bool { return state(pid) == 'T' })
	}
	if s := state(d.pid); s == 'T' {
		t.Error("qshim stopped itself")
	}
	d.ctl.order("continue")
	if _, err := w.WriteString("two\n"); err != nil {
		t.Fatal(err)
	}
	d.expect("two")
	_ = w.Close()
	d.code()
}
