package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"qshim/cmd/internal/cmdline"
)

// aliasLines define an alias in a shell, unless the user has an alias or a
// function of the name. Each is safe to eval twice.
var aliasLines = map[string]string{
	"bash": "[[ $(type -t %[1]s) == @(alias|function) ]] || alias %[1]s='qshim %[1]s'\n",
	"zsh":  "(( ${+aliases[%[1]s]} || ${+functions[%[1]s]} )) || alias %[1]s='qshim %[1]s'\n",
	"fish": "functions -q %[1]s; or alias %[1]s 'qshim %[1]s'\n",
}

func initCmd(a *app) *cmdline.Command {
	return &cmdline.Command{
		Use:      "init bash|zsh|fish",
		Short:    "Print aliases and completion for a shell to eval",
		Long:     initHelp,
		MaxArgs:  cmdline.AnyArgs,
		Complete: offerShells,
		Run: func(_ context.Context, args []string) error {
			if len(args) != 1 {
				return usagef("init for which shell? bash, zsh or fish (see: qshim init --help)")
			}
			line, ok := aliasLines[args[0]]
			if !ok {
				return usagef("init knows bash, zsh and fish, not %q", args[0])
			}
			var b strings.Builder
			for _, name := range a.aliases() {
				fmt.Fprintf(&b, line, name)
			}
			b.WriteString(completionScripts[args[0]])
			_, err := io.WriteString(a.stdout, b.String())
			return err
		},
	}
}

// aliases names the agents in PATH that no link governs already.
func (a *app) aliases() (names []string) {
	l := links{a: a, find: newFinder(a.getenv("PATH"))}
	for _, p := range a.profiles().all() {
		for _, name := range p.Binaries {
			if _, err := l.find.find(name); err == nil && !l.find.self(l.first(name)) {
				names = append(names, name)
			}
		}
	}
	return names
}
