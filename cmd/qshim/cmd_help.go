package main

import "github.com/spf13/cobra"

// completionNeedsShell: cobra's own command shows its help for a shell that it
// does not know, and a shell that sources that gets a page of errors.
func completionNeedsShell(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(*cobra.Command, []string) error {
				return usagef("completion for which shell? bash, zsh, fish or powershell (how to load it: qshim completion bash --help)")
			}
		}
	}
}

// helpCmd is cobra's help, with an error for what it does not know.
func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show how a command is used",
		RunE: func(c *cobra.Command, args []string) error {
			cmd, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %q (see: qshim --help; an agent's own help: qshim AGENT --help)", args[0])
			}
			return cmd.Help()
		},
	}
}

// agentsInPath offers the agents that are there to the shell's completion.
func (a *app) agentsInPath() (out []string) {
	find := newFinder(a.getenv("PATH"))
	for _, p := range a.profiles().all() {
		for _, b := range p.Binaries {
			if _, err := find.find(b); err == nil {
				out = append(out, b+"\t"+p.Title)
			}
		}
	}
	return out
}
