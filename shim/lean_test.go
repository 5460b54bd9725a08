package shim

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestLean: memory is given back after the start, and after each flood when the
// agent has shown nothing for a while; nothing ticks in between.
func TestLean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gave atomic.Int32
		l := newLean(func() { gave.Add(1) })
		after := func(d time.Duration, want int32, what string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if gave := gave.Load(); gave != want {
				t.Errorf("%s: given back %d times, want %d", what, gave, want)
			}
		}
		l.item(Item{Kind: Output, Data: make([]byte, 100)})
		after(leanStart, 1, "a second after the start")
		l.item(Item{Kind: Output, Data: make([]byte, leanFlood)})
		after(time.Hour, 1, "an agent that writes as agents do")
		l.item(Item{Kind: Stdout, Data: make([]byte, 1)})
		after(leanQuiet-time.Millisecond, 1, "a flood that has just ended")
		l.item(Item{Kind: Output, Dropped: true})
		after(time.Millisecond, 1, "a flood that goes on")
		after(leanQuiet, 2, "the flood is over")
		l.item(Item{Kind: Input, Data: make([]byte, 2*leanFlood)})
		after(time.Hour, 2, "a paste is no output")
		l.item(Item{Kind: Stderr, Dropped: true})
		l.end()
		after(time.Hour, 2, "the session has ended")
	})
}

// TestTapShrinks: what was handed out stays, and what comes next is whole.
func TestTapShrinks(t *testing.T) {
	tap := NewTap()
	tap.output(Output, []byte("first"), 5)
	got := tap.Take()
	tap.output(Output, []byte("second"), 11)
	tap.shrink()
	next := tap.Take()
	tap.shrink()
	if string(got[0].Data) != "first" || string(next[0].Data) != "second" {
		t.Errorf("got %q and %q", got[0].Data, next[0].Data)
	}
	if tap.shrink(); cap(tap.buf)+cap(tap.takenBuf)+cap(tap.tail) != 0 {
		t.Error("an idle tap keeps its buffers")
	}
}
