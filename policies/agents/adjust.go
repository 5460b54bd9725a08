package agents

import (
	"path/filepath"
	"strings"
)

// Known is what is known of the binary about to be started.
type Known struct {
	// Help is the text of its --help, read once per path, inode, mtime and
	// size. Empty: not known.
	Help string
}

// Applied is what a launch gets beyond what the user typed.
type Applied struct {
	// Args are to stand before the user's arguments; "{log}" as in Env, "{uuid}"
	// is a new one.
	Args  []string
	Env   map[string]string // to set; "{log}" stands for a fresh log file's path
	Names []string          // the adjustments made, for doctor and the log
	// Fallbacks names those made in their harmless form because the binary is
	// not known to accept the better one; doctor says so.
	Fallbacks []string
}

// NeedsProbe reports whether any adjustment of this call depends on the
// binary's --help, so that it is worth reading.
func (p *Profile) NeedsProbe(args []string, c Call, env func(string) string) bool {
	s := p.Options.scan(args)
	for i := range p.Adjust {
		if a := &p.Adjust[i]; a.Needs != "" && a.applies(&s, c, env) {
			return true
		}
	}
	return false
}

// Adjustments says what to add to a session's launch. A value that the user
// set, as an argument or in the environment, is used and not replaced. Only
// for sessions: the caller asks ClassifyOn first, and hands its answer on as c.
func (p *Profile) Adjustments(args []string, c Call, env func(string) string, k Known) Applied {
	s := p.Options.scan(args)
	var out Applied
	for i := range p.Adjust {
		a := &p.Adjust[i]
		if !a.applies(&s, c, env) {
			continue
		}
		add := a.Args
		if a.Needs != "" && !mentions(k.Help, a.Needs) {
			if add = a.Fallback; len(add) == 0 {
				continue // there is no harmless form
			}
			out.Fallbacks = append(out.Fallbacks, a.Name)
		}
		out.Args = append(out.Args, add...)
		for name, v := range a.Env {
			if out.Env == nil {
				out.Env = map[string]string{}
			}
			out.Env[name] = v
		}
		out.Names = append(out.Names, a.Name)
	}
	return out
}

func (a *Adjustment) applies(s *scanned, c Call, env func(string) string) bool {
	if len(a.Formats) > 0 && !has(a.Formats, c.StreamFormat) {
		return false
	}
	for name := range a.Env {
		if env(name) != "" {
			return false
		}
	}
	for _, name := range a.UnlessEnv {
		if env(name) != "" {
			return false
		}
	}
	if w := s.words(); len(w) > 0 && has(a.UnlessCommands, w[0]) {
		return false
	}
	for _, it := range s.items {
		for _, u := range a.UnlessArgs {
			if it.flag == u || it.flag != "" && it.has && strings.HasPrefix(strings.TrimSpace(it.value), u) {
				return false
			}
		}
	}
	return true
}

// Dir is the agent's directory in an environment. Agents differ in what they
// make of a relative value, so that one is left as it is: nothing is found there.
func (l LogSpec) Dir(env func(string) string) string {
	for _, entry := range l.HomeEnv {
		name, sub, _ := strings.Cut(entry, "/")
		if dir := env(name); dir != "" {
			return filepath.Join(dir, sub)
		}
	}
	return filepath.Join(env("HOME"), l.Home)
}

// DebugFile is the debug log that a command line names, "" where it names none.
func (p *Profile) DebugFile(args []string) string {
	if p.Log.DebugArg == "" {
		return ""
	}
	s := p.Options.scan(args)
	file, _ := s.last([]string{p.Log.DebugArg})
	return file
}

// SessionID is the session's id that a command line names, "" where it names none.
func (p *Profile) SessionID(args []string) string {
	s := p.Options.scan(args)
	id, _ := s.last(p.Log.SessionArgs)
	return id
}

// mentions reports whether a help text holds an option as a word of its own.
func mentions(help, option string) bool {
	for rest := help; ; {
		i := strings.Index(rest, option)
		if i < 0 {
			return false
		}
		before, after := byte(' '), byte(' ')
		if i > 0 {
			before = rest[i-1]
		}
		if end := i + len(option); end < len(rest) {
			after = rest[end]
		}
		if !optionByte(before) && !optionByte(after) {
			return true
		}
		rest = rest[i+len(option):]
	}
}

func optionByte(b byte) bool {
	return b == '-' || b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}
