package lockfile

import (
	"golang.org/x/sys/unix"
	"sync"
)

// remote are the file systems, by statfs magic, whose other users may be on
// other machines or whose locks are made by a program (linux/magic.h).
var remote = sync.OnceValue(func() map[int64]string {
	return map[int64]string{
		0x6969: "nfs", 0x517b: "smb", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x01021997: "9p",
		0x65735546: "fuse", 0x5346414f: "afs", 0x6b414653: "afs", 0x00c36400: "ceph", 0x0bd00bd0: "lustre",
		0x73757245: "coda", 0x564c: "ncp",
	}
})

// remoteFS names the file system of a directory if it is not a plain local one.
func remoteFS(fd int) (string, bool) {
	var st unix.Statfs_t
	if err := again0(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return "", false
	}
	name, ok := remote()[int64(st.Type)&0xffffffff]
	return name, ok
}
