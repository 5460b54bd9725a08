package agentlog

import (
	"path/filepath"
	"strings"
)

// pi follows Home/sessions/--CWD--/TIME_SESSION.jsonl, where CWD has a dash for
// each slash. A record is appended through a descriptor of its own, so nothing
// tells whose a file is: ours are those that begin or grow while no other pi
// works in our directory. Measured with pi 0.73.1.
type pi struct {
	cwd    string
	before map[string]int64 // how long what is not ours was
}

func (p *pi) begin(t *tailer) {
	p.cwd = realDir(t.spec.Cwd)
	p.before = sizes(p.dir(t), "*.jsonl")
}

func (p *pi) dir(t *tailer) string {
	name := strings.ReplaceAll(strings.TrimPrefix(p.cwd, "/"), "/", "-")
	return filepath.Join(t.spec.Home, "sessions", "--"+name+"--")
}

func (p *pi) look(t *tailer) {
	now := sizes(p.dir(t), "*.jsonl")
	alone, asked := false, false
	for path, size := range now {
		if was, old := p.before[path]; t.files[path] != nil || old && size <= was {
			continue
		}
		if !asked {
			alone, asked = t.alone("pi", p.cwd), true
		}
		if !alone {
			p.before[path] = size
			continue
		}
		f := t.add(SourceChat, t.spec.Home, filepath.Join("sessions", filepath.Base(p.dir(t)), filepath.Base(path)), p.before[path])
		f.freshSince = t.spec.Started
	}
}

func (p *pi) dirs(t *tailer) []string { return append(t.fileDirs(), p.dir(t)) }

func (p *pi) wants(t *tailer, path string, created bool) bool {
	return filepath.Ext(path) == ".jsonl"
}
