package account

import (
	"encoding/json"
	"strings"
	"testing"
)

// everyFile answers every path with the same bytes: one fuzz input reaches
// every parser.
type everyFile []byte

func (f everyFile) ReadFile(string) ([]byte, error) { return f, nil }

// FuzzFiles feeds one text to every file that an identity is read from. It must
// not panic, and what comes out must be limiter IDs.
func FuzzFiles(f *testing.F) {
	for _, s := range []string{
		"", "{}", "[]", "null", `{"oauthAccount":{"accountUuid":"a"}}`, `{"env":{"A":1,"B":null,"C":[1]},"apiKeyHelper":2}`,
		`{"auth_mode":"chatgpt","tokens":{"id_token":"a.b.c","account_id":""}}`, `{"tokens":{"id_token":"` + jwt(`{"email":1}`) + `"}}`,
		"model_provider = \"m\"\n[model_providers.m]\nbase_url = \"http://h\"\nenv_http_headers = {a=1}", "profile = \"\xff\"", "a.b.c = 1", "[" + strings.Repeat("a.", 16000) + "b]",
		"GEMINI_API_KEY=\"a\nb\"\nexport X='y' # z", "A=\"\\\"", "=", "#", "/* \" */ {\"security\":{\"auth\":{\"selectedType\":\"vertex-ai\"}},}",
		"{\"a\":\"\\\"/*\"}//", "/", "/*", "{\"a\":\"",
	} {
		f.Add([]byte(s), "--settings "+s)
	}
	f.Fuzz(func(t *testing.T, data []byte, arg string) {
		for _, agent := range []string{"claude", "codex", "gemini", "generic"} {
			for _, args := range [][]string{nil, {"--settings", arg, "-c", arg, "-p", arg, "-m", arg}, {arg, "exec"}} {
				id := Identify(Launch{Profile: profile(t, agent), Args: args, Home: "/h", Cwd: "/h/p", FS: everyFile(data), Salt: salt, Command: arg,
					Env: func(n string) string {
						if n == "GOOGLE_GEMINI_BASE_URL" || n == "ANTHROPIC_BASE_URL" {
							return arg
						}
						return ""
					}})
				for _, m := range id.Limiters {
					if err := CheckID(m.ID); err != nil {
						t.Fatalf("%s: %q: %v", agent, m.ID, err)
					}
				}
			}
		}
	})
}

// FuzzPlainJSON: JSON without comments and trailing commas is left as it is,
// and nothing grows or shrinks.
func FuzzPlainJSON(f *testing.F) {
	for _, s := range []string{`{"a":"// no","b":[1,2]}`, "{/**/}", `{"a":1,}`, `["\"",/*"*/2,]`, "//", "/*/"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := plainJSON(in)
		if len(out) != len(in) {
			t.Fatalf("%d bytes became %d", len(in), len(out))
		}
		if json.Valid(in) && string(out) != string(in) {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

func TestDotenv(t *testing.T) {
	got := dotenv([]byte("A=1\r\n B = two words \nexport C='single # quoted'\nD=\"line\\nbreak\nreal\" # c\nE=un#quoted\n#F=1\nG=\nH=`tick`\nI='open\nbad name=1\nA=2\nJ=\"a\\\"b\"\n"))
	want := map[string]string{"A": "2", "B": "two words", "C": "single # quoted", "D": "line\nbreak\nreal", "E": "un", "G": "", "H": "tick", "I": "'open", "J": `a\"b`}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s = %q, want %q", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
}
