package term

import "golang.org/x/sys/unix"

// MakeCbreak makes keys readable one by one and unseen, but leaves Ctrl-C and
// Ctrl-Z to the kernel, so that a launch that waits is an ordinary job of the
// shell. Restore undoes it.
func (t *Terminal) MakeCbreak() error {
	now, err := unix.IoctlGetTermios(t.fd, getTermios)
	if err != nil {
		return err
	}
	if !t.wasRaw || *now != t.raw {
		t.saved = *now
	}
	raw := t.saved
	raw.Lflag &^= unix.ECHO | unix.ICANON
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := ioctlRetry(func() error { return unix.IoctlSetTermios(t.fd, setTermios, &raw) }); err != nil {
		return err
	}
	t.raw, t.wasRaw = raw, true
	return nil
}
