package agentlog

import (
	"errors"
	"path/filepath"
)

// openHome is the directory of an agent whose logs do not say whose they are:
// the one that is ours is the one that a process of ours holds open.
type openHome struct {
	home  string // Spec.Home without links, as /proc shows paths
	blind bool   // open files cannot be listed
}

// resolve finds the home's name without links. False: there is none yet.
func (h *openHome) resolve(t *tailer) bool {
	home, err := filepath.EvalSymlinks(t.spec.Home)
	if err != nil {
		h.home = t.spec.Home
		return false
	}
	h.home = home
	return true
}

// each calls f with every file that the agent's processes hold open, and finds
// out whether that can be known.
func (h *openHome) each(t *tailer, f func(t *tailer, path string)) {
	h.blind = false
	for _, pid := range t.spec.Procs.Family(t.spec.PID) {
		open, err := t.spec.Procs.OpenFiles(pid)
		h.blind = h.blind || errors.Is(err, ErrNoOpenFiles)
		for _, path := range open {
			f(t, path)
		}
	}
}
