package account

import (
	"maps"
	"path"
	"strings"
)

// Cloud accounts. AWS and Google keep in files what no variable says: the
// default profile, its region, the project that gcloud was set to. Read in
// Claude Code 2.1.332's bundle (the AWS SDK's shared config files,
// google-auth-library's project); programs that those files name are never run.

// awsAccount finishes what the variables have told of a login to AWS: whose the
// profile in use is, and where. own: requests go to AWS itself.
func (l *Launch) awsAccount(w who, own bool) who {
	set := l.awsProfile()
	if w.account == "default" || w.how == "AWS_PROFILE" {
		if account := l.awsLogin(set); account != "" {
			w.account = account
			if w.how != "AWS_PROFILE" {
				w.how = "default AWS profile"
			}
		}
	}
	if w.project == "" {
		w.project = place(set["region"])
	}
	if w.project == "" && own {
		w.project = "us-east-1" // where Claude Code then asks
	}
	return w
}

// awsProfile is what both shared files say about the profile that AWS_PROFILE
// names, else the default one. The credentials win over the config.
func (l *Launch) awsProfile() map[string]string {
	name := l.Env("AWS_PROFILE")
	if name == "" {
		name = "default"
	}
	config := l.ini(l.dir("AWS_CONFIG_FILE", ".aws/config"))
	set := map[string]string{}
	if name == "default" {
		maps.Copy(set, config[name])
	}
	maps.Copy(set, config["profile "+name])
	maps.Copy(set, l.ini(l.dir("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"))[name])
	return set
}

// awsLogin names whom a profile bills: the AWS account where it stands there, so
// that two profiles of one account wait together, else its key or its program.
func (l *Launch) awsLogin(set map[string]string) string {
	// arn:aws:iam::123456789012:role/name
	if arn := strings.Split(set["role_arn"], ":"); len(arn) > 5 && arn[4] != "" {
		return l.hash("aws account", arn[4])
	}
	for _, number := range []string{"aws_account_id", "sso_account_id"} {
		if set[number] != "" {
			return l.hash("aws account", set[number])
		}
	}
	switch {
	case set["aws_access_key_id"] != "":
		return l.key(set["aws_access_key_id"])
	case set["credential_process"] != "":
		return l.hash("aws process", set["credential_process"])
	}
	return ""
}

// place is a region's name; what a file holds in its stead does not show.
func place(region string) string {
	if parts := strings.Split(region, "-"); len(region) <= 24 && len(parts) >= 3 && slug(region) == region && len(parts[len(parts)-1]) == 1 {
		return region
	}
	return ""
}

// googleProject is the project that a Google library asks for where the agent's
// own variables name none: of the credentials' file, else of gcloud's active
// configuration.
func (l *Launch) googleProject() (project, how string) {
	for _, name := range []string{"GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT"} {
		if p := l.Env(name); p != "" {
			return p, name
		}
	}
	var login struct {
		Project string `json:"project_id"`
	}
	if f := l.Env("GOOGLE_APPLICATION_CREDENTIALS"); f != "" && l.readJSON(l.abs(f), &login) && login.Project != "" {
		return login.Project, "GOOGLE_APPLICATION_CREDENTIALS"
	}
	if p := l.Env("CLOUDSDK_CORE_PROJECT"); p != "" {
		return p, "CLOUDSDK_CORE_PROJECT"
	}
	dir := l.dir("CLOUDSDK_CONFIG", ".config/gcloud")
	name := l.Env("CLOUDSDK_ACTIVE_CONFIG_NAME")
	if name == "" {
		name = strings.TrimSpace(string(l.read(path.Join(dir, "active_config"))))
	}
	if name == "" {
		name = "default"
	}
	if strings.Contains(name, "/") {
		return "", "" // no name of a configuration
	}
	for _, file := range []string{"configurations/config_" + name, "properties"} {
		if p := l.ini(path.Join(dir, file))["core"]["project"]; p != "" {
			return p, "gcloud's configuration"
		}
	}
	return "", ""
}

// ini reads sections of "name = value" lines. Comments begin a line, or follow
// a blank as AWS has it; an indented line belongs to the one above and says
// nothing here.
func (l *Launch) ini(name string) map[string]map[string]string {
	return parseINI(l.read(name))
}

func parseINI(b []byte) map[string]map[string]string {
	out, section := map[string]map[string]string{}, ""
	for line := range strings.SplitSeq(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.ContainsRune("#;", rune(trimmed[0])):
		case trimmed[0] == '[':
			head, _, _ := strings.Cut(trimmed[1:], "]")
			section = strings.Join(strings.Fields(strings.NewReplacer(`"`, " ", `'`, " ").Replace(head)), " ")
		case line[0] == ' ' || line[0] == '\t':
		default:
			key, value, ok := strings.Cut(trimmed, "=")
			if !ok {
				continue
			}
			for _, mark := range []string{" #", " ;"} {
				value, _, _ = strings.Cut(value, mark)
			}
			if out[section] == nil {
				out[section] = map[string]string{}
			}
			out[section][strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return out
}
