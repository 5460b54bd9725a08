//go:build linux

package shim

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// All eight combinations of stdin, stdout and stderr being a terminal or not:
// what the agent sees is what it sees without qshim, and every byte arrives
// where it would.
func TestEightCombinations(t *testing.T) {
	for mask := range 8 {
		t.Run(fmt.Sprintf("%03b", mask), func(t *testing.T) {
			run := func(argv []string) (term, out, errs string) {
				var o deskOpt
				o.cols = 400
				var files [3]*os.File
				var got [3]chan string
				for fd := range 3 {
					if mask>>fd&1 == 0 {
						continue
					}
					r, w, err := os.Pipe()
					if err != nil {
						t.Fatal(err)
					}
					if fd == 0 {
						files[fd] = r
						_ = w.Close()
						continue
					}
					files[fd] = w
					got[fd] = make(chan string, 1)
					go func() { b, _ := io.ReadAll(r); got[fd] <- string(b) }()
				}
				o.files = files
				d := newDesk(t, o, argv...)
				for _, f := range files {
					if f != nil {
						_ = f.Close()
					}
				}
				if mask == 7 {
					d.code() // no terminal at all: the desk's ends at once
				} else {
					term = d.all()
				}
				if got[1] != nil {
					out = <-got[1]
				}
				if got[2] != nil {
					errs = <-got[2]
				}
				return term, out, errs
			}
			wt, wo, we := run(agent(t, "ttys", "x", "y"))
			gt, g, ge := run(wrapped(t, "ttys", "x", "y"))
			// A process in qshim's group does not lead it; with a terminal of its
			// own it leads, as it does without qshim on this desk.
			lead := regexp.MustCompile(`leads=\w+ front=\w+`)
			if mask&3 != 0 {
				for _, s := range []*string{&wt, &wo, &we, &gt, &g, &ge} {
					*s = lead.ReplaceAllString(*s, "")
				}
			}
			if wt != gt || wo != g || we != ge {
				t.Errorf("with qshim\n%q %q %q\nwithout\n%q %q %q", gt, g, ge, wt, wo, we)
			}
		})
	}
}

// run runs a shell script with the wrapper as $Q and no terminal at all.
func run(t *testing.T, script string) (out, errs string, code int) {
	t.Helper()
	c := exec.Command("/bin/bash", "-c", script)
	c.Env = append(os.Environ(), "Q="+self(t)+" "+wrapArg, "A="+self(t)+" "+agentArg)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.WaitDelay = time.Second
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	_ = c.Run() // the exit code is what counts
	return o.String(), e.String(), c.ProcessState.ExitCode()
}

func TestPipes(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, script, out, errs string
		code                    int
	}{
		{"exact", `echo hi | $Q cat | cat`, "hi\n", "", 0},
		{"exit code", `$Q sh -c 'exit 7' </dev/null`, "", "", 7},
		{"killed", `exec 2>/dev/null; $Q sh -c 'kill -9 $$' </dev/null`, "", "", 137},
		{"apart", `$Q sh -c 'echo to-out; echo to-err >&2' </dev/null`, "to-out\n", "to-err\n", 0},
		{"order of 2>&1", `$Q sh -c 'for i in 1 2 3 4 5 6 7 8; do echo o$i; echo e$i >&2; done' </dev/null 2>&1 | cat`,
			"o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\no6\ne6\no7\ne7\no8\ne8\n", "", 0},
		{"redirections", `echo in >` + dir + `/i; $Q sh -c 'cat; echo e >&2' <` + dir + `/i 2>` + dir + `/e; cat ` + dir + `/e`, "in\ne\n", "", 0},
		{"append", `echo 1 >` + dir + `/a; $Q echo 2 >>` + dir + `/a; cat ` + dir + `/a`, "1\n2\n", "", 0},
		{"closed stdin", `$Q sh -c 'read x || echo none' <&- 2>/dev/null`, "none\n", "", 0},
		{"substitution", `x=$($Q echo one); echo "<$x>"`, "<one>\n", "", 0},
		{"no newline added", `$Q printf abc | cat; echo .`, "abc.\n", "", 0},
		{"head", `$Q $A yes | head -1; echo ${PIPESTATUS[0]}`, "yes\n141\n", "", 0},
		{"reader gone at once", `$Q $A yes | true; echo ${PIPESTATUS[0]}`, "141\n", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := run(t, c.script)
			if out != c.out || errs != c.errs || code != c.code {
				t.Errorf("out %q err %q code %d, want %q %q %d", out, errs, code, c.out, c.errs, c.code)
			}
		})
	}
}

func TestPipesBinary(t *testing.T) {
	data := make([]byte, 8<<20)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := run(t, "cat "+file+" | $Q cat | cat"); out != string(data) {
		t.Errorf("%d bytes came, want %d unchanged", len(out), len(data))
	}
	if out, _, _ := run(t, "$Q cat "+file); out != string(data) {
		t.Errorf("%d bytes came, want %d unchanged", len(out), len(data))
	}
}

// A grandchild that keeps the pipe does not keep qshim.
func TestPipesGrandchild(t *testing.T) {
	out, _, code := run(t, `$Q sh -c 'sleep 20 & echo $!' </dev/null | { read pid; echo got; cat; kill $pid; }`)
	if !strings.HasPrefix(out, "got\n") || code != 0 {
		t.Errorf("out %q code %d", out, code)
	}
}

// kill -9 of qshim is kill -9 of the agent, as without qshim.
func TestPipesNoOrphan(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := exec.Command(self(t), wrapArg, "/bin/cat")
	c.Stdin, c.Stdout = r, w
	stdin, keep, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	c.Stdin = stdin
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, err := keep.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	family := descendants(c.Process.Pid)
	if len(family) != 1 {
		t.Errorf("below qshim are %v, want the agent alone", family)
	}
	if err := c.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	waitGone(t, family)
}
