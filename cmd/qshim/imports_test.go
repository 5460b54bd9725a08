package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rooms lists what each room may import of ours (DESIGN section 3). A room is
// matched by its longest prefix; what is not listed may import nothing.
var rooms = map[string][]string{
	"qshim/cmd/qshim":      {"qshim/cmd/internal", "qshim/shim", "qshim/policies", "qshim/lockfile", "qshim/detect"},
	"qshim/cmd/internal":   {"qshim/cmd/internal", "qshim/detect"},
	"qshim/shim":           {"qshim/shim", "qshim/policies", "qshim/lockfile", "qshim/detect"},
	"qshim/policies":       {"qshim/policies", "qshim/lockfile", "qshim/detect/finding"},
	"qshim/lockfile":       {"qshim/lockfile", "qshim/detect/finding"},
	"qshim/detect":         {"qshim/detect"},
	"qshim/detect/screen":  {},
	"qshim/detect/finding": {},
	"qshim/detect/when":    {"qshim/detect/finding"},
}

// pure lists packages that must not reach for the world: no disk, no clock
// of their own, no network.
var pure = map[string][]string{
	"qshim/policies":       {"os", "os/exec", "net", "net/http", "syscall", "math/rand", "math/rand/v2"},
	"qshim/detect":         {"os", "os/exec", "net", "net/http", "syscall"},
	"qshim/detect/finding": {"os", "os/exec", "net", "net/http", "syscall"},
	"qshim/detect/screen":  {"os", "os/exec", "net", "net/http", "syscall"},
	"qshim/detect/when":    {"os", "os/exec", "net", "net/http", "syscall"},
}

// libc lists what links qshim against libc wherever a C compiler is: more than a
// millisecond of each start of an agent.
var libc = []string{"net", "os/user", "runtime/cgo"}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImportArrows(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range listPackages(t) {
		allowed, room := allowedFor(p.ImportPath)
		seen[room] = true
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "qshim/") && !within(dep, allowed) && !transitive(p.ImportPath, dep) {
				t.Errorf("%s imports %s: the arrows of DESIGN section 3 do not allow it", p.ImportPath, dep)
			}
		}
		for _, dep := range libc {
			if p.ImportPath == "qshim/cmd/qshim" && slices.Contains(p.Deps, dep) {
				t.Errorf("%s depends on %s, which links libc: go mod why %[2]s", p.ImportPath, dep)
			}
		}
		for _, banned := range pure[p.ImportPath] {
			for _, imp := range p.Imports {
				if imp == banned {
					t.Errorf("%s imports %s: it must stay pure", p.ImportPath, imp)
				}
			}
		}
	}
	for room := range rooms {
		if !seen[room] {
			t.Errorf("no package found in %s: is the table of rooms stale?", room)
		}
	}
}

// transitive allows what policies reach through lockfile's plain types.
func transitive(pkg, dep string) bool {
	return strings.HasPrefix(pkg, "qshim/policies") && within(dep, rooms["qshim/lockfile"])
}

func within(dep string, prefixes []string) bool {
	for _, p := range prefixes {
		if dep == p || strings.HasPrefix(dep, p+"/") {
			return true
		}
	}
	return false
}

func allowedFor(path string) (allowed []string, room string) {
	for r, a := range rooms {
		if within(path, []string{r}) && len(r) > len(room) {
			allowed, room = a, r
		}
	}
	return allowed, room
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps", "qshim/...")
	// As users build it: the race detector, where this test runs under it, links libc.
	list.Env = append(os.Environ(), "GOFLAGS="+strings.ReplaceAll(os.Getenv("GOFLAGS"), "-race", ""))
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.ImportPath, "qshim/") {
			all = append(all, p)
		}
	}
}
