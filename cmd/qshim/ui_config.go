package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"qshim/policies/agents"
)

const configShowHelp = `Print every effective value and where it comes from: the defaults, your config
file, a provider's or a limiter's own table in it, the environment, a flag.

KEY is one setting (max_wait), a group (rate), a provider or a limiter.`

const configCheckHelp = `Check the config file (with the environment and flags) and your agent profiles in
~/.config/qshim/agents: every mistake with its line and column. Each profile's
examples are run: argument lines, and rows that its rules must take or must not
take. With arguments only these profiles are checked, wherever they lie.`

const checkedNothing = "there is none, the defaults apply"

// printValues prints one value a line; a scope heads its own.
func printValues(w io.Writer, list []valueJSON) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	scope := ""
	for _, v := range list {
		if v.Scope != scope {
			scope = v.Scope
			_, _ = fmt.Fprintf(tw, "[%s]\n", scopeWords(scope))
		}
		from := printable(v.Name)
		if v.Line > 0 {
			from += fmt.Sprintf(":%d", v.Line)
		}
		_, _ = fmt.Fprintf(tw, "%s = %s\t# %s, %s\n", v.Key, printable(v.Value), v.From, from)
	}
	_ = tw.Flush() // nowhere left to report a broken stdout
}

// scopeWords is the table that a scope is written as.
func scopeWords(scope string) string {
	for _, r := range scope {
		if r == '/' || r == '@' {
			return fmt.Sprintf("limiters.%q", scope)
		}
	}
	return "providers." + scope
}

func profileKind(p *agents.Profile) string {
	if p.Raw == nil {
		return "agent " + p.Name
	}
	return "over the built-in agent " + p.Name
}

func exampleWords(x agents.BadExample) string {
	return fmt.Sprintf("examples.%s: %q %s", x.Key, x.Text, x.Why)
}

func (c *checker) fine(name, what string) {
	if what != "" {
		what = " (" + what + ")"
	}
	printLine(c.a.stdout, "ok   %s%s", name, what)
}

func (c *checker) wrong(err error) {
	c.bad++
	printLine(c.a.stdout, "bad  %s", errorWords(err))
}
