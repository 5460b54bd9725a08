// Package account says which limiters a launch draws on: whose allowance its
// requests will spend, as far as the environment, the arguments and the agent's
// files tell without a network. It is pure: environment and files are passed in.
//
// A key never leaves this package: IDs and labels carry 12 hex digits of an
// HMAC-SHA-256 of it under the installation's salt, and no error or note quotes
// what a file holds.
package account

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"

	"qshim/policies/agents"
)

// FS reads the agent's files. Implementations bound the size and refuse what
// is no regular file; any error counts as "not there".
type FS interface {
	ReadFile(name string) ([]byte, error)
}

// Launch is everything that says on which account a command line draws.
type Launch struct {
	Profile *agents.Profile
	Command string              // base name as typed; names what no profile claims
	Args    []string            // the agent's arguments
	Env     func(string) string // the agent's environment; empty counts as not set
	Home    string              // the user's home directory
	Cwd     string              // where the agent starts, absolute
	FS      FS                  // nil: no files
	Salt    []byte              // the installation's salt, from the state directory; see Salted
	// Headless: a key in the environment is used by Claude Code without having
	// been approved on its screen.
	Headless bool
	// Override is --limiter: it replaces the account part, not the source.
	Override string
	// Aliases join limiters: an ID on the left becomes the one on the right. A
	// profile's name and a blank before the ID mean that agent only, which splits.
	Aliases map[string]string
}

// Limiter is one allowance that a session draws on.
type Limiter struct {
	ID    string // provider/account[/project] or provider@source
	Label string // for people: "Claude Max, 3f9a…"
}

// Identity is what Identify found.
type Identity struct {
	// Limiters begins with the account's; the machine's (provider@source) is last.
	Limiters []Limiter
	Model    string // as the launch or the settings name it; empty: not known
	Family   string // the model's family; empty: not known, or several
	Provider string // first part of the IDs
	Known    bool   // false: the account could not be told, the ID says "default"
	How      string // where the account was found, for doctor: "ANTHROPIC_API_KEY"
}

// who is what an agent's own rules find.
type who struct {
	provider string // slug
	account  string // hashed or a fixed word; empty: unknown
	project  string // slug; empty: none
	label    string // without the hash
	how      string
	model    string
	secret   bool // the label stands before a key's hash: "OpenAI key 3f9a…"
}

// Salted reports whether an agent's account may be told by a key, so that
// Identify needs the salt.
func Salted(p *agents.Profile) bool { return p.Identity != "none" }

// Identify names the limiters of a launch. It never fails: what cannot be read
// is left out, and an account that cannot be told is provider/default, the same
// for every launch, so that siblings still wait together.
func Identify(l Launch) Identity {
	l = l.complete()
	var w who
	switch l.Profile.Identity {
	case "claude":
		w = l.claude()
	case "codex":
		w = l.codex()
	case "gemini":
		w = l.gemini()
	case "keys":
		w = l.keys()
	default:
		w = l.unidentified()
	}
	w.model = l.model(w.model)
	return l.identity(w)
}

func (l Launch) complete() Launch {
	if l.Env == nil {
		l.Env = func(string) string { return "" }
	}
	if l.FS == nil {
		l.FS = noFiles{}
	}
	return l
}

// model prefers the arguments, then what the agent's files and its environment
// as changed by them say, then the plain environment.
func (l *Launch) model(found string) string {
	if m := l.Profile.Classify(l.Args).Model; m != "" {
		return m
	}
	if found != "" {
		return found
	}
	for _, name := range l.Profile.Model.Env {
		if m := l.Env(name); m != "" {
			return m
		}
	}
	return ""
}

// unidentified is an agent whose account qshim has no rules for: all runs of
// one command wait together, and no others with them.
func (l *Launch) unidentified() who {
	w := who{provider: l.Profile.Provider, account: "default", label: l.Profile.Title + ", account unknown"}
	if c := slug(l.Command); c != "" && l.Profile.Name == "generic" {
		w.provider, w.label = c, c+", account unknown"
	}
	return w
}

func (l *Launch) identity(w who) Identity {
	id := Identity{Model: w.model, Family: l.Profile.Family(w.model), Provider: w.provider, Known: w.account != "" && w.account != "default" && w.how != "", How: w.how}
	if w.account == "" {
		w.account, w.label = "default", l.Profile.Title+", account unknown"
	}
	main := Limiter{ID: w.provider + "/" + w.account, Label: w.label}
	if w.project != "" {
		main.ID += "/" + w.project
	}
	if isHash(w.account) {
		sep := ", "
		if w.secret {
			sep = " "
		}
		main.Label += sep + w.account[:4] + "…"
	}
	if l.Override != "" {
		main = Limiter{ID: l.Override, Label: l.Override}
		id.Known, id.How = true, "--limiter"
	}
	main = l.alias(main)
	source := l.alias(Limiter{ID: w.provider + "@source", Label: l.Profile.Title + " on this machine"})
	id.Limiters = []Limiter{main}
	if source.ID != main.ID {
		id.Limiters = append(id.Limiters, source)
	}
	return id
}

// MaxAliases is how many aliases are followed: a ring ends somewhere.
const MaxAliases = 4

// alias follows the user's aliases, those of the agent before those of all.
func (l *Launch) alias(m Limiter) Limiter {
	for range MaxAliases {
		to, ok := l.Aliases[l.Profile.Name+" "+m.ID]
		if !ok {
			to, ok = l.Aliases[m.ID]
		}
		if !ok || to == m.ID || CheckID(to) != nil {
			break
		}
		m = Limiter{ID: to, Label: to}
	}
	return m
}

func isHash(s string) bool {
	return len(s) == 12 && strings.Trim(s, "0123456789abcdef") == ""
}

// IDError says that a limiter ID given by a person has not the form of one.
type IDError struct{ ID string }

func (e *IDError) Error() string {
	return "a limiter is written provider/name or provider/name/project in lower-case letters, digits and . _ @ -, at most 120 of them"
}

// CheckID checks an ID from --limiter or the config. nil: it is one. The error
// does not quote it: a key may have been pasted there.
func CheckID(id string) error {
	const part = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	parts := strings.Split(strings.TrimSuffix(id, "@source"), "/")
	ok := len(id) <= 120 && len(parts) <= 3 && (len(parts) == 1) == strings.HasSuffix(id, "@source")
	for i, p := range parts {
		letters := part
		if i > 0 {
			letters += "@"
		}
		ok = ok && p != "" && strings.Trim(p, letters) == ""
	}
	if !ok {
		return &IDError{ID: id}
	}
	return nil
}

// hash is 12 hex digits of HMAC-SHA-256 over the parts, each ended by a zero
// byte, so that ("ab","c") and ("a","bc") differ.
func (l *Launch) hash(parts ...string) string {
	m := hmac.New(sha256.New, l.Salt)
	for _, p := range parts {
		m.Write([]byte(p))
		m.Write([]byte{0})
	}
	return hex.EncodeToString(m.Sum(nil))[:12]
}

// key hashes an API key. The provider is not part of it: it stands in the ID
// beside it, so agents that use one key on one provider share the limiter.
func (l *Launch) key(k string) string { return l.hash("key", strings.TrimSpace(k)) }

// truthy is how the agents read a switch: Claude Code takes 1, true, yes, on
// (measured: 0 and false do not switch Bedrock on).
func truthy(v string) bool {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// dir is an agent's directory: the variable if set, else below home.
func (l *Launch) dir(env, sub string) string {
	if d := l.Env(env); d != "" {
		return l.abs(d)
	}
	return path.Join(l.Home, sub)
}

// abs makes a path absolute from where the agent starts.
func (l *Launch) abs(p string) string {
	if strings.HasPrefix(p, "~/") {
		return path.Join(l.Home, p[2:])
	}
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(l.Cwd, p)
}
