package lockfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fleet opens n stores on one directory, each with a session of its own, as n
// shims would. Each has its own descriptors, so they meet in the kernel.
func fleet(tb testing.TB, n int) ([]*Dir, []Lease) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "state")
	dirs, leases := make([]*Dir, n), make([]Lease, n)
	for i := range dirs {
		d, err := Open(path, Options{})
		if err != nil {
			tb.Fatal(err)
		}
		dirs[i] = d
		lease, err := d.Lease(Session{ID: fmt.Sprintf("s%03d", i), Agent: "claude", Cwd: "/home/someone/project", Limiters: []string{"anthropic/3f9a00112233", "anthropic@source"}, State: Idle, Priority: Interactive, PID: os.Getpid(), ChildPID: 5000 + i, ChildStart: 123456})
		if err != nil {
			tb.Fatal(err)
		}
		leases[i] = lease
		tb.Cleanup(func() {
			if err := lease.Close(); err != nil {
				tb.Error(err)
			}
			_ = d.Close()
		})
	}
	return dirs, leases
}

// turnTo is what a shim does at the edge of a turn.
func turnTo(id string, at time.Time) func(Ledger) (Ledger, []Event) {
	return func(l Ledger) (Ledger, []Event) {
		s := l.Sessions[id]
		s.State, s.Since = Running, at
		l.Sessions[id] = s
		return l, nil
	}
}

func quantiles(tb testing.TB, all []time.Duration) (p50, p99 time.Duration) {
	tb.Helper()
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return all[len(all)/2], all[len(all)*99/100]
}

func report(b *testing.B, all []time.Duration) {
	p50, p99 := quantiles(b, all)
	b.ReportMetric(float64(p50.Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// paced calls do from 200 shims once a second, or without a pause.
func paced(b *testing.B, pause time.Duration, rounds int, do func(d *Dir, l Lease) error) {
	dirs, leases := fleet(b, 200)
	var mu sync.Mutex
	var all []time.Duration
	var failed atomic.Int64
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, d := range dirs {
		wg.Go(func() {
			<-time.After(time.Duration(i) * pause / 200)
			tick := time.NewTicker(max(pause, 1))
			defer tick.Stop()
			for range rounds {
				begin := time.Now()
				err := do(d, leases[i])
				took := time.Since(begin)
				if err != nil {
					failed.Add(1)
				}
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
				<-tick.C
			}
		})
	}
	wg.Wait()
	report(b, all)
	b.ReportMetric(float64(failed.Load()), "failed")
}

// The edge of a turn, as a shim records it.
func edge(d *Dir, l Lease) error {
	return l.Record(func(s *Session) { s.State, s.Since = Running, time.Now() })
}

// A whole update that reads all siblings and writes one of 200 limiters.
func hold(d *Dir, l Lease) error {
	_, err := d.Update(context.Background(), func(led Ledger) (Ledger, []Event) {
		led.Limiters[l.ID()] = Limiter{LastHit: time.Now()}
		return led, nil
	})
	return err
}

func both(d *Dir, l Lease) error {
	_, err := d.Update(context.Background(), turnTo(l.ID(), time.Now()))
	return err
}

func ownOnly(d *Dir, l Lease) error {
	_, err := d.UpdateOwn(context.Background(), turnTo(l.ID(), time.Now()))
	return err
}

func BenchmarkPacedOwn(b *testing.B)     { paced(b, time.Second, 5, ownOnly) }
func BenchmarkPacedRecord(b *testing.B)  { paced(b, time.Second, 5, edge) }
func BenchmarkPacedUpdate(b *testing.B)  { paced(b, time.Second, 5, both) }
func BenchmarkPacedLimiter(b *testing.B) { paced(b, time.Second, 5, hold) }

// As fast as they can: a rate that no fleet reaches, to see that it degrades
// and does not lose anything silently.
func BenchmarkClosedRecord(b *testing.B) { paced(b, 0, 20, edge) }
func BenchmarkClosedOwn(b *testing.B)    { paced(b, 0, 20, ownOnly) }
func BenchmarkClosedUpdate(b *testing.B) { paced(b, 0, 5, both) }

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{1, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dirs, _ := fleet(b, n)
			d := dirs[0]
			<-time.After(50 * time.Millisecond)
			for b.Loop() {
				if _, err := d.Update(context.Background(), turnTo("s000", time.Now())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRead200(b *testing.B) {
	dirs, _ := fleet(b, 200)
	d := dirs[0]
	<-time.After(50 * time.Millisecond)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGlance200(b *testing.B) {
	dirs, _ := fleet(b, 200)
	for b.Loop() {
		if _, err := dirs[0].Glance(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "state")
	for b.Loop() {
		d, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		l, err := d.Lease(Session{Agent: "claude"})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		_ = d.Close()
	}
}
