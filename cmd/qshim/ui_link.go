package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

const linkHelp = `Make links named like agents (claude -> qshim), so that programs that look for
an agent and start it themselves (editors, orchestrators, scripts) are governed
without knowing it. The real agent is looked for behind the link, in PATH.

A first word with a slash is the directory for the links. Without one they go to
~/.local/share/qshim/bin ($XDG_DATA_HOME/qshim/bin); put it first in PATH. What
is no link to qshim is never overwritten.`

const unlinkHelp = `Remove links that qshim link has made: those named, or all in the directory. What
is no link to qshim is left alone.`

func notOurs(file string) error {
	return fmt.Errorf("%s is there and is no link to qshim: it is left alone; choose another directory (qshim link DIR AGENT)", file)
}

// sayLinked says what the link means and whether PATH finds it first.
func (l *links) sayLinked(name, file, behind string) {
	l.line("%s is linked: %s, and behind it %s", name, file, behind)
	switch first := l.first(name); {
	case sameFile(filepath.Dir(first), l.dir):
		l.line("  PATH finds the link first")
	case !l.inPath():
		l.line("  PATH does not hold the directory: put it first. bash, zsh: export PATH=%s:\"$PATH\"  fish: fish_add_path -p %s", quoted(l.dir), quoted(l.dir))
	default:
		l.line("  PATH finds %s first: put %s before %s", first, l.dir, filepath.Dir(first))
	}
}

func (l *links) sayUnlinked(name, file string) {
	l.line("%s is unlinked: %s is removed", name, file)
}

func (l *links) sayNone() { l.line("There is no link to qshim in %s.", l.dir) }

func (l *links) line(format string, args ...any) { printLine(l.a.stdout, format, args...) }

func printLine(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintln(w, printable(fmt.Sprintf(format, args...))) // nowhere left to report a broken stdout
}

// quoted is a word as bash, zsh and fish all read it.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@%,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(strings.ReplaceAll(word, `\`, `\\`), "'", `'\''`) + "'"
}
