package main

import (
	"context"
	"io"
	"strings"

	"qshim/cmd/internal/cmdline"
)

// completionScripts define the completion of qshim's own words, by shell.
var completionScripts = map[string]string{"bash": cmdline.Bash, "zsh": cmdline.Zsh, "fish": cmdline.Fish}

func completionCmd(a *app) *cmdline.Command {
	var plain bool
	return &cmdline.Command{
		Use:      "completion bash|zsh|fish",
		Short:    "Print the completion of qshim's own words for a shell",
		Long:     completionHelp,
		Flags:    []*cmdline.Flag{cmdline.Bool(&plain, "no-descriptions", "only the words, not what they mean")},
		MaxArgs:  cmdline.AnyArgs,
		Complete: offerShells,
		Run: func(_ context.Context, args []string) error {
			if len(args) != 1 || completionScripts[args[0]] == "" {
				return usagef("completion for which shell? bash, zsh or fish (how to load it: qshim completion --help)")
			}
			script := completionScripts[args[0]]
			if plain {
				script = strings.ReplaceAll(script, cmdline.Request+" ", cmdline.RequestPlain+" ")
			}
			_, err := io.WriteString(a.stdout, script)
			return err
		},
	}
}

// offerShells offers the shells that qshim knows.
func offerShells(args []string) cmdline.Offer {
	o := cmdline.Offer{Files: cmdline.NoFiles}
	if len(args) == 0 {
		o.Words = []cmdline.Word{{Text: "bash"}, {Text: "zsh"}, {Text: "fish"}}
	}
	return o
}

// offer answers a shell: what could stand in place of the last word. The words
// are as they were typed, without their quotes.
func (a *app) offer(plain bool, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	for i, w := range words[:len(words)-1] {
		words[i] = a.atHome(w)
	}
	return a.root().Offer(words).Print(a.stdout, plain)
}

// atHome does what a shell will do with a path in the user's home: the directory
// of the state may be named so. The shells' scripts evaluate nothing.
func (a *app) atHome(word string) string {
	home := a.getenv("HOME")
	if rest, ok := strings.CutPrefix(word, "~/"); ok {
		return home + "/" + rest
	}
	return strings.NewReplacer("${HOME}/", home+"/", "$HOME/", home+"/").Replace(word)
}

// agentsInPath offers the agents that are there.
func (a *app) agentsInPath() (o cmdline.Offer) {
	find := newFinder(a.getenv("PATH"))
	for _, p := range a.profiles().all() {
		for _, b := range p.Binaries {
			if _, err := find.find(b); err == nil {
				o.Words = append(o.Words, cmdline.Word{Text: b, About: p.Title})
			}
		}
	}
	return o
}
