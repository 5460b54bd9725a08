package config

import (
	"maps"
	"slices"
	"strings"

	"qshim/policies/account"
)

// aliasTable is where a file says that limiters are one, or are not: each key is
// a limiter's ID, or an agent's name, a blank and an ID, and its value the ID
// that is used instead.
const aliasTable = "aliases"

// alias is one line of [aliases].
type alias struct {
	to     string
	origin Origin
}

// aliases reads [aliases].
func (w *walker) aliases(path []string, value any) {
	table, ok := value.(map[string]any)
	if !ok {
		w.b.errorf(w.at(path), `aliases is a table; write [aliases] and below it "openai/3f9a…" = "openai/team-a"`)
		return
	}
	for _, from := range slices.Sorted(maps.Keys(table)) {
		o := w.at(append(slices.Clone(path), from))
		to, text := table[from].(string)
		agent, id, named := strings.Cut(from, " ")
		if !named {
			id = from
		}
		switch {
		case !text || account.CheckID(to) != nil:
			w.b.errorf(o, "aliases.%q: write the ID of a limiter, like \"openai/team-a\"", from)
		case account.CheckID(id) != nil || named && !agentName(agent):
			w.b.errorf(o, "aliases: %q is neither a limiter's ID, like \"openai/3f9a1c2d4e5b\" (see qshim status), nor an agent's name and one, like \"codex openai/3f9a1c2d4e5b\"", from)
		case to == id:
			w.b.errorf(o, "aliases.%q: it is an alias of itself; remove it", from)
		default:
			w.b.aliases[from] = alias{to, o}
		}
	}
}

// agentName: what a profile may be called.
func agentName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

// checkAliases finds rings, which would end nowhere.
func (b *builder) checkAliases() {
	for _, from := range slices.Sorted(maps.Keys(b.aliases)) {
		at, steps := b.aliases[from].to, 0
		for ; steps < account.MaxAliases; steps++ {
			next, ok := b.aliases[at]
			if !ok {
				break
			}
			at = next.to
		}
		if steps == account.MaxAliases {
			b.errorf(b.aliases[from].origin, "aliases.%q: the aliases lead in a ring, or over more than %d; name the last one", from, account.MaxAliases)
		}
	}
}

// aliasMap is what package account takes.
func (b *builder) aliasMap() map[string]string {
	out := map[string]string{}
	for from, a := range b.aliases {
		out[from] = a.to
	}
	return out
}

// aliasValues lists them beside the other values of the file.
func (b *builder) aliasValues(out map[string]Value) {
	for from, a := range b.aliases {
		key := aliasTable + `."` + from + `"`
		out[key] = Value{Key: key, Text: `"` + a.to + `"`, Origin: a.origin}
	}
}
