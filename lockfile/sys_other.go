//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package lockfile

import "io/fs"

const (
	forRead, forLock, forNew, forTail, forWrite, forDir, here = 0, 0, 0, 0, 0, 0, -1
	shared, exclusive, exclusNB                               = 0, 0, 0
)

type fileID struct {
	dev, ino uint64
	mtime    int64
	size     int64
}

type stat struct {
	fileID
	mode   fs.FileMode
	uid    int
	blocks int64
	ctime  int64
}

type descriptor int

func (descriptor) Read([]byte) (int, error)           { return 0, ErrUnsupported }
func (descriptor) ReadAt([]byte, int64) (int, error)  { return 0, ErrUnsupported }
func (descriptor) Write([]byte) (int, error)          { return 0, ErrUnsupported }
func (descriptor) WriteAt([]byte, int64) (int, error) { return 0, ErrUnsupported }
func openAt(int, string, int) (int, error)            { return -1, ErrUnsupported }
func statAt(int, string) (stat, error)                { return stat{}, ErrUnsupported }
func statFD(int) (stat, error)                        { return stat{}, ErrUnsupported }
func renameAt(int, string, int, string) error         { return ErrUnsupported }
func removeAt(int, string) error                      { return ErrUnsupported }
func mkdirAt(int, string) error                       { return ErrUnsupported }
func chmodAt(int, string, uint32) error               { return ErrUnsupported }
func private(int) error                               { return ErrUnsupported }
func flock(int, int) error                            { return ErrUnsupported }
func truncate(int, int64) error                       { return ErrUnsupported }
func syncFD(int) error                                { return ErrUnsupported }
func closeFD(int)                                     {}
func effectiveUID() int                               { return -1 }
func isBusy(error) bool                               { return false }
func isNoLocks(error) bool                            { return false }
func processThere(int) bool                           { return false }
func isReadOnly(error) bool                           { return false }
