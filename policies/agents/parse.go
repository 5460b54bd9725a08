package agents

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// Error is a mistake in a profile's file: where it is and what to do.
type Error struct {
	File      string // "claude.toml"
	Line, Col int    // from 1; 0 where the place is not known
	Msg       string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// launchPart is what stands above the first [detect], [detect.x] or
// [[detect.x]] line: the rest belongs to package detect.
func launchPart(data []byte) []byte {
	at := 0
	for line := range bytes.Lines(data) {
		t := bytes.TrimLeft(line, " \t")
		if rest := bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimPrefix(t, []byte("[")), []byte("[")), " \t"); len(rest) < len(t) {
			if rest, ok := bytes.CutPrefix(rest, []byte("detect")); ok {
				if rest = bytes.TrimLeft(rest, " \t"); len(rest) > 0 && (rest[0] == '.' || rest[0] == ']') {
					return data[:at]
				}
			}
		}
		at += len(line)
	}
	return data
}

// Parse decodes the launch part of a profile: everything above the [detect]
// line. Unknown keys, unknown words and impossible values are an *Error with
// line and column. What stands from [detect] on is not looked at.
func Parse(name string, data []byte) (*Profile, error) {
	file := name + ".toml"
	p, _, err := decode(file, name, data)
	if err != nil {
		return nil, err
	}
	return p, p.check(file, name, data)
}

// decode reads the launch part and says which keys it has.
func decode(file, name string, data []byte) (*Profile, toml.MetaData, error) {
	head := launchPart(data)
	p := &Profile{}
	md, err := toml.NewDecoder(bytes.NewReader(head)).Decode(p)
	if err != nil {
		return nil, md, syntaxError(file, head, err)
	}
	for _, k := range md.Undecoded() {
		line, col := locate(head, k)
		return nil, md, &Error{file, line, col, fmt.Sprintf("unknown key %q: remove it or mend its spelling", k.String())}
	}
	p.Raw = func() []byte { return data }
	if p.Name == "" {
		p.Name = name
	}
	return p, md, nil
}

// check is the first thing wrong with a decoded profile, with its place in data.
func (p *Profile) check(file, name string, data []byte) error {
	if key, msg := p.fault(name); msg != "" {
		line, col := locate(launchPart(data), key)
		return &Error{file, line, col, msg}
	}
	return nil
}

// typeError is how the decoder words a value of the wrong type: no type of its
// own, the line and the key in the text (BurntSushi/toml 1.6.0).
const typeError = `^toml: line \d+ \(last key "([^"]*)"\): (.*)$`

func syntaxError(file string, head []byte, err error) error {
	var pe toml.ParseError
	if errors.As(err, &pe) {
		return &Error{file, pe.Position.Line, max(pe.Position.Col, 1), pe.Message}
	}
	if m := regexp.MustCompile(typeError).FindStringSubmatch(err.Error()); m != nil {
		line, col := locate(head, strings.Split(m[1], "."))
		return &Error{file, line, col, m[1] + ": " + m[2]}
	}
	return &Error{File: file, Msg: err.Error()}
}

// The words that enumerated keys may hold.
var (
	identities = []string{"claude", "codex", "gemini", "keys", "none"}
	logKinds   = []string{"", "claude-transcript", "codex-rollout", "gemini", "qwen", "opencode", "goose", "pi"}
	signals    = []string{"", "SIGTERM", "SIGHUP", "SIGINT"}
)

// isName: lower-case letters, digits, dots, dashes and underscores, at most 32.
func isName(s string) bool {
	return s != "" && len(s) <= 32 && s == slug(s) && !strings.Contains(s, "@")
}

// fault returns the first thing wrong with a decoded profile and its key, or "".
func (p *Profile) fault(name string) (toml.Key, string) {
	oneOf := func(v string, words []string) bool {
		for _, w := range words {
			if v == w {
				return true
			}
		}
		return false
	}
	switch {
	case p.Name != name:
		return toml.Key{"name"}, fmt.Sprintf("name is %q in a file named %s.toml: make them equal", p.Name, name)
	case !isName(p.Name):
		return toml.Key{"name"}, "a name is lower-case letters, digits, dots, dashes and underscores, at most 32"
	case p.Title == "":
		return toml.Key{"title"}, "title is missing: the agent's name for people"
	case !isName(p.Provider):
		return toml.Key{"provider"}, "provider must be lower-case letters, digits, dots, dashes and underscores"
	case !oneOf(p.Identity, identities):
		return toml.Key{"identity"}, "identity must be one of " + strings.Join(identities, ", ")
	case (p.Identity == "keys") != (len(p.Account.Keys)+len(p.Account.Files) > 0):
		return toml.Key{"identity"}, "identity keys and [account] with keys or files belong together"
	case p.JudgedBy != "" && p.JudgedBy != "generic":
		return toml.Key{"judged_by"}, "judged_by must be generic, or left out where the file judges by itself"
	case !oneOf(p.Log.Kind, logKinds):
		return toml.Key{"log", "kind"}, "log.kind must be one of " + strings.Join(logKinds[1:], ", ")
	case !oneOf(p.Quit.Signal, signals):
		return toml.Key{"quit", "signal"}, "quit.signal must be one of " + strings.Join(signals[1:], ", ")
	case p.resumeFault() != "":
		return toml.Key{"resume", "id"}, p.resumeFault()
	case p.Resume.PauseMS < 0 || p.Resume.PauseMS > 5000:
		return toml.Key{"resume", "pause_ms"}, "resume.pause_ms must be between 0 and 5000"
	}
	return p.listFault()
}

// resumeFault: the pattern that finds a session's id has one group.
func (p *Profile) resumeFault() string {
	re, err := regexp.Compile(p.Resume.ID)
	switch {
	case err != nil:
		return "resume.id: " + err.Error() + ": correct the regular expression (Go's RE2 syntax, in single quotes)"
	case p.Resume.ID != "" && re.NumSubexp() != 1:
		return "resume.id must have one group, around the session's id"
	}
	return ""
}

// listFault checks the lists: an option that does not begin with "-" or a
// negative count would silently never match.
func (p *Profile) listFault() (toml.Key, string) {
	flags := []struct {
		key  toml.Key
		list []string
	}{
		{toml.Key{"options", "value"}, p.Options.Value},
		{toml.Key{"options", "optional"}, p.Options.Optional},
		{toml.Key{"options", "variadic"}, p.Options.Variadic},
		{toml.Key{"calls", "flags"}, p.Calls.Flags},
		{toml.Key{"calls", "not_with"}, p.Calls.NotWith},
		{toml.Key{"calls", "alone"}, p.Calls.Alone},
		{toml.Key{"headless", "never"}, p.Headless.Never},
		{toml.Key{"headless", "flags"}, p.Headless.Flags},
		{toml.Key{"headless", "format"}, p.Headless.Format},
		{toml.Key{"headless", "stream"}, p.Headless.Stream},
		{toml.Key{"prompt", "options"}, p.Prompt.Options},
		{toml.Key{"prompt", "skip_none"}, p.Prompt.SkipNone},
		{toml.Key{"model", "options"}, p.Model.Options},
		{toml.Key{"resume", "drop"}, p.Resume.Drop},
		{toml.Key{"resume", "session"}, p.Resume.Session},
		{toml.Key{"resume", "unless"}, p.Resume.Unless},
	}
	for _, f := range flags {
		for _, o := range f.list {
			if !strings.HasPrefix(o, "-") || len(o) < 2 {
				return f.key, fmt.Sprintf("%q is no option: it must begin with a dash", o)
			}
		}
	}
	for _, s := range p.Headless.Piped {
		if s != "stdin" && s != "stdout" {
			return toml.Key{"headless", "piped"}, fmt.Sprintf("%q: only stdin and stdout can stand here", s)
		}
	}
	for w, n := range p.Prompt.Skip {
		if n < 0 || n > 9 {
			return toml.Key{"prompt", "skip", w}, "skip counts positionals, 0 to 9"
		}
	}
	for _, a := range p.Adjust {
		if a.Name == "" || a.Why == "" {
			return toml.Key{"adjust", "name"}, "an adjustment needs a name and a why"
		}
	}
	for _, f := range p.Model.Families {
		if len(f.Match) == 0 {
			return toml.Key{"model", "families"}, "a family without match never matches"
		}
	}
	return nil, ""
}

// assignment is a line that begins a key's value.
const assignment = `^\s*"?([A-Za-z0-9_.-]+)"?\s*=`

// locate finds the line and column of a key, which the decoder does not report
// for keys that it leaves out: written as a line of its table, as a table, or
// inside an inline table, over several lines too. A key that is missing, or
// written in some other way, is placed at its table's header.
func locate(data []byte, key toml.Key) (line, col int) {
	last, want := "", ""
	if len(key) > 0 {
		last, want = key[len(key)-1], strings.Join(key[:len(key)-1], ".")
	}
	begins := regexp.MustCompile(assignment)
	word := regexp.MustCompile(`(^|[\s{,."])` + regexp.QuoteMeta(last) + `"?\s*=`)
	header, table, value, depth := 1, "", "", 0
	for i, text := range strings.Split(string(data), "\n") {
		trimmed := strings.TrimSpace(text)
		inside := depth > 0
		depth += brackets(text)
		if m := begins.FindStringSubmatch(text); m != nil && !inside {
			value = strings.TrimPrefix(table+"."+m[1], ".")
		} else if !inside && strings.HasPrefix(trimmed, "[") && strings.HasSuffix(trimmed, "]") && !strings.ContainsAny(trimmed, "\"',{") {
			table, value = strings.Trim(trimmed, "[] \t"), ""
			if table == key.String() {
				return i + 1, strings.Index(text, last) + 1
			}
			if table == want {
				header = i + 1
			}
			continue
		}
		if value == key.String() || value == want && value != "" {
			if m := word.FindStringIndex(text); m != nil {
				return i + 1, m[0] + strings.Index(text[m[0]:], last) + 1
			}
		}
	}
	return header, 1
}

// brackets is how many more brackets a line opens than it closes, strings and
// comments apart.
func brackets(line string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == '\\' && quote == '"':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			return depth
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		}
	}
	return depth
}
