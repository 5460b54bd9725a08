package agents

import (
	"reflect"
	"strings"
	"testing"
)

func TestInvocation(t *testing.T) {
	for _, c := range []struct {
		argv string
		name string
		at   int
	}{
		{"claude", "claude", 0},
		{"/usr/local/bin/claude -p x", "claude", 0},
		{"./codex", "codex", 0},
		{"codex.exe exec", "codex", 0},
		{"gemini.js", "gemini", 0},
		{"dir/codex.cjs", "codex", 0},
		{"claude.cmd", "claude", 0},
		{"claude-wrapper", "generic", 0},
		{"Claude", "generic", 0},
		{"claude.sh", "generic", 0},
		{".js", "generic", 0},
		{"node /x/gemini.js -p hi", "gemini", 1},
		{"node --flag /x/gemini.js", "gemini", 2},
		{"node --max-old-space-size=4096 /x/gemini.js", "gemini", 2},
		{"node -r ./gemini.js app.js", "generic", 0},
		{"node /opt/lib/node_modules/@anthropic-ai/claude-code/cli.js", "claude", 1},
		{"node app.js claude", "generic", 0},
		{"node", "generic", 0},
		{"bun /x/codex.js", "codex", 1},
		{"bun run /x/codex.js", "codex", 2},
		{"bun x @openai/codex", "codex", 2},
		{"deno run -A npm:@google/gemini-cli@0.61.0 -p hi", "gemini", 3},
		{"deno test gemini.js", "generic", 0},
		{"npx -y @openai/codex@0.171.0 exec hi", "codex", 2},
		{"npx @google/gemini-cli", "gemini", 1},
		{"npx claude", "claude", 1},
		{"npx -p @openai/codex codex exec", "codex", 3},
		{"npx -p @openai/codex@latest run-it exec", "codex", 3},
		{"npx --package=@openai/codex -- codex", "codex", 3},
		{"npx prettier codex", "generic", 0},
		{"bunx @anthropic-ai/claude-code --version", "claude", 1},
		{"pnpx @openai/codex", "codex", 1},
		{"pnpm dlx @openai/codex@1 x", "codex", 2},
		{"pnpm install @openai/codex", "generic", 0},
		{"npm exec -- @google/gemini-cli -p hi", "gemini", 3},
		{"npm install codex", "generic", 0},
		{"yarn dlx @openai/codex", "codex", 2},
		{"env claude", "claude", 1},
		{"env FOO=1 BAR=2 claude -p x", "claude", 3},
		{"env -i -u X PATH=/bin codex", "codex", 5},
		{"/usr/bin/env A=b npx -y @openai/codex", "codex", 4},
		{"env A=b", "generic", 0},
		{"env -S claude", "generic", 0},
		{"env env env claude", "claude", 3},
		{"nobody --model x", "generic", 0},
		{"", "generic", 0},
	} {
		argv := strings.Fields(c.argv)
		if name, at := ByInvocation(argv); name != c.name || at != c.at {
			t.Errorf("%q is %s at %d, want %s at %d", c.argv, name, at, c.name, c.at)
		}
	}
}

func TestInvocationEnv(t *testing.T) {
	inv := Builtins().Invocation(strings.Fields("env -u A --unset=B -uC D=1 E= codex F=2"))
	if !reflect.DeepEqual(inv.Set, []string{"D=1", "E="}) || !reflect.DeepEqual(inv.Unset, []string{"A", "B", "C"}) || inv.Cleared {
		t.Errorf("%+v", inv)
	}
	if inv := Builtins().Invocation([]string{"env", "-i", "codex"}); !inv.Cleared {
		t.Errorf("%+v", inv)
	}
	if inv := Builtins().Invocation([]string{"npx", "codex"}); !inv.Fetches {
		t.Errorf("%+v", inv)
	}
	if inv := Builtins().Invocation([]string{"node", "codex.js"}); inv.Fetches {
		t.Errorf("%+v", inv)
	}
}

func FuzzInvocation(f *testing.F) {
	f.Add("env\x00A=1\x00npx\x00-p\x00x\x00codex")
	f.Add("node\x00--\x00-")
	var all []*Profile
	for _, n := range Names() {
		p, err := Load(n)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, p)
	}
	f.Fuzz(func(t *testing.T, line string) {
		argv := strings.Split(line, "\x00")
		name, at := ByInvocation(argv)
		if at < 0 || at >= len(argv) || name == "" {
			t.Fatalf("%q: %s at %d", argv, name, at)
		}
		for _, p := range all {
			p.ClassifyOn(argv, Setting{})
			p.Adjustments(argv, p.Classify(argv), func(string) string { return "" }, Known{})
			p.Family(line)
		}
	})
}
