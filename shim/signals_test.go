package shim

import (
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEarlySignals: what comes before the session has started is the agent's;
// where there is to be no session it is qshim's again.
func TestEarlySignals(t *testing.T) {
	ours := make(chan os.Signal, 1) // so that the test's own process outlives it
	signal.Notify(ours, unix.SIGUSR2)
	defer signal.Stop(ours)
	raise := func() {
		t.Helper()
		if err := unix.Kill(os.Getpid(), unix.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		<-ours
	}

	early := CatchSignals()
	<-early.all
	raise()
	w, err := newWaker()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = unix.Close(w.r), unix.Close(w.w) }()
	w.watchSignals(early)
	for got := uint64(0); got&bit(unix.SIGUSR2) == 0; got |= w.take() { // the suite's time limit ends it
		fds := []unix.PollFd{{Fd: int32(w.r), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		w.clear()
	}
	w.close()

	raise() // after the session: still caught, so that nothing dies of it
	early.Release()
	early.Release()

	unused := CatchSignals()
	<-unused.all
	raise()
	unused.Release()
	<-ours // it came again
	var none *Caught
	none.Release()
}
