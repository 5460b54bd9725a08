package shim

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"

	"qshim/shim/term"
)

// belt is a session's loop between an agent's end that the test writes and a
// user's end that takes everything, with a reader at the tap.
type belt struct {
	tb    testing.TB
	s     *Session
	agent int // what the agent writes to
}

// newBelt makes one; terminal: the agent is on a terminal, else on a pipe, which
// moves more at once and shows what the loop itself costs.
func newBelt(tb testing.TB, terminal bool) *belt {
	tb.Helper()
	sink, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	wake, err := newWaker()
	if err != nil {
		tb.Fatal(err)
	}
	var src, agent int
	if terminal {
		src, agent, err = term.OpenPTY()
		if err == nil {
			_, err = xterm.MakeRaw(agent)
		}
	} else {
		var p [2]int
		err = unix.Pipe(p[:])
		src, agent = p[0], p[1]
		err = joined(err, unix.SetNonblock(src, true))
	}
	if err != nil {
		tb.Fatal(err)
	}
	s := &Session{opt: Options{Tap: NewTap()}, wake: wake, stdin: -1, master: src, inFD: src, fg: true, poll: newPoller()}
	s.heart.stuck = func() { tb.Error("the loop is stuck") }
	s.streams = []*stream{newStream(Output, src, int(sink.Fd()), true)}
	tb.Cleanup(func() {
		s.poll.close()
		for _, fd := range []int{src, agent, wake.r, wake.w} {
			_ = unix.Close(fd)
		}
		_ = sink.Close()
	})
	return &belt{tb, s, agent}
}

func joined(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// carry brings a block from the agent to the user.
func (c *belt) carry(block []byte) {
	for len(block) > 0 { // a terminal takes a part
		n, err := unix.Write(c.agent, block)
		if err != nil {
			c.tb.Fatal(err)
		}
		for upTo := c.s.total + uint64(n); c.s.total < upTo; {
			c.s.round()
		}
		block = block[n:]
	}
	select {
	case <-c.s.opt.Tap.Ready():
		c.s.opt.Tap.Take()
	default:
	}
}

// What is carried at once: a frame of a TUI, and what a flood has in store.
var (
	frameBlock = bytes.Repeat([]byte("\x1b[20;1H\x1b[38;5;4m✻\x1b[0m Working"), 100)
	floodBlock = bytes.Repeat([]byte("0123456789abcdef"), chunk/16)
)

// TestLoopDoesNotAllocate: in steady state a round of the loop makes no garbage,
// for output on a terminal, for a flood, or for keys.
func TestLoopDoesNotAllocate(t *testing.T) {
	for name, c := range map[string]struct {
		belt  *belt
		block []byte
	}{
		"frames of a terminal": {newBelt(t, true), frameBlock},
		"a flood":              {newBelt(t, false), floodBlock},
	} {
		for range 100 { // the tap's buffers grow up to what a reader lets wait
			c.belt.carry(c.block)
		}
		if n := testing.AllocsPerRun(300, func() { c.belt.carry(c.block) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	c := newBelt(t, true)
	key := []byte("k")
	if n := testing.AllocsPerRun(300, func() {
		b := c.s.report.cut(key)
		c.s.watchKeys(b)
		c.s.input.add(b)
		c.s.input.flush(c.s.inFD)
		c.s.opt.Tap.input(b, false)
		c.s.opt.Tap.Take()
	}); n > 0 {
		t.Errorf("keys: %v allocations", n)
	}
}

// BenchmarkPump is the whole way of output through the loop, detection's tap
// included: write by the agent, poll, read, write to the user.
func BenchmarkPump(b *testing.B) {
	for _, c := range []struct {
		name     string
		terminal bool
		block    []byte
	}{{"terminal", true, frameBlock}, {"flood", false, floodBlock}} {
		b.Run(c.name, func(b *testing.B) {
			belt := newBelt(b, c.terminal)
			belt.carry(c.block)
			b.SetBytes(int64(len(c.block)))
			b.ReportAllocs()
			for b.Loop() {
				belt.carry(c.block)
			}
		})
	}
}
