package lockfile

import "golang.org/x/sys/unix"

// swapAt exchanges two files of one directory atomically (renameat2, Linux
// 3.15; ext4, xfs, btrfs, tmpfs). Where it is missing the error says so and
// the caller renames instead.
func swapAt(dir int, a, b string) error {
	return pathErr("exchange", b, again0(func() error {
		return unix.Renameat2(dir, a, dir, b, unix.RENAME_EXCHANGE)
	}))
}
