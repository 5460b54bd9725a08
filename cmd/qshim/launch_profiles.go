package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"qshim/detect"
	"qshim/policies/agents"
)

// profiles are the agents that a launch may be of: the built-in ones and the
// user's own.
type profiles struct{ agents.Set }

// all loads every profile; one that does not load is left out: the user's are
// checked when they are read, and a test checks ours.
func (p profiles) all() (out []*agents.Profile) {
	for _, name := range p.Names() {
		if x, err := p.Load(name); err == nil {
			out = append(out, x)
		}
	}
	return out
}

// profiles reads the user's own. What is wrong with them was said by load; a
// command that goes on without load has those that are right.
func (a *app) profiles() profiles {
	if a.known == nil {
		files, errs := a.profileFiles()
		set, more := agents.NewSet(files)
		a.known, a.unread = &profiles{set}, append(errs, more...)
	}
	return *a.known
}

// profileErrors is what is wrong with the user's profiles, as a usage error.
func (a *app) profileErrors() error {
	a.profiles()
	if len(a.unread) == 0 {
		return nil
	}
	return usagef("%v", errors.Join(a.unread...))
}

// agentsDir is where the user's own profiles lie; empty without a home.
func (a *app) agentsDir() string {
	if d := a.configDir(); d != "" {
		return filepath.Join(d, "agents")
	}
	return ""
}

// maxProfiles bounds how many files are read at a launch.
const maxProfiles = 100

// profileFiles reads NAME.toml in the user's directory; other files are not ours.
func (a *app) profileFiles() (files []agents.File, errs []error) {
	dir := a.agentsDir()
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, []error{fmt.Errorf("agent profiles: %w", err)}
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".toml")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		if len(files) == maxProfiles {
			return files, append(errs, fmt.Errorf("%s: more than %d profiles", dir, maxProfiles))
		}
		path := filepath.Join(dir, e.Name())
		data, err := readConfig(path, false)
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			errs = append(errs, fmt.Errorf("agent profile %s: %w", path, pe.Err))
			continue
		} else if err != nil {
			errs = append(errs, err)
			continue
		}
		files = append(files, agents.File{Name: name, Path: path, Data: data})
	}
	return files, errs
}

// rulesOf is how an agent speaks. A built-in profile is known to be right, so it
// is read when there is something to judge; a user's is read now, so that a
// mistake is an error before the launch. What an agent of the user's own does not
// say is judged as any unknown program's.
func rulesOf(p *agents.Profile) (*detect.Profile, error) {
	raw := p.Raw
	if p.User == nil {
		return detect.LazyProfile(p.Name, raw), nil
	}
	base := p.Name
	if raw == nil && !(p.Replace && agents.Detects(p.User.Data)) {
		base = "generic"
		generic, _ := agents.Builtin(base) // always there
		raw = func() []byte { return generic }
	}
	if !agents.Detects(p.User.Data) {
		return detect.LazyProfile(p.Name, raw), nil
	}
	below := detect.Source{Name: base + ".toml"}
	if raw != nil {
		below.Data = raw()
	}
	return detect.ParseOver(below, detect.Source{Name: p.User.Path, Data: p.User.Data})
}
