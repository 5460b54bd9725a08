package shim

import "testing"

// A pause drains what waits for the user's terminal. That the terminal was then
// found writable for it, in the same round, is no hangup: the agent would be
// sent SIGHUP.
func TestDrainedStreamIsNotLost(t *testing.T) {
	s := &Session{}
	st := newStream(Output, -1, 1, true)
	s.streams = []*stream{st}
	if s.pump(st, false, true); st.dst < 0 || s.gone {
		t.Error("a terminal that was drained in the same round was taken for lost")
	}
}
