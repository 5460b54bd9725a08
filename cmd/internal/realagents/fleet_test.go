package realagents

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"qshim/cmd/internal/fakeprovider"
)

// fleetEnv makes the fleet another size: "12x4" is twelve workers that make
// four calls each.
const fleetEnv = "QSHIM_FLEET"

// fleetSize is how many workers make how many calls each.
func fleetSize() (workers, calls int) {
	if n, err := fmt.Sscanf(os.Getenv(fleetEnv), "%dx%d", &workers, &calls); err == nil && n == 2 {
		return workers, calls
	}
	return 4, 2
}

// outcome is what a fleet came to.
type outcome struct {
	refused, failed int
	took            time.Duration
}

// Workers that call an agent without a terminal again and again share an
// account whose token bucket bears far fewer: with qshim no task fails. How many
// refusals there were and how long it took is printed beside the same without;
// `claude -p` shows nothing of its retries but the last failure, so as long as
// none fails nobody hears of them, and a busy machine decides the rest.
func TestFleetSharesABucket(t *testing.T) {
	workers, calls := fleetSize()
	const cost, perMinute = 1000, 8000 // input tokens of a call, and of the account
	for _, a := range []Agent{Claude, Codex} {
		t.Run(string(a), func(t *testing.T) {
			wholeOnly(t)
			if skip == "" && !shimmed() {
				t.Skip("without qshim there is nothing to compare")
			}
			b := newBench(t, a, false, 2)
			b.control(fmt.Sprintf(`{"reply":{"input_tokens":%d,"output_tokens":50,"first_s":1},"limits":{"itpm":%d,"burst":0.25,"count_refused":true}}`, cost, perMinute))
			with := b.fleet(workers, calls, true)
			b.provider.Reset()
			b.control(fmt.Sprintf(`{"reply":{"input_tokens":%d,"output_tokens":50,"first_s":1},"limits":{"itpm":%d,"burst":0.25,"count_refused":true}}`, cost, perMinute))
			without := b.fleet(workers, calls, false)
			bound := time.Duration((float64(workers*calls*cost) - perMinute/4) / perMinute * float64(time.Minute))
			t.Logf("%d x %d calls, bound %v", workers, calls, bound.Round(time.Second))
			t.Logf("with qshim:    %+v", with)
			t.Logf("without qshim: %+v", without)
			if with.failed > 0 {
				t.Errorf("%d tasks failed with qshim", with.failed)
			}
		})
	}
}

// fleet runs every worker's calls, one after another, and counts.
func (b *bench) fleet(workers, calls int, shim bool) (o outcome) {
	b.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for w := range workers {
		wg.Go(func() {
			for c := range calls {
				if out, err := b.headless(fmt.Sprintf("worker%d call%d", w, c), shim); err != nil {
					mu.Lock()
					o.failed++
					mu.Unlock()
					b.Logf("qshim %v, worker %d: %v: %.300s", shim, w, err, out)
				}
			}
		})
	}
	wg.Wait()
	o.took = time.Since(began).Round(time.Second)
	o.refused = b.provider.Counts().Sum(fakeprovider.Provider(""), "").Limited
	return o
}

// headless asks once, without a terminal, and wants the echo of the prompt.
func (b *bench) headless(prompt string, shim bool) (string, error) {
	args := append([]string{string(b.agent)}, b.setup.Args...)
	switch b.agent {
	case Codex:
		args = append(args, "exec", "--skip-git-repo-check", prompt)
	default:
		args = append(args, "-p", prompt)
	}
	env := b.setup.Env
	if shim {
		args, env = append([]string{os.Getenv(builtAs)}, args...), append(append([]string{}, env...), b.env()...)
	}
	path, err := lookPath(args[0], env)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(b.Context(), path, args[1:]...)
	cmd.Dir, cmd.Env = b.setup.Project, env
	out, err := cmd.CombinedOutput()
	word, _, _ := strings.Cut(prompt, " ")
	if err == nil && !strings.Contains(string(out), word) {
		err = fmt.Errorf("no answer")
	}
	return string(out), err
}
