package agentlog

import "path/filepath"

// plain follows given files.
type plain struct{}

func (plain) begin(t *tailer) {
	for _, path := range t.spec.Files {
		f := t.add(SourceFile, filepath.Dir(path), filepath.Base(path), 0)
		f.atEnd = true
	}
	t.read()
}

func (plain) look(*tailer) {}

func (plain) dirs(t *tailer) []string { return t.fileDirs() }

func (plain) wants(*tailer, string, bool) bool { return false }

// fileDirs are the directories of the files that are followed.
func (t *tailer) fileDirs() []string {
	var dirs []string
	for _, path := range t.order {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}
