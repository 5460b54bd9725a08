package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"qshim/policies/agents"
)

// Exit codes of a launch that cannot begin, as a shell gives them.
const (
	exitNotFound   = 127 // no such command
	exitNotStarted = 126 // found, but it cannot be executed
)

// launchError is why an agent cannot be started, in one line, with the code
// that qshim exits with.
type launchError struct {
	Code int
	Msg  string
}

func (e *launchError) Error() string { return e.Msg }

// qshimPath is the import path that Go writes into every build of qshim.
const qshimPath = "qshim/cmd/qshim"

// finder finds the file that a command means, looking past qshim itself.
type finder struct {
	path string // $PATH of the agent
	// self reports whether a file leads back to qshim.
	self func(file string) bool
	stat func(string) (fs.FileInfo, error) // follows links
	// executable reports whether this user may execute the file.
	executable func(string) bool
}

// newFinder looks in the real file system.
func newFinder(path string) *finder {
	own := ownFile()
	return &finder{
		path:       path,
		self:       func(file string) bool { return leadsToQshim(file, own) },
		stat:       os.Stat,
		executable: func(file string) bool { return unix.Access(file, unix.X_OK) == nil },
	}
}

// find returns the file to execute for a command as typed. A word with a slash
// is the file itself, whatever it is; any other is looked for along PATH, empty
// and relative entries too, past everything that is qshim.
func (f *finder) find(command string) (string, error) {
	if command == "" {
		return "", &launchError{exitNotFound, "the agent's name is empty"}
	}
	if strings.Contains(command, "/") {
		return command, f.check(command)
	}
	blocked, passed := "", ""
	for _, dir := range filepath.SplitList(f.path) {
		file := f.join(dir, command)
		info, err := f.stat(file)
		switch {
		case err != nil || !info.Mode().IsRegular():
			continue
		case !f.executable(file):
			if blocked == "" {
				blocked = file
			}
		case f.self(file):
			passed = file
		default:
			return file, nil
		}
	}
	switch {
	case blocked != "":
		return "", &launchError{exitNotStarted, blocked + " is not executable"}
	case passed != "":
		return "", &launchError{exitNotFound, fmt.Sprintf("%s: not found in PATH, apart from %s, which is qshim", command, passed)}
	}
	return "", &launchError{exitNotFound, command + ": not found in PATH"}
}

// past makes find look behind a file that has led back to us, as far as
// something stands there, and reports whether it has.
func (f *finder) past(file, command string) bool {
	if file == "" || filepath.Base(file) != command {
		return false
	}
	behind, self := *f, f.self
	behind.self = func(x string) bool { return x == file || self(x) }
	if _, err := behind.find(command); err == nil {
		f.self = behind.self
	}
	return true
}

// join makes a PATH entry and a name into a path with a slash, so that execve
// takes it as it is: an empty entry is the current directory.
func (f *finder) join(dir, command string) string {
	switch {
	case dir == "":
		return "./" + command
	case strings.HasSuffix(dir, "/"):
		return dir + command
	}
	file := dir + "/" + command
	if !strings.HasPrefix(file, "/") && !strings.HasPrefix(file, ".") {
		file = "./" + file
	}
	return file
}

// check judges a file that was given as a path.
func (f *finder) check(file string) error {
	info, err := f.stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return &launchError{exitNotFound, file + ": no such file"}
	case err != nil:
		return &launchError{exitNotStarted, fmt.Sprintf("%s: %v", file, errors.Unwrap(err))}
	case info.IsDir():
		return &launchError{exitNotStarted, file + " is a directory"}
	case !f.executable(file):
		return &launchError{exitNotStarted, file + " is not executable"}
	}
	return nil
}

// ownFile is the file that this process runs; nil where the system hides it.
func ownFile() fs.FileInfo {
	if info, err := os.Stat("/proc/self/exe"); err == nil {
		return info
	}
	name, err := os.Executable()
	if err != nil {
		return nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	return info
}

// maxCopy bounds the files that are looked into for being a copy of qshim, in
// bytes. qshim takes some 10 MB, the agents' native binaries 100 to 300 MB.
const maxCopy = 64 << 20

// leadsToQshim reports whether executing file would run qshim again: it is the
// running file itself (through any links, hard ones too), another build of it
// by the import path that Go writes into it, or a script that names qshim.
// What this misses, QSHIM_DEPTH stops.
func leadsToQshim(file string, own fs.FileInfo) bool {
	info, err := os.Stat(file)
	if err != nil {
		return false
	}
	if own != nil && os.SameFile(info, own) {
		return true
	}
	if info.Size() > maxCopy {
		return false
	}
	// O_NONBLOCK: whatever it has become since, opening it does not hang.
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false // executable but not readable: no script, and no build of ours that we can tell
	}
	defer f.Close()
	return scriptOfQshim(f) || buildOfQshim(f)
}

// namesQshim finds qshim as a word: a command, or the end of a path.
func namesQshim(line []byte) bool {
	const before, after = " \t/\"'`;&|(=", " \t\"'`;&|)"
	for at := 0; ; {
		i := bytes.Index(line[at:], []byte("qshim"))
		if i < 0 {
			return false
		}
		i += at
		at = i + len("qshim")
		if (i == 0 || strings.IndexByte(before, line[i-1]) >= 0) && (at == len(line) || strings.IndexByte(after, line[at]) >= 0) {
			return true
		}
	}
}

// scriptOfQshim looks into the first 16 KiB of a script: wrappers are short,
// and agents that are scripts do not speak of qshim. Comment lines do not count.
func scriptOfQshim(r io.ReaderAt) bool {
	buf := make([]byte, 16<<10)
	n, _ := r.ReadAt(buf[:2], 0) // an error means fewer than two bytes
	if n < 2 || string(buf[:2]) != "#!" {
		return false
	}
	n, _ = r.ReadAt(buf, 0) // EOF is the usual end
	for line := range bytes.Lines(buf[:n]) {
		if t := bytes.TrimSpace(line); !bytes.HasPrefix(t, []byte("#")) && namesQshim(t) {
			return true
		}
	}
	return false
}

func buildOfQshim(r io.ReaderAt) bool {
	magic := make([]byte, 4)
	if n, _ := r.ReadAt(magic, 0); n < 4 || !native(magic) { // an error means a short file
		return false
	}
	info, err := buildinfo.Read(r)
	return err == nil && info.Path == qshimPath
}

// native reports whether a file begins as an ELF or Mach-O executable.
func native(magic []byte) bool {
	switch string(magic) {
	case "\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe":
		return true
	}
	return false
}

// launchTarget is an agent about to be started.
type launchTarget struct {
	Path    string            // the file to execute
	Argv    []string          // its arguments; Argv[0] as typed
	Profile *agents.Profile   // never nil
	Inv     agents.Invocation // where in Argv the agent is
	Command string            // base name of the agent as typed
}

// Args are the agent's own arguments.
func (t *launchTarget) Args() []string { return t.Argv[t.Inv.At+1:] }

// resolveLaunch finds out what a command line runs. words are the agent and
// its arguments as typed; forced is --profile, "" without it.
func resolveLaunch(words []string, forced string, p profiles, f *finder) (launchTarget, error) {
	if len(words) == 0 {
		return launchTarget{}, &launchError{2, "no agent is named"}
	}
	t := launchTarget{Argv: append([]string(nil), words...), Inv: p.Index().Invocation(words)}
	name := t.Inv.Profile
	if forced != "" {
		name = forced
	}
	var err error
	if t.Profile, err = p.Load(name); err != nil {
		return t, &launchError{2, err.Error()}
	}
	t.Command = agents.BaseName(words[t.Inv.At])
	if t.Path, err = f.find(words[0]); err != nil {
		return t, err
	}
	t.past(f)
	return t, nil
}

// past points `env X=1 claude` at the real agent where env itself would find
// qshim under that name first.
func (t *launchTarget) past(f *finder) {
	word := t.Argv[t.Inv.At]
	if t.Inv.At == 0 || t.Inv.Fetches || strings.Contains(word, "/") || agents.BaseName(t.Argv[0]) != "env" {
		return
	}
	all := *f
	all.self = func(string) bool { return false }
	first, err := all.find(word)
	if err != nil || !f.self(first) {
		return
	}
	if file, err := f.find(word); err == nil {
		t.Argv[t.Inv.At] = file
	}
}

// calledAs reports the agent that qshim was called as: through a link, a hard
// link or a copy named after it. argv[0] is what the caller typed; "qshim" and
// builds named after a version (qshim-1.2, qshim.test) are qshim itself.
func calledAs(argv []string) (words []string, ok bool) {
	if len(argv) == 0 {
		return nil, false
	}
	name := strings.TrimPrefix(filepath.Base(argv[0]), "-") // a login shell's dash
	rest, own := strings.CutPrefix(name, "qshim")
	if own && (rest == "" || strings.ContainsAny(rest[:1], "-_.")) || name == "." || name == "/" {
		return nil, false
	}
	return append([]string{name}, argv[1:]...), true
}
