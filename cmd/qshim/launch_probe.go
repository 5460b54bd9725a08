package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"qshim/policies/agents"
)

// probeCache keeps what binaries said; the state directory is one.
type probeCache interface {
	ReadCache(name string, v any) error
	WriteCache(name string, v any) error
}

// prober asks a binary for its --help or --version, once per path, inode,
// mtime and size.
type prober struct {
	cache probeCache // nil: nothing is kept
	stat  func(string) (fs.FileInfo, error)
	// run executes argv and returns its standard output.
	run func(argv, env []string, limit time.Duration) (string, error)
	env []string
}

// How long a binary may take to answer, measured on a noisy 2-core VM: codex
// --help 0.4 s, gemini --version 3.8 s, claude --help 0.5 s and over 3 s at a
// load of 25: without an answer its hidden retries are not seen. Only --help can
// stand in a launch's way, and only the first time.
const (
	helpLimit    = 10 * time.Second
	versionLimit = 20 * time.Second
)

// maxAnswer bounds what is read and kept of an answer, in bytes.
const maxAnswer = 64 << 10

// probed is a cache entry: the answer, and the file that gave it.
type probed struct {
	File   string `json:"file"`
	Inode  uint64 `json:"inode"`
	MTime  int64  `json:"mtime_ns"`
	Size   int64  `json:"size"`
	Answer string `json:"answer"`
}

// known is what the adjustments of a launch need to know of its binary. A
// binary that does not answer is asked again at the next launch.
func (p *prober) known(t *launchTarget) agents.Known {
	return agents.Known{Help: p.ask(t, "--help", helpLimit)}
}

// version is the first line of --version, for doctor; "" when there is none.
func (p *prober) version(t *launchTarget) string {
	line, _, _ := strings.Cut(strings.TrimSpace(p.ask(t, "--version", versionLimit)), "\n")
	return strings.TrimSpace(line)
}

func (p *prober) ask(t *launchTarget, flag string, limit time.Duration) string {
	if t.Inv.Fetches {
		return "" // npx may download before it answers
	}
	file, argv := t.probeLine(flag)
	info, err := p.stat(file)
	if err != nil {
		return ""
	}
	now := probed{File: file, MTime: info.ModTime().UnixNano(), Size: info.Size()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		now.Inode = uint64(st.Ino)
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{file}, argv...), "\x00")))
	name := "probe-" + hex.EncodeToString(sum[:8])
	var old probed
	if p.cache != nil && p.cache.ReadCache(name, &old) == nil {
		now.Answer = old.Answer
		if old == now {
			return old.Answer
		}
	}
	now.Answer, err = p.run(argv, p.env, limit)
	if err != nil {
		return ""
	}
	if p.cache != nil {
		_ = p.cache.WriteCache(name, now) // not kept: asked again next time
	}
	return now.Answer
}

// probeLine is the command that asks, and the file whose change makes the
// answer stale: the script behind an interpreter, not the interpreter.
func (t *launchTarget) probeLine(flag string) (file string, argv []string) {
	file = t.Path
	argv = append([]string{t.Path}, t.Argv[1:t.Inv.At+1]...)
	if t.Inv.At == 0 {
		argv = argv[:1]
	} else if strings.Contains(t.Argv[t.Inv.At], "/") {
		file = t.Argv[t.Inv.At]
	}
	return file, append(argv, flag)
}

// runProbe executes a question: no terminal, no input, its own session, killed
// with all it started when its time is over.
func runProbe(argv, env []string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	out := &capped{left: maxAnswer}
	cmd.Stdout = out
	err := cmd.Run()
	return out.String(), err
}

// capped keeps the beginning of what is written and swallows the rest.
type capped struct {
	strings.Builder
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	_, _ = c.Builder.Write(p[:n]) // never fails
	return len(p), nil
}

// adjusted applies what a profile adds: arguments behind the agent's word, and
// variables. fill puts in what is new in each launch.
func (t *launchTarget) adjusted(a agents.Applied, args []string, fill *strings.Replacer) (argv []string, set map[string]string) {
	argv = append([]string(nil), t.Argv[:t.Inv.At+1]...)
	for _, v := range a.Args {
		argv = append(argv, fill.Replace(v))
	}
	argv = append(argv, args...)
	set = map[string]string{}
	for k, v := range a.Env {
		set[k] = fill.Replace(v)
	}
	return argv, set
}

// newIn is what is new in each launch: the path of its log, and an id for its
// session, a UUID of version 4.
func newIn(log string, rand func() float64) *strings.Replacer {
	part := func(bits int) uint64 { return uint64(rand() * float64(uint64(1)<<bits)) }
	uuid := fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", part(32), part(16), part(12), 0x8000|part(14), part(48))
	return strings.NewReplacer("{log}", log, "{uuid}", uuid)
}

// quickRefusal is how soon an adjusted agent that exits 2 is taken to have
// refused the adjustment (DESIGN 4.5); parsers refuse in milliseconds.
const quickRefusal = time.Second

// runUnadjusted reports whether an adjusted agent's end means that it is run
// once more as the user typed it.
func runUnadjusted(a agents.Applied, code int, ran time.Duration) bool {
	return len(a.Names) > 0 && code == 2 && ran < quickRefusal
}

// agentFiles reads the agent's files for package account: regular files of at
// most 16 MiB. A FIFO or a device where a file should be does not hang it.
type agentFiles struct{}

// maxAgentFile bounds one file, in bytes; .claude.json reaches a few megabytes.
const maxAgentFile = 16 << 20

// ReadFile implements account.FS.
func (agentFiles) ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxAgentFile {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, maxAgentFile))
}
