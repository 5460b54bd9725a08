package agentlog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"
)

// claude finds the transcript through the process's own status file. Siblings
// in the same directory have files of their own there, told apart by pid.
// Measured with 2.1.332: the file appears within a second of the start, also in
// headless mode; it is rewritten in place at each change of status and at /clear,
// which begins a new session; it is removed at exit and stays after a crash.
type claude struct {
	pid     int // whose status file is ours; 0: none yet
	session string
	cwd     string
	status  string
	sizes   map[string]int64 // transcripts that existed before the launch
}

// claudeStatus is the part of sessions/PID.json that is read.
type claudeStatus struct {
	PID       int    `json:"pid"`
	SessionID string `json:"sessionId"`
	Cwd       string `json:"cwd"`
	ProcStart string `json:"procStart"`
	Status    string `json:"status"`
}

// maxStatus bounds the status file; it has about 600 bytes.
const maxStatus = 64 << 10

// sessionName is what a session may be called; it becomes a file name.
var sessionName = lazily(`^[A-Za-z0-9-]{1,64}$`)

func (c *claude) begin(t *tailer) {
	c.sizes = sizes(filepath.Join(t.spec.Home, "projects", projectDir(t.spec.Cwd)), "*.jsonl")
	for _, path := range t.spec.Files {
		f := t.add(SourceDebug, filepath.Dir(path), filepath.Base(path), 0)
		f.joinRows, f.atEnd, f.freshSince = true, true, t.spec.Started
	}
	t.read()
}

func (c *claude) look(t *tailer) {
	st, ok := c.own(t)
	if !ok {
		return
	}
	if st.SessionID != c.session && sessionName().MatchString(st.SessionID) || st.Cwd != c.cwd && st.Cwd != "" {
		c.session, c.cwd = st.SessionID, st.Cwd
	}
	c.transcript(t)
	// "waiting" is a permission dialog, "shell" a command that the user runs
	// with "!": neither asks the model.
	status := map[string]string{"busy": "busy", "idle": "idle", "waiting": "idle", "shell": "idle"}[st.Status]
	if status != "" && status != c.status {
		c.status = status
		t.emit(Item{Source: SourceStatus, Path: c.statusPath(t, c.pid), Status: status})
	}
}

func (c *claude) statusPath(t *tailer, pid int) string {
	return filepath.Join(t.spec.Home, "sessions", strconv.Itoa(pid)+".json")
}

// own reads our status file, choosing it first if need be.
func (c *claude) own(t *tailer) (claudeStatus, bool) {
	if c.pid != 0 {
		if st, ok := readStatus(t, c.pid); ok {
			return st, true
		}
		if _, err := os.Lstat(c.statusPath(t, c.pid)); err == nil {
			return claudeStatus{}, false // being rewritten: the next event brings it
		}
		c.pid = 0
	}
	if st, ok := readStatus(t, t.spec.PID); ok {
		c.pid = t.spec.PID
		return st, true
	}
	return c.descendant(t)
}

// descendant chooses the status file of the nearest descendant: a launcher's
// child. A nested agent, started by a tool, is further down.
func (c *claude) descendant(t *tailer) (best claudeStatus, ok bool) {
	entries, err := os.ReadDir(filepath.Join(t.spec.Home, "sessions"))
	if err != nil {
		return best, false
	}
	nearest := maxDepth
	for _, e := range entries {
		pid, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".json"))
		if err != nil {
			continue
		}
		d := depth(t.spec.Procs, pid, t.spec.PID)
		if d < 0 || d >= nearest {
			continue
		}
		if st, found := readStatus(t, pid); found {
			nearest, best, c.pid, ok = d, st, pid, true
		}
	}
	return best, ok
}

// readStatus reads one status file. One that a dead process with the same pid
// has left is not believed.
func readStatus(t *tailer, pid int) (st claudeStatus, ok bool) {
	data, err := readSmall(t.spec.Home, filepath.Join("sessions", strconv.Itoa(pid)+".json"), maxStatus)
	if err != nil || json.Unmarshal(data, &st) != nil || st.PID != pid {
		return claudeStatus{}, false
	}
	if _, start, alive := t.spec.Procs.Parent(pid); alive && start != "" && st.ProcStart != "" && start != st.ProcStart {
		return claudeStatus{}, false
	}
	return st, true
}

// transcript follows the session's transcript once it exists.
func (c *claude) transcript(t *tailer) {
	if c.session == "" {
		return
	}
	rel := filepath.Join("projects", projectDir(c.cwd), c.session+".jsonl")
	path := filepath.Join(t.spec.Home, rel)
	if t.files[path] != nil {
		return
	}
	if _, err := os.Lstat(path); err != nil {
		if rel = c.elsewhere(t); rel == "" {
			return
		}
	}
	f := t.add(SourceTranscript, t.spec.Home, rel, c.sizes[path])
	f.freshSince = t.spec.Started
}

// elsewhere looks for the transcript below other project directories: names
// over 200 characters end in a hash, and a session keeps its directory when its
// process changes its own.
func (c *claude) elsewhere(t *tailer) string {
	entries, err := os.ReadDir(filepath.Join(t.spec.Home, "projects"))
	if err != nil {
		return ""
	}
	for _, e := range entries {
		rel := filepath.Join("projects", e.Name(), c.session+".jsonl")
		if _, err := os.Lstat(filepath.Join(t.spec.Home, rel)); err == nil {
			return rel
		}
	}
	return ""
}

// projectDir is Claude's name for a working directory: a dash for every UTF-16
// unit that is no ASCII letter or digit.
func projectDir(cwd string) string {
	units := utf16.Encode([]rune(cwd))
	name := make([]byte, len(units))
	for i, u := range units {
		name[i] = '-'
		if u < 128 && (u >= 'a' && u <= 'z' || u >= 'A' && u <= 'Z' || u >= '0' && u <= '9') {
			name[i] = byte(u)
		}
	}
	return string(name)
}

func (c *claude) dirs(t *tailer) []string {
	dirs := append(t.fileDirs(), filepath.Join(t.spec.Home, "sessions"))
	if c.session != "" && !c.found(t) {
		projects := filepath.Join(t.spec.Home, "projects")
		dirs = append(dirs, projects, filepath.Join(projects, projectDir(c.cwd)))
	}
	return dirs
}

// found reports whether the current session's transcript is followed.
func (c *claude) found(t *tailer) bool {
	for path := range t.files {
		if filepath.Base(path) == c.session+".jsonl" {
			return true
		}
	}
	return false
}

func (c *claude) wants(t *tailer, path string, created bool) bool {
	if c.pid != 0 && path == c.statusPath(t, c.pid) {
		return true
	}
	if filepath.Base(path) == c.session+".jsonl" {
		return true
	}
	return c.pid == 0 && filepath.Dir(path) == filepath.Join(t.spec.Home, "sessions") && filepath.Ext(path) == ".json"
}
