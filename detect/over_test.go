package detect_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

const userRule = `# mine
[detect]

[[detect.rule]]
name = "proxy-says"
class = "rate"
rows = ["error"]
match = '^the gateway asks you to wait'
needs = "osc-error"
examples = ["■ the gateway asks you to wait 30 seconds"]
not = ["• the gateway asks you to wait 30 seconds"]
`

func builtin(tb testing.TB, name string) detect.Source {
	tb.Helper()
	data, err := os.ReadFile("../policies/agents/" + name + ".toml")
	if err != nil {
		tb.Fatal(err)
	}
	return detect.Source{Name: name + ".toml", Data: data}
}

func explain(p *detect.Profile, rows string) string {
	for _, e := range p.ExplainRows(strings.Split(rows, "\n"), detect.ExplainOptions{Mode: detect.Both, Now: start, Zone: time.UTC}) {
		return string(e.Class) + " by " + e.Rule
	}
	return ""
}

// TestUserProfile: a user's table extends a built-in one, replaces a rule of
// the same name in its place, or all of it.
func TestUserProfile(t *testing.T) {
	for _, c := range []struct{ name, user, rows, want string }{
		{"a new rule", userRule, "■ the gateway asks you to wait 30 seconds", "rate by proxy-says"},
		{"is asked first", strings.Replace(userRule, "the gateway asks you to wait'", "You.ve hit your usage limit'", 1), "■ You’ve hit your usage limit. Try again at 5:47 PM.", "rate by proxy-says"},
		{"the others stay", userRule, "■ You’ve hit your usage limit. Try again at 5:47 PM.", "window by usage-limit"},
		{"a rule of the same name", strings.ReplaceAll(userRule, "proxy-says", "usage-limit"), "■ You’ve hit your usage limit. Try again at 5:47 PM.", "window by other-error"},
		{"a new row", "[[detect.row]]\nname = \"mine\"\nspeaker = \"agent\"\nstart = '^!! '\n[[detect.rule]]\nname = \"mine\"\nrows = [\"mine\"]\nmatch = 'limit'\nclass = \"daily\"\n", "!! a limit", "daily by mine"},
		{"nothing of the built-in one", "[detect]\nreplace = true\n[[detect.row]]\nname = \"mine\"\nspeaker = \"agent\"\nstart = '^!! '\n[[detect.rule]]\nname = \"mine\"\nrows = [\"mine\"]\nmatch = 'limit'\nclass = \"daily\"\n", "■ You’ve hit your usage limit. Try again at 5:47 PM.", ""},
		{"no [detect] at all", "name = \"codex\"\n", "■ You’ve hit your usage limit. Try again at 5:47 PM.", "window by usage-limit"},
	} {
		p, err := detect.ParseOver(builtin(t, "codex"), detect.Source{Name: "codex.toml", Data: []byte(c.user)})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := explain(p, c.rows); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if p.Name != "codex" {
			t.Errorf("%s: named %q", c.name, p.Name)
		}
	}
	p, err := detect.ParseOver(detect.Source{}, detect.Source{Name: "own.toml", Data: []byte("[[detect.row]]\nname = \"mine\"\nspeaker = \"agent\"\nstart = '^!! '\n")})
	if err != nil || p.Name != "own" {
		t.Errorf("a profile of its own: %v, %v", p, err)
	}
}

// TestUserProfileErrors: what is wrong is said with file, line and column.
func TestUserProfileErrors(t *testing.T) {
	for _, c := range []struct{ user, want string }{
		{strings.Replace(userRule, `class = "rate"`, `class = "slow"`, 1), `codex.toml:6:1: class: "slow" is no class`},
		{strings.Replace(userRule, `"error"]`, `"eror"]`, 1), `codex.toml:7:1: rows: "eror" is no [[detect.row]]`},
		{strings.Replace(userRule, `to wait'`, `to (wait'`, 1), `codex.toml:8:1: match: `},
		{userRule + "colour = 1\n", `codex.toml:12:1: unknown key "colour"`},
	} {
		_, err := detect.ParseOver(builtin(t, "codex"), detect.Source{Name: "codex.toml", Data: []byte(c.user)})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// exampleLine is where a built-in rule's first example stands.
func exampleLine(t *testing.T, agent, rule string) string {
	t.Helper()
	head, rest, ok := strings.Cut(string(builtin(t, agent).Data), "name = \""+rule+"\"\n")
	before, _, found := strings.Cut(rest, "\nexamples = [")
	if !ok || !found {
		t.Fatalf("%s has no rule %q with examples", agent, rule)
	}
	return strconv.Itoa(strings.Count(head+before, "\n") + 3)
}

// TestUserExamples: examples of the user's file are run, those that fail named
// by their own line.
func TestUserExamples(t *testing.T) {
	for _, c := range []struct{ user, want string }{
		{userRule, ""},
		{strings.Replace(userRule, `["■ the gateway asks`, "[\n  # one\n  '''■ the gateway asks you to wait''', \"■ the \\\"door\\\"\", 'x',\n  \"■ the gateway asks", 1),
			"codex.toml:12:41: rule \"proxy-says\": no rule takes this example\n" +
				"codex.toml:12:59: rule \"proxy-says\": no rule takes this example"},
		{strings.Replace(userRule, `["• the`, `["■ the`, 1), `codex.toml:11:8: rule "proxy-says": taken, but it is a counter-example`},
		{strings.Replace(userRule, `examples = ["■ the gateway asks you to wait 30 seconds"]`, "", 1), `codex.toml:5:1: rule "proxy-says": no example: add one row as the agent shows it`},
		{strings.Replace(userRule, "the gateway asks you to wait'", "You.ve hit your usage limit for'", 1), "codex.toml:10:13: rule \"proxy-says\": no rule takes this example\n" +
			"codex.toml:" + exampleLine(t, "codex", "usage-limit-model") + ":13: rule \"usage-limit-model\": this example is taken by \"proxy-says\""},
	} {
		p, err := detect.ParseOver(builtin(t, "codex"), detect.Source{Name: "codex.toml", Data: []byte(c.user)})
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for _, e := range p.CheckExamples() {
			got = append(got, e.Error())
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("got  %s\nwant %s\nof\n%s", strings.Join(got, "\n"), c.want, c.user)
		}
	}
}
