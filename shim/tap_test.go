package shim

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func collect(t *Tap) (s string) {
	for _, it := range t.Take() {
		mark := ""
		if it.Dropped {
			mark = "!"
		}
		switch it.Kind {
		case Output, Stdout, Stderr:
			s += mark + "[" + string(it.Data) + "]"
		case Input:
			s += "<" + string(it.Data) + ">"
		default:
			s += "."
		}
	}
	return s
}

func TestTapKeepsOrder(t *testing.T) {
	tap := NewTap()
	tap.output(Output, []byte("a"), 1)
	tap.output(Output, []byte("b"), 2)
	tap.input([]byte("k"), false)
	tap.output(Output, []byte("c"), 3)
	tap.event(Item{Kind: Resized})
	tap.output(Stderr, []byte("e"), 3)
	<-tap.Ready()
	if got, want := collect(tap), "[ab]<k>[c].[e]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := collect(tap); got != "" {
		t.Errorf("taken twice: %s", got)
	}
}

// The reader is woken at once after a rest, and then not before it is due.
func TestTapWakes(t *testing.T) {
	tap := NewTap()
	now := time.Unix(1, 0)
	tap.now = func() time.Time { return now }
	woken := func() bool {
		select {
		case <-tap.Ready():
			return true
		default:
			return false
		}
	}
	if got := tap.output(Output, []byte("a"), 1); got != tapTold || !woken() {
		t.Error("not woken for the first output")
	}
	if got := tap.output(Output, []byte("b"), 2); got != tapOwed || woken() {
		t.Error("woken twice at once")
	}
	tap.input([]byte("k"), false)
	if woken() {
		t.Error("woken for a key that the agent has")
	}
	tap.input([]byte("\x1b[13u"), false)
	if !woken() {
		t.Error("not woken for Enter")
	}
	tap.tell()
	if !woken() {
		t.Error("not woken when due")
	}
	now = now.Add(tapPace)
	if got := tap.output(Output, []byte("c"), 3); got != tapTold || !woken() {
		t.Error("not woken after a rest")
	}
}

// A flood costs the reader its output, but no other item, and ends in its tail.
func TestTapFlood(t *testing.T) {
	tap := NewTap()
	tap.output(Output, []byte("early"), 5)
	tap.event(Item{Kind: Resized})
	block := bytes.Repeat([]byte("x"), 32<<10)
	total := uint64(5)
	flooding := false
	for range 100 {
		total += uint64(len(block))
		flooding = tap.output(Output, block, total) == tapFlood
	}
	if !flooding {
		t.Fatal("3 MiB are no flood")
	}
	tap.output(Output, []byte("end"), total+3)
	if got := collect(tap); got != "." {
		t.Errorf("before the flood settles: %.40q", got)
	}
	tap.settle()
	items := tap.Take()
	if len(items) != 1 || !items[0].Dropped || len(items[0].Data) != tapTail || !bytes.HasSuffix(items[0].Data, []byte("xend")) || items[0].Total != total+3 {
		t.Fatalf("after the flood: %d items", len(items))
	}
	tap.output(Output, []byte("after"), total+8)
	if got := collect(tap); got != "[after]" {
		t.Errorf("after: %q", got)
	}
}

// A reader that keeps up gets a burst whole, and of a stream without end only
// what an eye could follow.
func TestTapAllowance(t *testing.T) {
	tap := NewTap()
	var now time.Time
	tap.now = func() time.Time { return now }
	block := bytes.Repeat([]byte("x"), 4<<10)
	send := func(n int, pace time.Duration) (got int, dropped bool) {
		for i := range n {
			now = now.Add(pace)
			flooding := tap.output(Output, block, 0) == tapFlood
			if flooding && i%2000 == 1999 { // floodMost at this pace
				tap.settle()
			}
			for _, it := range tap.Take() {
				got += len(it.Data)
				dropped = dropped || it.Dropped
			}
		}
		return got, dropped
	}
	if got, dropped := send(100, 0); got != 100*len(block) || dropped {
		t.Errorf("of a burst of 400 KiB came %d bytes, dropped %v", got, dropped)
	}
	now = now.Add(time.Second)
	if got, dropped := send(5000, 2*time.Millisecond); got != 5000*len(block) || dropped {
		t.Errorf("of 20 MiB at 2 MB/s came %d bytes, dropped %v", got, dropped)
	}
	if got, dropped := send(5000, 100*time.Microsecond); got > 2<<20 || !dropped {
		t.Errorf("of 20 MiB at 40 MB/s came %d bytes, dropped %v", got, dropped)
	}
}

// An event in a flood comes after the output that it followed.
func TestTapEventEndsFlood(t *testing.T) {
	tap := NewTap()
	for range 20 {
		tap.output(Output, bytes.Repeat([]byte("x"), 32<<10), 0)
	}
	tap.event(Item{Kind: Paused})
	if got := collect(tap); !strings.HasPrefix(got, "![x") || !strings.HasSuffix(got, "x].") {
		t.Errorf("got %.20q … %.20q", got, got[max(0, len(got)-20):])
	}
}

// A reader that never takes costs a bounded amount of memory.
func TestTapIsBounded(t *testing.T) {
	tap := NewTap()
	for range 100_000 {
		tap.input([]byte("key"), true)
		tap.output(Output, []byte("echo"), 0)
	}
	if n := len(tap.buf) + cap(tap.tail); n > 4*tapSize {
		t.Errorf("%d bytes held", n)
	}
	if n := len(tap.items); n > 2*tapItems+2 {
		t.Errorf("%d items held", n)
	}
}

func TestTapDoesNotAllocate(t *testing.T) {
	tap := NewTap()
	b, k := bytes.Repeat([]byte("y"), 4096), []byte("k")
	if n := testing.AllocsPerRun(200, func() {
		for range 8 {
			tap.output(Output, b, 0)
			tap.input(k, false)
		}
		tap.Take()
	}); n > 0.1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTap(b *testing.B) {
	tap := NewTap()
	block := bytes.Repeat([]byte("y"), 4096)
	b.SetBytes(int64(len(block)))
	b.ReportAllocs()
	for b.Loop() {
		tap.output(Output, block, 0)
		tap.Take()
	}
}
