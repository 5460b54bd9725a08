package agentlog

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestThisMachinesProcesses(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	open, err := system{}.OpenFiles(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, path := range open {
		found = found || filepath.Base(path) == "open"
	}
	if !found {
		t.Errorf("%v lacks our file", open)
	}
	exe, _ := os.Executable()
	here, _ := os.Getwd()
	if pids, err := (system{}).Running(filepath.Base(exe), here); err != nil || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("%v lacks us: %v", pids, err)
	}
	if pids, err := (system{}).Running(filepath.Base(exe), "/"); err != nil || slices.Contains(pids, os.Getpid()) {
		t.Errorf("we are in %v of /: %v", pids, err)
	}
	if d := depth(system{}, os.Getpid(), os.Getppid()); d != 1 {
		t.Errorf("we are %d below our parent", d)
	}
	if d := depth(system{}, os.Getpid(), os.Getpid()+1<<20); d != -1 {
		t.Errorf("we are %d below nobody", d)
	}
	for name, family := range map[string][]int{"children": system{}.Family(os.Getppid()), "scan": system{}.familyByScan(os.Getppid())} {
		ours := false
		for _, pid := range family {
			ours = ours || pid == os.Getpid()
		}
		if !ours {
			t.Errorf("%s: %v lacks us", name, family)
		}
	}
}
