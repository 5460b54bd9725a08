package agentlog

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
)

// goose follows Home/logs/cli/YYYY-MM-DD/YYYYMMDD_HHMMSS.log, which the process
// holds open from its start to its end. Two that start in one second write into
// one file: whose is whose cannot be told then, and nothing is. Its records are
// JSON; the warnings and errors of the conversation are passed on as goose writes
// them to stderr, "LEVEL target: message". Measured with goose 1.34.0.
type goose struct {
	openHome
	before map[string]int64 // logs that existed before the launch, in the newest directory
	taken  bool
}

func (g *goose) begin(t *tailer) {
	g.resolve(t)
	g.before = sizes(g.day(), "*.log")
}

// day is the newest directory of logs, and before the first one their parent.
func (g *goose) day() string {
	dir := filepath.Join(g.home, "logs", "cli")
	if name := newestDir(dir); name != "" {
		return filepath.Join(dir, name)
	}
	return dir
}

func (g *goose) look(t *tailer) {
	if !g.resolve(t) {
		return // no home yet
	}
	g.each(t, g.take)
	if g.blind && !g.taken {
		g.guess(t)
	}
}

// take follows a log that is ours.
func (g *goose) take(t *tailer, path string) {
	rel, err := filepath.Rel(g.home, path)
	if ok, _ := filepath.Match("logs/cli/*/*.log", filepath.ToSlash(rel)); err != nil || !ok || t.files[path] != nil {
		return
	}
	g.taken = true
	f := t.add(SourceDebug, g.home, rel, g.before[path])
	f.freshSince = t.spec.Started
	writers := 0
	f.emit = func(it Item) {
		if it.Line != nil {
			if bytes.Contains(it.Line, gooseStarts) {
				writers++
			}
			if it.Line = gooseLine(it.Line); it.Line == nil || writers > 1 {
				return
			}
		}
		t.emit(it)
	}
}

// gooseStarts is in the first record that each process writes.
var gooseStarts = []byte(`"message":"CLI command executed"`)

// guess takes a log by exclusion where open files are not known: the only one
// begun since the launch.
func (g *goose) guess(t *tailer) {
	var mine []string
	for path := range sizes(g.day(), "*.log") {
		if _, old := g.before[path]; !old {
			mine = append(mine, path)
		}
	}
	if len(mine) == 1 {
		g.take(t, mine[0])
	}
}

func (g *goose) dirs(t *tailer) []string {
	return append(t.fileDirs(), filepath.Join(g.home, "logs", "cli"), g.day())
}

// wants new logs and new days, and until ours is known writes too: a file is
// told of before the descriptor that made it is there to be found.
func (g *goose) wants(t *tailer, path string, created bool) bool {
	return !g.taken && (created || filepath.Ext(path) == ".log")
}

// gooseLine is what a record says, nil where it says nothing of the
// conversation's requests: goose also names its sessions by requests of their
// own, several at a time.
func gooseLine(record []byte) []byte {
	var r struct {
		Level  string `json:"level"`
		Target string `json:"target"`
		Fields struct {
			Message string `json:"message"`
		} `json:"fields"`
		Spans []struct {
			Name string `json:"name"`
		} `json:"spans"`
	}
	if json.Unmarshal(record, &r) != nil || r.Level != "WARN" && r.Level != "ERROR" {
		return nil
	}
	for _, s := range r.Spans {
		if s.Name == "reply_stream" {
			return []byte(r.Level + " " + r.Target + ": " + strings.Join(strings.Fields(r.Fields.Message), " "))
		}
	}
	return nil
}
