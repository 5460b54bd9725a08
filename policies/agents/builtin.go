package agents

//go:generate go test -run TestBuiltinGenerated . -update

import (
	"bytes"
	"embed"
	"slices"
	"strings"
)

//go:embed *.toml
var files embed.FS

// Builtin returns the file of a built-in profile, for Parse here and for
// detect.ParseProfile. Where it says judged_by, the rows, rules and records of
// the profile named there follow its own: what an agent draws in a way of its
// own is read first, and everything else as any other program's is.
func Builtin(name string) ([]byte, bool) {
	b, err := files.ReadFile(name + ".toml")
	if err != nil {
		return nil, false
	}
	if by := headValue(b, "judged_by"); len(by) == 1 && by[0] != name {
		if other, err := files.ReadFile(by[0] + ".toml"); err == nil { // Parse checks the name
			b = append(bytes.Clone(b), sharedPart(other)...)
		}
	}
	return b, true
}

// sharedPart is what follows [detect.activity] in a file, marked: its examples
// are that file's business, since another agent's own rows can come before.
func sharedPart(data []byte) []byte {
	_, tail, _ := bytes.Cut(data, []byte("\n[detect.activity]\n"))
	for _, table := range []string{"[[detect.rule]]\n", "[[detect.json]]\n"} {
		tail = bytes.ReplaceAll(tail, []byte(table), []byte(table+"shared = true\n"))
	}
	return append([]byte("\n"), tail...)
}

// headValue returns the strings of a one-line key above the first table.
func headValue(data []byte, key string) []string {
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("[")) {
			break
		}
		if k, value, _ := strings.Cut(string(line), " = "); k == key {
			return quoted(value)
		}
	}
	return nil
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

// Load returns a built-in profile for use: its launch part as builtin_gen.go has
// it, without the [examples], which only tests read.
func Load(name string) (*Profile, error) {
	p := compiled(name)
	if p == nil {
		return nil, &UnknownError{Name: name, Names: Names()}
	}
	p.Raw = func() []byte { // copied when something has to be judged: half a start's memory
		data, _ := Builtin(name) // a profile that is compiled in has its file
		return data
	}
	return p, nil
}

// UnknownError says that no profile has this name.
type UnknownError struct {
	Name  string
	Names []string // those there are
}

func (e *UnknownError) Error() string {
	return "no agent profile is named " + e.Name + "; there are " + strings.Join(e.Names, ", ")
}

// Builtins is the index of the built-in profiles.
func Builtins() Index { return slices.Clip(builtins) }

// quoted returns the strings of a one-line list.
func quoted(list string) []string {
	parts := strings.Split(list, `"`)
	var out []string
	for i := 1; i < len(parts); i += 2 {
		out = append(out, parts[i])
	}
	return out
}
