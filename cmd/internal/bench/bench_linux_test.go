package main

import (
	"os"
	"testing"
)

// leaves fails when a child of ours is left.
func leaves(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		for pid, parent := range parents() {
			if parent == os.Getpid() {
				t.Errorf("process %d is left", pid)
			}
		}
	})
}
