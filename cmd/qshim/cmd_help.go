package main

import (
	"context"
	"strings"

	"qshim/cmd/internal/cmdline"
)

// helpCmd shows the help that --help shows, too.
func helpCmd(a *app) *cmdline.Command {
	c := &cmdline.Command{
		Use:     "help [COMMAND]",
		Short:   "Show how a command is used",
		MaxArgs: cmdline.AnyArgs,
	}
	c.Complete = func(args []string) cmdline.Offer {
		o := cmdline.Offer{Files: cmdline.NoFiles}
		if of := c.Parent().Find(args...); of != nil {
			for _, sub := range of.Commands() {
				o.Words = append(o.Words, cmdline.Word{Text: sub.Name(), About: sub.Short})
			}
		}
		return o
	}
	c.Run = func(_ context.Context, args []string) error {
		of := c.Parent().Find(args...)
		if of == nil {
			return usagef("there is no command %q (see: qshim --help; an agent's own help: qshim AGENT --help)", strings.Join(args, " "))
		}
		return printHelp(a.stdout, of)
	}
	return c
}
