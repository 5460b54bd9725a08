package agentlog

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// gemini follows the debug log, which is ours alone, and the session's chat
// file. Nothing names the process that writes a chat file, so one is taken only
// if it is the only one begun at the moment at which our own debug log reports
// the end of the start-up (32 ms apart with 0.61.0). Without a debug log it must
// be the only one begun since the launch. A resumed chat is never taken.
type gemini struct {
	project string    // Gemini's name for our directory
	startup time.Time // when our process said that it had started
	chat    string
}

// startupMark is in the records that end the start-up.
var startupMark = []byte("[STARTUP]")

const (
	// near is how far the chat's start may be from the start-up record.
	near = 2 * time.Second
	// startupTime is the longest start-up: 20-60 s on a loaded machine.
	startupTime = 2 * time.Minute
	// maxSmall bounds projects.json and a chat's first record.
	maxSmall = 1 << 20
)

func (g *gemini) begin(t *tailer) {
	for _, path := range t.spec.Files {
		f := t.add(SourceDebug, filepath.Dir(path), filepath.Base(path), 0)
		f.joinRows, f.atEnd = true, true
		f.emit = func(i Item) {
			t.emit(i)
			g.note(t, i.Line)
		}
	}
	t.read()
}

// note looks for the end of the start-up in the debug log.
func (g *gemini) note(t *tailer, line []byte) {
	if !g.startup.IsZero() || !bytes.Contains(line, startupMark) || !recordHead().Match(line) {
		return
	}
	end := bytes.IndexByte(line, ']')
	if line[0] != '[' {
		return
	}
	if at, err := time.Parse(time.RFC3339, string(line[1:end])); err == nil {
		g.startup = at
		g.look(t)
	}
}

func (g *gemini) look(t *tailer) {
	if g.chat != "" || len(t.spec.Files) > 0 && g.startup.IsZero() {
		return
	}
	if g.project == "" && !g.findProject(t) {
		return
	}
	var ours []string
	for path := range sizes(g.chats(t), "session-*.jsonl") {
		if g.begunWithUs(t, path) {
			ours = append(ours, path)
		}
	}
	if len(ours) != 1 {
		return
	}
	g.chat = ours[0]
	if rel, err := filepath.Rel(t.spec.Home, g.chat); err == nil {
		t.add(SourceChat, t.spec.Home, rel, 0).freshSince = t.spec.Started
	}
}

func (g *gemini) chats(t *tailer) string {
	return filepath.Join(t.spec.Home, "tmp", g.project, "chats")
}

// findProject reads Gemini's name for our directory.
func (g *gemini) findProject(t *tailer) bool {
	data, err := readSmall(t.spec.Home, "projects.json", maxSmall)
	if err != nil {
		return false
	}
	var names struct {
		Projects map[string]string `json:"projects"`
	}
	if json.Unmarshal(data, &names) != nil {
		return false
	}
	name := names.Projects[t.spec.Cwd]
	if name == "" || filepath.Base(name) != name || !filepath.IsLocal(name) {
		return false
	}
	g.project = name
	return true
}

// begunWithUs reports whether a chat file began when our process did.
func (g *gemini) begunWithUs(t *tailer, path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.ModTime().Before(t.spec.Started.Add(-slack)) {
		return false
	}
	rel, err := filepath.Rel(t.spec.Home, path)
	if err != nil {
		return false
	}
	line, err := head(t.spec.Home, rel, maxSmall)
	var meta struct {
		StartTime time.Time `json:"startTime"`
		Kind      string    `json:"kind"`
	}
	if err != nil || json.Unmarshal(line, &meta) != nil || meta.Kind != "main" {
		return false
	}
	if g.startup.IsZero() {
		since := meta.StartTime.Sub(t.spec.Started)
		return since >= -slack && since <= startupTime
	}
	return meta.StartTime.Sub(g.startup).Abs() <= near
}

func (g *gemini) dirs(t *tailer) []string {
	dirs := t.fileDirs()
	switch {
	case g.chat != "":
	case g.project == "":
		dirs = append(dirs, t.spec.Home)
	default:
		dirs = append(dirs, g.chats(t))
	}
	return dirs
}

func (g *gemini) wants(t *tailer, path string, created bool) bool {
	if g.chat != "" {
		return false
	}
	return g.project == "" && filepath.Base(path) == "projects.json" ||
		g.project != "" && filepath.Dir(path) == g.chats(t) && created
}
