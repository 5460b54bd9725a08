package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// shell is one that init knows.
type shell struct {
	// alias defines one, unless the user has an alias or a function of the name.
	alias string
	// before and after stand around the completion script, which needs what
	// they ask for.
	before, after string
	completion    func(root *cobra.Command, w io.Writer) error
}

// shells by name. Each line is safe to eval twice.
var shells = map[string]shell{
	"bash": {
		alias: "[[ $(type -t %[1]s) == @(alias|function) ]] || alias %[1]s='qshim %[1]s'\n",
		// The script stands on bash-completion.
		before: "if declare -F _get_comp_words_by_ref >/dev/null; then\n", after: "fi\n",
		completion: func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	},
	"zsh": {
		alias:  "(( ${+aliases[%[1]s]} || ${+functions[%[1]s]} )) || alias %[1]s='qshim %[1]s'\n",
		before: "if (( ${+functions[compdef]} )); then\n", after: "fi\n",
		completion: func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	},
	"fish": {
		alias:      "functions -q %[1]s; or alias %[1]s 'qshim %[1]s'\n",
		completion: func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	},
}

func initCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:       "init bash|zsh|fish",
		Short:     "Print aliases and completion for a shell to eval",
		Long:      initHelp,
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("init for which shell? bash, zsh or fish (see: qshim init --help)")
			}
			sh, ok := shells[args[0]]
			if !ok {
				return usagef("init knows bash, zsh and fish, not %q", args[0])
			}
			var b bytes.Buffer
			for _, name := range a.aliases() {
				fmt.Fprintf(&b, sh.alias, name)
			}
			b.WriteString(sh.before)
			if err := sh.completion(cmd.Root(), &b); err != nil {
				return err
			}
			b.WriteString(sh.after)
			_, err := a.stdout.Write(b.Bytes())
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
