package account

import (
	"path"
	"strings"
	"sync"
)

// keys tells the account of an agent that takes any provider's API key from
// the environment, by its profile's [account] table: the provider that the
// model's name begins with ("anthropic/claude-…"), else the first whose key is
// set, else the login that the agent keeps in a file. Claude Code on the same
// key gets the same ID and waits with it.
func (l *Launch) keys() who {
	a := &l.Profile.Account
	model := l.model("")
	prefix, _, _ := strings.Cut(model, "/")
	var first *who
	for _, kv := range a.Keys {
		name, provider, _ := strings.Cut(kv, "=")
		v := l.Env(name)
		if v == "" {
			continue
		}
		w := who{provider: provider, account: l.key(v), label: l.Profile.Title + " key", how: name, secret: true}
		if provider == prefix {
			return l.keyAt(w)
		}
		if first == nil {
			first = &w
		}
	}
	if first != nil {
		return l.keyAt(*first)
	}
	for _, f := range a.Files {
		data := l.read(path.Join(l.Home, f))
		if len(data) == 0 {
			continue
		}
		// Tokens in it change; that there is one login a directory does not.
		return who{provider: l.Profile.Provider, account: l.hash("login", l.Home, f), label: l.Profile.Title + " login", how: f}
	}
	return l.unidentified()
}

// keyAt applies the base URL that goes with the key's provider.
func (l *Launch) keyAt(w who) who {
	for _, kv := range l.Profile.Account.Bases {
		if name, provider, _ := strings.Cut(kv, "="); provider == w.provider && l.Env(name) != "" {
			return l.at(w, l.Env(name), ownHosts()[w.provider]...)
		}
	}
	return w
}

// ownHosts are the hosts of the providers' own APIs, whose URL says nothing.
var ownHosts = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"anthropic": {"api.anthropic.com"},
		"openai":    openAIHosts,
		"google":    {"generativelanguage.googleapis.com"},
	}
})
