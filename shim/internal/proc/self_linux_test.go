package proc

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestHushStops: the kernel is asked to be silent, and, however many asked in
// between, to speak again.
func TestHushStops(t *testing.T) {
	silent := func() bool {
		var act [64]byte
		if errno := sigaction(unix.SIGCHLD, nil, &act); errno != 0 {
			t.Fatal(errno)
		}
		return *(*uintptr)(unsafe.Pointer(&act[unsafe.Sizeof(uintptr(0))]))&noStopNews != 0
	}
	if silent() {
		t.Fatal("silent before it was asked")
	}
	first := HushStops()
	second := HushStops()
	if !silent() {
		t.Error("not silent")
	}
	first()
	second()
	if silent() {
		t.Error("still silent")
	}
}
