// Package agentlog follows the log that an agent writes about itself: only
// reading, only what is new since the launch, and only this session's, however
// many sessions of the same agent run in the same directory.
//
//	directory events (or a tick a second) -> finder: which files are this process's
//	                                      -> reader: their new bytes -> whole records -> emit
//
// Events are hints and carry no truth: each hint makes the finder and the
// readers look at the files again. Where inotify is not available (128 instances
// a user) they look once a second instead.
package agentlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Layouts of an agent's logs, for Spec.Kind.
const (
	// ClaudeTranscript: Home/sessions/PID.json names the session and its status;
	// the transcript is Home/projects/CWD/SESSION.jsonl, where CWD has a dash for
	// every character but letters and digits. The debug log is the one that
	// --debug-file names. Measured with Claude Code 2.1.332.
	ClaudeTranscript = "claude-transcript"
	// CodexRollout: Home/sessions/YYYY/MM/DD/rollout-*.jsonl, held open by the
	// native process together with Home/thread-writer-locks/THREAD.lock.
	// Measured with Codex 0.171.0.
	CodexRollout = "codex-rollout"
	// Gemini: the debug log that GEMINI_DEBUG_LOG_FILE names, whose records may
	// have several rows, and the session's chat file Home/tmp/PROJECT/chats/
	// session-*.jsonl. Measured with Gemini CLI 0.61.0.
	Gemini = "gemini"
	// Qwen: the session's debug log Home/debug/SESSION.txt, whose records may have
	// several rows, and its chat file Home/projects/CWD/chats/SESSION.jsonl.
	// Measured with Qwen Code 0.15.10.
	Qwen = "qwen"
	// OpenCode: Home/log/opencode.log, one for all sessions of the user, of which
	// the errors of this process's run count. Measured with OpenCode 1.18.33.
	OpenCode = "opencode"
	// Goose: Home/logs/cli/YYYY-MM-DD/*.log, JSON records, held open by the agent.
	// Measured with goose 1.34.0.
	Goose = "goose"
	// Pi: Home/sessions/--CWD--/*.jsonl. Measured with pi 0.73.1.
	Pi = "pi"
	// File: the files in Spec.Files, nothing to be found.
	File = "file"
)

// MaxLine is the longest record that is delivered, in bytes. Longer ones (a
// pasted image in a transcript) are skipped and counted; no error record is.
const MaxLine = 1 << 20

// Spec says what to follow.
type Spec struct {
	Kind string // one of the layouts above
	// Home is the agent's own directory, absolute: $CLAUDE_CONFIG_DIR or
	// ~/.claude, $CODEX_HOME or ~/.codex, ~/.gemini. Files outside it, also
	// through links, are not read. It need not exist yet. Unused by File.
	Home string
	// Cwd is the session's working directory.
	Cwd string
	// PID is the agent's process as it was started; the one that writes may be a
	// descendant (npm launchers).
	PID int
	// Started is when the agent was started. Records with older timestamps are
	// not new, even in a new file (forked and resumed sessions copy history).
	Started time.Time
	// Session is the id that the agent was started with, where its command line
	// names it; only Qwen's finder needs it.
	Session string
	// Files are the files to follow: for File all of them, for Claude and Gemini the debug
	// log. Absolute; they need not exist yet. Those that exist are followed from
	// their end.
	Files []string

	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Procs answers questions about processes; nil asks this machine.
	Procs Procs
	// Every makes a ticker and its stop; nil means time.NewTicker. It is only
	// called when directories cannot be watched, or a log has vanished.
	Every func(time.Duration) (<-chan time.Time, func())
	// Poll does without inotify, as if none were left.
	Poll bool
}

// Sources of an Item.
const (
	SourceTranscript = "transcript" // Claude's
	SourceRollout    = "rollout"    // Codex's
	SourceDebug      = "debug"      // Claude's, Gemini's or Qwen's debug log
	SourceChat       = "chat"       // Gemini's, Qwen's or pi's chat file
	SourceFile       = "file"       // a file of Spec.Files
	SourceStatus     = "status"     // Claude's sessions/PID.json
)

// Item is one thing that the agent wrote about itself.
type Item struct {
	Source string
	Path   string // the file
	// Line is one whole record without its newline; the receiver owns it. The
	// rows of a record of several (a debug log) are joined by a space.
	Line []byte
	// Status is "busy" or "idle" when the agent's status file said so anew.
	Status string
	// Skipped counts records longer than MaxLine that were left out here.
	Skipped int
}

// pollEvery is how often files are looked at where directories cannot be
// watched: DESIGN 4.15.
const pollEvery = time.Second

// Tail follows the logs of one session until ctx ends, reads what has been
// written by then, and returns nil; an error means that s is not usable. Call it
// when the agent is started: what exists then is old. emit is called from this
// goroutine only and may not block for long.
func Tail(ctx context.Context, s Spec, emit func(Item)) error {
	find, err := finderFor(s)
	if err != nil {
		return err
	}
	t := &tailer{spec: s, emit: emit, files: map[string]*file{}}
	if t.spec.Procs == nil {
		t.spec.Procs = system{}
	}
	if t.spec.Now == nil {
		t.spec.Now = time.Now
	}
	defer t.close()
	hints := newHints(s.Poll)
	defer hints.close()
	find.begin(t)
	t.follow(ctx, find, hints)
	return nil
}

// finderFor checks s and chooses how its files are found.
func finderFor(s Spec) (finder, error) {
	if s.Kind != File && !filepath.IsAbs(s.Home) {
		return nil, fmt.Errorf("agentlog: home %q is not absolute", s.Home)
	}
	for _, f := range s.Files {
		if !filepath.IsAbs(f) {
			return nil, fmt.Errorf("agentlog: file %q is not absolute", f)
		}
	}
	switch s.Kind {
	case ClaudeTranscript:
		return &claude{}, nil
	case CodexRollout:
		return &codex{}, nil
	case Gemini:
		return &gemini{}, nil
	case Qwen:
		return &qwen{}, nil
	case OpenCode:
		return &opencode{}, nil
	case Goose:
		return &goose{}, nil
	case Pi:
		return &pi{}, nil
	case File:
		if len(s.Files) == 0 {
			return nil, errors.New("agentlog: no file to follow")
		}
		return &plain{}, nil
	}
	return nil, fmt.Errorf("agentlog: unknown kind %q (claude-transcript, codex-rollout, gemini, qwen, opencode, goose, pi or file)", s.Kind)
}

// A finder knows one layout: which files are this session's.
type finder interface {
	// begin notes what exists before the agent has written anything.
	begin(t *tailer)
	// look follows the files that are found by now.
	look(t *tailer)
	// dirs are the directories whose changes may matter now.
	dirs(t *tailer) []string
	// wants says whether a change of path is worth a look; created is false for
	// a mere write.
	wants(t *tailer, path string, created bool) bool
}

// tailer follows the files of one session.
type tailer struct {
	spec  Spec
	emit  func(Item)
	files map[string]*file
	order []string // paths in the order of their discovery
}

// maxFiles bounds the files followed at once: each /clear or /new begins a new
// one. The oldest is let go.
const maxFiles = 16

func (t *tailer) follow(ctx context.Context, find finder, hints *hints) {
	var tick <-chan time.Time
	stop := func() {}
	defer func() { stop() }()
	for {
		find.look(t)
		t.read()
		added, all := hints.watch(find.dirs(t))
		if added {
			continue // something may have been written before the watch stood
		}
		all = all && !t.missing()
		switch {
		case !all && tick == nil:
			tick, stop = t.every(pollEvery)
		case all && tick != nil:
			stop()
			tick, stop = nil, func() {}
		}
		if !hints.wait(ctx, tick, func(path string, created bool) bool {
			return t.files[path] != nil || find.wants(t, path, created)
		}) {
			find.look(t)
			t.read()
			return
		}
	}
}

func (t *tailer) every(d time.Duration) (<-chan time.Time, func()) {
	if t.spec.Every != nil {
		return t.spec.Every(d)
	}
	ticker := time.NewTicker(d)
	return ticker.C, ticker.Stop
}

// missing reports whether a file has gone that was followed: its directory may
// have gone with it without a word.
func (t *tailer) missing() bool {
	for _, f := range t.files {
		if f.missing {
			return true
		}
	}
	return false
}

// add begins to follow a file that has rel below base, from offset on.
func (t *tailer) add(source, base, rel string, offset int64) *file {
	path := filepath.Join(base, rel)
	if f := t.files[path]; f != nil {
		return f
	}
	if len(t.order) >= maxFiles {
		t.files[t.order[0]].close()
		delete(t.files, t.order[0])
		t.order = t.order[1:]
	}
	f := &file{source: source, base: base, rel: rel, path: path, offset: offset, emit: t.emit, now: t.spec.Now}
	t.files[path], t.order = f, append(t.order, path)
	return f
}

// read delivers what is new in every file.
func (t *tailer) read() {
	for _, path := range t.order {
		t.files[path].read()
	}
}

func (t *tailer) close() {
	for _, f := range t.files {
		f.close()
	}
}
