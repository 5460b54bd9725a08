package lockfile

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"
)

// TestStuckLock: a sibling that never lets go costs one waiting thread, however
// often we try, and nothing once it has let go.
func TestStuckLock(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	stuck, d := open(t, place), open(t, place)
	mustUpdate(t, stuck, func(l Ledger) (Ledger, []Event) {
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			if _, err := d.UpdateOwn(ctx, step); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if n := runtime.NumGoroutine(); n > before+1 {
			t.Errorf("%d goroutines more", n-before)
		}
		return l, nil
	})
	for i := range 3 {
		if n := whole(t, d, mustUpdate(t, d, step), true); n != i+1 {
			t.Errorf("%d of %d updates", n, i+1)
		}
		mustUpdate(t, stuck, func(l Ledger) (Ledger, []Event) { return l, nil })
	}
}
