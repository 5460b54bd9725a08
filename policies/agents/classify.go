package agents

import "strings"

// Classify judges a command line (without the agent's own name) on terminals.
func (p *Profile) Classify(args []string) Call {
	return p.ClassifyOn(args, Setting{StdinTTY: true, StdoutTTY: true})
}

// ClassifyOn judges a command line where some streams may not be terminals:
// Claude Code is headless without a terminal on stdout, Gemini without either.
func (p *Profile) ClassifyOn(args []string, in Setting) Call {
	s := p.Options.scan(args)
	words := s.words()
	if s.any(p.Calls.NotWith) {
		words = nil
	}
	c := Call{Session: true}
	c.Model, _ = s.last(p.Model.Options)
	if p.nonSession(&s, args, words) {
		c.Session = false
		return c
	}
	if len(words) > 0 && p.known(words[0]) {
		c.Command = words[0]
	}
	c.Headless = p.headless(&s, c.Command, in)
	c.Prompt = c.Headless || p.prompt(&s, c.Command)
	if c.Headless {
		c.StreamFormat = p.format(&s)
	}
	return c
}

func (p *Profile) nonSession(s *scanned, args, words []string) bool {
	if s.any(p.Calls.Flags) || len(args) == 1 && has(p.Calls.Alone, args[0]) {
		return true
	}
	return s.longest(p.Calls.Commands, words) > s.longest(p.Calls.Sessions, words)
}

// longest returns how many words the longest matching command has, 0 for none.
// Flags in a command must have been given, wherever.
func (s *scanned) longest(commands, words []string) int {
	best := 0
	for _, c := range commands {
		n, ok := 0, true
		for _, f := range strings.Fields(c) {
			switch {
			case strings.HasPrefix(f, "-"):
				ok = ok && s.any([]string{f})
			case n < len(words) && words[n] == f:
				n++
			default:
				ok = false
			}
		}
		if ok && n > best {
			best = n
		}
	}
	return best
}

// known reports whether a first word is a subcommand that the profile names.
func (p *Profile) known(word string) bool {
	if has(p.Headless.Commands, word) || has(p.Prompt.Always, word) {
		return true
	}
	if _, ok := p.Prompt.Skip[word]; ok {
		return true
	}
	return false
}

func (p *Profile) headless(s *scanned, command string, in Setting) bool {
	if s.any(p.Headless.Never) {
		return false
	}
	if s.any(p.Headless.Flags) || command != "" && has(p.Headless.Commands, command) {
		return true
	}
	for _, e := range p.Headless.Env {
		if name, v, _ := strings.Cut(e, "="); in.Env != nil && in.Env(name) == v {
			return true
		}
	}
	return !in.StdinTTY && has(p.Headless.Piped, "stdin") || !in.StdoutTTY && has(p.Headless.Piped, "stdout")
}

// prompt reports whether the call starts a turn at once.
func (p *Profile) prompt(s *scanned, command string) bool {
	if _, ok := s.last(p.Prompt.Options); ok || has(p.Prompt.Always, command) {
		return true
	}
	if command == "" {
		return len(s.pos) > 0 && !p.Prompt.NoWords
	}
	skip, ok := p.Prompt.Skip[command]
	if !ok {
		return false
	}
	if s.any(p.Prompt.SkipNone) {
		skip = 0
	}
	return len(s.pos) > 1+skip
}

func (p *Profile) format(s *scanned) string {
	if s.any(p.Headless.Stream) {
		return "stream-json"
	}
	switch f, _ := s.last(p.Headless.Format); f {
	case "json", "stream-json":
		return f
	}
	return "text"
}

// Family maps a model's name, as an argument, a log or a message writes it, to
// the family that the provider limits together. An unlisted name is a family of
// its own, so that a limit that names it still finds the sessions that run it.
// Empty: unknown, or a name that stands for several models.
func (p *Profile) Family(model string) string {
	name := strings.ToLower(strings.TrimSpace(model))
	if name == "" {
		return ""
	}
	for _, f := range p.Model.Families {
		for _, m := range f.Match {
			if glob(m, name) {
				return f.Name
			}
		}
	}
	return slug(name)
}

// glob matches a pattern in which * stands for any run, anchored at both ends.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

// slug turns a name into the alphabet of limiter IDs, at most 40 bytes.
func slug(name string) string {
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name) && len(b) < 40; i++ {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.', c == '_', c == '-', c == '@':
			b = append(b, c)
		case len(b) > 0 && b[len(b)-1] != '-':
			b = append(b, '-')
		}
	}
	return strings.Trim(string(b), "-")
}
