package main

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"qshim/lockfile"
	"qshim/policies/agents"
)

// The marker that an agent's environment carries, besides the documented
// adjustments the only thing of ours in it.
const (
	envSession = "QSHIM_SESSION" // id of the session that the agent runs in
	envDepth   = "QSHIM_DEPTH"   // how many qshims are above, 1 for the agent of the first
	envStarted = "QSHIM_STARTED" // pid:file, which qshim started which file as its agent
)

// maxDepth is how many qshims may stand above one another. Agents that start
// agents that start agents are three deep; more than eight is a loop that the
// look at the file did not see.
const maxDepth = 8

// depth reads the marker; what is no number counts as none.
func depth(env func(string) string) int {
	n, err := strconv.Atoi(env(envDepth))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// checkDepth stops a launch that runs in a circle.
func checkDepth(env func(string) string, command string) error {
	if depth(env) < maxDepth {
		return nil
	}
	return &launchError{exitNotStarted, command + " leads back to qshim, " + strconv.Itoa(maxDepth) +
		" times over: start the agent by the path of its own file"}
}

// parentSession names the session that this launch is nested in: the marked
// one, if it is alive and its shim is among our ancestors. A tmux server or an
// editor that was started inside a session passes the marker on to everything
// it starts, but its own parent is another. A session that began just now may
// not be in the ledger yet (shim.Late): then started, which came with the
// marker, says which process its shim is.
func parentSession(marker, started string, l lockfile.Ledger, ancestors []int) string {
	s, ok := l.Sessions[marker]
	if !ok {
		at, _, _ := strings.Cut(started, ":")
		s.PID, _ = strconv.Atoi(at) // what is no number is nobody's
	}
	if marker == "" || ok && !s.Alive || s.PID <= 1 || !slices.Contains(ancestors, s.PID) {
		return ""
	}
	return marker
}

// ancestorsOf walks up from a process: its parent first. The walk ends at the
// first that cannot be asked, at process 1, or after 64, which no real tree
// reaches.
func ancestorsOf(pid int, parent func(int) (int, error)) []int {
	var list []int
	for len(list) < 64 {
		up, err := parent(pid)
		if err != nil || up <= 1 || up == pid {
			break
		}
		list = append(list, up)
		pid = up
	}
	return list
}

// cameBack is the file that the qshim above us started as its agent, if that
// file has put us in its place: a version manager's shim that knows no such tool
// and takes the next one in PATH, which is our link. "" for any other call.
func cameBack(env func(string) string, pid, parent int) string {
	at, file, _ := strings.Cut(env(envStarted), ":")
	if n, err := strconv.Atoi(at); err != nil || n != pid && n != parent {
		return ""
	}
	return file
}

// childEnv is the agent's environment: ours, the marker, and what an
// adjustment sets. session is "" for a call that is no session.
func childEnv(base []string, session, file string, above int, set map[string]string) []string {
	add := map[string]string{envDepth: strconv.Itoa(above + 1), envStarted: strconv.Itoa(os.Getpid()) + ":" + file}
	if session != "" {
		add[envSession] = session
	}
	for k, v := range set {
		add[k] = v
	}
	env := make([]string, 0, len(base)+len(add))
	for _, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		if _, ours := add[name]; !ours {
			env = append(env, kv)
		}
	}
	for k, v := range add {
		env = append(env, k+"="+v)
	}
	return env
}

// agentEnv looks names up as the agent will see them: in base as env(1) in
// front of the agent changes it.
func agentEnv(base []string, inv agents.Invocation) func(string) string {
	vars := map[string]string{}
	if !inv.Cleared {
		for _, kv := range base {
			k, v, _ := strings.Cut(kv, "=")
			vars[k] = v
		}
	}
	for _, k := range inv.Unset {
		delete(vars, k)
	}
	for _, kv := range inv.Set {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	return func(name string) string { return vars[name] }
}
