//go:build !faults

package fault

import "time"

// Err is nil.
func Err(string) error { return nil }

// At does nothing.
func At(string) {}

// Fast is d; where a build with faults injects a stall, no test waits so long.
func Fast(d time.Duration) time.Duration { return d }

// Clock is now.
func Clock(now func() time.Time) func() time.Time { return now }
