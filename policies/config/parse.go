package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Error is one mistake in a configuration.
type Error struct {
	Origin Origin
	Text   string // what is wrong and what to do
}

// Error gives FILE:LINE:COLUMN, or the variable or flag, and what is wrong.
func (e *Error) Error() string {
	if e.Origin.Line > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", e.Origin.Name, e.Origin.Line, e.Origin.Col, e.Text)
	}
	return fmt.Sprintf("%s: %s", e.Origin.Name, e.Text)
}

// parse reads the TOML; a syntax error says where.
func parse(name string, data []byte) (map[string]any, error) {
	tree := map[string]any{}
	_, err := toml.Decode(string(data), &tree)
	if err == nil {
		return tree, nil
	}
	o := Origin{Layer: File, Name: name, Line: 1, Col: 1}
	text := err.Error()
	var pe toml.ParseError
	if errors.As(err, &pe) {
		o.Line, o.Col = max(1, pe.Position.Line), max(1, pe.Position.Col)
		text = pe.Message
	}
	return nil, &Error{Origin: o, Text: text + "; this is not valid TOML: correct it, or move the file away to run with the defaults"}
}

// walker takes a file's tree apart into leaves that the builder knows.
type walker struct {
	b      *builder
	where  map[string]position
	origin Origin
}

// table walks one table. path is the whole path in the file, prefix the part
// that belongs to a key ("rate.").
func (w *walker) table(path []string, tree map[string]any, scope string) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		here := append(slices.Clone(path), name)
		if len(here) == 1 && (name == "providers" || name == "limiters" || name == "agents") {
			w.scopes(here, tree[name], name[:1]+":")
			continue
		}
		if len(here) == 1 && name == aliasTable {
			w.aliases(here, tree[name])
			continue
		}
		w.item(here, tree[name], scope)
	}
}

// scopes walks [providers.NAME] and [limiters."ID"].
func (w *walker) scopes(path []string, value any, prefix string) {
	table, ok := value.(map[string]any)
	if !ok {
		w.b.errorf(w.at(path), "%s is a table of names; write [%s.NAME] and the keys below it", path[0], path[0])
		return
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		here := append(slices.Clone(path), name)
		keys, ok := table[name].(map[string]any)
		switch {
		case !ok:
			w.b.errorf(w.at(here), "%s is a table; write [%s.%q] and the keys below it", name, path[0], name)
		case prefix == agentPrefix:
			w.table(here, keys, prefix+name)
		case (prefix == limiterPrefix) != (strings.ContainsAny(name, "/@")):
			w.b.errorf(w.at(here), "a limiter's ID has a slash (\"anthropic/3f9a…\", see qshim status) and a provider's name has none")
		default:
			w.table(here, keys, prefix+name)
		}
	}
}

// item is a value or a table of values.
func (w *walker) item(path []string, value any, scope string) {
	depth := 0
	if scope != "" {
		depth = 2
	}
	key := strings.Join(path[depth:], ".")
	if table, ok := value.(map[string]any); ok {
		if w.known(key + ".") {
			for _, name := range slices.Sorted(maps.Keys(table)) {
				w.item(append(slices.Clone(path), name), table[name], scope)
			}
			return
		}
	}
	if _, ok := w.b.base.field(key); !ok {
		w.b.errorf(w.at(path), "unknown key %s%s", key, w.near(key))
		return
	}
	if strings.HasPrefix(scope, agentPrefix) {
		if !strings.HasPrefix(key, "resume") || strings.Contains(key, ".") {
			w.b.errorf(w.at(path), "%s cannot be set for one agent; only resume, resume_headless and resume_tui can", key)
			return
		}
	} else if scope != "" && !scoped(key) {
		w.b.errorf(w.at(path), "%s cannot be set for one provider or limiter; set it at the top of the file", key)
		return
	}
	o := w.at(path)
	if o.Layer == File && scope != "" {
		o.Layer = map[string]Layer{providerPrefix: Provider, limiterPrefix: Limiter, agentPrefix: Agent}[scope[:2]]
	}
	w.b.leaves = append(w.b.leaves, leaf{scope: scope, key: key, value: value, origin: o})
}

// scoped: the settings that make sense for one provider or limiter; every
// constant does.
func scoped(key string) bool {
	return strings.Contains(key, ".") || key == "max_wait" || key == "mode" || key == "priority" || key == "no_adjust"
}

func (w *walker) known(prefix string) bool {
	for key := range w.b.base.all() {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func (w *walker) at(path []string) Origin {
	o := w.origin
	o.Line, o.Col = locate(w.where, path)
	return o
}

// near suggests the key that was meant.
func (w *walker) near(key string) string {
	best, at := "", 4
	for _, k := range slices.Sorted(w.b.base.all()) {
		if d := distance(k, key); d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return "; the README and policies/default.toml list them all"
	}
	return "; did you mean " + best + "?"
}

// distance is the edit distance, for short strings.
func distance(a, b string) int {
	if len(a) > 80 || len(b) > 80 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
