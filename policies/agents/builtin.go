package agents

import (
	"embed"
	"strings"
	"sync"
)

//go:embed *.toml
var files embed.FS

// Builtin returns the file of a built-in profile, for Parse here and for
// detect.ParseProfile.
func Builtin(name string) ([]byte, bool) {
	b, err := files.ReadFile(name + ".toml")
	return b, err == nil
}

// Names lists the built-in profiles in order of their names.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil // cannot happen: the directory is compiled in
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// Load returns a built-in profile, parsed. A built-in file that does not parse
// is a build error that a test catches; it is reported, never hidden.
func Load(name string) (*Profile, error) {
	data, ok := Builtin(name)
	if !ok {
		return nil, &UnknownError{Name: name}
	}
	return Parse(name, data)
}

// UnknownError says that no profile has this name.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return "no agent profile is named " + e.Name + "; built in are " + strings.Join(Names(), ", ")
}

// builtins is parsed once, at first use: it costs about a millisecond.
var builtins = sync.OnceValue(func() Set {
	var s Set
	for _, n := range Names() {
		if p, err := Load(n); err == nil {
			s = append(s, p)
		}
	}
	return s
})

// Builtins returns the built-in profiles. Callers must not change them.
func Builtins() Set { return builtins() }
