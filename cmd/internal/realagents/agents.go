package realagents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Agent is the name of a CLI as it is typed.
type Agent string

// The agents pinned in testdata/agents.
const (
	Claude   Agent = "claude"
	Codex    Agent = "codex"
	Gemini   Agent = "gemini"
	OpenCode Agent = "opencode"
	Qwen     Agent = "qwen"
)

// Agents lists them all.
func Agents() []Agent { return []Agent{Claude, Codex, Gemini, OpenCode, Qwen} }

// Model is the one model that an agent is started with: its side calls aside,
// one prompt is then one request.
func (a Agent) Model() string {
	switch a {
	case Codex, Qwen:
		return "gpt-5"
	case OpenCode:
		return "fake/gpt-5"
	case Gemini:
		return "gemini-2.5-pro"
	}
	return "" // Claude Code's default
}

// InstallDir says where the pinned agents are installed, by asking the install
// script at repo/testdata/agents, and an error that names the remedy where they
// are not.
func InstallDir(repo string) (string, error) {
	script := filepath.Join(repo, "testdata", "agents", "install")
	out, err := exec.Command(script, "--print").Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return "", fmt.Errorf("the pinned agents are not installed: run testdata/agents/install (or make agents)")
		}
		return "", fmt.Errorf("where the agents are installed: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Setup is one account's private place: what an agent needs to start offline.
type Setup struct {
	Agent   Agent
	Home    string   // private HOME with the agent's settings
	Project string   // neutral working directory
	Env     []string // the whole environment
	Args    []string // arguments that come before the caller's
}

// Account describes whom a Setup logs in as. Keys are dummies.
type Account struct {
	Key string // API key or token; distinct keys are distinct accounts
	// Plan logs in as a subscription (Claude only) instead of with a key.
	Plan bool
}

// DummyKey makes a key in the agent's own form that ends in name, so that tests
// can have as many accounts as they like.
func DummyKey(a Agent, name string) string {
	pad := strings.Repeat("0", max(0, 40-len(name))) + name
	switch a {
	case Claude:
		return "sk-ant-api03-" + pad
	case Codex, OpenCode, Qwen:
		return "sk-fake-" + pad
	}
	return "AIzaFake" + pad
}

// Prepare makes dir/home and dir/project for an agent whose provider listens at
// url, and the environment. zone is the TZ that the agent sees ("UTC").
// The settings are those of shared notes on running the CLIs offline: without
// them they ask about trust, updates, telemetry and logins at start.
func Prepare(a Agent, dir, bin, url, zone string, who Account) (Setup, error) {
	s := Setup{Agent: a, Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project")}
	for _, d := range []string{s.Home, s.Project, filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return Setup{}, err
		}
	}
	s.Env = []string{
		"HOME=" + s.Home, "PATH=" + filepath.Join(bin, "bin") + ":" + os.Getenv("PATH"), "TZ=" + zone,
		"TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "SHELL=/bin/sh", "USER=tester",
		"TMPDIR=" + filepath.Join(dir, "tmp"),
	}
	var err error
	switch a {
	case Claude:
		err = s.claude(url, who)
	case Codex:
		err = s.codex(url, who)
	case Gemini:
		err = s.gemini(url, who)
	case OpenCode:
		err = s.openCode(url, who)
	case Qwen:
		err = s.qwen(url, who)
	default:
		err = fmt.Errorf("unknown agent %q", a)
	}
	return s, err
}

func (s *Setup) claude(url string, who Account) error {
	dir := filepath.Join(s.Home, ".claude")
	s.Env = append(s.Env, "CLAUDE_CONFIG_DIR="+dir, "ANTHROPIC_BASE_URL="+url, "DISABLE_TELEMETRY=1",
		"DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	state := map[string]any{
		"numStartups": 10, "theme": "dark", "hasCompletedOnboarding": true, "lastOnboardingVersion": "2.1.332",
		"lastReleaseNotesSeen": "99.0.0", "bypassPermissionsModeAccepted": true,
		"projects": map[string]any{s.Project: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	}
	if who.Plan {
		state["oauthAccount"] = map[string]any{
			"accountUuid": uuidFrom(who.Key, 1), "organizationUuid": uuidFrom(who.Key, 2), "emailAddress": "tester@example.com",
			"organizationType": "claude_max", "billingType": "stripe_subscription", "organizationRateLimitTier": "default_claude_max_5x",
		}
		login := map[string]any{"claudeAiOauth": map[string]any{
			"accessToken": who.Key, "refreshToken": "sk-ant-ort01-dummy", "expiresAt": int64(4102444800000),
			"scopes": []string{"user:inference", "user:profile", "user:sessions:claude_code"}, "subscriptionType": "max", "rateLimitTier": "default_claude_max_5x",
		}}
		if err := writeJSON(filepath.Join(dir, ".credentials.json"), login); err != nil {
			return err
		}
	} else {
		s.Env = append(s.Env, "ANTHROPIC_API_KEY="+who.Key)
		state["customApiKeyResponses"] = map[string]any{"approved": []string{who.Key[max(0, len(who.Key)-20):]}, "rejected": []string{}}
	}
	return writeJSON(filepath.Join(dir, ".claude.json"), state)
}

// uuidFrom makes a stable id of an account's token.
func uuidFrom(key string, n int) string {
	sum := 0
	for _, b := range []byte(key) {
		sum = (sum*31 + int(b)) & 0xffffffffffff
	}
	return fmt.Sprintf("00000000-0000-4000-800%d-%012x", n, sum)
}

func (s *Setup) codex(url string, who Account) error {
	dir := filepath.Join(s.Home, ".codex")
	s.Env = append(s.Env, "CODEX_HOME="+dir, "FAKE_API_KEY="+who.Key)
	s.Args = []string{"-m", s.Agent.Model()}
	config := fmt.Sprintf(`check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_provider = "fake"

[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
env_key = "FAKE_API_KEY"

[projects."%s"]
trust_level = "trusted"

[analytics]
enabled = false

[notice]
hide_full_access_warning = true
hide_rate_limit_model_nudge = true

[features]
enable_request_compression = false
`, url, s.Project)
	return writeFile(filepath.Join(dir, "config.toml"), []byte(config))
}

func (s *Setup) gemini(url string, who Account) error {
	s.Env = append(s.Env, "GEMINI_API_KEY="+who.Key, "GOOGLE_GEMINI_BASE_URL="+url, "NO_BROWSER=true")
	s.Args = []string{"-m", s.Agent.Model()}
	return writeJSON(filepath.Join(s.Home, ".gemini", "settings.json"), map[string]any{
		"security":  map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}, "folderTrust": map[string]any{"enabled": false}},
		"general":   map[string]any{"enableAutoUpdate": false, "disableUpdateNag": true},
		"privacy":   map[string]any{"usageStatisticsEnabled": false},
		"telemetry": map[string]any{"enabled": false},
		"ui":        map[string]any{"hideTips": true},
	})
}

// openCode uses the variables of its --help and of its source for staying
// offline; a title for the session is one more request (side, to the provider).
func (s *Setup) openCode(url string, who Account) error {
	s.Env = append(s.Env, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENAI_API_KEY="+who.Key)
	return writeJSON(filepath.Join(s.Home, ".config", "opencode", "opencode.json"), map[string]any{
		"autoupdate": false, "share": "disabled", "model": s.Agent.Model(), "small_model": s.Agent.Model(),
		"provider": map[string]any{"fake": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "Fake",
			"options": map[string]any{"baseURL": url + "/v1", "apiKey": "{env:OPENAI_API_KEY}"},
			"models":  map[string]any{"gpt-5": map[string]any{"name": "GPT-5"}},
		}},
	})
}

func (s *Setup) qwen(url string, who Account) error {
	s.Env = append(s.Env, "OPENAI_API_KEY="+who.Key, "OPENAI_BASE_URL="+url+"/v1", "OPENAI_MODEL="+s.Agent.Model(), "NO_BROWSER=true")
	return writeJSON(filepath.Join(s.Home, ".qwen", "settings.json"), map[string]any{
		"security":  map[string]any{"auth": map[string]any{"selectedType": "openai"}, "folderTrust": map[string]any{"enabled": false}},
		"model":     map[string]any{"name": s.Agent.Model()},
		"general":   map[string]any{"enableAutoUpdate": false, "disableUpdateNag": true, "disableAutoUpdate": true},
		"privacy":   map[string]any{"usageStatisticsEnabled": false},
		"telemetry": map[string]any{"enabled": false},
		"ui":        map[string]any{"hideTips": true},
	})
}

func writeJSON(path string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return writeFile(path, b.Bytes())
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
