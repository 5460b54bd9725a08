package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"qshim/cmd/internal/cmdline"
)

const rootHelp = `qshim runs an agent CLI (claude, codex, gemini, or anything else) so faithfully
that nobody notices, sees when its provider says "no more for now", and makes
every session on the same account wait together and go on one after another.

  qshim claude                 instead of: claude
  qshim codex exec "fix it"    flags of qshim stand before the agent's name,
  qshim -- status              "--" makes any name an agent's
  alias claude='qshim claude'

While a session is suspended one row says why and until when:
  r  run anyway      q, then y  quit      Ctrl-C twice  quit

Each flag is also an environment variable (QSHIM_STATE_DIR, …) and a key in
~/.config/qshim/config.toml. QSHIM=off runs the agent without qshim.`

const initHelp = `Print what a shell evaluates to know qshim: an alias for each agent in PATH
(claude='qshim claude') unless you have an alias or a function of that name, and
the completion of qshim's own words.

  bash  eval "$(qshim init bash)"     in ~/.bashrc
  zsh   eval "$(qshim init zsh)"      in ~/.zshrc, after compinit
  fish  qshim init fish | source      in ~/.config/fish/config.fish

An alias works where you type. For programs that start agents: qshim link.`

const logHelp = `Show what was found and decided, and why.

--unrecognised shows the turns that an agent itself calls failed while its rows
speak of a limit in words that no rule knows: a new version's, most likely.`

const completionHelp = `Print the completion of qshim's own words for a shell: commands, flags, limiters,
sessions, agents. 'qshim init' prints it too, with an alias for each agent.

  bash  source <(qshim completion bash)     in ~/.bashrc
  zsh   source <(qshim completion zsh)      in ~/.zshrc, after compinit
  fish  qshim completion fish | source      in ~/.config/fish/config.fish

In place of the line the output may be a file: qshim in a directory of
bash-completion's, _qshim in one of zsh's fpath, qshim.fish in
~/.config/fish/completions.`

// jsonFlag is the help of --json.
const jsonFlag = "print JSON for programs"

// mistakeWords says what is wrong with a word of the command line.
func mistakeWords(m *cmdline.Mistake) string {
	return fmt.Sprintf("%s (see: %s --help)", mistake(m), m.Command.Path())
}

func mistake(m *cmdline.Mistake) string {
	switch m.Kind {
	case cmdline.UnknownFlag:
		if m.Letter != 0 {
			return fmt.Sprintf("unknown shorthand flag: %q in %s", m.Letter, m.Word)
		}
		return "unknown flag: " + m.Word
	case cmdline.NoValue:
		return "flag needs an argument: " + m.Word
	case cmdline.BadSyntax:
		return "bad flag syntax: " + m.Word
	case cmdline.TooMany:
		if m.Command.MaxArgs == 0 {
			return fmt.Sprintf("unknown command %q for %q", m.Word, m.Command.Path())
		}
		return fmt.Sprintf("%q is one argument too many: %s takes %d", m.Word, m.Command.Path(), m.Command.MaxArgs)
	}
	return fmt.Sprintf("%s: %q %s", m.Word, m.Value, badValue(m.Err))
}

func badValue(err error) string {
	n := (*strconv.NumError)(nil)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "is too large"
	case errors.As(err, &n) && n.Func == "ParseBool":
		return "is neither true nor false"
	case n != nil:
		return "is not a whole number"
	}
	return err.Error()
}

// printHelp shows how a command is used.
func printHelp(w io.Writer, c *cmdline.Command) error {
	var b strings.Builder
	use := c.Use
	if c.Parent() != nil {
		use = c.Parent().Path() + " " + use
	}
	if !strings.Contains(use, "[flags]") {
		use += " [flags]"
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", cmp.Or(c.Long, c.Short), use)
	if subs := c.Commands(); len(subs) > 0 {
		fmt.Fprintf(&b, "  %s [command]\n\nAvailable Commands:\n", c.Path())
		for _, sub := range subs {
			fmt.Fprintf(&b, "  %-11s %s\n", sub.Name(), sub.Short)
		}
	}
	b.WriteString("\nFlags:\n")
	help := &cmdline.Flag{Name: "help", Short: 'h', Help: "help for " + c.Name()}
	helpFlags(&b, append(slices.Clone(c.Flags), help))
	if flags := c.Inherited(); len(flags) > 0 {
		b.WriteString("\nGlobal Flags:\n")
		helpFlags(&b, flags)
	}
	if len(c.Commands()) > 0 {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more information about a command.\n", c.Path())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// helpFlags shows flags by name, a line each.
func helpFlags(b *strings.Builder, flags []*cmdline.Flag) {
	slices.SortFunc(flags, func(x, y *cmdline.Flag) int { return cmp.Compare(x.Name, y.Name) })
	width := 0
	for _, f := range flags {
		width = max(width, len(flagForm(f)))
	}
	for _, f := range flags {
		short := "    "
		if f.Short != 0 {
			short = fmt.Sprintf("-%c, ", f.Short)
		}
		fmt.Fprintf(b, "  %s%-*s   %s", short, width, flagForm(f), f.Help)
		if f.Default != "" {
			fmt.Fprintf(b, " (default %s)", f.Default)
		}
		b.WriteByte('\n')
	}
}

func flagForm(f *cmdline.Flag) string {
	return strings.TrimRight("--"+f.Name+" "+f.Kind, " ")
}
