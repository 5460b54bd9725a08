//go:build linux

package soak

import (
	"bytes"
	"errors"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stopwatch measures when processes stop, and takes as little as it can of the
// processors that they stop on. To ask /proc of 100 processes each millisecond
// takes more than half of one; so only one of them is asked at a time, whether it
// has stopped yet, and when it did the kernel says afterwards: a process ran last
// when it stopped (se.exec_start in /proc/PID/sched, by the clock of the processor
// that it ran on).
type stopwatch struct {
	stats  []*os.File // /proc/PID/stat
	scheds []*os.File // /proc/PID/sched; none: this kernel does not say
}

func newStopwatch(t testing.TB, pids []int) *stopwatch {
	t.Helper()
	w := &stopwatch{}
	t.Cleanup(w.close)
	for _, pid := range pids {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/stat")
		must(t, err)
		w.stats = append(w.stats, f)
	}
	for _, pid := range pids {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/sched")
		if err == nil {
			if _, ok := lastRun(f); !ok {
				err = errors.Join(errors.New("/proc/PID/sched does not say when"), f.Close())
			}
		}
		if err != nil {
			t.Logf("each process is asked each millisecond, which takes half a processor: %v", err)
			return w
		}
		w.scheds = append(w.scheds, f)
	}
	return w
}

func (w *stopwatch) close() {
	for _, f := range append(w.stats, w.scheds...) {
		_ = f.Close() // only read from
	}
	w.stats, w.scheds = nil, nil
}

// all waits until every process is stopped and returns how long each took since
// began, sorted; fewer if that takes longer than most.
func (w *stopwatch) all(began time.Time, most time.Duration) (times []time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if len(w.scheds) == len(w.stats) {
		times = w.afterwards(began, most)
	} else {
		times = w.asking(began, most)
	}
	slices.Sort(times)
	return times
}

func (w *stopwatch) afterwards(began time.Time, most time.Duration) (times []time.Duration) {
	done := 0
	for done < len(w.stats) && time.Since(began) < most {
		if stop, _ := lookStat(w.stats[done]); !stop {
			pause(time.Millisecond)
			continue
		}
		done++
	}
	clocks := map[int]time.Duration{}
	for i := range done {
		_, cpu := lookStat(w.stats[i])
		ran, ok := lastRun(w.scheds[i])
		if !ok {
			continue
		}
		if _, known := clocks[cpu]; !known {
			clocks[cpu] = clockOf(cpu, began)
		}
		times = append(times, ran+clocks[cpu])
	}
	return times
}

func (w *stopwatch) asking(began time.Time, most time.Duration) (times []time.Duration) {
	left := slices.Clone(w.stats)
	for ; len(left) > 0 && time.Since(began) < most; pause(time.Millisecond) {
		left = slices.DeleteFunc(left, func(f *os.File) bool {
			stop, _ := lookStat(f)
			if stop {
				times = append(times, time.Since(began))
			}
			return stop
		})
	}
	return times
}

// lookStat says whether a process is stopped, and on which processor it ran last.
func lookStat(f *os.File) (stop bool, cpu int) {
	var buf [512]byte
	n, err := unix.Pread(int(f.Fd()), buf[:], 0)
	i := bytes.LastIndexByte(buf[:max(n, 0)], ')')
	if err != nil || i < 0 {
		return false, -1
	}
	fields := bytes.Fields(buf[i+1 : n]) // the third of stat(5) is the first of these
	if len(fields) < 37 {
		return false, -1
	}
	cpu, _ = strconv.Atoi(string(fields[36]))
	return fields[0][0] == 'T', cpu
}

// lastRun is when a process ran last, by its processor's clock.
func lastRun(f *os.File) (at time.Duration, ok bool) {
	var buf [1024]byte
	n, err := unix.Pread(int(f.Fd()), buf[:], 0)
	_, rest, found := bytes.Cut(buf[:max(n, 0)], []byte("se.exec_start"))
	if err != nil || !found {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	_, text, _ := bytes.Cut(line, []byte(":"))
	ms, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
	return time.Duration(ms * float64(time.Millisecond)), err == nil
}

// clockOf is what must be added to a processor's clock to have the time since
// began. These clocks leave out what the host of a virtual machine took, so each
// is another; ours ran last when it was woken, just before it looks.
func clockOf(cpu int, began time.Time) time.Duration {
	var was, one unix.CPUSet
	_ = unix.SchedGetaffinity(0, &was)
	one.Set(cpu)
	_ = unix.SchedSetaffinity(0, &one)
	defer func() { _ = unix.SchedSetaffinity(0, &was) }()
	f, err := os.Open("/proc/thread-self/sched")
	if err != nil {
		return 0
	}
	defer f.Close()
	least := time.Duration(math.MaxInt64)
	for range 10 {
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 100_000}, nil) // shorter if interrupted
		now := time.Since(began)
		if ran, ok := lastRun(f); ok {
			least = min(least, now-ran)
		}
	}
	return least
}
