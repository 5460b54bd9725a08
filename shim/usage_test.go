package shim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qshim/detect"
	"qshim/policies"
)

// The ledger hears of consumption in steps, and of the rest along with what it
// hears anyway.
func TestUsageIsToldInSteps(t *testing.T) {
	end := time.Date(2026, 11, 29, 17, 0, 0, 0, time.UTC)
	share := func(used float64, ends time.Time) []detect.Share {
		return []detect.Share{{Used: 44, Window: 168 * time.Hour, Ends: end.Add(72 * time.Hour)}, {Used: used, Window: 5 * time.Hour, Ends: ends}}
	}
	var c consumption
	for i, step := range []struct {
		u    detect.Usage
		also bool
		want policies.Usage
	}{
		{u: detect.Usage{}},
		{u: detect.Usage{Context: 12000, Spent: 12004}, want: policies.Usage{Context: 12000, Spent: 12004}},
		{u: detect.Usage{Context: 12500, Spent: 13000}},
		{u: detect.Usage{Context: 12600, Spent: 13500}, also: true, want: policies.Usage{Context: 12600, Spent: 1496}},
		{u: detect.Usage{Context: 12600, Spent: 13500}, also: true},
		{u: detect.Usage{Context: 13900, Spent: 15000}, want: policies.Usage{Context: 13900, Spent: 1500}},
		{u: detect.Usage{Context: 13900, Spent: 25000}, want: policies.Usage{Spent: 10000}},
		{u: detect.Usage{Context: 13900, Spent: 25000, Shares: share(12, end)}, want: policies.Usage{Told: true, Used: 12, Window: 5 * time.Hour, Ends: end}},
		{u: detect.Usage{Context: 13900, Spent: 25000, Shares: share(12.4, end.Add(time.Second))}},
		{u: detect.Usage{Context: 13900, Spent: 25000, Shares: share(13, end)}, want: policies.Usage{Told: true, Used: 13, Window: 5 * time.Hour, Ends: end}},
		{u: detect.Usage{Context: 13900, Spent: 25000, Shares: share(13, end.Add(5*time.Hour))},
			want: policies.Usage{Told: true, Used: 13, Window: 5 * time.Hour, Ends: end.Add(5 * time.Hour)}},
		// The failed task is run again, by a new process that counts from nothing.
		{u: detect.Usage{Spent: 500}, also: true, want: policies.Usage{Spent: 500}},
		{u: detect.Usage{Context: 14000, Spent: 15000}, want: policies.Usage{Context: 14000, Spent: 14500}},
	} {
		if diff := cmp.Diff(step.want, c.news(step.u, step.also)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}
