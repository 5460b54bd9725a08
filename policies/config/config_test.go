package config_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"qshim/policies"
	"qshim/policies/config"
)

func TestDefaultsSetEveryConstant(t *testing.T) {
	c, err := config.Load(config.Input{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Values() {
		if v.Origin.Layer != config.Default || v.Origin.Line == 0 {
			t.Errorf("%s %s = %s: from %+v, want a line of the defaults", v.Scope, v.Key, v.Text, v.Origin)
		}
	}
	if c.Policy.C.Rate.Base != 30*time.Second || c.MaxWait != 6*time.Hour || c.Policy.C.Launch.MaxWait != 6*time.Hour || c.Observe() {
		t.Errorf("defaults read wrongly: %+v %+v", c.Settings, c.Policy.C.Rate)
	}
	if z := c.Policy.Special["google"].Daily.Zone; z != "America/Los_Angeles" {
		t.Errorf("google's day ends in %q", z)
	}
}

// Every line of the defaults that sets something says why.
func TestDefaultsGiveReasons(t *testing.T) {
	for n, line := range strings.Split(string(policies.DefaultTOML), "\n") {
		if strings.Contains(line, " = ") && !strings.Contains(line, "#") {
			t.Errorf("line %d has no reason: %s", n+1, line)
		}
	}
}

const user = `
mode = "observe"
max_wait = "1h"
[rate]
base = "20s"
[providers.anthropic]
max_wait = "2h"
rate.cap = "4m"
[limiters."anthropic/3f9a00112233".rate]
base = "5s"
`

func TestPrecedence(t *testing.T) {
	env := func(k string) (string, bool) {
		v, ok := map[string]string{"QSHIM_MODE": "govern", "QSHIM_TITLE": "off"}[k]
		return v, ok
	}
	load := func(in config.Input) *config.Config {
		t.Helper()
		c, err := config.Load(in)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(config.Input{Name: "c.toml", Data: []byte(user)})
	id := "anthropic/3f9a00112233"
	if !c.Observe() || c.Policy.C.Rate.Base != 20*time.Second || c.Policy.C.Rate.Cap != 5*time.Minute {
		t.Errorf("config file: %+v %+v", c.Settings, c.Policy.C.Rate)
	}
	if r := c.Policy.Special["anthropic"].Rate; r.Base != 20*time.Second || r.Cap != 4*time.Minute {
		t.Errorf("provider stands on the file: %+v", r)
	}
	if r := c.Policy.Special[id].Rate; r.Base != 5*time.Second || r.Cap != 4*time.Minute {
		t.Errorf("limiter stands on the provider: %+v", r)
	}
	if w := c.For([]string{id}).MaxWait; w != 2*time.Hour {
		t.Errorf("max_wait of the limiter: %s", w)
	}
	if o, _ := c.Origin(id, "rate.base"); o.Line != 10 || o.Name != "c.toml" || o.Layer != config.Limiter {
		t.Errorf("origin of the limiter's value: %+v", o)
	}
	c = load(config.Input{Name: "c.toml", Data: []byte(user), Env: env, Flags: map[string]string{"max_wait": "3h", "mode": "observe"}})
	if !c.Observe() || c.Title || c.MaxWait != 3*time.Hour || c.For([]string{id}).MaxWait != 3*time.Hour || c.Policy.Special[id].Launch.MaxWait != 3*time.Hour {
		t.Errorf("flag over environment over the rest: %+v", c.Settings)
	}
	if o, _ := c.Origin("", "title"); o.Layer != config.Env || o.Name != "QSHIM_TITLE" {
		t.Errorf("origin of title: %+v", o)
	}
	if o, _ := c.Origin("", "mode"); o.Layer != config.Flag || o.Name != "--mode" {
		t.Errorf("origin of mode: %+v", o)
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct{ name, data, want string }{
		{"syntax", "mode = govern\n", "c.toml:1:"},
		{"unknown key", "\n[rate]\nbsae = \"3s\"\n", "c.toml:3:1: unknown key rate.bsae; did you mean rate.base?"},
		{"unknown table", "[quux]\na = 1\n", "c.toml:1:1: unknown key quux"},
		{"unknown empty table", "[quux]\n", "c.toml:1:1: unknown key quux"},
		{"no unit", "[rate]\n  base = 30\n", "c.toml:2:3: rate.base: a time needs a unit; write a time with its unit"},
		{"bad unit", "rate.base = \"3 sec\"\n", "c.toml:1:1: rate.base: \"3 sec\" is not a time"},
		{"negative", "max_wait = \"-3s\"\n", "c.toml:1:1: max_wait:"},
		{"zero", "rate.base = \"0s\"\n", "c.toml:1:1: rate.base: this time cannot be zero"},
		{"wrong kind", "title = \"yes\"\n", "c.toml:1:1: title: wrong kind of value; write true or false"},
		{"value as table", "[mode]\nx = 1\n", "c.toml:1:1: mode: wrong kind of value; write \"govern\""},
		{"table as value", "rate = 3\n", "c.toml:1:1: unknown key rate"},
		{"enum", "mode = \"obsreve\"\n", `c.toml:1:1: mode: "obsreve" is not one of its values; write "govern" or "observe"`},
		{"share", "rate.stretch = 2.5\n", "c.toml:1:1: rate.stretch: a share lies between 0 and 1"},
		{"base above cap", "[rate]\nbase = \"1h\"\n", "c.toml:2:1: rate.base: the first wait is longer"},
		{"zone", "daily.zone = \"Mars\"\n", "c.toml:1:1: daily.zone: \"Mars\" is no known time zone"},
		{"setting of no scope", "[providers.openai]\nstate_dir = \"/x\"\n", "c.toml:2:1: state_dir cannot be set for one provider"},
		{"limiter among providers", "[providers.\"openai/12\"]\nmax_wait = \"1h\"\n", "c.toml:1:1: a limiter's ID has a slash"},
		{"two at once", "a = 1\nb = 2\n", "c.toml:2:1: unknown key b"},
		{"alias to nothing", "[aliases]\n\"a/b\" = 3\n", "c.toml:2:1: aliases.\"a/b\": write the ID of a limiter"},
		{"alias of a name", "[aliases]\nteam = \"a/b\"\n", "c.toml:2:1: aliases: \"team\" is neither a limiter's ID"},
		{"alias of itself", "aliases.\"a/b\" = \"a/b\"\n", "c.toml:1:1: aliases.\"a/b\": it is an alias of itself"},
		{"ring of aliases", "[aliases]\n\"a/b\" = \"a/c\"\n\"a/c\" = \"a/b\"\n", "c.toml:2:1: aliases.\"a/b\": the aliases lead in a ring"},
		{"aliases no table", "aliases = 1\n", "c.toml:1:1: aliases is a table"},
		{"list", "notify_command = [1]\n", "c.toml:1:1: notify_command: wrong kind of value in the list"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := config.Load(config.Input{Name: "c.toml", Data: []byte(tc.data)})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
	_, err := config.Load(config.Input{Env: func(k string) (string, bool) { return "soon", k == "QSHIM_MAX_WAIT" }})
	if err == nil || !strings.HasPrefix(err.Error(), `QSHIM_MAX_WAIT: "soon" is not a time; write a time`) {
		t.Errorf("environment: %v", err)
	}
	_, err = config.Load(config.Input{Flags: map[string]string{"no_adjust": "maybe"}})
	if err == nil || !strings.HasPrefix(err.Error(), `--no-adjust: "maybe" is neither true nor false`) {
		t.Errorf("flag: %v", err)
	}
}

func TestAliases(t *testing.T) {
	c, err := config.Load(config.Input{Name: "c.toml", Data: []byte("[aliases]\n\"openai/one\" = \"openai/team\"\n\"codex openai/two\" = \"openai/team\"\n")})
	if err != nil {
		t.Fatal(err)
	}
	if c.Aliases["openai/one"] != "openai/team" || c.Aliases["codex openai/two"] != "openai/team" {
		t.Errorf("%q", c.Aliases)
	}
	for _, v := range c.Values() {
		if v.Key == `aliases."codex openai/two"` && v.Text == `"openai/team"` && v.Origin.Line == 3 {
			return
		}
	}
	t.Error("the values do not list it")
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"8d": 192 * time.Hour, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "250ms": 250 * time.Millisecond, "0s": 0} {
		if got, err := config.Duration(text); err != nil || got != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "3", "-1h", "367d", "366d23h", "1e9h", "NaNd", "nope"} {
		if got, err := config.Duration(text); err == nil {
			t.Errorf("%q read as %v", text, got)
		}
	}
}

// A shown value, written into a file, means the same again.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(user))
	f.Add(policies.DefaultTOML)
	f.Add([]byte("[limiters.\"a/b\".rate]\nbase=\"1s\"\n"))
	f.Add([]byte("x = '''\n[rate]\nbase = 1\n'''\nmax_wait = \"1h\""))
	f.Add([]byte("[aliases]\n\"a/b\" = \"a/c\"\n\"codex a/c\" = \"a/d\"\n"))
	f.Add([]byte("rate = {base = \"1s\", cap = \"2s\"}\n[[limiters]]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Load(config.Input{Name: "c.toml", Data: data})
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error that says nothing")
			}
			return
		}
		var b strings.Builder
		for _, v := range c.Values() {
			if v.Scope == "" {
				b.WriteString(v.Key + " = " + v.Text + "\n")
			}
		}
		again, err := config.Load(config.Input{Name: "c.toml", Data: []byte(b.String())})
		if err != nil {
			t.Fatalf("what is shown is refused: %v\n%s", err, b.String())
		}
		if again.Policy.C != c.Policy.C || again.Mode != c.Mode || again.MaxWait != c.MaxWait || !maps.Equal(again.Aliases, c.Aliases) {
			t.Fatalf("what is shown means something else")
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := config.Load(config.Input{Name: "c.toml", Data: []byte(user)}); err != nil {
			b.Fatal(err)
		}
	}
}
