package agentlog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNotRegular refuses FIFOs, devices and directories: reading one could hang
// or do something.
var errNotRegular = errors.New("not a regular file")

// openIn opens base/rel for reading. Links below base may not lead out of it
// (os.Root), base itself may be one: people link ~/.claude into their dotfiles.
// O_NONBLOCK keeps a FIFO from holding up the open.
func openIn(base, rel string) (*os.File, error) {
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(rel, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readSmall reads base/rel if it is at most limit bytes long.
func readSmall(base, rel string, limit int64) ([]byte, error) {
	f, err := openIn(base, rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errors.New("file too large")
	}
	return data, err
}

// head reads the first line of base/rel, at most limit bytes of it.
func head(base, rel string, limit int64) ([]byte, error) {
	f, err := openIn(base, rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit))
	for i, c := range data {
		if c == '\n' {
			return data[:i], nil
		}
	}
	return data, err
}

// sizes notes the sizes of the files in dir that match pattern.
func sizes(dir, pattern string) map[string]int64 {
	m := map[string]int64{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return m
	}
	for _, e := range entries {
		if ok, err := filepath.Match(pattern, e.Name()); !ok || err != nil {
			continue
		}
		if info, err := e.Info(); err == nil {
			m[filepath.Join(dir, e.Name())] = info.Size()
		}
	}
	return m
}

// links is how many names an open file has; 1 if that is not known.
func links(f *os.File) uint64 {
	info, err := f.Stat()
	if err != nil {
		return 1
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
