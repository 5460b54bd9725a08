//go:build !race

package detect

import "testing"

// OneGoroutine is for the race detector alone.
func OneGoroutine(*testing.T) {}
