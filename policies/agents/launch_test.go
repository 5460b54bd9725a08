package agents

import (
	"reflect"
	"strings"
	"testing"
)

// TestExamples runs every example that stands beside the rules in the TOML files.
func TestExamples(t *testing.T) {
	for _, name := range Names() {
		data, _ := Builtin(name)
		p, err := Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Examples.NonSession) == 0 || len(p.Examples.Session) == 0 {
			t.Errorf("%s: a profile needs nonsession and session examples", name)
		}
		for _, bad := range p.CheckExamples() {
			t.Errorf("%s: %s: %q %s", name, bad.Key, bad.Text, bad.Why)
		}
	}
}

func profile(t *testing.T, name string) *Profile {
	t.Helper()
	p, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSetting: without terminals the same line may be headless.
func TestSetting(t *testing.T) {
	env := func(kv string) func(string) string {
		name, v, _ := strings.Cut(kv, "=")
		return func(n string) string {
			if n == name {
				return v
			}
			return ""
		}
	}
	both := Setting{StdinTTY: true, StdoutTTY: true}
	for _, c := range []struct {
		agent, line string
		in          Setting
		headless    bool
	}{
		{"claude", "", both, false},
		{"claude", "hi", Setting{StdinTTY: true}, true},   // its --help: "or when stdout is not a TTY"
		{"claude", "hi", Setting{StdoutTTY: true}, false}, // a piped prompt, still its screen
		{"codex", "hi", Setting{}, false},                 // refuses to start instead
		{"gemini", "hi", Setting{StdinTTY: true}, true},
		{"gemini", "hi", Setting{StdoutTTY: true}, true},
		{"gemini", "-i hi", Setting{StdoutTTY: true}, false},
		{"gemini", "hi", Setting{true, true, env("CI=true")}, true},
		{"gemini", "hi", Setting{true, true, env("CI=1")}, false},
	} {
		if got := profile(t, c.agent).ClassifyOn(strings.Fields(c.line), c.in); got.Headless != c.headless {
			t.Errorf("%s %q in %+v: %+v", c.agent, c.line, c.in, got)
		}
	}
}

func TestModelAndFormat(t *testing.T) {
	for _, c := range []struct{ agent, line, model, format, command string }{
		{"claude", "-p hi", "", "text", ""},
		{"claude", "--model opus --output-format=stream-json -p hi", "opus", "stream-json", ""},
		{"claude", "--model opus --model sonnet hi", "sonnet", "", ""},
		{"claude", "--output-format json hi", "", "", ""}, // only works with --print
		{"claude", "-p --output-format json", "", "json", ""},
		{"codex", "exec --json hi", "", "stream-json", "exec"},
		{"codex", "-mgpt-5.5 e hi", "gpt-5.5", "text", "e"},
		{"codex", "-m=gpt-5.5 resume --last", "gpt-5.5", "", "resume"},
		{"gemini", "-m gemini-2.5-pro -o json -p hi", "gemini-2.5-pro", "json", ""},
		{"gemini", "-p -m", "", "text", ""}, // -m is the prompt
		{"generic", "--model x", "", "", ""},
	} {
		got := profile(t, c.agent).Classify(strings.Fields(c.line))
		if got.Model != c.model || got.StreamFormat != c.format || got.Command != c.command {
			t.Errorf("%s %q: %+v, want %+v", c.agent, c.line, got, c)
		}
	}
}

func TestFamily(t *testing.T) {
	for _, c := range []struct{ agent, model, family string }{
		{"claude", "claude-opus-4-8", "opus"}, {"claude", "Opus", "opus"}, {"claude", "sonnet[1m]", "sonnet"},
		{"claude", "us.anthropic.claude-haiku-4-5", "haiku"}, {"claude", "opusplan", ""}, {"claude", "default", ""},
		{"claude", "Fable 5", "fable"}, {"claude", "", ""}, {"claude", "my/model X", "my-model-x"},
		{"codex", "gpt-6-luna", "gpt-6-luna"}, {"codex", "GPT-6-Luna", "gpt-6-luna"}, {"codex", "GPT-6.1 Terra", "gpt-6.1-terra"},
		{"codex", "Daybreak Blue", "daybreak-blue"}, {"codex", "gpt-daybreak-blue-latest", "daybreak-blue"},
		{"gemini", "gemini-2.5-pro", "pro"}, {"gemini", "gemini-3-pro-preview", "pro"}, {"gemini", "all Pro models", "pro"},
		{"gemini", "gemini-3.5-flash-lite", "flash-lite"}, {"gemini", "flash", "flash"}, {"gemini", "gemini-3-flash-preview", "flash"},
		{"gemini", "auto", ""}, {"gemini", "auto-gemini-3", ""}, {"gemini", "Auto", ""},
	} {
		if got := profile(t, c.agent).Family(c.model); got != c.family {
			t.Errorf("%s %q is family %q, want %q", c.agent, c.model, got, c.family)
		}
	}
}

func TestAdjustments(t *testing.T) {
	none := func(string) string { return "" }
	codex := profile(t, "codex")
	help := Known{Help: "      --no-daemon\n          Run without"}
	got := codex.Adjustments(nil, Call{}, none, help)
	if strings.Join(got.Args, " ") != "--no-daemon" || len(got.Fallbacks) != 0 || len(got.Names) != 1 {
		t.Errorf("known: %+v", got)
	}
	for _, k := range []Known{{}, {Help: "--no-daemonise, --x--no-daemon"}} {
		got = codex.Adjustments(nil, Call{}, none, k)
		if strings.Join(got.Args, " ") != "-c features.daemon_auto_start=false" || len(got.Fallbacks) != 1 {
			t.Errorf("unknown: %+v", got)
		}
	}
	if !codex.NeedsProbe(nil, Call{}, none) || codex.NeedsProbe([]string{"--no-daemon"}, Call{}, none) {
		t.Error("--help is read when it is not needed, or not read when it is")
	}
	gemini := profile(t, "gemini")
	if got := gemini.Adjustments(nil, Call{}, none, Known{}); got.Env["GEMINI_DEBUG_LOG_FILE"] != "{log}" || gemini.NeedsProbe(nil, Call{}, none) {
		t.Errorf("gemini: %+v", got)
	}
	mine := func(n string) string { return "/my/log" }
	if got := gemini.Adjustments(nil, Call{}, mine, Known{}); len(got.Env) != 0 || len(got.Names) != 0 {
		t.Errorf("the user's own log is replaced: %+v", got)
	}
	claude := profile(t, "claude")
	accepts := Known{Help: "  --debug-file <path>   Write debug logs"}
	printing := Call{Session: true, Headless: true, StreamFormat: "text"}
	if got := claude.Adjustments([]string{"-p"}, printing, none, accepts); strings.Join(got.Args, " ") != "--debug-file={log}" {
		t.Errorf("claude -p: %+v", got)
	}
	for name, got := range map[string]Applied{
		"a binary that is not known to take it": claude.Adjustments([]string{"-p"}, printing, none, Known{Help: "--debug-files"}),
		"a screen":                              claude.Adjustments(nil, Call{Session: true}, none, accepts),
		"DEBUG=/my/log":                         claude.Adjustments([]string{"-p"}, printing, mine, accepts),
	} {
		if len(got.Args)+len(got.Names)+len(got.Fallbacks) > 0 {
			t.Errorf("claude with %s: %+v", name, got)
		}
	}
	for line, want := range map[string]string{"-p --debug-file /x hi": "/x", "--debug-file=y -p hi": "y", "-p --debug hi": "", "-- --debug-file /x": ""} {
		if got := claude.DebugFile(strings.Fields(line)); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := codex.DebugFile([]string{"--debug-file", "/x"}); got != "" {
		t.Errorf("codex has none: %q", got)
	}
}

// TestLogDir: the first variable that is set says where, goose's root before
// the directory that all programs share.
func TestLogDir(t *testing.T) {
	for _, c := range []struct{ agent, env, want string }{
		{"goose", "HOME=/h", "/h/.local/state/goose"},
		{"goose", "HOME=/h XDG_STATE_HOME=/x", "/x/goose"},
		{"goose", "HOME=/h XDG_STATE_HOME=/x GOOSE_PATH_ROOT=/g", "/g/state"},
		{"gemini", "HOME=/h GEMINI_CLI_HOME=/g", "/g/.gemini"},
		{"codex", "HOME=/h CODEX_HOME=/c", "/c"},
		{"codex", "HOME=/h CODEX_HOME=c", "c"},
	} {
		env := map[string]string{}
		for _, set := range strings.Fields(c.env) {
			k, v, _ := strings.Cut(set, "=")
			env[k] = v
		}
		if got := profile(t, c.agent).Log.Dir(func(k string) string { return env[k] }); got != c.want {
			t.Errorf("%s with %s: %q, want %q", c.agent, c.env, got, c.want)
		}
	}
}

// TestProfilesAreComplete: what later rooms rely on.
func TestProfilesAreComplete(t *testing.T) {
	for _, name := range Names() {
		p := profile(t, name)
		if name == "generic" {
			continue
		}
		if len(p.Binaries) == 0 || p.Quit.Signal == "" || p.Resume.Text == "" || len(p.Resume.Headless)+len(p.Resume.Latest) == 0 {
			t.Errorf("%s lacks something of binaries, quit and resume", name)
		}
		if p.JudgedBy == "" && (len(p.Packages) == 0 || p.Log.Kind == "" || len(p.Log.HomeEnv) == 0 || len(p.Log.Files) == 0) {
			t.Errorf("%s judges by itself and lacks something of packages and log", name)
		}
	}
	if _, err := Load("nobody"); err == nil || !strings.Contains(err.Error(), "claude, codex, ") {
		t.Errorf("unknown profile: %v", err)
	}
}

// TestQuick: the shortcuts of a launch agree with the whole file.
func TestQuick(t *testing.T) {
	index := Builtins()
	for i, name := range Names() {
		data, _ := Builtin(name)
		whole, err := Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(index[i], whole.Entry()) {
			t.Errorf("%s: the index has %+v, the file %+v", name, index[i], whole.Entry())
		}
		used := profile(t, name)
		if string(used.Raw()) != string(whole.Raw()) {
			t.Errorf("%s: Load has another file", name)
		}
		whole.Examples, whole.Raw, used.Raw = Examples{}, nil, nil
		if !reflect.DeepEqual(used, whole) {
			t.Errorf("%s: Load and Parse differ beyond the examples", name)
		}
	}
}
