//go:build faults

package fault

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// What to inject, in the environment:
//
//	QSHIM_FAULT=kill@STEP[#N]       SIGKILL at the N-th time that STEP is reached (from 1)
//	QSHIM_FAULT=stall@STEP[#N]      never come back from it
//	QSHIM_FAULT=panic@STEP[#N]      panic in it
//	QSHIM_FAULT=panicking@STEP[#N]  panic in it from the N-th time on
//	QSHIM_FAULT=full@STEP[#N]       ENOSPC from the N-th time on, where the step can fail
//	QSHIM_FAULT=errno:NUMBER@STEP   that error at every time
//	QSHIM_FAULT=random:SEED:SHARE:N SIGKILL at any step from the N-th on with that probability
//	QSHIM_FAULT_AFTER=STEP          nothing before that one
//	QSHIM_FAULT_TRACE=FILE          append "PID STEP" for each step; with random for the last
//
// STEP is a name as given to At or Err, or its beginning with a "*" behind it.
const (
	whatEnv  = "QSHIM_FAULT"
	afterEnv = "QSHIM_FAULT_AFTER"
	traceEnv = "QSHIM_FAULT_TRACE"
)

type plan struct {
	sync.Mutex
	kind, step string
	after      string
	from, seen int
	errno      syscall.Errno
	dice       *rand.Rand
	share      float64
	trace      *os.File
}

var armed = parse(os.Getenv(whatEnv), os.Getenv(traceEnv))

func parse(what, trace string) *plan {
	p := &plan{from: 1, after: os.Getenv(afterEnv)}
	if trace != "" {
		p.trace, _ = os.OpenFile(trace, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if rest, ok := strings.CutPrefix(what, "random:"); ok {
		seed, share, _ := strings.Cut(rest, ":")
		share, from, _ := strings.Cut(share, ":")
		p.from, _ = strconv.Atoi(from)
		n, _ := strconv.ParseUint(seed, 10, 64)
		p.kind, p.dice = "random", rand.New(rand.NewPCG(n, n+1))
		p.share, _ = strconv.ParseFloat(share, 64)
		return p
	}
	kind, step, ok := strings.Cut(what, "@")
	if !ok {
		return p
	}
	p.kind, p.step = kind, step
	if name, n, ok := strings.Cut(step, "#"); ok {
		p.step = name
		p.from, _ = strconv.Atoi(n)
	}
	if n, ok := strings.CutPrefix(kind, "errno:"); ok {
		v, _ := strconv.Atoi(n)
		p.kind, p.errno = "errno", syscall.Errno(v)
	}
	return p
}

// At is a step that cannot fail.
func At(step string) { _ = Err(step) }

// Err is a step that can.
func Err(step string) error { return armed.reach(step) }

func (p *plan) reach(step string) error {
	kind := p.due(step)
	switch kind {
	case "kill", "random":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	case "stall":
		for {
			time.Sleep(time.Hour)
		}
	case "panic", "panicking":
		panic(errors.New("injected at " + step))
	case "full":
		return fmt.Errorf("injected at %s: %w", step, syscall.ENOSPC)
	case "errno":
		return p.errno
	}
	return nil
}

func (p *plan) note(step string) {
	if p.trace != nil {
		_, _ = fmt.Fprintf(p.trace, "%d %s\n", os.Getpid(), step)
	}
}

// due says what is to happen now.
func (p *plan) due(step string) string {
	p.Lock()
	defer p.Unlock()
	if p.after != "" {
		if p.after == step {
			p.after = ""
		}
		return ""
	}
	if p.dice != nil {
		if p.seen++; p.seen < p.from || p.dice.Float64() >= p.share {
			return ""
		}
		p.note(step)
		return p.kind
	}
	p.note(step)
	if p.kind == "" {
		return ""
	}
	if front, any := strings.CutSuffix(p.step, "*"); step != p.step && !(any && strings.HasPrefix(step, front)) {
		return ""
	}
	p.seen++
	if p.seen == p.from || p.seen > p.from && (p.kind == "full" || p.kind == "errno" || p.kind == "panicking") {
		return p.kind
	}
	return ""
}

// Fast makes a patience shorter where a stall is injected, for tests that wait
// for its end. Without one it stays: a loaded machine is no stall.
func Fast(d time.Duration) time.Duration {
	if armed.kind == "stall" {
		return d / 8
	}
	return d
}

// Clock is now, set by what the file in QSHIM_FAULT_CLOCK says, a duration.
func Clock(now func() time.Time) func() time.Time {
	file := os.Getenv("QSHIM_FAULT_CLOCK")
	if file == "" {
		return now
	}
	return func() time.Time {
		b, _ := os.ReadFile(file)
		d, _ := time.ParseDuration(strings.TrimSpace(string(b)))
		return now().Round(0).Add(d) // a clock that was set has no monotonic part
	}
}
