package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"qshim/cmd/internal/cmdline"
)

func linkCmd(a *app) *cmdline.Command {
	return &cmdline.Command{
		Use:      "link [DIR] AGENT...",
		Short:    "Make links named like agents, for programs that start agents themselves",
		Long:     linkHelp,
		MaxArgs:  cmdline.AnyArgs,
		Complete: func([]string) cmdline.Offer { return a.agentsInPath() },
		Run: func(_ context.Context, args []string) error {
			l, names, err := a.links(args)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				return usagef("link needs the name of an agent, for example: qshim link claude (see: qshim link --help)")
			}
			return l.each(names, l.link)
		},
	}
}

func unlinkCmd(a *app) *cmdline.Command {
	return &cmdline.Command{
		Use:      "unlink [DIR] [AGENT...]",
		Short:    "Remove links that qshim link has made; without AGENT all of them",
		Long:     unlinkHelp,
		MaxArgs:  cmdline.AnyArgs,
		Complete: a.completeLinks,
		Run: func(_ context.Context, args []string) error {
			l, names, err := a.links(args)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				names = l.ours()
				if len(names) == 0 {
					l.sayNone()
				}
			}
			return l.each(names, l.unlink)
		},
	}
}

// links is one directory of links to qshim.
type links struct {
	a    *app
	dir  string // absolute, clean
	self func(file string) bool
	find *finder
}

// links reads the arguments of link and unlink: a first word with a slash is
// the directory, as a command with a slash is a file.
func (a *app) links(args []string) (*links, []string, error) {
	dir := a.linkDir()
	if len(args) > 0 && (strings.Contains(args[0], "/") || args[0] == "." || args[0] == "..") {
		dir, args = args[0], args[1:]
	}
	if dir == "" {
		return nil, nil, usagef("there is no place for links: set HOME, or name a directory (qshim link DIR AGENT)")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	f := newFinder(a.getenv("PATH"))
	return &links{a: a, dir: dir, self: f.self, find: f}, args, nil
}

// linkDir is $XDG_DATA_HOME/qshim/bin, else ~/.local/share/qshim/bin: a
// directory of qshim's own, so that putting it first in PATH changes nothing
// else.
func (a *app) linkDir() string {
	if d := a.getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "qshim", "bin")
	}
	if h := a.getenv("HOME"); h != "" {
		return filepath.Join(h, ".local", "share", "qshim", "bin")
	}
	return ""
}

// each does its work for every name, says what does not work, and goes on.
func (l *links) each(names []string, do func(string) error) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if err := checkLinkName(name); err != nil {
			return err
		}
	}
	failed := false
	for _, name := range names {
		if err := do(name); err != nil {
			say(l.a.stderr, "%s", printable(err.Error()))
			failed = true
		}
	}
	if failed {
		return &exitError{code: exitFailed}
	}
	return nil
}

// checkLinkName: what a link may be called. A link named like qshim would be
// qshim itself (see calledAs).
func checkLinkName(name string) error {
	switch {
	case name == "" || strings.HasPrefix(name, "-") || name != printable(name):
		return usagef("%q is no agent's name", name)
	case strings.Contains(name, "/"):
		return usagef("%q: only the first argument may be a directory; an agent is named as it is typed, like claude", name)
	}
	if _, ok := calledAs([]string{name}); !ok {
		return usagef("a link named %q would be qshim itself: name an agent, like claude", name)
	}
	return nil
}

// link makes or renews one link, and says where it leads and whether PATH finds it.
func (l *links) link(name string) error {
	behind, err := l.find.find(name)
	if err != nil {
		if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
			return fmt.Errorf("%s is no agent in PATH; if you mean the directory, write ./%s", name, name)
		}
		return fmt.Errorf("%w: a link without an agent behind it would only mislead, so it is not made", err)
	}
	target, err := l.target()
	if err != nil {
		return err
	}
	file := filepath.Join(l.dir, name)
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	switch l.what(file) {
	case free:
		err = os.Symlink(target, file)
	case ourLink:
		err = renewLink(target, file)
	default:
		return notOurs(file)
	}
	if err != nil {
		return fmt.Errorf("the link cannot be made: %w", err)
	}
	l.sayLinked(name, file, behind)
	return nil
}

// renewLink points a link of ours at another file, in one step.
func renewLink(target, file string) error {
	if now, err := os.Readlink(file); err == nil && now == target {
		return nil
	}
	next := file + ".qshim-new"
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	if err := os.Rename(next, file); err != nil {
		_ = os.Remove(next) // ours, and of no use any more
		return err
	}
	return nil
}

// What stands where a link would be.
type place int

const (
	free    place = iota
	ourLink       // a symbolic link that leads to a qshim, or led to one
	taken         // anything else: never touched
)

func (l *links) what(file string) place {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return free
	case err != nil || info.Mode()&fs.ModeSymlink == 0:
		return taken
	case l.self(file):
		return ourLink
	}
	to, err := os.Readlink(file)
	if err != nil || filepath.Base(to) != "qshim" {
		return taken
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return ourLink // qshim has moved since
	}
	return taken
}

// target is what links point at: qshim as PATH knows it, which an update keeps,
// else the running file.
func (l *links) target() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("where qshim itself is cannot be told: %w", err)
	}
	if file, err := exec.LookPath("qshim"); err == nil && filepath.IsAbs(file) && sameFile(file, own) {
		own = file
	}
	if strings.Contains(own, "/go-build") {
		return "", errors.New("this qshim is a temporary build (go run): install it first (go install ./cmd/qshim), then link")
	}
	return own, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// unlink removes one link, if it is ours.
func (l *links) unlink(name string) error {
	file := filepath.Join(l.dir, name)
	switch l.what(file) {
	case free:
		return fmt.Errorf("there is no link %s", file)
	case taken:
		return notOurs(file)
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("the link cannot be removed: %w", err)
	}
	l.sayUnlinked(name, file)
	if l.dir == l.a.linkDir() {
		_ = os.Remove(l.dir) // ours; it stays while something is in it
	}
	return nil
}

// ours lists the links in the directory.
func (l *links) ours() (names []string) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return nil // no directory, no links
	}
	for _, e := range entries {
		if _, agent := calledAs([]string{e.Name()}); agent && l.what(filepath.Join(l.dir, e.Name())) == ourLink {
			names = append(names, e.Name())
		}
	}
	return names
}

// first is the file that PATH finds for a name, as any program would.
func (l *links) first(name string) string {
	all := *l.find
	all.self = func(string) bool { return false }
	file, err := all.find(name)
	if err != nil {
		return ""
	}
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

// inPath reports whether the directory is in PATH at all.
func (l *links) inPath() bool {
	return slices.ContainsFunc(filepath.SplitList(l.find.path), func(dir string) bool {
		return dir != "" && sameFile(dir, l.dir)
	})
}

// completeLinks offers the links that are there.
func (a *app) completeLinks(args []string) (o cmdline.Offer) {
	l, _, err := a.links(args)
	if err != nil {
		return o
	}
	for _, name := range l.ours() {
		o.Words = append(o.Words, cmdline.Word{Text: name})
	}
	return o
}
