package agentlog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// codex finds the rollouts that the native process, a child of the npm
// launcher, holds open, and those of the threads that it holds locked: a resumed
// thread's rollout is opened only when its first turn starts. /new begins
// another thread beside the old one. Measured with 0.171.0 and --no-daemon.
type codex struct {
	openHome
	before  map[string]bool // rollouts that existed before the launch, in the newest directories
	guessed string          // the rollout taken by exclusion, when blind
}

// rolloutName is a rollout's file name, with the thread's id.
var rolloutName = lazily(`^rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-f-]{36})\.jsonl$`)

func (c *codex) begin(t *tailer) {
	c.resolve(t)
	c.before = map[string]bool{}
	for _, dir := range c.days() {
		for path := range sizes(dir, "rollout-*.jsonl") {
			c.before[path] = true
		}
	}
}

func (c *codex) look(t *tailer) {
	if !c.resolve(t) {
		return // no home yet
	}
	c.each(t, c.held)
	if c.blind {
		c.guess(t)
	}
}

// held follows what an open file of ours leads to.
func (c *codex) held(t *tailer, path string) {
	rel, err := filepath.Rel(c.home, path)
	if err != nil {
		return
	}
	switch dir, name := filepath.Split(rel); {
	case strings.HasPrefix(rel, "sessions"+string(filepath.Separator)) && rolloutName().MatchString(name):
		c.follow(t, rel, 0)
	case dir == "thread-writer-locks"+string(filepath.Separator) && strings.HasSuffix(name, ".lock"):
		c.locked(t, strings.TrimSuffix(name, ".lock"))
	}
}

// locked follows the rollout of a thread whose lock we hold. If it exists and
// is not followed yet, all that it holds is old.
func (c *codex) locked(t *tailer, thread string) {
	if !sessionName().MatchString(thread) {
		return
	}
	found, _ := filepath.Glob(filepath.Join(c.home, "sessions", "*", "*", "*", "rollout-*-"+thread+".jsonl"))
	for _, path := range found {
		rel, err := filepath.Rel(c.home, path)
		info, statErr := os.Lstat(path)
		if err == nil && statErr == nil && info.ModTime().Before(t.spec.Started) {
			c.follow(t, rel, info.Size())
		} else if err == nil && statErr == nil {
			c.follow(t, rel, 0)
		}
	}
}

func (c *codex) follow(t *tailer, rel string, offset int64) {
	f := t.add(SourceRollout, c.home, rel, offset)
	f.freshSince = t.spec.Started
}

// guess takes a rollout by exclusion where open files are not known: the only
// one begun since the launch, in our directory. With two, whose is whose cannot
// be told, and another session's limit is worse than none.
func (c *codex) guess(t *tailer) {
	if c.guessed != "" {
		return
	}
	var mine []string
	for _, dir := range c.days() {
		for path := range sizes(dir, "rollout-*.jsonl") {
			if !c.before[path] && c.inCwd(t, path) {
				mine = append(mine, path)
			}
		}
	}
	if len(mine) != 1 {
		return
	}
	if rel, err := filepath.Rel(c.home, mine[0]); err == nil {
		c.guessed = mine[0]
		c.follow(t, rel, 0)
	}
}

// maxMeta bounds a rollout's first record, which holds the instructions.
const maxMeta = 1 << 20

// inCwd reports whether a rollout's first record names our directory.
func (c *codex) inCwd(t *tailer, path string) bool {
	rel, err := filepath.Rel(c.home, path)
	if err != nil {
		return false
	}
	line, err := head(c.home, rel, maxMeta)
	if err != nil {
		return false
	}
	var meta struct {
		Payload struct {
			Cwd string `json:"cwd"`
		} `json:"payload"`
	}
	return json.Unmarshal(line, &meta) == nil && meta.Payload.Cwd == t.spec.Cwd
}

// days are the newest year, month and day directory, the last one being where
// new rollouts appear.
func (c *codex) days() []string {
	dir := filepath.Join(c.home, "sessions")
	dirs := []string{dir}
	for range 3 {
		name := newestDir(dir)
		if name == "" {
			break
		}
		dir = filepath.Join(dir, name)
		dirs = append(dirs, dir)
	}
	return dirs
}

// newestDir is the directory in dir whose name comes last, "" if there is none:
// years, months and days are named so that it is the newest.
func newestDir(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range slices.Backward(entries) { // in the order of their names
		if e.IsDir() {
			return e.Name()
		}
	}
	return ""
}

func (c *codex) dirs(t *tailer) []string {
	dirs := append(t.fileDirs(), filepath.Join(c.home, "thread-writer-locks"))
	return append(dirs, c.days()...)
}

// wants new locks and new rollouts; writes to those that are ours are read
// without asking.
func (c *codex) wants(t *tailer, path string, created bool) bool {
	return created && (strings.HasSuffix(path, ".lock") || rolloutName().MatchString(filepath.Base(path)))
}
