package main

import (
	"io"
	"sync"

	"qshim/lockfile"
)

// notices are what the store tells of a launch's files. While an agent has the
// screen they wait: whoever reads a prompt must not find our words in it.
type notices struct {
	to io.Writer

	mu   sync.Mutex
	held bool
	kept []lockfile.Notice
}

// mostNotices bounds what waits; who has more looks into the directory.
const mostNotices = 16

func (n *notices) tell(one lockfile.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !n.held:
		sayNotice(n.to, one)
	case len(n.kept) < mostNotices:
		n.kept = append(n.kept, one)
	}
}

func (n *notices) hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = true
}

func (n *notices) giveOut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.kept {
		sayNotice(n.to, one)
	}
	n.held, n.kept = false, nil
}
