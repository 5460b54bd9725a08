package agents

import (
	"slices"
	"strings"
)

// CanRunAgain reports whether a headless call may be done again at all when a
// limit broke it: the profile says how, and the call reads no conversation from
// its standard input.
func (p *Profile) CanRunAgain(args []string, c Call) bool {
	s := p.Options.scan(args)
	return c.Headless && len(p.Resume.Headless) > 0 && len(p.Resume.Drop) > 0 && p.resumableCommand(c) && !s.given(p.Resume.Unless)
}

func (p *Profile) resumableCommand(c Call) bool {
	if len(p.Resume.Commands) == 0 {
		return c.Command == ""
	}
	return has(p.Resume.Commands, c.Command)
}

// given reports whether an option of the list was given: "--flag", or
// "--flag=value" with that value however it is written.
func (s *scanned) given(list []string) bool {
	for _, it := range s.items {
		for _, u := range list {
			name, value, with := strings.Cut(u, "=")
			if it.flag != "" && it.flag == name && (!with || it.has && it.value == value) {
				return true
			}
		}
	}
	return false
}

// ResumeArgs are the arguments of a run that continues a session which the run
// with args began: its options stay, its prompt and its choice of a session go.
func (p *Profile) ResumeArgs(args []string, c Call, session string) []string {
	return append(p.kept(args, c), p.fill(p.Resume.Headless, session)...)
}

// LatestArgs are for a person who continues the newest session by hand; nil:
// there is no such way.
func (p *Profile) LatestArgs() []string { return p.fill(p.Resume.Latest, "") }

func (p *Profile) fill(args []string, session string) (out []string) {
	for _, a := range args {
		a = strings.ReplaceAll(a, "{session}", session)
		out = append(out, strings.ReplaceAll(a, "{text}", p.Resume.Text))
	}
	return out
}

// kept are a command line's options, without those to drop, and its first word
// where that is a command.
func (p *Profile) kept(args []string, c Call) (out []string) {
	command := c.Command
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' {
			if a == command && command != "" {
				out, command = append(out, a), ""
			}
			continue
		}
		var one scanned
		used := p.Options.option(&one, a, args[i+1:])
		drops := slices.ContainsFunc(one.items, func(it item) bool { return has(p.Resume.Drop, it.flag) })
		switch {
		case !drops:
			out = append(out, args[i:i+1+used]...)
		case len(one.items) > 1: // a cluster: what is not dropped stays
			out = append(out, rest(one.items, p.Resume.Drop)...)
		}
		i += used
	}
	return out
}

func rest(items []item, drop []string) (out []string) {
	for _, it := range items {
		if has(drop, it.flag) {
			continue
		}
		out = append(out, it.flag)
		if it.has {
			out = append(out, it.value)
		}
	}
	return out
}

// SessionOf is the session that a call itself says it is of; "" if it names none.
func (p *Profile) SessionOf(args []string) string {
	s := p.Options.scan(args)
	id, _ := s.last(p.Resume.Session)
	return id
}
