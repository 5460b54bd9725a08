//go:build race

package detect

import "testing"

// OneGoroutine skips what runs long in one goroutine, where the race detector
// has nothing to find: .ci/run runs it without.
func OneGoroutine(t *testing.T) {
	t.Helper()
	t.Skip("one goroutine: runs without the race detector")
}
