package account

import (
	"strings"
	"testing"
)

// What AWS and Google keep in files, as their libraries read them.
func TestCloudFiles(t *testing.T) {
	env := func(kv ...string) map[string]string { return map[string]string(plus(nil, kv...)) }
	config, login := "/home/u/.aws/config", "/home/u/.aws/credentials"
	sso := files{config: "[default]\nregion = eu-west-1\nsso_account_id = 123456789012 # main\n[profile work]\nrole_arn=arn:aws:iam::210987654321:role/dev\nsource_profile=default\nregion=us-gov-west-1\n"}
	main, work := h("aws account", "123456789012"), h("aws account", "210987654321")
	bedrock := func(kv ...string) map[string]string {
		return env(append([]string{"CLAUDE_CODE_USE_BEDROCK", "1"}, kv...)...)
	}
	check(t, "claude", []row{
		{name: "the default profile", env: bedrock(), files: sso, id: "bedrock/" + main + "/eu-west-1", how: "default AWS profile"},
		{name: "a named profile", env: bedrock("AWS_PROFILE", "work"), files: sso, id: "bedrock/" + work + "/us-gov-west-1", how: "AWS_PROFILE"},
		{name: "a profile that is not there", env: bedrock("AWS_PROFILE", "gone"), files: sso, id: "bedrock/" + h("bedrock", "gone") + "/us-east-1"},
		{name: "the variable's region beats the file's", env: bedrock("AWS_REGION", "us-west-2"), files: sso, id: "bedrock/" + main + "/us-west-2"},
		{name: "a key in the environment beats the default profile", env: bedrock("AWS_ACCESS_KEY_ID", "AKIA1"), files: sso, id: "bedrock/" + h("key", "AKIA1") + "/eu-west-1"},
		{name: "the same key in the file is the same account", env: bedrock(), files: files{login: "[default]\naws_access_key_id = AKIA1\naws_secret_access_key = s3cr3t\n"}, id: "bedrock/" + h("key", "AKIA1") + "/us-east-1"},
		{name: "the account's number beats its key", env: bedrock(), files: files{login: "[default]\naws_access_key_id=AKIA1\naws_account_id=123456789012"}, id: "bedrock/" + main + "/us-east-1"},
		{name: "the credentials' region beats the config's", env: bedrock(), files: plus(sso, login, "[default]\nregion=ap-south-1"), id: "bedrock/" + main + "/ap-south-1"},
		{name: "a program is not run", env: bedrock(), files: files{config: "[default]\ncredential_process = vault aws\n"}, id: "bedrock/" + h("aws process", "vault aws") + "/us-east-1"},
		{name: "files elsewhere", env: bedrock("AWS_CONFIG_FILE", "/aws"), files: files{"/aws": sso[config]}, id: "bedrock/" + main + "/eu-west-1"},
		{name: "a region that is none does not show", env: bedrock(), files: files{config: "[default]\nregion = sk-ant-oat01-secret\n"}, id: "bedrock/default/us-east-1", how: "CLAUDE_CODE_USE_BEDROCK"},
		{name: "what belongs to the line above is no setting", env: bedrock(), files: files{config: "[default]\ns3 =\n  region = eu-west-1\n"}, id: "bedrock/default/us-east-1"},
		{name: "mantle", env: env("CLAUDE_CODE_USE_MANTLE", "1"), files: sso, id: "mantle/" + main + "/eu-west-1"},
	})
	gcloud := "/home/u/.config/gcloud/"
	vertex := func(kv ...string) map[string]string {
		return env(append([]string{"CLAUDE_CODE_USE_VERTEX", "1", "CLOUD_ML_REGION", "europe-west1"}, kv...)...)
	}
	at := func(project string) string { return "vertex-claude/" + h("vertex-claude", project) + "/europe-west1" }
	both := files{
		gcloud + "active_config": "work\n", gcloud + "configurations/config_work": "[core]\naccount = a@example.com\nproject = p-work\n",
		gcloud + "configurations/config_default": "[core]\nproject = p-default\n", gcloud + "properties": "[core]\nproject = p-old\n",
	}
	check(t, "claude", []row{
		{name: "gcloud's active configuration", env: vertex(), files: both, id: at("p-work"), how: "gcloud's configuration"},
		{name: "gcloud's named configuration", env: vertex("CLOUDSDK_ACTIVE_CONFIG_NAME", "default"), files: both, id: at("p-default")},
		{name: "gcloud's old file", env: vertex(), files: files{gcloud + "properties": both[gcloud+"properties"]}, id: at("p-old")},
		{name: "gcloud elsewhere", env: vertex("CLOUDSDK_CONFIG", "/g"), files: files{"/g/properties": "[core]\nproject=p-g"}, id: at("p-g")},
		{name: "gcloud's variable", env: vertex("CLOUDSDK_CORE_PROJECT", "p-env"), files: both, id: at("p-env")},
		{name: "the project's variable", env: vertex("GOOGLE_CLOUD_PROJECT", "p1"), files: both, id: at("p1"), how: "GOOGLE_CLOUD_PROJECT"},
		{name: "a service account's file", env: vertex("GOOGLE_APPLICATION_CREDENTIALS", "/sa.json"), files: plus(both, "/sa.json", `{"type":"service_account","project_id":"p-sa","private_key":"secret"}`), id: at("p-sa")},
		{name: "a configuration's name is no path", env: vertex("CLOUDSDK_ACTIVE_CONFIG_NAME", "x/../config_work"), files: both, id: "vertex-claude/default/europe-west1"},
	})
	check(t, "gemini", []row{
		{name: "machine credentials", env: env("GEMINI_CLI_USE_COMPUTE_ADC", "true"), files: both, id: "google/" + h("google project", "p-work")},
	})
}

// FuzzINI: no panic, and every value stands in the text.
func FuzzINI(f *testing.F) {
	for _, s := range []string{"", "[a]\nb=c", "[profile  'x']\r\nk = v # c\n\tk2=v2", "=\n[\n]", "[a", "x", "#", "a= ;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for section, set := range parseINI([]byte(in)) {
			for k, v := range set {
				if !strings.Contains(in, v) || strings.ContainsAny(k+v, "\n") {
					t.Fatalf("[%s] %q = %q", section, k, v)
				}
			}
		}
	})
}
