package agentlog

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Parent reads /proc/PID/stat. The command's name, in brackets, may hold
// anything, so fields are counted from its end: 4 is the parent, 22 the start.
func (system) Parent(pid int) (parent int, start string, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, "", false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, "", false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, string(fields[19]), err == nil
}

// Family walks down /proc/PID/task/*/children, or, where the kernel does not
// have it, looks for parents among all processes.
func (s system) Family(pid int) []int {
	family := []int{pid}
	for i := 0; i < len(family) && len(family) < 1024; i++ {
		lists, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(family[i]), "task", "*", "children"))
		if lists == nil && i == 0 {
			return s.familyByScan(pid)
		}
		for _, list := range lists {
			data, err := os.ReadFile(list)
			if err != nil {
				continue // the thread has ended
			}
			for _, f := range bytes.Fields(data) {
				if child, err := strconv.Atoi(string(f)); err == nil {
					family = append(family, child)
				}
			}
		}
	}
	return family
}

func (s system) familyByScan(pid int) []int {
	children := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []int{pid}
	}
	for _, e := range entries {
		if p, err := strconv.Atoi(e.Name()); err == nil {
			if parent, _, ok := s.Parent(p); ok {
				children[parent] = append(children[parent], p)
			}
		}
	}
	family := []int{pid}
	for i := 0; i < len(family) && len(family) < 1024; i++ {
		family = append(family, children[family[i]]...)
	}
	return family
}

// OpenFiles reads the links of /proc/PID/fd.
func (system) OpenFiles(pid int) ([]string, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil, ErrNoOpenFiles
	}
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if path, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && filepath.IsAbs(path) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// Running reads the links of every process that we may look into.
func (system) Running(name, dir string) (pids []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil || cwd != dir {
			continue // gone, another user's, or elsewhere
		}
		exe, _ := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		comm, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if filepath.Base(exe) == name || strings.TrimSuffix(string(comm), "\n") == name {
			pids = append(pids, pid) // a program, or a script that has named itself
		}
	}
	return pids, nil
}
