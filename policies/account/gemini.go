package account

import (
	"path"
	"strings"
)

// Gemini CLI 0.61.0, read in its bundle (loadEnvironment, getAuthTypeFromEnv,
// createContentGeneratorConfig) and measured on a loopback provider.

// geminiSettings is a settings file, as far as it is read.
type geminiSettings struct {
	Security struct {
		Auth struct {
			SelectedType string `json:"selectedType"`
		} `json:"auth"`
	} `json:"security"`
	SelectedAuthType string `json:"selectedAuthType"` // before the settings were grouped
	Model            struct {
		Name string `json:"name"`
	} `json:"model"`
}

// googleHosts are the hosts that are Google's own.
var googleHosts = []string{".googleapis.com"}

func (l Launch) gemini() who {
	home := l.Home
	if h := l.Env("GEMINI_CLI_HOME"); h != "" {
		home = l.abs(h)
	}
	file := l.geminiDotenv(home)
	outer := l.Env
	// A .env never overrides what the environment has.
	l.Env = func(name string) string {
		if v := outer(name); v != "" {
			return v
		}
		return file[name]
	}
	auth, model := l.geminiSettings(home)
	if auth == "" {
		auth = l.geminiAuth()
	}
	w := l.geminiAccount(auth, path.Join(home, ".gemini"))
	w.model = l.Env("GEMINI_MODEL")
	if w.model == "" {
		w.model = model
	}
	return w
}

// geminiAuth is the kind of login that the environment alone selects, in the
// order of the bundle's getAuthTypeFromEnv.
func (l *Launch) geminiAuth() string {
	switch {
	case l.Env("GOOGLE_GENAI_USE_GCA") == "true":
		return "oauth-personal"
	case l.Env("GOOGLE_GENAI_USE_VERTEXAI") == "true":
		return "vertex-ai"
	case l.Env("GOOGLE_GEMINI_BASE_URL") != "":
		return "gateway"
	case l.Env("GEMINI_API_KEY") != "":
		return "gemini-api-key"
	case l.Env("CLOUD_SHELL") == "true" || l.Env("GEMINI_CLI_USE_COMPUTE_ADC") == "true":
		return "compute-default-credentials"
	}
	return ""
}

func (l *Launch) geminiAccount(auth, dir string) who {
	switch auth {
	case "gemini-api-key", "gateway":
		w := who{provider: "google", label: "Gemini key", secret: true}
		if k := l.Env("GEMINI_API_KEY"); k != "" {
			w.account, w.how = l.key(k), "GEMINI_API_KEY"
		} else if auth == "gateway" {
			w.account, w.how, w.label, w.secret = "default", "GOOGLE_GEMINI_BASE_URL", "Gemini gateway", false
		} else {
			// In the keychain, one for the directory.
			w.account, w.how = l.hash("gemini directory", dir), "keychain"
		}
		return l.at(w, l.Env("GOOGLE_GEMINI_BASE_URL"), googleHosts...)
	case "vertex-ai":
		return l.geminiVertex()
	case "oauth-personal":
		return l.geminiLogin(dir)
	case "compute-default-credentials", "cloud-shell":
		w := who{provider: "google", label: "Google Cloud", account: "adc", how: auth}
		if p := l.adcProject(); p != "" {
			w.account = l.hash("google project", p)
		}
		return w
	}
	return who{provider: "google"}
}

// geminiVertex: the key, or the project that default credentials bill.
func (l *Launch) geminiVertex() who {
	w := who{provider: "vertex", label: "Vertex", how: "vertex-ai", account: "adc"}
	if k := l.Env("GOOGLE_API_KEY"); k != "" {
		w.account, w.label, w.how, w.secret = l.key(k), "Vertex key", "GOOGLE_API_KEY", true
	} else if p := l.geminiProject(); p != "" {
		w.account, w.label, w.how = l.hash("google project", p), "Vertex project", "GOOGLE_CLOUD_PROJECT"
	}
	w.project = slug(l.Env("GOOGLE_CLOUD_LOCATION"))
	return l.at(w, l.Env("GOOGLE_VERTEX_BASE_URL"), googleHosts...)
}

func (l *Launch) geminiProject() string {
	if p := l.Env("GOOGLE_CLOUD_PROJECT"); p != "" {
		return p
	}
	return l.Env("GOOGLE_CLOUD_PROJECT_ID")
}

// adcProject is the project of the machine's own credentials.
func (l *Launch) adcProject() string {
	if p := l.geminiProject(); p != "" {
		return p
	}
	p, _ := l.googleProject()
	return p
}

// geminiLogin is "Login with Google": a token given for this run, the active
// account of google_accounts.json, or the id token of oauth_creds.json.
func (l *Launch) geminiLogin(dir string) who {
	w := who{provider: "google", label: "Google login"}
	var accounts struct {
		Active string `json:"active"`
	}
	var creds struct {
		IDToken string `json:"id_token"`
	}
	var c struct {
		Email string `json:"email"`
	}
	token := l.Env("GOOGLE_CLOUD_ACCESS_TOKEN")
	switch {
	case token != "" && l.Env("GOOGLE_GENAI_USE_GCA") == "true":
		w.account, w.how = l.key(token), "GOOGLE_CLOUD_ACCESS_TOKEN"
	case l.readJSON(path.Join(dir, "google_accounts.json"), &accounts) && accounts.Active != "":
		w.account, w.how = l.hash("google login", strings.ToLower(accounts.Active)), "google_accounts.json"
	case l.readJSON(path.Join(dir, "oauth_creds.json"), &creds) && claims(creds.IDToken, &c) && c.Email != "":
		w.account, w.how = l.hash("google login", strings.ToLower(c.Email)), "oauth_creds.json"
	default:
		w.account, w.how = l.hash("gemini directory", dir), "oauth-personal"
	}
	w.project = slug(l.geminiProject())
	return l.at(w, l.Env("CODE_ASSIST_ENDPOINT"), googleHosts...)
}

// geminiSettings merges the files, later over earlier: system defaults, user,
// workspace, system.
func (l *Launch) geminiSettings(home string) (auth, model string) {
	for _, name := range []string{
		l.fallback("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "/etc/gemini-cli/system-defaults.json"),
		path.Join(home, ".gemini", "settings.json"),
		path.Join(l.Cwd, ".gemini", "settings.json"),
		l.fallback("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "/etc/gemini-cli/settings.json"),
	} {
		var s geminiSettings
		if !decodeJSON(plainJSON(l.read(name)), &s) {
			continue
		}
		if s.Security.Auth.SelectedType == "" {
			s.Security.Auth.SelectedType = s.SelectedAuthType
		}
		if t := s.Security.Auth.SelectedType; t != "" {
			auth = t
		}
		if s.Model.Name != "" {
			model = s.Model.Name
		}
	}
	return auth, model
}

func (l *Launch) fallback(env, name string) string {
	if v := l.Env(env); v != "" {
		return l.abs(v)
	}
	return name
}

// geminiDotenv reads the one .env that Gemini reads: the first of
// DIR/.gemini/.env and DIR/.env from where it starts up to the root, else the
// same two in the home directory. The folder is taken to be trusted: in one
// that is not, Gemini reads DIR/.env only, and takes from it the keys, the
// project and the location, which are the same values unless both files exist.
func (l *Launch) geminiDotenv(home string) map[string]string {
	dirs := []string{}
	for d := path.Clean(l.Cwd); ; d = path.Dir(d) {
		dirs = append(dirs, d)
		if d == "/" || d == "." || len(dirs) > 100 {
			break
		}
	}
	for _, d := range append(dirs, home) {
		for _, name := range []string{path.Join(d, ".gemini", ".env"), path.Join(d, ".env")} {
			if b, err := l.FS.ReadFile(name); err == nil && len(b) <= maxFile {
				return dotenv(b)
			}
		}
	}
	return nil
}
