// Command try gives a person's hands what the tests have: it makes a network
// namespace, starts the fake provider in it, prepares a private HOME for an
// agent and runs a command with that environment (a shell, tmux, the agent).
//
//	go run ./cmd/internal/realagents/try claude            a shell in which claude works
//	go run ./cmd/internal/realagents/try claude -- claude -p hello
//
// FAKE_URL names the provider for curl: see go doc ./cmd/internal/fakeprovider.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"qshim/cmd/internal/fakeprovider"
	"qshim/cmd/internal/realagents"
)

func main() {
	if err := run(); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			os.Exit(max(exit.ExitCode(), 1))
		}
		fmt.Fprintln(os.Stderr, "try:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", "", "where HOME and project are made, kept afterwards (default: a temporary directory, removed)")
	repo := flag.String("repo", ".", "the clone, whose testdata/agents/install says where the agents are")
	addr := flag.String("addr", "127.0.0.1:8377", "where the fake provider listens, inside the namespace")
	key := flag.String("key", "one", "name of the account")
	plan := flag.Bool("plan", false, "log in as a subscription (claude only)")
	flag.Parse()
	if flag.NArg() == 0 {
		return errors.New("which agent? claude, codex, gemini, opencode or qwen")
	}
	if !realagents.Isolated() {
		status, err := realagents.Isolate()
		if err == nil {
			os.Exit(status)
		}
		return err
	}
	if err := realagents.Loopback(); err != nil {
		return err
	}
	url, stop, err := fakeprovider.New(fakeprovider.Options{}).Start(*addr)
	if err != nil {
		return err
	}
	defer stop()
	return hand(realagents.Agent(flag.Arg(0)), *dir, *repo, url, *key, *plan, flag.Args()[1:])
}

// hand prepares the place and gives it to the command.
func hand(a realagents.Agent, dir, repo, url, key string, plan bool, command []string) error {
	bin, err := realagents.InstallDir(repo)
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "qshim-try-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	who := realagents.Account{Key: realagents.DummyKey(a, key), Plan: plan}
	s, err := realagents.Prepare(a, dir, bin, url, "UTC", who)
	if err != nil {
		return err
	}
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		command = []string{"/bin/sh"}
	}
	cmd := exec.Command(command[0], command[1:]...)
	if path, err := exec.LookPath(filepath.Join(bin, "bin", command[0])); err == nil {
		cmd.Path, cmd.Err = path, nil
	}
	cmd.Dir, cmd.Env = s.Project, append(s.Env, "FAKE_URL="+url)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
