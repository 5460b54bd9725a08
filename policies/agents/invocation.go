package agents

import "strings"

// Entry is what a launch needs to know of every profile.
type Entry struct {
	Name     string
	Binaries []string
	Packages []string
}

// Entry is the profile's place in an index.
func (p *Profile) Entry() Entry { return Entry{p.Name, p.Binaries, p.Packages} }

// Index tells which profile a command belongs to; where two claim a name, the
// first one has it.
type Index []Entry

// Invocation is what a command line runs.
type Invocation struct {
	Profile string // name of the profile; "generic" when none claims it
	// At is the index of the word that names the agent: its arguments are
	// argv[At+1:]. Words before it belong to env, node, npx and the like.
	At int
	// Fetches: a package runner finds, and may download, the agent, so there
	// is no file to ask for its version.
	Fetches bool
	// Set and Unset are what env does to the environment before it.
	Set   []string
	Unset []string
	// Cleared: env -i, only Set is left.
	Cleared bool
}

// ByInvocation names the profile of a command line by the built-in profiles,
// and the index of the word that names the agent. argv[0] is the command as
// typed: links are never resolved.
func ByInvocation(argv []string) (name string, at int) {
	inv := Builtins().Invocation(argv)
	return inv.Profile, inv.At
}

// generic is the profile of a command that no profile claims.
const generic = "generic"

// runner is a program that runs the program named by its arguments.
type runner struct {
	words   []string // subcommands one of which must come first ("dlx"); empty: none
	value   []string // options that take a value
	name    []string // options whose value names the package (npx -p)
	fetches bool     // it may download what it runs
	script  bool     // the argument is a file for an interpreter
}

// runners, from their --help: node 20 and 22, bun 1.2, deno 2, npx 10 and 11,
// pnpm 9 (documented). An option that is missing here costs the profile, never
// the launch: the command still runs, as generic.
var runners = map[string]runner{
	"node": {script: true, value: []string{"-r", "--require", "--import", "--loader", "--experimental-loader", "--env-file", "-C", "--conditions", "--max-old-space-size", "--stack-size", "--title", "--cpu-prof-dir", "--diagnostic-dir"}},
	"deno": {script: true, words: []string{"run"}, value: []string{"-c", "--config", "--import-map", "--cert", "-L", "--log-level", "--env-file"}},
	"bun":  {script: true, words: []string{"run", "x", ""}, value: []string{"--cwd", "-c", "--config", "-r", "--preload", "--env-file"}},
	"npx":  {fetches: true, value: []string{"-c", "--call", "-w", "--workspace"}, name: []string{"-p", "--package"}},
	"bunx": {fetches: true, name: []string{"-p", "--package"}},
	"pnpx": {fetches: true, name: []string{"--package"}},
	"pnpm": {fetches: true, words: []string{"dlx", "exec"}, value: []string{"-C", "--dir", "--filter"}, name: []string{"--package"}},
	"npm":  {fetches: true, words: []string{"exec", "x"}, value: []string{"-w", "--workspace"}, name: []string{"-p", "--package"}},
	"yarn": {fetches: true, words: []string{"dlx", "exec"}, name: []string{"-p", "--package"}},
}

// Invocation names the profile of a command line.
func (x Index) Invocation(argv []string) Invocation {
	inv := Invocation{Profile: generic}
	for at := 0; at < len(argv); {
		inv.At = at
		base := BaseName(argv[at])
		if name := x.byName(argv[at], base); name != "" {
			inv.Profile = name
			return inv
		}
		next := at
		if base == "env" {
			next = inv.env(argv, at)
		} else if r, ok := runners[base]; ok {
			return x.run(inv, argv, at, r)
		}
		if next <= at || next >= len(argv) {
			break
		}
		at = next
	}
	inv.At = 0
	return inv
}

// env reads the arguments of env and returns the index of the command.
func (inv *Invocation) env(argv []string, at int) int {
	i := at + 1
	for ; i < len(argv); i++ {
		a := argv[i]
		name, _, assigns := strings.Cut(a, "=")
		switch {
		case a == "--":
			continue
		case a == "-i" || a == "-" || a == "--ignore-environment":
			inv.Cleared = true
		case (a == "-u" || a == "--unset") && i+1 < len(argv):
			i++
			inv.Unset = append(inv.Unset, argv[i])
		case strings.HasPrefix(a, "--unset="):
			inv.Unset = append(inv.Unset, strings.TrimPrefix(a, "--unset="))
		case strings.HasPrefix(a, "-u") && len(a) > 2:
			inv.Unset = append(inv.Unset, a[2:])
		case a == "-C" || a == "--chdir" || a == "-a" || a == "--argv0":
			i++
		case strings.HasPrefix(a, "-S") || strings.HasPrefix(a, "--split-string"):
			return at // a command line inside one argument: left to generic
		case strings.HasPrefix(a, "-"):
		case assigns && name != "":
			inv.Set = append(inv.Set, a)
		default:
			return i
		}
	}
	return i
}

// run looks behind a runner for the agent.
func (x Index) run(inv Invocation, argv []string, at int, r runner) Invocation {
	i, named := at+1, ""
	subcommand := len(r.words) > 0
	for ; i < len(argv); i++ {
		a := argv[i]
		if has(r.name, a) && i+1 < len(argv) {
			i++
			named = argv[i]
		} else if has(r.value, a) {
			i++
		} else if pkg, ok := strings.CutPrefix(a, "--package="); ok {
			named = pkg
		} else if subcommand && a != "" && has(r.words, a) {
			r.fetches = r.fetches || a == "x"
			subcommand = false
		} else if len(a) < 2 || a[0] != '-' {
			break
		}
	}
	inv.At = 0
	if i >= len(argv) || subcommand && !has(r.words, "") {
		return inv
	}
	name := x.byName(argv[i], BaseName(argv[i]))
	if name == "" && named != "" {
		name = x.byPackage(named)
	}
	if name == "" {
		return inv
	}
	inv.Profile, inv.At, inv.Fetches = name, i, r.fetches
	return inv
}

// byName finds a profile by a command's base name or a package.
func (x Index) byName(word, base string) string {
	for _, p := range x {
		if has(p.Binaries, base) {
			return p.Name
		}
	}
	return x.byPackage(word)
}

// byPackage finds a profile by a package with or without a version, with deno's
// npm: in front, or by a file of an installed package.
func (x Index) byPackage(word string) string {
	for _, p := range x {
		for _, pkg := range p.Packages {
			if strings.Contains(word, "node_modules/"+pkg+"/") {
				return p.Name
			}
		}
	}
	word = strings.TrimPrefix(word, "npm:")
	if i := strings.LastIndexByte(word, '@'); i > 0 {
		word = word[:i]
	}
	for _, p := range x {
		if has(p.Packages, word) {
			return p.Name
		}
	}
	return ""
}

// suffixes are what a file name carries beyond the agent's name.
var suffixes = []string{".js", ".cjs", ".mjs", ".cmd", ".exe"}

// BaseName is the last element of a command as typed, without .js and the like.
func BaseName(command string) string {
	base := command[strings.LastIndexByte(command, '/')+1:]
	for _, s := range suffixes {
		if len(base) > len(s) && strings.HasSuffix(base, s) {
			return base[:len(base)-len(s)]
		}
	}
	return base
}
