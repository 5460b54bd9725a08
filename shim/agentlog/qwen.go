package agentlog

import (
	"os"
	"path/filepath"
	"strings"
)

// qwen follows Home/debug/SESSION.txt and Home/projects/CWD/chats/SESSION.jsonl.
// Nothing names the process in them, but the launch names the session where it
// can (Spec.Session). Where it cannot (-c, the picker, /clear later), each record
// of the debug log is written through a descriptor of its own, several at a time
// while the agent starts: the session is the one whose debug log a process of
// ours holds open when the directory says that something was written. A resumed
// session goes on in its old files. Measured with Qwen Code 0.15.10; the debug log is on unless
// QWEN_DEBUG_LOG_FILE=0.
type qwen struct {
	openHome
	before  map[string]int64 // debug logs that existed before the launch
	session string
	asked   map[string]int // how often a log that is not ours was looked for among our open files
}

// askMost bounds that: a sibling writes its log for hours. One that begins
// writes some 20 records within its first second.
const askMost = 64

func (q *qwen) begin(t *tailer) {
	q.resolve(t)
	q.before, q.asked = sizes(q.debug(), "*.txt"), map[string]int{}
}

func (q *qwen) debug() string { return filepath.Join(q.home, "debug") }

func (q *qwen) look(t *tailer) {
	if !q.resolve(t) {
		return // no home yet
	}
	if q.session == "" && t.spec.Session != "" {
		q.take(t, filepath.Join(q.debug(), t.spec.Session+".txt"))
	}
	q.each(t, q.take)
	if q.blind && q.session == "" {
		q.guess(t)
	}
	q.chat(t)
}

// take follows a debug log that is ours.
func (q *qwen) take(t *tailer, path string) {
	session, ok := strings.CutSuffix(filepath.Base(path), ".txt")
	if filepath.Dir(path) != q.debug() || !ok || !sessionName().MatchString(session) || t.files[path] != nil {
		return
	}
	q.session = session
	f := t.add(SourceDebug, q.home, filepath.Join("debug", session+".txt"), q.before[path])
	f.joinRows = true
}

// guess takes a log by exclusion where open files are not known: the only one
// begun since the launch. With two, whose is whose cannot be told.
func (q *qwen) guess(t *tailer) {
	mine := ""
	for path := range sizes(q.debug(), "*.txt") {
		if _, old := q.before[path]; old {
			continue
		}
		if mine != "" {
			return
		}
		mine = path
	}
	if mine != "" {
		q.take(t, mine)
	}
}

// chat follows the session's chat file, which its first prompt makes. What a
// resumed one holds already is told by its timestamps.
func (q *qwen) chat(t *tailer) {
	if q.session == "" || q.found(t) {
		return
	}
	found, _ := filepath.Glob(filepath.Join(q.home, "projects", "*", "chats", q.session+".jsonl"))
	for _, path := range found {
		if rel, err := filepath.Rel(q.home, path); err == nil {
			t.add(SourceChat, q.home, rel, 0).freshSince = t.spec.Started
			return
		}
	}
}

// found reports whether the current session's chat is followed.
func (q *qwen) found(t *tailer) bool {
	for path := range t.files {
		if filepath.Base(path) == q.session+".jsonl" {
			return true
		}
	}
	return false
}

func (q *qwen) dirs(t *tailer) []string {
	dirs := append(t.fileDirs(), q.debug())
	if q.session != "" && !q.found(t) {
		project := filepath.Join(q.home, "projects", projectDir(t.spec.Cwd))
		dirs = append(dirs, filepath.Join(project, "chats"))
	}
	return dirs
}

// wants every write to a debug log until ours is known, then the first ones of
// those that are new: /clear begins another session.
func (q *qwen) wants(t *tailer, path string, created bool) bool {
	switch {
	case filepath.Base(path) == q.session+".jsonl":
		return true
	case filepath.Dir(path) == q.debug() && filepath.Ext(path) == ".txt":
		if created {
			return true
		}
		if _, err := os.Lstat(path); err != nil {
			return false
		}
		if _, old := q.before[path]; old && q.session != "" {
			return false
		}
		q.asked[path]++
		return q.session == "" || q.asked[path] <= askMost
	}
	return false
}
