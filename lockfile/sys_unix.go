//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package lockfile

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// The open flags of this package. Nothing is opened through a link, nothing
// blocks (a FIFO in a file's place), nothing is inherited by the agent: an
// inherited lease would keep a dead session alive.
const (
	always   = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
	forRead  = unix.O_RDONLY | always
	forLock  = unix.O_RDWR | unix.O_CREAT | always
	forNew   = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | always
	forTail  = unix.O_RDWR | unix.O_CREAT | unix.O_APPEND | always
	forWrite = unix.O_RDWR | always
	// Opening a directory never blocks, and os.File would try to poll it.
	forDir = unix.O_RDONLY | unix.O_DIRECTORY | always&^unix.O_NONBLOCK
	here   = unix.AT_FDCWD
)

// The ways to flock: flock(2) only, never fcntl, whose locks vanish as soon as
// the process closes any descriptor of the file.
const (
	shared    = unix.LOCK_SH | unix.LOCK_NB
	exclusive = unix.LOCK_EX
	exclusNB  = unix.LOCK_EX | unix.LOCK_NB
)

// fileID tells two versions of a file apart (but see sure in scan.go).
type fileID struct {
	dev, ino uint64
	mtime    int64 // nanoseconds
	size     int64
}

// stat is what we ask of a file.
type stat struct {
	fileID
	mode   fs.FileMode
	uid    int
	blocks int64 // 512 bytes each
	ctime  int64 // nanoseconds
}

// again repeats a call that a signal interrupted: x/sys does not.
func again[T any](call func() (T, error)) (T, error) {
	for {
		v, err := call()
		if err != unix.EINTR {
			return v, err
		}
	}
}

func again0(call func() error) error {
	_, err := again(func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func openAt(dir int, name string, flags int) (int, error) {
	fd, err := again(func() (int, error) { return unix.Openat(dir, name, flags, 0o600) })
	return fd, pathErr("open", name, err)
}

func statAt(dir int, name string) (stat, error) {
	var st unix.Stat_t
	err := again0(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return toStat(&st), pathErr("stat", name, err)
}

func statFD(fd int) (stat, error) {
	var st unix.Stat_t
	err := again0(func() error { return unix.Fstat(fd, &st) })
	return toStat(&st), err
}

func toStat(st *unix.Stat_t) stat {
	s := stat{uid: int(st.Uid), blocks: int64(st.Blocks)}
	s.dev, s.ino, s.size, s.mtime = uint64(st.Dev), uint64(st.Ino), int64(st.Size), unix.TimespecToNsec(st.Mtim)
	s.ctime = unix.TimespecToNsec(st.Ctim)
	s.mode = fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		s.mode |= fs.ModeDir
	case unix.S_IFLNK:
		s.mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		s.mode |= fs.ModeNamedPipe
	default:
		s.mode |= fs.ModeIrregular
	}
	return s
}

func renameAt(fromDir int, from string, toDir int, to string) error {
	return pathErr("rename", to, again0(func() error { return unix.Renameat(fromDir, from, toDir, to) }))
}

func removeAt(dir int, name string) error {
	return pathErr("remove", name, again0(func() error { return unix.Unlinkat(dir, name, 0) }))
}

func mkdirAt(dir int, name string) error {
	return pathErr("mkdir", name, again0(func() error { return unix.Mkdirat(dir, name, 0o700) }))
}

func chmodAt(dir int, name string, mode uint32) error {
	return pathErr("chmod", name, again0(func() error { return unix.Fchmodat(dir, name, mode, 0) }))
}

// private undoes what an odd umask took from a file that we just made.
func private(fd int) error { return again0(func() error { return unix.Fchmod(fd, 0o600) }) }

func flock(fd, how int) error { return again0(func() error { return unix.Flock(fd, how) }) }

func truncate(fd int, size int64) error {
	return again0(func() error { return unix.Ftruncate(fd, size) })
}

func syncFD(fd int) error { return again0(func() error { return unix.Fsync(fd) }) }

func closeFD(fd int) {
	_ = unix.Close(fd) // the descriptor is gone either way; a second try could close another's
}

// descriptor reads and writes a descriptor without the poller, which regular
// files do not need: half the system calls of an os.File.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	n, err := again(func() (int, error) { return unix.Read(int(d), p) })
	if n == 0 && err == nil && len(p) > 0 {
		return 0, io.EOF
	}
	return max(n, 0), err
}

func (d descriptor) ReadAt(p []byte, off int64) (int, error) {
	n, err := again(func() (int, error) { return unix.Pread(int(d), p, off) })
	if n == 0 && err == nil && len(p) > 0 {
		return 0, io.EOF
	}
	return max(n, 0), err
}

func (d descriptor) WriteAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := again(func() (int, error) { return unix.Pwrite(int(d), p[done:], off+int64(done)) })
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.ErrShortWrite
		}
		done += n
	}
	return done, nil
}

func (d descriptor) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := again(func() (int, error) { return unix.Write(int(d), p[done:]) })
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.ErrShortWrite
		}
		done += n
	}
	return done, nil
}

// processThere reports that a process of that number exists, whoever's it is.
func processThere(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || err == unix.EPERM
}

func effectiveUID() int { return unix.Geteuid() }

// isBusy reports that somebody else holds the lock.
func isBusy(err error) bool { return err == unix.EWOULDBLOCK }

// isNoLocks reports that the file system has no flock at all.
func isNoLocks(err error) bool {
	return err == unix.ENOTSUP || err == unix.EOPNOTSUPP || err == unix.ENOLCK || err == unix.ENOSYS || err == unix.EINVAL
}

// isReadOnly reports that the disk or our rights forbid to write.
func isReadOnly(err error) bool {
	return errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}
