package lockfile

import "golang.org/x/sys/unix"

// swapAt exchanges two files of one directory atomically (renameatx_np, macOS
// 10.12; APFS). Where it is missing the error says so and the caller renames
// instead.
func swapAt(dir int, a, b string) error {
	return pathErr("exchange", b, again0(func() error {
		return unix.RenameatxNp(dir, a, dir, b, unix.RENAME_SWAP)
	}))
}
