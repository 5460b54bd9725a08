// Package term is what qshim does to the user's terminal: raw mode and its
// exact restoration, sizes, modes that the agent left on, the pause row and
// notices. It prints nothing that its caller did not hand in.
package term

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Terminal is the user's terminal, seen through descriptors of our own.
type Terminal struct {
	fd     int // an open file of our own, non-blocking, if own; else the caller's
	own    bool
	saved  unix.Termios // as the shell left it
	raw    unix.Termios // as we set it; zero before MakeRaw
	wasRaw bool         // raw is on the terminal now, as far as we know
}

// IsTerminal reports whether fd is a terminal.
func IsTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil
}

// Open opens the terminal behind fd once more. The new descriptor is
// non-blocking; the caller's is never made so, because that flag belongs to
// the open file, which the shell and the user's other programs share.
// Where it cannot be opened (another user's terminal after su, another mount
// namespace) fd itself is used and Write may block.
func Open(fd int) (*Terminal, error) {
	t := &Terminal{fd: fd}
	if own, err := reopen(fd); err == nil {
		t.fd, t.own = own, true
	}
	saved, err := unix.IoctlGetTermios(t.fd, getTermios)
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.saved = *saved
	return t, nil
}

// FD is the descriptor to read from, write to and poll.
func (t *Terminal) FD() int { return t.fd }

// Own reports that FD is our own and non-blocking.
func (t *Terminal) Own() bool { return t.own }

// Close closes the descriptor. It restores nothing.
func (t *Terminal) Close() error {
	if !t.own {
		return nil
	}
	t.own = false
	return unix.Close(t.fd)
}

// Saved is the terminal's state as it was before MakeRaw: what the agent would
// have found.
func (t *Terminal) Saved() unix.Termios { return t.saved }

// MakeRaw makes the terminal pass every byte. It remembers the state that it
// finds, so after a stop it also learns what the user changed meanwhile, but
// never takes its own raw state for the user's.
func (t *Terminal) MakeRaw() error {
	now, err := unix.IoctlGetTermios(t.fd, getTermios)
	if err != nil {
		return err
	}
	if !t.wasRaw || *now != t.raw {
		t.saved = *now
	}
	raw := t.saved
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag &^= unix.CSIZE | unix.PARENB
	raw.Cflag |= unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := ioctlRetry(func() error { return unix.IoctlSetTermios(t.fd, setTermios, &raw) }); err != nil {
		return err
	}
	// The kernel may not take every bit: compare later with what it kept.
	if kept, err := unix.IoctlGetTermios(t.fd, getTermios); err == nil {
		raw = *kept
	}
	t.raw, t.wasRaw = raw, true
	return nil
}

// Restore puts the saved state back, after all output has been taken. It does
// nothing if MakeRaw was never called since, and must only be called in the
// foreground: elsewhere the kernel stops the caller.
func (t *Terminal) Restore() error {
	if !t.wasRaw {
		return nil
	}
	t.wasRaw = false
	return ioctlRetry(func() error { return unix.IoctlSetTermios(t.fd, setTermiosDrain, &t.saved) })
}

// IsRaw reports whether MakeRaw is in force.
func (t *Terminal) IsRaw() bool { return t.wasRaw }

// Foreground reports whether qshim's process group is in the terminal's
// foreground. A terminal that does no job control for us (not our controlling
// one) counts as yes.
func (t *Terminal) Foreground() bool {
	pgrp, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err != nil || pgrp == unix.Getpgrp()
}

// Alive reports whether the terminal is still there (not hung up).
func (t *Terminal) Alive() bool { return IsTerminal(t.fd) }

// Size is the terminal's size with its pixels.
func (t *Terminal) Size() (unix.Winsize, error) {
	ws, err := unix.IoctlGetWinsize(t.fd, unix.TIOCGWINSZ)
	if err != nil {
		return unix.Winsize{}, err
	}
	return *ws, nil
}

func ioctlRetry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// SetState sets a terminal's termios at once; it is how the agent's new
// terminal gets the user's erase key, UTF-8 flag and so on.
func SetState(fd int, t *unix.Termios) error {
	return ioctlRetry(func() error { return unix.IoctlSetTermios(fd, setTermios, t) })
}

// State reads a terminal's termios.
func State(fd int) (unix.Termios, error) {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return unix.Termios{}, err
	}
	return *t, nil
}

// SetSize sets the window size of the terminal behind fd.
func SetSize(fd int, ws unix.Winsize) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &ws) }

// Same reports whether two descriptors are the same terminal or file.
func Same(a, b int) bool {
	var x, y unix.Stat_t
	if unix.Fstat(a, &x) != nil || unix.Fstat(b, &y) != nil {
		return false
	}
	return x.Dev == y.Dev && x.Ino == y.Ino && x.Rdev == y.Rdev
}
