//go:build !linux

package shim

import "golang.org/x/sys/unix"

// poller is poll.
type poller struct{}

func newPoller() *poller { return &poller{} }

func (*poller) wait(fds []unix.PollFd, timeout int) (int, error) { return poll(fds, timeout) }
func (*poller) waitHere([]unix.PollFd) int                       { return 0 }
func (*poller) forget(int)                                       {}
func (*poller) close()                                           {}

func readNow(fd int, b []byte) (int, error)  { return unix.Read(fd, b) }
func writeNow(fd int, b []byte) (int, error) { return unix.Write(fd, b) }
