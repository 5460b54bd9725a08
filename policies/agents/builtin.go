package agents

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

// Load returns a built-in profile for use: parsed up to its [examples], which
// only tests read and which would double the time. A built-in file that does
// not parse is a build error that a test catches; it is reported, never hidden.
func Load(name string) (*Profile, error) {
	data, ok := Builtin(name)
	if !ok {
		return nil, &UnknownError{Name: name, Names: Names()}
	}
	head, _, _ := bytes.Cut(data, []byte("\n[examples]\n"))
	p, err := Parse(name, head)
	if err != nil {
		return nil, err
	}
	p.Raw = data
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
func Builtins() Index {
	var x Index
	for _, n := range Names() {
		x = append(x, quickEntry(n, head(n)))
	}
	return x
}

// head is the beginning of a built-in file up to its first table, at least:
// to copy all files at each start would touch more memory than all the rest.
func head(name string) (data []byte) {
	f, err := files.Open(name + ".toml")
	if err != nil {
		return nil // cannot happen: Names lists it
	}
	defer f.Close()
	for !bytes.Contains(data, []byte("\n[")) {
		data = slices.Grow(data, 1024)
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err != nil {
			break
		}
	}
	return data
}

// quickEntry reads the two lists of a built-in file that a launch needs of
// every profile. Decoding all files takes milliseconds, this microseconds; a
// test compares the two.
func quickEntry(name string, data []byte) Entry {
	return Entry{Name: name, Binaries: headValue(data, "binaries"), Packages: headValue(data, "packages")}
}

// quoted returns the strings of a one-line list.
func quoted(list string) []string {
	parts := strings.Split(list, `"`)
	var out []string
	for i := 1; i < len(parts); i += 2 {
		out = append(out, parts[i])
	}
	return out
}
