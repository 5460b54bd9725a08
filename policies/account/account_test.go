package account

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"qshim/policies/agents"
)

type files map[string]string

func (f files) ReadFile(name string) ([]byte, error) {
	if s, ok := f[name]; ok {
		return []byte(s), nil
	}
	return nil, errors.New("no such file")
}

var salt = []byte("salt of the test")

// h is the account part that the parts must give, by the package's own hash:
// the tables below say which secret counts, TestHash how it is hashed.
func h(parts ...string) string { l := Launch{Salt: salt}; return l.hash(parts...) }

var loaded sync.Map

func load(name string) (*agents.Profile, error) {
	if p, ok := loaded.Load(name); ok {
		return p.(*agents.Profile), nil
	}
	p, err := agents.Load(name)
	if err == nil {
		loaded.Store(name, p)
	}
	return p, err
}

func profile(t testing.TB, name string) *agents.Profile {
	t.Helper()
	p, err := load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type row struct {
	name   string
	args   string
	env    map[string]string
	files  files
	id     string // first limiter
	label  string // of the first limiter, checked if not empty
	model  string
	family string
	how    string // checked if not empty
}

func identify(t testing.TB, agent string, r row) Identity {
	t.Helper()
	p := profile(t, agent)
	args := strings.Fields(r.args)
	return Identify(Launch{
		Profile: p, Args: args, Env: func(n string) string { return r.env[n] },
		Home: "/home/u", Cwd: "/home/u/src/proj", FS: r.files, Salt: salt,
		Headless: p.Classify(args).Headless,
	})
}

func check(t *testing.T, agent string, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := identify(t, agent, r)
			if got.Limiters[0].ID != r.id {
				t.Errorf("limiter %q, want %q (%s)", got.Limiters[0].ID, r.id, got.How)
			}
			if r.label != "" && got.Limiters[0].Label != r.label {
				t.Errorf("label %q, want %q", got.Limiters[0].Label, r.label)
			}
			if got.Model != r.model || got.Family != r.family {
				t.Errorf("model %q of family %q, want %q of %q", got.Model, got.Family, r.model, r.family)
			}
			if r.how != "" && got.How != r.how {
				t.Errorf("how %q, want %q", got.How, r.how)
			}
			for _, m := range got.Limiters {
				if err := CheckID(m.ID); err != nil {
					t.Errorf("%q: %v", m.ID, err)
				}
			}
			provider, _, _ := strings.Cut(r.id, "/")
			if last := got.Limiters[len(got.Limiters)-1]; last.ID != provider+"@source" {
				t.Errorf("source limiter %q, want %s@source", last.ID, provider)
			}
		})
	}
}

const (
	antKey  = "sk-ant-api03-0123456789abcdefghij0123456789ABCDEFGHIJ"
	antKey2 = "sk-ant-api03-another-key-altogether-9876543210"
	token   = "tok-bearer-secret-1"
	oat     = "sk-ant-oat01-long-lived-secret"
)

var claudeLoggedIn = files{
	"/home/u/.claude.json":              `{"oauthAccount":{"accountUuid":"acc-1","organizationUuid":"org-1","organizationType":"claude_max","emailAddress":"a@example.com"}}`,
	"/home/u/.claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-stored","refreshToken":"sk-ant-ort01-stored","subscriptionType":"max"}}`,
}

func plus(a files, kv ...string) files {
	f := files{}
	for k, v := range a {
		f[k] = v
	}
	for i := 0; i < len(kv); i += 2 {
		f[kv[i]] = kv[i+1]
	}
	return f
}

// Every row of "who pays" was measured on the wire with Claude Code 2.1.332.
func TestClaude(t *testing.T) {
	login := "anthropic/" + h("claude.ai", "org-1", "acc-1")
	key := "anthropic/" + h("key", antKey)
	env := func(kv ...string) map[string]string { return map[string]string(plus(nil, kv...)) }
	user := "/home/u/.claude/settings.json"
	check(t, "claude", []row{
		{name: "login", files: claudeLoggedIn, id: login, label: "Claude Max, " + h("claude.ai", "org-1", "acc-1")[:4] + "…", how: "claude.ai login"},
		{name: "login without credentials file (macOS keychain)", files: files{"/home/u/.claude.json": claudeLoggedIn["/home/u/.claude.json"]}, id: login},
		{name: "credentials only: the directory", files: files{"/home/u/.claude/.credentials.json": claudeLoggedIn["/home/u/.claude/.credentials.json"]}, id: "anthropic/" + h("claude.ai directory", "/home/u/.claude")},
		{name: "key headless beats login", args: "-p hi", env: env("ANTHROPIC_API_KEY", antKey), files: claudeLoggedIn, id: key, label: "Anthropic key " + h("key", antKey)[:4] + "…"},
		{name: "key not approved: login", env: env("ANTHROPIC_API_KEY", antKey), files: claudeLoggedIn, id: login},
		{name: "key approved", env: env("ANTHROPIC_API_KEY", antKey), files: plus(claudeLoggedIn, "/home/u/.claude.json",
			`{"oauthAccount":{"accountUuid":"acc-1","organizationUuid":"org-1"},"customApiKeyResponses":{"approved":["`+antKey[len(antKey)-20:]+`"]}}`), id: key},
		{name: "key, no login", env: env("ANTHROPIC_API_KEY", antKey), id: key, how: "ANTHROPIC_API_KEY"},
		{name: "auth token beats key", args: "-p hi", env: env("ANTHROPIC_API_KEY", antKey, "ANTHROPIC_AUTH_TOKEN", token), files: claudeLoggedIn, id: "anthropic/" + h("key", token)},
		{name: "auth token beats oauth token", env: env("CLAUDE_CODE_OAUTH_TOKEN", oat, "ANTHROPIC_AUTH_TOKEN", token), id: "anthropic/" + h("key", token)},
		{name: "key beats oauth token", args: "-p hi", env: env("CLAUDE_CODE_OAUTH_TOKEN", oat, "ANTHROPIC_API_KEY", antKey), id: key},
		{name: "oauth token beats login", env: env("CLAUDE_CODE_OAUTH_TOKEN", oat), files: claudeLoggedIn, id: "anthropic/" + h("key", oat)},
		{name: "helper beats login", files: plus(claudeLoggedIn, user, `{"apiKeyHelper":"vault read"}`), id: "anthropic/" + h("helper", "vault read"), how: "apiKeyHelper"},
		{name: "helper beats key", args: "-p x", env: env("ANTHROPIC_API_KEY", antKey), files: files{user: `{"apiKeyHelper":"vault read"}`}, id: "anthropic/" + h("helper", "vault read")},
		{name: "helper beats oauth token", env: env("CLAUDE_CODE_OAUTH_TOKEN", oat), files: files{user: `{"apiKeyHelper":"vault read"}`}, id: "anthropic/" + h("helper", "vault read")},
		{name: "auth token beats helper", env: env("ANTHROPIC_AUTH_TOKEN", token), files: files{user: `{"apiKeyHelper":"vault read"}`}, id: "anthropic/" + h("key", token)},
		{name: "settings env beats environment", args: "-p x", env: env("ANTHROPIC_API_KEY", antKey), files: files{user: `{"env":{"ANTHROPIC_API_KEY":"` + antKey2 + `"}}`}, id: "anthropic/" + h("key", antKey2)},
		{name: "bare: key", args: "--bare", env: env("ANTHROPIC_API_KEY", antKey), files: claudeLoggedIn, id: key},
		{name: "bare: no OAuth", args: "--bare", env: env("CLAUDE_CODE_OAUTH_TOKEN", oat), files: claudeLoggedIn, id: "anthropic/default"},
		{name: "bare as a value is none", args: "--append-system-prompt --bare", files: claudeLoggedIn, id: login},
		{name: "bedrock beats key", env: env("CLAUDE_CODE_USE_BEDROCK", "1", "ANTHROPIC_API_KEY", antKey, "AWS_PROFILE", "work", "AWS_REGION", "us-east-1"), id: "bedrock/" + h("bedrock", "work") + "/us-east-1"},
		{name: "bedrock=0 is off", env: env("CLAUDE_CODE_USE_BEDROCK", "0"), files: claudeLoggedIn, id: login},
		{name: "bedrock=false is off", env: env("CLAUDE_CODE_USE_BEDROCK", "false"), files: claudeLoggedIn, id: login},
		{name: "bedrock beats vertex", env: env("CLAUDE_CODE_USE_BEDROCK", "true", "CLAUDE_CODE_USE_VERTEX", "1"), id: "bedrock/default/us-east-1"},
		{name: "foundry beats vertex", env: env("CLAUDE_CODE_USE_FOUNDRY", "1", "CLAUDE_CODE_USE_VERTEX", "1"), id: "foundry/default"},
		{name: "settings bedrock beats environment 0", env: env("CLAUDE_CODE_USE_BEDROCK", "0"), files: files{user: `{"env":{"CLAUDE_CODE_USE_BEDROCK":1}}`}, id: "bedrock/default/us-east-1"},
		{name: "project settings vertex", files: plus(claudeLoggedIn, "/home/u/src/proj/.claude/settings.json", `{"env":{"CLAUDE_CODE_USE_VERTEX":"1","ANTHROPIC_VERTEX_PROJECT_ID":"p1","CLOUD_ML_REGION":"europe-west1"}}`), id: "vertex-claude/" + h("vertex-claude", "p1") + "/europe-west1"},
		{name: "local settings beat project settings", files: files{"/home/u/src/proj/.claude/settings.json": `{"model":"opus"}`, "/home/u/src/proj/.claude/settings.local.json": `{"model":"sonnet"}`}, id: "anthropic/default", model: "sonnet", family: "sonnet"},
		{name: "--settings JSON", args: `--settings {"env":{"CLAUDE_CODE_USE_VERTEX":"1"}}`, files: claudeLoggedIn, id: "vertex-claude/default"},
		{name: "--settings file", args: `--settings my.json`, files: plus(claudeLoggedIn, "/home/u/src/proj/my.json", `{"apiKeyHelper":"x"}`), id: "anthropic/" + h("helper", "x")},
		{name: "bedrock by its token, as any agent on it", env: env("CLAUDE_CODE_USE_BEDROCK", "1", "AWS_BEARER_TOKEN_BEDROCK", token, "AWS_PROFILE", "work", "AWS_DEFAULT_REGION", "eu-west-1"), id: "bedrock/" + h("key", token) + "/eu-west-1", how: "AWS_BEARER_TOKEN_BEDROCK"},
		{name: "bedrock by its access key", env: env("CLAUDE_CODE_USE_BEDROCK", "1", "AWS_ACCESS_KEY_ID", "AKIA1"), id: "bedrock/" + h("key", "AKIA1") + "/us-east-1", how: "AWS_ACCESS_KEY_ID"},
		{name: "bedrock behind a gateway", env: env("CLAUDE_CODE_USE_BEDROCK", "1", "AWS_PROFILE", "work", "ANTHROPIC_BEDROCK_BASE_URL", "https://gw.example.com/bedrock"), id: "gw.example.com/" + h("base", "", "/bedrock", h("bedrock", "work"))},
		{name: "foundry by its resource", env: env("CLAUDE_CODE_USE_FOUNDRY", "1", "ANTHROPIC_FOUNDRY_RESOURCE", "res", "ANTHROPIC_FOUNDRY_API_KEY", "fk"), id: "foundry/" + h("foundry", "res"), how: "ANTHROPIC_FOUNDRY_RESOURCE"},
		{name: "foundry by its key", env: env("CLAUDE_CODE_USE_FOUNDRY", "1", "ANTHROPIC_FOUNDRY_API_KEY", "fk"), id: "foundry/" + h("key", "fk")},
		{name: "foundry's own host", env: env("CLAUDE_CODE_USE_FOUNDRY", "1", "ANTHROPIC_FOUNDRY_RESOURCE", "res", "ANTHROPIC_FOUNDRY_BASE_URL", "https://res.services.ai.azure.com/anthropic"), id: "foundry/" + h("foundry", "res")},
		{name: "mantle", env: env("CLAUDE_CODE_USE_MANTLE", "1", "AWS_PROFILE", "work", "AWS_REGION", "us-east-1"), id: "mantle/" + h("mantle", "work") + "/us-east-1"},
		{name: "claude on aws by workspace", env: env("CLAUDE_CODE_USE_ANTHROPIC_AWS", "1", "ANTHROPIC_AWS_WORKSPACE_ID", "ws"), id: "anthropic-aws/" + h("anthropic-aws", "ws") + "/us-east-1"},
		{name: "the gateway mode", env: env("CLAUDE_CODE_USE_GATEWAY", "1", "ANTHROPIC_BASE_URL", "http://10.0.0.1:4000", "ANTHROPIC_AUTH_TOKEN", token), id: "10.0.0.1-4000/" + h("key", token)},
		{name: "a gateway without a key", env: env("ANTHROPIC_BASE_URL", "http://10.0.0.1:4000"), id: "10.0.0.1-4000/default", label: "Claude Code, account unknown"},
		{name: "a base URL with a secret in it", env: env("ANTHROPIC_BASE_URL", "https://me:sk-1@gw.example.com/t/abc", "ANTHROPIC_API_KEY", antKey), id: "gw.example.com/" + h("base", "me:sk-1", "/t/abc", h("key", antKey))},
		{name: "a base URL that is none", env: env("ANTHROPIC_BASE_URL", "::", "ANTHROPIC_API_KEY", antKey), id: "gateway/" + h("base", "::", h("key", antKey))},
		{name: "gateway", env: env("ANTHROPIC_BASE_URL", "https://LLM.example.com:8443/v1", "ANTHROPIC_AUTH_TOKEN", token), id: "llm.example.com-8443/" + h("key", token), label: "Anthropic token at llm.example.com-8443 " + h("key", token)[:4] + "…"},
		{name: "own base URL", env: env("ANTHROPIC_BASE_URL", "https://api.anthropic.com", "ANTHROPIC_API_KEY", antKey), id: key},
		{name: "config dir", env: env("CLAUDE_CONFIG_DIR", "/cfg"), files: files{"/cfg/.claude.json": `{"oauthAccount":{"accountUuid":"acc-2","organizationUuid":"org-1"}}`, "/home/u/.claude.json": claudeLoggedIn["/home/u/.claude.json"]}, id: "anthropic/" + h("claude.ai", "org-1", "acc-2")},
		{name: "nothing", id: "anthropic/default", label: "Claude Code, account unknown"},
		{name: "broken files", files: files{"/home/u/.claude.json": `{"oauthAccount":`, "/home/u/.claude/.credentials.json": "\x00\x01", user: "[]"}, id: "anthropic/default"},
		{name: "model argument", args: "--model claude-opus-5 hi", env: env("ANTHROPIC_MODEL", "sonnet"), id: "anthropic/default", model: "claude-opus-5", family: "opus"},
		{name: "model environment beats settings", env: env("ANTHROPIC_MODEL", "haiku"), files: files{user: `{"model":"opus"}`}, id: "anthropic/default", model: "haiku", family: "haiku"},
		{name: "model of settings", files: files{user: `{"model":"fable"}`}, id: "anthropic/default", model: "fable", family: "fable"},
		{name: "opusplan is several", args: "--model opusplan", id: "anthropic/default", model: "opusplan"},
	})
}

func jwt(claims string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"none"}`)) + "." + enc([]byte(claims)) + ".sig"
}

const oaiKey = "sk-proj-openai-secret-key-0001"

func TestCodex(t *testing.T) {
	auth := "/home/u/.codex/auth.json"
	conf := "/home/u/.codex/config.toml"
	chat := `{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":"` +
		jwt(`{"https://api.openai.com/auth":{"chatgpt_account_id":"acct-1","chatgpt_plan_type":"plus"}}`) + `","access_token":"at-secret","refresh_token":"rt-secret","account_id":"acct-1"}}`
	apikey := `{"auth_mode":"apikey","OPENAI_API_KEY":"` + oaiKey + `"}`
	plan, key := "openai/"+h("chatgpt", "acct-1"), "openai/"+h("key", oaiKey)
	custom := "model_provider = \"mock\"\nmodel = \"gpt-5.5\"\n[model_providers.mock]\nbase_url = \"http://127.0.0.1:99/v1\"\nenv_key = \"MOCK_KEY\"\n"
	env := func(kv ...string) map[string]string { return map[string]string(plus(nil, kv...)) }
	check(t, "codex", []row{
		{name: "ChatGPT plan", files: files{auth: chat}, id: plan, label: "ChatGPT Plus, " + h("chatgpt", "acct-1")[:4] + "…"},
		{name: "account only in the id token", files: files{auth: strings.Replace(chat, `,"account_id":"acct-1"`, "", 1)}, id: plan},
		{name: "API key of auth.json", files: files{auth: apikey}, id: key, label: "OpenAI key " + h("key", oaiKey)[:4] + "…"},
		{name: "no auth_mode, a key", files: files{auth: `{"OPENAI_API_KEY":"` + oaiKey + `"}`}, id: key},
		{name: "OPENAI_API_KEY is ignored", env: env("OPENAI_API_KEY", "other"), files: files{auth: chat}, id: plan},
		{name: "OPENAI_BASE_URL is ignored", env: env("OPENAI_BASE_URL", "http://other"), files: files{auth: chat}, id: plan},
		{name: "CODEX_API_KEY beats auth.json in exec", args: "exec hi", env: env("CODEX_API_KEY", oaiKey), files: files{auth: chat}, id: key},
		{name: "CODEX_API_KEY in the TUI is not used", env: env("CODEX_API_KEY", oaiKey), files: files{auth: chat}, id: plan},
		{name: "openai_base_url", files: files{auth: apikey, conf: `openai_base_url = "https://proxy.example/v1"`}, id: "proxy.example/" + h("key", oaiKey)},
		{name: "keyring", files: files{conf: `cli_auth_credentials_store = "keyring"`}, id: "openai/" + h("codex directory", "/home/u/.codex")},
		{name: "custom provider", env: env("MOCK_KEY", "mk"), files: files{auth: chat, conf: custom}, id: "127.0.0.1-99/" + h("key", "mk"), model: "gpt-5.5", family: "gpt-5.5"},
		{name: "custom provider without its key", files: files{conf: custom}, id: "127.0.0.1-99/default", model: "gpt-5.5", family: "gpt-5.5"},
		{name: "custom provider with requires_openai_auth", files: files{auth: chat, conf: "model_provider=\"p\"\n[model_providers.p]\nrequires_openai_auth = true\n"}, id: plan},
		{name: "custom provider without a key", files: files{conf: "model_provider=\"p\"\n[model_providers.p]\nbase_url = \"http://localhost:1/v1\"\n"}, id: "localhost-1/default"},
		{name: "headers", env: env("AZ", "azkey"), files: files{conf: "model_provider=\"az\"\n[model_providers.az]\nbase_url=\"https://x.azure.com/openai\"\nenv_http_headers = {api-key = \"AZ\"}\n"}, id: "x.azure.com/" + h("base", "", "/openai", h("headers", "api-key", "azkey")), how: "headers of the model provider"},
		{name: "-c beats config", args: "-c model_provider=openai", files: files{auth: chat, conf: custom}, id: plan, model: "gpt-5.5", family: "gpt-5.5"},
		{name: "-c dotted and TOML", args: `-c model_provider="p" -c model_providers.p.base_url="http://h:2/v1" --config=model_providers.p.experimental_bearer_token="bt"`, files: files{auth: chat}, id: "h-2/" + h("key", "bt")},
		{name: "profile file beats config", args: "-p work", files: files{auth: chat, conf: custom, "/home/u/.codex/work.config.toml": "model_provider = \"openai\"\nmodel = \"gpt-6-luna\""}, id: plan, model: "gpt-6-luna", family: "gpt-6-luna"},
		{name: "older profile table", args: "--profile work", files: files{auth: chat, conf: "[profiles.work]\nmodel = \"gpt-6-sol\"\n"}, id: plan, model: "gpt-6-sol", family: "gpt-6-sol"},
		{name: "-c beats profile", args: "-p work -c model=gpt-5.5", files: files{auth: chat, "/home/u/.codex/work.config.toml": `model = "gpt-6-luna"`}, id: plan, model: "gpt-5.5", family: "gpt-5.5"},
		{name: "model of a trusted project beats the profile's, its provider is ignored", args: "-p work", files: files{auth: chat, conf: "[projects.\"/home/u/src\"]\ntrust_level = \"trusted\"\n",
			"/home/u/.codex/work.config.toml": `model = "gpt-6-luna"`, "/home/u/src/proj/.codex/config.toml": "model = \"gpt-6-sol\"\nmodel_provider = \"mock\""}, id: plan, model: "gpt-6-sol", family: "gpt-6-sol"},
		{name: "-c beats the project", args: "-c model=gpt-5.5", files: files{auth: chat, conf: "[projects.\"/home/u/src\"]\ntrust_level = \"trusted\"\n", "/home/u/src/proj/.codex/config.toml": "model = \"gpt-6-sol\""}, id: plan, model: "gpt-5.5", family: "gpt-5.5"},
		{name: "a project that is not trusted", files: files{auth: chat, conf: "[projects.\"/home/u/src/pro\"]\ntrust_level = \"trusted\"\n", "/home/u/src/proj/.codex/config.toml": "model = \"gpt-6-sol\""}, id: plan},
		{name: "-C names the project", args: "-C ../x", files: files{auth: chat, conf: "[projects.\"/home/u/src/x\"]\ntrust_level = \"trusted\"\n", "/home/u/src/x/.codex/config.toml": "model = \"gpt-6-sol\""}, id: plan, model: "gpt-6-sol", family: "gpt-6-sol"},
		{name: "-m beats -c", args: "-m gpt-6-astra -c model=gpt-5.5", files: files{auth: chat}, id: plan, model: "gpt-6-astra", family: "gpt-6-astra"},
		{name: "--oss", args: "--oss --local-provider ollama", files: files{auth: chat}, id: "ollama/local"},
		{name: "CODEX_HOME", env: env("CODEX_HOME", "/ch"), files: files{"/ch/auth.json": apikey, auth: chat}, id: key},
		{name: "nothing", id: "openai/default", label: "Codex, account unknown"},
		{name: "broken", files: files{auth: `{"tokens":3}`, conf: "= = ="}, id: "openai/default"},
		{name: "profile with a slash is not read", args: "-p ../x", files: files{auth: chat, "/home/u/x.config.toml": `model = "evil"`}, id: plan},
	})
}

const gemKey = "AIzaSyGeminiSecretKey0001"

func TestGemini(t *testing.T) {
	user := "/home/u/.gemini/settings.json"
	selected := func(kind string) string { return `{"security":{"auth":{"selectedType":"` + kind + `"}}}` }
	key := "google/" + h("key", gemKey)
	env := func(kv ...string) map[string]string { return map[string]string(plus(nil, kv...)) }
	login := "google/" + h("google login", "a@example.com")
	accounts := "/home/u/.gemini/google_accounts.json"
	check(t, "gemini", []row{
		{name: "key", env: env("GEMINI_API_KEY", gemKey), id: key, label: "Gemini key " + h("key", gemKey)[:4] + "…"},
		{name: "selected type beats environment", env: env("GEMINI_API_KEY", gemKey), files: files{user: selected("oauth-personal"), accounts: `{"active":"A@example.com","old":[]}`}, id: login},
		{name: "workspace settings beat the user's", env: env("GEMINI_API_KEY", gemKey), files: files{user: selected("oauth-personal"), "/home/u/src/proj/.gemini/settings.json": selected("gemini-api-key")}, id: key},
		{name: "system settings beat the workspace's", env: env("GEMINI_API_KEY", gemKey), files: files{"/etc/gemini-cli/settings.json": selected("gemini-api-key"), "/home/u/src/proj/.gemini/settings.json": selected("oauth-personal")}, id: key},
		{name: "settings with comments", env: env("GEMINI_API_KEY", gemKey), files: files{user: "// mine\n{\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\",}}, /* x */ \"model\": {\"name\": \"gemini-2.5-flash\"}}"}, id: key, model: "gemini-2.5-flash", family: "flash"},
		{name: "GCA before Vertex", env: env("GOOGLE_GENAI_USE_GCA", "true", "GOOGLE_GENAI_USE_VERTEXAI", "true", "GOOGLE_CLOUD_ACCESS_TOKEN", "at"), id: "google/" + h("key", "at")},
		{name: "Vertex before key", env: env("GOOGLE_GENAI_USE_VERTEXAI", "true", "GOOGLE_CLOUD_PROJECT", "p", "GOOGLE_CLOUD_LOCATION", "us-central1", "GEMINI_API_KEY", gemKey), id: "vertex/" + h("google project", "p") + "/us-central1"},
		{name: "Vertex key", env: env("GOOGLE_API_KEY", "gk"), files: files{user: selected("vertex-ai")}, id: "vertex/" + h("key", "gk")},
		{name: "gateway before key", env: env("GOOGLE_GEMINI_BASE_URL", "http://gw:9/", "GEMINI_API_KEY", gemKey), id: "gw-9/" + h("key", gemKey)},
		{name: "key at a base URL", env: env("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9", "GEMINI_API_KEY", gemKey), files: files{user: selected("gemini-api-key")}, id: "127.0.0.1-9/" + h("key", gemKey)},
		{name: "keychain", files: files{user: selected("gemini-api-key")}, id: "google/" + h("gemini directory", "/home/u/.gemini"), how: "keychain"},
		{name: "id token", files: files{user: selected("oauth-personal"), "/home/u/.gemini/oauth_creds.json": `{"id_token":"` + jwt(`{"email":"a@example.com"}`) + `"}`}, id: login},
		{name: "login with a project", env: env("GOOGLE_CLOUD_PROJECT", "My Project"), files: files{user: selected("oauth-personal"), accounts: `{"active":"a@example.com"}`}, id: login + "/my-project"},
		{name: ".gemini/.env before .env", files: files{"/home/u/src/proj/.gemini/.env": "GEMINI_API_KEY=" + gemKey, "/home/u/src/proj/.env": "GEMINI_API_KEY=other"}, id: key},
		{name: "nearest directory first", files: files{"/home/u/src/.env": "export GEMINI_API_KEY='" + gemKey + "' # mine", "/home/u/.gemini/.env": "GEMINI_API_KEY=other"}, id: key},
		{name: "only one file is read", files: files{"/home/u/src/.env": "X=1", "/home/u/.env": "GEMINI_API_KEY=" + gemKey}, id: "google/default"},
		{name: "home at last", files: files{"/home/u/.env": "GEMINI_API_KEY=\"" + gemKey + "\""}, id: key},
		{name: "environment before .env", env: env("GEMINI_API_KEY", gemKey), files: files{"/home/u/src/proj/.env": "GEMINI_API_KEY=other"}, id: key},
		{name: "GEMINI_CLI_HOME", env: env("GEMINI_CLI_HOME", "/gh"), files: files{"/gh/.gemini/settings.json": selected("gemini-api-key"), "/gh/.gemini/.env": "GEMINI_API_KEY=" + gemKey}, id: key},
		{name: "model argument", args: "-m gemini-2.5-pro", env: env("GEMINI_MODEL", "x"), id: "google/default", model: "gemini-2.5-pro", family: "pro"},
		{name: "model environment", env: env("GEMINI_MODEL", "gemini-3.5-flash-lite"), files: files{user: `{"model":{"name":"gemini-2.5-pro"}}`}, id: "google/default", model: "gemini-3.5-flash-lite", family: "flash-lite"},
		{name: "model of .env", files: files{"/home/u/src/proj/.env": "GEMINI_MODEL=gemini-2.5-pro"}, id: "google/default", model: "gemini-2.5-pro", family: "pro"},
		{name: "auto is several", args: "-m auto", id: "google/default", model: "auto"},
		{name: "nothing", id: "google/default", label: "Gemini CLI, account unknown"},
		{name: "broken", files: files{user: `{"security":[1,2`, accounts: "x"}, id: "google/default"},
	})
}

// TestKeys: agents that take any provider's key. The model's name says which.
func TestKeys(t *testing.T) {
	env := func(kv ...string) map[string]string { return map[string]string(plus(nil, kv...)) }
	both := env("ANTHROPIC_API_KEY", antKey, "OPENAI_API_KEY", "sk-o")
	check(t, "opencode", []row{
		{name: "the first key", env: both, id: "anthropic/" + h("key", antKey), label: "OpenCode key " + h("key", antKey)[:4] + "…", how: "ANTHROPIC_API_KEY"},
		{name: "the model's", args: "run -m openai/gpt-5 hi", env: both, id: "openai/" + h("key", "sk-o"), model: "openai/gpt-5", family: "openai-gpt-5"},
		{name: "a login", files: files{"/home/u/.local/share/opencode/auth.json": "{}"}, id: "opencode/" + h("login", "/home/u", ".local/share/opencode/auth.json"), label: "OpenCode login, " + h("login", "/home/u", ".local/share/opencode/auth.json")[:4] + "…"},
		{name: "nothing", id: "opencode/default", label: "OpenCode, account unknown"},
	})
	check(t, "qwen", []row{
		{name: "at a base URL", env: env("OPENAI_API_KEY", "sk-o", "OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), id: "127.0.0.1-9/" + h("key", "sk-o")},
		{name: "its own URL", env: env("OPENAI_API_KEY", "sk-o", "OPENAI_BASE_URL", "https://api.openai.com/v1", "OPENAI_MODEL", "gpt-5"), id: "openai/" + h("key", "sk-o"), model: "gpt-5", family: "gpt-5"},
	})
	check(t, "copilot", []row{
		{name: "a provider of one's own", env: env("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:9/v1", "COPILOT_PROVIDER_API_KEY", "sk-o", "GH_TOKEN", "gho_x"), id: "127.0.0.1-9/" + h("key", "sk-o")},
		{name: "GitHub's", env: env("GH_TOKEN", "gho_x"), id: "github-copilot/" + h("key", "gho_x")},
	})
	// The same key in another agent is the same account.
	if a, b := identify(t, "aider", row{env: both}), identify(t, "claude", row{args: "-p hi", env: both}); a.Limiters[0].ID != b.Limiters[0].ID {
		t.Errorf("%q and %q wait apart", a.Limiters[0].ID, b.Limiters[0].ID)
	}
}

func TestGeneric(t *testing.T) {
	got := Identify(Launch{Profile: profile(t, "generic"), Command: "My Tool", Salt: salt})
	if got.Limiters[0].ID != "my-tool/default" || got.Limiters[1].ID != "my-tool@source" || got.Known {
		t.Errorf("got %+v", got)
	}
}

func TestOverrideAndAliases(t *testing.T) {
	l := Launch{Profile: profile(t, "claude"), Args: []string{"--model", "opus"}, Salt: salt, Override: "anthropic/team"}
	got := Identify(l)
	if got.Limiters[0].ID != "anthropic/team" || got.Limiters[1].ID != "anthropic@source" || got.Family != "opus" || !got.Known {
		t.Errorf("override: %+v", got)
	}
	l.Override = ""
	l.Aliases = map[string]string{"anthropic/default": "anthropic/a", "anthropic/a": "anthropic/b"}
	if id := Identify(l).Limiters[0].ID; id != "anthropic/b" {
		t.Errorf("alias: %s", id)
	}
	l.Aliases = map[string]string{"anthropic/default": "anthropic/a", "anthropic/a": "anthropic/default"}
	if id := Identify(l).Limiters[0].ID; CheckID(id) != nil {
		t.Errorf("a ring of aliases gives %s", id)
	}
	for _, bad := range []string{"", "work", "Anthropic/x", "a/b/c/d", "a/ b", "a/", "/b", "a/b#opus", "sk-ant-api03-x", strings.Repeat("a", 100) + "/" + strings.Repeat("b", 100)} {
		if err := CheckID(bad); err == nil {
			t.Errorf("%q passes for an ID", bad)
		} else if len(bad) > 5 && strings.Contains(err.Error(), bad) {
			t.Errorf("the error quotes %q", bad)
		}
	}
}

// TestHash: HMAC-SHA-256 under the salt; the value is openssl's:
// printf 'key\0abc\0' | openssl dgst -sha256 -hmac salt
func TestHash(t *testing.T) {
	l := Launch{Salt: []byte("salt")}
	if got := l.hash("key", "abc"); got != "d226cd42ec46" {
		t.Errorf("hash %q", got)
	}
	if l.hash("ab", "c") == l.hash("a", "bc") {
		t.Error("parts run together")
	}
	other := Launch{Salt: []byte("salt2")}
	if l.key("k") == other.key("k") {
		t.Error("the salt does nothing")
	}
	if l.key("k\n") != l.key("k") {
		t.Error("white space around a key makes another account")
	}
}

// TestNoSecrets searches everything that comes out for every run of 8 bytes of
// every secret that went in.
func TestNoSecrets(t *testing.T) {
	secret := func(n int) string {
		return fmt.Sprintf("sEcReT%02d-%s", n, strings.Repeat(fmt.Sprintf("Zq%02dxW", n), 4))
	}
	n := 0
	next := func() string { n++; return secret(n) }
	envNames := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "MOCK", "GEMINI_API_KEY",
		"GOOGLE_API_KEY", "GOOGLE_CLOUD_ACCESS_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "ANTHROPIC_FOUNDRY_API_KEY"}
	gemini := files{"/home/u/.gemini/.env": "GEMINI_API_KEY=" + next() + "\nGOOGLE_API_KEY=" + next(),
		"/home/u/.gemini/oauth_creds.json":     `{"id_token":"` + jwt(`{"email":"`+next()+`@x"}`) + `","refresh_token":"` + next() + `"}`,
		"/home/u/.gemini/google_accounts.json": `{"active":"` + next() + `@x"}`}
	codex := files{"/home/u/.codex/auth.json": `{"OPENAI_API_KEY":"` + next() + `","tokens":{"id_token":"` + jwt(`{"https://api.openai.com/auth":{"chatgpt_plan_type":"`+next()+`"}}`) + `","account_id":"` + next() + `"}}`,
		"/home/u/.codex/config.toml": "model_provider = \"m\"\n[model_providers.m]\nbase_url=\"https://u:" + next() + "@host/" + next() + "\"\nexperimental_bearer_token = \"" + next() + "\"\n"}
	claude := plus(claudeLoggedIn, "/home/u/.claude/settings.json", `{"apiKeyHelper":"echo `+next()+`"}`,
		"/home/u/.claude/.credentials.json", `{"claudeAiOauth":{"accessToken":"`+next()+`","subscriptionType":"`+next()+`"}}`,
		"/home/u/.claude.json", `{"oauthAccount":{"accountUuid":"`+next()+`","organizationUuid":"`+next()+`","organizationType":"claude_`+next()+`"}}`)
	login := plus(claude)
	delete(login, "/home/u/.claude/settings.json")
	chat := files{"/home/u/.codex/auth.json": strings.Replace(codex["/home/u/.codex/auth.json"], "{", `{"auth_mode":"chatgpt",`, 1)}
	google := plus(gemini, "/home/u/.gemini/settings.json", `{"security":{"auth":{"selectedType":"oauth-personal"}}}`)
	switches := []map[string]string{{}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, {"CLAUDE_CODE_USE_FOUNDRY": "1"}, {"GOOGLE_GENAI_USE_GCA": "true"},
		{"GOOGLE_GENAI_USE_VERTEXAI": "true"}, {"ANTHROPIC_BASE_URL": "https://u:" + next() + "@h.example/" + next(), "GOOGLE_GEMINI_BASE_URL": "http://" + next() + "@g/" + next()},
		{"ANTHROPIC_BASE_URL": "::" + next()}}
	var out strings.Builder
	for _, agent := range []string{"claude", "codex", "gemini", "generic"} {
		for _, f := range []files{nil, gemini, google, codex, chat, claude, login} {
			for _, sw := range switches {
				for only := -1; only < len(envNames); only++ {
					env := plus(files(sw))
					for i, name := range envNames {
						if only == -1 || only == i {
							env[name] = secret(60 + i)
						}
					}
					for _, args := range []string{"", "exec hi", "-p hi", "--oss"} {
						fmt.Fprintf(&out, "%+v\n", identify(t, agent, row{args: args, env: env, files: f}))
					}
				}
			}
		}
	}
	text := strings.ToLower(out.String())
	for i := range 99 {
		s := strings.ToLower(secret(i))
		for at := 0; at+8 <= len(s); at++ {
			if strings.Contains(text, s[at:at+8]) {
				t.Fatalf("bytes %d to %d of secret %d came out", at, at+8, i)
			}
		}
	}
	if !strings.Contains(text, "anthropic") || len(text) < 10000 {
		t.Fatal("nothing was searched")
	}
}
