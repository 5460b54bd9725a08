package agentlog

import (
	"bytes"
	"path/filepath"
	"strconv"
)

// opencode follows Home/log/opencode.log, which all sessions of the user write
// into: each record names a run, which is one process, and a run's first record
// the directory that it works in. Ours is the one that began since the launch
// in our directory. With a second one, or another OpenCode of that directory
// that may be it, whose is whose cannot be told, and nothing is. Measured with
// OpenCode 1.18.33.
type opencode struct {
	cwd  string          // without links, as the agent names it
	runs map[string]bool // those since the launch: whether they are of our directory
	ours string          // "" not known
}

func (o *opencode) begin(t *tailer) {
	o.runs = map[string]bool{}
	o.cwd = realDir(t.spec.Cwd)
	f := t.add(SourceDebug, t.spec.Home, filepath.Join("log", "opencode.log"), 0)
	f.atEnd, f.freshSince = true, t.spec.Started
	f.emit = func(it Item) {
		if it.Line == nil || o.take(t, it.Line) {
			t.emit(it)
		}
	}
	t.read()
}

func (*opencode) look(*tailer) {}

func (*opencode) dirs(t *tailer) []string { return t.fileDirs() }

func (*opencode) wants(*tailer, string, bool) bool { return false }

// maxRuns bounds the runs that are remembered.
const maxRuns = 1024

// take reports whether a record is an error of our run. The rest of the log is
// of no use, and most of it is others'.
func (o *opencode) take(t *tailer, line []byte) bool {
	run := string(logField(line, "run"))
	if run == "" {
		return false
	}
	if _, known := o.runs[run]; !known && len(o.runs) < maxRuns {
		o.runs[run] = string(logField(line, "message")) == "creating instance" && string(logField(line, "directory")) == o.cwd
	}
	if string(logField(line, "level")) != "ERROR" || !o.runs[run] {
		return false
	}
	if o.ours == "" && o.alone(t) {
		o.ours = run
	}
	return o.ours == run
}

// alone reports whether one run only can be ours.
func (o *opencode) alone(t *tailer) bool {
	n := 0
	for _, here := range o.runs {
		if here {
			n++
		}
	}
	return n == 1 && t.alone("opencode", o.cwd)
}

// alone reports whether no process of that name works in dir but ours.
func (t *tailer) alone(name, dir string) bool {
	family := map[int]bool{}
	for _, pid := range t.spec.Procs.Family(t.spec.PID) {
		family[pid] = true
	}
	others, err := t.spec.Procs.Running(name, dir)
	if err != nil {
		return true // not known here: then by exclusion, as for Codex
	}
	for _, pid := range others {
		if !family[pid] {
			return false
		}
	}
	return true
}

// realDir is dir without links, as agents and /proc name it.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// logField is a field of a record of the form key=word key="with blanks", nil
// when it has none.
func logField(line []byte, key string) []byte {
	for len(line) > 0 {
		line = bytes.TrimLeft(line, " ")
		eq := bytes.IndexByte(line, '=')
		if eq < 0 {
			return nil
		}
		name, value := line[:eq], line[eq+1:]
		end := bytes.IndexByte(value, ' ')
		if len(value) > 0 && value[0] == '"' {
			quoted, err := strconv.QuotedPrefix(string(value[:min(len(value), maxField)]))
			if err != nil {
				return nil
			}
			end = len(quoted)
		}
		if end < 0 {
			end = len(value)
		}
		if string(name) == key {
			word := value[:end]
			if s, err := strconv.Unquote(string(word)); err == nil && word[0] == '"' {
				return []byte(s)
			}
			return word
		}
		line = value[end:]
	}
	return nil
}

// maxField bounds a quoted field on the way to the one that is looked for, bytes:
// the fields that are asked for stand before those that may be long.
const maxField = 16 << 10
