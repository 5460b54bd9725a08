package lockfile

import (
	"strings"

	"golang.org/x/sys/unix"
)

// remoteFS names the file system of a directory if it is not a plain local one.
func remoteFS(fd int) (string, bool) {
	var st unix.Statfs_t
	if err := again0(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return "", false
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	for _, remote := range []string{"nfs", "smbfs", "afpfs", "webdav", "ftp", "fuse"} {
		if strings.Contains(name, remote) {
			return name, true
		}
	}
	return name, false
}
