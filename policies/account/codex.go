package account

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Codex 0.171.0, measured on Linux by the headers that a loopback provider saw.

// codexAuth is auth.json, as far as it is read.
type codexAuth struct {
	AuthMode     string `json:"auth_mode"`
	OpenAIAPIKey string `json:"OPENAI_API_KEY"`
	Tokens       *struct {
		IDToken   string `json:"id_token"`
		AccountID string `json:"account_id"`
	} `json:"tokens"`
}

// codexClaims is the part of the id token that names the account.
type codexClaims struct {
	Auth struct {
		AccountID string `json:"chatgpt_account_id"`
		PlanType  string `json:"chatgpt_plan_type"`
	} `json:"https://api.openai.com/auth"`
}

// openAIHosts are the hosts of the built-in provider.
var openAIHosts = []string{"api.openai.com", "chatgpt.com", ".openai.com"}

func (l *Launch) codex() who {
	dir := l.dir("CODEX_HOME", ".codex")
	conf := l.codexConfig(dir)
	w := l.codexAccount(dir, conf)
	w.model = text(conf["model"])
	return w
}

func (l *Launch) codexAccount(dir string, conf map[string]any) who {
	if local := l.codexLocal(conf); local != "" {
		return who{provider: slug(local), account: "local", label: "local " + slug(local), how: "--oss"}
	}
	id := text(conf["model_provider"])
	if id == "" || id == "openai" {
		// Measured: OPENAI_BASE_URL is ignored, openai_base_url is used.
		return l.at(l.codexOpenAI(dir, conf), text(conf["openai_base_url"]), openAIHosts...)
	}
	return l.codexCustom(dir, id, conf)
}

// codexLocal is the local provider of --oss, "" without it.
func (l *Launch) codexLocal(conf map[string]any) string {
	if !l.Profile.Given(l.Args, "--oss") {
		return ""
	}
	if v := l.Profile.Values(l.Args, "--local-provider"); len(v) > 0 {
		return v[len(v)-1]
	}
	if v := text(conf["oss_provider"]); v != "" {
		return v
	}
	return "oss"
}

// codexOpenAI is the built-in provider. Measured: CODEX_API_KEY beats auth.json
// in exec, OPENAI_API_KEY in the environment is ignored.
func (l *Launch) codexOpenAI(dir string, conf map[string]any) who {
	if k := l.Env("CODEX_API_KEY"); k != "" && l.Profile.Classify(l.Args).Headless {
		return who{provider: "openai", account: l.key(k), label: "OpenAI key", how: "CODEX_API_KEY", secret: true}
	}
	return l.codexStored(dir, conf)
}

// codexStored is what `codex login` left in auth.json. In a keyring it cannot
// be read without asking: the directory stands for it.
func (l *Launch) codexStored(dir string, conf map[string]any) who {
	w := who{provider: "openai"}
	var auth codexAuth
	found := l.readJSON(path.Join(dir, "auth.json"), &auth)
	chatgpt := auth.AuthMode == "chatgpt" || auth.AuthMode == "" && auth.OpenAIAPIKey == ""
	switch {
	case found && !chatgpt && auth.OpenAIAPIKey != "":
		w.account, w.label, w.how, w.secret = l.key(auth.OpenAIAPIKey), "OpenAI key", "auth.json", true
	case found && auth.Tokens != nil:
		var c codexClaims
		claims(auth.Tokens.IDToken, &c)
		id := auth.Tokens.AccountID
		if id == "" {
			id = c.Auth.AccountID
		}
		if id == "" {
			break
		}
		w.account, w.label, w.how = l.hash("chatgpt", id), "ChatGPT", "auth.json"
		if p := planName(c.Auth.PlanType); p != "" {
			w.label += " " + p
		}
	case text(conf["cli_auth_credentials_store"]) == "keyring" || text(conf["cli_auth_credentials_store"]) == "auto":
		w.account, w.label, w.how = l.hash("codex directory", dir), "Codex login", "keyring"
	}
	return w
}

// codexCustom is a provider of the user's own. Its key comes from env_key only,
// or from auth.json with requires_openai_auth.
func (l *Launch) codexCustom(dir, id string, conf map[string]any) who {
	all, _ := conf["model_providers"].(map[string]any)
	p, _ := all[id].(map[string]any)
	w := who{provider: slug(id), label: "key", secret: true}
	if w.provider == "" {
		w.provider = "custom"
	}
	headers, _ := p["env_http_headers"].(map[string]any)
	switch auth, _ := p["requires_openai_auth"].(bool); {
	case auth:
		w = l.codexStored(dir, conf)
	case text(p["env_key"]) != "":
		if v := l.Env(text(p["env_key"])); v != "" {
			w.account, w.how = l.key(v), "env_key of the model provider"
		}
	case text(p["experimental_bearer_token"]) != "":
		w.account, w.how = l.key(text(p["experimental_bearer_token"])), "bearer token of the model provider"
	case len(headers) > 0:
		parts := []string{"headers"}
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			parts = append(parts, name, l.Env(text(headers[name])))
		}
		w.account, w.how = l.hash(parts...), "headers of the model provider"
	default:
		w.account, w.how, w.secret, w.label = "default", "model provider without a key", false, "no key"
	}
	base := text(p["base_url"])
	if base == "" {
		w.label += " at " + w.provider
		return w
	}
	return l.at(w, base, openAIHosts...)
}

// codexConfig merges what decides model and provider, later over earlier:
// config.toml, the profile (its own file, or the older [profiles] table), the
// project's model, and -c; -m comes after all of them.
func (l *Launch) codexConfig(dir string) map[string]any {
	conf := map[string]any{}
	if !l.Profile.Given(l.Args, "--ignore-user-config") {
		merge(conf, decodeTOML(l.read(path.Join(dir, "config.toml"))))
	}
	name := text(conf["profile"])
	if v := l.Profile.Values(l.Args, "-p", "--profile"); len(v) > 0 {
		name = v[len(v)-1]
	}
	if name != "" && !strings.ContainsAny(name, "/\\") {
		if all, ok := conf["profiles"].(map[string]any); ok {
			if p, ok := all[name].(map[string]any); ok {
				merge(conf, p)
			}
		}
		merge(conf, decodeTOML(l.read(path.Join(dir, name+".config.toml"))))
	}
	if m := l.codexProjectModel(dir, conf); m != "" {
		conf["model"] = m
	}
	for _, kv := range l.Profile.Values(l.Args, "-c", "--config") {
		if key, value, ok := strings.Cut(kv, "="); ok {
			set(conf, strings.Split(strings.TrimSpace(key), "."), tomlValue(value))
		}
	}
	return conf
}

// codexProjectModel is the model of .codex/config.toml in a trusted project.
// Measured: it beats config.toml's and the profile's model and yields to -c;
// model_provider and model_providers there are ignored.
func (l *Launch) codexProjectModel(dir string, conf map[string]any) (model string) {
	cwd := path.Clean(l.Cwd)
	if v := l.Profile.Values(l.Args, "-C", "--cd"); len(v) > 0 {
		cwd = l.abs(v[len(v)-1])
	}
	projects, _ := conf["projects"].(map[string]any)
	for root, v := range projects {
		p, _ := v.(map[string]any)
		if text(p["trust_level"]) != "trusted" || cwd != root && !strings.HasPrefix(cwd, strings.TrimSuffix(root, "/")+"/") {
			continue
		}
		for d := cwd; len(d) >= len(root) && model == ""; d = path.Dir(d) {
			if sub := path.Join(d, ".codex"); sub != dir {
				model = text(decodeTOML(l.read(path.Join(sub, "config.toml")))["model"])
			}
			if d == "/" || d == "." {
				break
			}
		}
	}
	return model
}

// decodeTOML decodes a file; what is broken, or made to exhaust, yields nothing.
func decodeTOML(b []byte) map[string]any {
	m := map[string]any{}
	if !plainTOML(b) {
		return nil
	}
	if _, err := toml.Decode(string(b), &m); err != nil {
		return nil
	}
	return m
}

// tomlValue reads the value of -c as Codex does: TOML, else the text itself.
func tomlValue(v string) any {
	if m := decodeTOML([]byte("v = " + v)); m != nil && len(m) == 1 {
		return m["v"]
	}
	return strings.TrimSpace(v)
}

// merge lays src over dst, tables into tables.
func merge(dst, src map[string]any) {
	for k, v := range src {
		if sub, ok := v.(map[string]any); ok {
			if old, ok := dst[k].(map[string]any); ok {
				merge(old, sub)
				continue
			}
		}
		dst[k] = v
	}
}

// set puts a value at a dotted path, making tables on the way.
func set(m map[string]any, keys []string, v any) {
	for _, k := range keys[:len(keys)-1] {
		sub, ok := m[k].(map[string]any)
		if !ok {
			sub = map[string]any{}
			m[k] = sub
		}
		m = sub
	}
	last := keys[len(keys)-1]
	if src, ok := v.(map[string]any); ok {
		if old, ok := m[last].(map[string]any); ok {
			merge(old, src)
			return
		}
	}
	m[last] = v
}
