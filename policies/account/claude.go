package account

import (
	"fmt"
	"path"
	"strings"
)

// Claude Code 2.1.332, measured on Linux: `claude auth status --json` and the
// headers of `claude -p` on a loopback provider, for every pair below.

// claudeSettings is what a settings file says about account and model.
type claudeSettings struct {
	Env          map[string]any `json:"env"` // values of any type, read as text
	APIKeyHelper string         `json:"apiKeyHelper"`
	Model        string         `json:"model"`
}

// claudeState is .claude.json, as far as it is read.
type claudeState struct {
	OAuthAccount *struct {
		AccountUUID      string `json:"accountUuid"`
		OrganizationUUID string `json:"organizationUuid"`
		OrganizationType string `json:"organizationType"`
	} `json:"oauthAccount"`
	CustomAPIKeyResponses struct {
		Approved []string `json:"approved"`
	} `json:"customApiKeyResponses"`
}

// claudeLogin is .credentials.json, as far as it is read.
type claudeLogin struct {
	ClaudeAIOAuth *struct {
		AccessToken      string `json:"accessToken"`
		SubscriptionType string `json:"subscriptionType"`
	} `json:"claudeAiOauth"`
}

// thirdParty are the providers other than Anthropic's own, in their order of
// precedence (measured: bedrock before vertex, foundry before vertex; the rest
// read in the bundle).
var thirdParty = []struct {
	use      string   // switch
	provider string   // slug
	label    string   // for people
	base     string   // variable of its base URL
	account  []string // variables that name the account, first one set counts
	region   []string // variables that name the region
}{
	{"CLAUDE_CODE_USE_GATEWAY", "claude-gateway", "Claude gateway", "ANTHROPIC_BASE_URL", []string{"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"}, nil},
	{"CLAUDE_CODE_USE_BEDROCK", "bedrock", "Bedrock", "ANTHROPIC_BEDROCK_BASE_URL", awsAccount, awsRegion},
	{"CLAUDE_CODE_USE_FOUNDRY", "foundry", "Foundry", "ANTHROPIC_FOUNDRY_BASE_URL", []string{"ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_AUTH_TOKEN"}, nil},
	{"CLAUDE_CODE_USE_ANTHROPIC_AWS", "anthropic-aws", "Claude on AWS", "ANTHROPIC_AWS_BASE_URL", append([]string{"ANTHROPIC_AWS_WORKSPACE_ID", "ANTHROPIC_AWS_API_KEY"}, awsAccount...), awsRegion},
	{"CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "anthropic-google", "Claude on Google Cloud", "ANTHROPIC_GOOGLE_CLOUD_BASE_URL", []string{"ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID", "ANTHROPIC_GOOGLE_CLOUD_PROJECT"}, []string{"ANTHROPIC_GOOGLE_CLOUD_LOCATION"}},
	{"CLAUDE_CODE_USE_MANTLE", "mantle", "Mantle", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", awsAccount, awsRegion},
	{"CLAUDE_CODE_USE_VERTEX", "vertex-claude", "Claude on Vertex", "ANTHROPIC_VERTEX_BASE_URL", []string{"ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"}, []string{"CLOUD_ML_REGION"}},
}

var (
	// With a profile set the AWS SDK does not look at the keys.
	awsAccount = []string{"AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"}
	awsRegion  = []string{"AWS_REGION", "AWS_DEFAULT_REGION"}
)

func (l Launch) claude() who {
	dir := l.dir("CLAUDE_CONFIG_DIR", ".claude")
	set := l.claudeSettings(dir)
	outer := l.Env
	// Measured: env of the settings wins over the process's own environment.
	l.Env = func(name string) string {
		if v, ok := set.Env[name]; ok {
			return text(v)
		}
		return outer(name)
	}
	w := l.claudeThird()
	if w.provider == "" {
		w = l.at(l.claudeFirst(dir, set), l.Env("ANTHROPIC_BASE_URL"), "api.anthropic.com", ".anthropic.com")
	}
	w.model = l.Env("ANTHROPIC_MODEL")
	if w.model == "" {
		w.model = set.Model
	}
	return w
}

// isSecret tells the variables that hold a key or a token from those that name
// something.
func isSecret(name string) bool {
	return strings.Contains(name, "_KEY") || strings.Contains(name, "TOKEN")
}

func (l *Launch) claudeThird() who {
	for _, t := range thirdParty {
		if !truthy(l.Env(t.use)) {
			continue
		}
		w := who{provider: t.provider, label: t.label, how: t.use, account: "default"}
		for _, name := range t.account {
			if v := l.Env(name); v != "" {
				w.account, w.how = l.hash(t.provider, v), name
				if isSecret(name) {
					w.account = l.key(v) // as any other agent on that key would have it
				}
				break
			}
		}
		for _, name := range t.region {
			if v := l.Env(name); v != "" {
				w.project = slug(v)
				break
			}
		}
		switch t.provider {
		case "bedrock", "anthropic-aws", "mantle":
			w = l.awsAccount(w, l.Env(t.base) == "")
		case "vertex-claude", "anthropic-google":
			if p, how := l.googleProject(); w.account == "default" && p != "" {
				w.account, w.how = l.hash(t.provider, p), how
			}
		}
		return l.at(w, l.Env(t.base), ".amazonaws.com", ".googleapis.com", ".azure.com", ".anthropic.com")
	}
	return who{}
}

// claudeFirst is Anthropic's own API. Measured, who pays: ANTHROPIC_AUTH_TOKEN
// before apiKeyHelper before ANTHROPIC_API_KEY before CLAUDE_CODE_OAUTH_TOKEN
// before the stored login. --bare knows no OAuth.
func (l *Launch) claudeFirst(dir string, set claudeSettings) who {
	w := who{provider: "anthropic", secret: true}
	key := l.Env("ANTHROPIC_API_KEY")
	bare := l.Profile.Given(l.Args, "--bare") || truthy(l.Env("CLAUDE_CODE_SIMPLE"))
	var state claudeState
	l.readJSON(l.claudeStateFile(dir), &state)
	login := l.claudeStored(dir, &state)
	switch {
	case l.Env("ANTHROPIC_AUTH_TOKEN") != "":
		w.account, w.label, w.how = l.key(l.Env("ANTHROPIC_AUTH_TOKEN")), "Anthropic token", "ANTHROPIC_AUTH_TOKEN"
	case set.APIKeyHelper != "":
		// The helper is never run: its command line stands for what it prints.
		w.account, w.label, w.how = l.hash("helper", set.APIKeyHelper), "Anthropic key helper", "apiKeyHelper"
	case key != "" && (bare || login.account == "" || l.Headless || state.approves(key)):
		w.account, w.label, w.how = l.key(key), "Anthropic key", "ANTHROPIC_API_KEY"
	case !bare && l.Env("CLAUDE_CODE_OAUTH_TOKEN") != "":
		w.account, w.label, w.how = l.key(l.Env("CLAUDE_CODE_OAUTH_TOKEN")), "Claude token", "CLAUDE_CODE_OAUTH_TOKEN"
	case !bare:
		return login
	}
	return w
}

// approves reports whether the key was approved on Claude's screen: the file
// keeps its last 20 characters.
func (s *claudeState) approves(key string) bool {
	tail := key[max(0, len(key)-20):]
	for _, a := range s.CustomAPIKeyResponses.Approved {
		if a == tail {
			return true
		}
	}
	return false
}

func (l *Launch) claudeStateFile(dir string) string {
	if l.Env("CLAUDE_CONFIG_DIR") != "" {
		return path.Join(dir, ".claude.json")
	}
	return path.Join(l.Home, ".claude.json")
}

// claudeStored is the claude.ai login. Its limits are the account's in its
// organisation. Tokens change when they are refreshed, so without the account's
// name the directory that holds the login stands for it.
func (l *Launch) claudeStored(dir string, state *claudeState) who {
	var cred claudeLogin
	l.readJSON(path.Join(dir, ".credentials.json"), &cred)
	w := who{provider: "anthropic", label: "Claude"}
	plan := ""
	if cred.ClaudeAIOAuth != nil {
		plan = cred.ClaudeAIOAuth.SubscriptionType
	}
	if a := state.OAuthAccount; a != nil && a.AccountUUID+a.OrganizationUUID != "" {
		if plan == "" {
			plan = strings.TrimPrefix(a.OrganizationType, "claude_")
		}
		w.account, w.how = l.hash("claude.ai", a.OrganizationUUID, a.AccountUUID), "claude.ai login"
	} else if cred.ClaudeAIOAuth != nil && cred.ClaudeAIOAuth.AccessToken != "" {
		w.account, w.how = l.hash("claude.ai directory", dir), "claude.ai login"
	}
	if p := planName(plan); p != "" {
		w.label += " " + p
	}
	return w
}

// planName is a plan's name for people. Only names that are known are shown:
// the word comes from a file that also holds secrets.
func planName(plan string) string {
	switch strings.ToLower(plan) {
	case "free", "pro", "max", "team", "enterprise", "plus", "business", "edu", "go", "prolite":
		return strings.ToUpper(plan[:1]) + strings.ToLower(plan[1:])
	}
	return ""
}

// claudeSettings merges the settings files, later ones over earlier ones: user,
// project, local, --settings, managed (documented order; measured: project env
// and --settings env apply). --bare and --restricted read less; the identity
// then is what --settings says.
func (l *Launch) claudeSettings(dir string) claudeSettings {
	merged := claudeSettings{Env: map[string]any{}}
	var sources [][]byte
	if !l.Profile.Given(l.Args, "--bare") && !l.Profile.Given(l.Args, "--restricted") {
		sources = append(sources,
			l.read(path.Join(dir, "settings.json")),
			l.read(path.Join(l.Cwd, ".claude", "settings.json")),
			l.read(path.Join(l.Cwd, ".claude", "settings.local.json")))
	}
	for _, v := range l.Profile.Values(l.Args, "--settings") {
		if strings.HasPrefix(strings.TrimSpace(v), "{") {
			sources = append(sources, []byte(v))
		} else {
			sources = append(sources, l.read(l.abs(v)))
		}
	}
	sources = append(sources,
		l.read("/Library/Application Support/ClaudeCode/managed-settings.json"),
		l.read("/etc/claude-code/managed-settings.json"))
	for _, b := range sources {
		var s claudeSettings
		if !decodeJSON(b, &s) {
			continue
		}
		for k, v := range s.Env {
			merged.Env[k] = text(v)
		}
		if s.APIKeyHelper != "" {
			merged.APIKeyHelper = s.APIKeyHelper
		}
		if s.Model != "" {
			merged.Model = s.Model
		}
	}
	return merged
}

// text is a value of a settings file as an environment variable would hold it.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool, float64, int64:
		return fmt.Sprint(v)
	}
	return ""
}
