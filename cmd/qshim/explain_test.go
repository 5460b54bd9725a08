package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// explainRun runs the command on stdin text.
func explainRun(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a := newApp()
	err := a.command(t.Context(), a.explainCommand(strings.NewReader(in), &out), args)
	return out.String(), err
}

type explainOut struct {
	Agent    string           `json:"agent"`
	Findings []map[string]any `json:"findings"`
}

func explainOutput(t *testing.T, in string, args ...string) explainOut {
	t.Helper()
	s, err := explainRun(t, in, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var o explainOut
	if err := json.Unmarshal([]byte(s), &o); err != nil {
		t.Fatalf("%v in %q", err, s)
	}
	return o
}

func TestExplainRows(t *testing.T) {
	in := "❯ say hi\n  ⎿ \u00a0You've hit your 5-hour limit · resets 6:45pm (UTC)\n"
	o := explainOutput(t, in, "--agent", "claude", "--mode", "tui", "--now", "2026-11-29T16:45:10Z", "--tz", "UTC", "-")
	if o.Agent != "claude" || len(o.Findings) != 1 {
		t.Fatalf("%+v", o)
	}
	f := o.Findings[0]
	for k, want := range map[string]any{
		"class": "window", "cause": nil, "measure": "usage", "scope": "account", "model": nil,
		"reset": "2026-11-29T18:45:00Z", "reset_source": "zoned", "retry_after_s": nil,
		"confidence": "strong", "rule": "plan-limit", "at_s": 0.0,
	} {
		got, ok := f[k]
		if !ok || got != want {
			t.Errorf("%s = %v, want %v", k, got, want)
		}
	}
	if rows := f["rows"].([]any); len(rows) != 1 || !strings.Contains(rows[0].(string), "5-hour limit") {
		t.Errorf("rows = %v", rows)
	}
}

func TestExplainNothing(t *testing.T) {
	s, err := explainRun(t, "● You've hit your 5-hour limit · resets 6:45pm (UTC)\n", "--agent", "claude", "--json", "-")
	if err != nil || strings.TrimSpace(s) != `{"agent":"claude","findings":[]}` {
		t.Errorf("%q, %v", s, err)
	}
}

// TestExplainUnknownAgent: a name without a profile is read as generic.
func TestExplainUnknownAgent(t *testing.T) {
	o := explainOutput(t, "Usage limit reached. Resets at 17:45.\n", "--agent", "some-new-agent", "--now", "2026-11-29T16:10:00Z", "--tz", "Europe/Dublin", "-")
	if o.Agent != "generic" || len(o.Findings) != 1 || o.Findings[0]["reset"] != "2026-11-29T17:45:00Z" {
		t.Errorf("%+v", o)
	}
}

func TestExplainCast(t *testing.T) {
	file := "../../testdata/casts/codex-a_ratelimit2-tui-80x24.cast"
	o := explainOutput(t, "", "--agent", "codex", file)
	var classes []string
	for _, f := range o.Findings {
		classes = append(classes, f["class"].(string))
	}
	if strings.Join(classes, " ") != "retrying rate" {
		t.Errorf("classes %v", classes)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if p := explainOutput(t, string(data), "--agent", "codex", "-"); len(p.Findings) != len(o.Findings) {
		t.Errorf("from standard input %d findings, from the file %d", len(p.Findings), len(o.Findings))
	}
}

func TestExplainRaw(t *testing.T) {
	raw := "\x1b[2J\x1b[H\x1b[38;5;1m■ You’ve hit your usage limit. Try\x1b[1;37Hagain at 5:47 PM.\x1b[39m\r\n"
	o := explainOutput(t, raw, "--agent", "codex", "--raw", "--cols", "80", "--rows", "24", "--now", "2026-11-29T16:47:50Z", "--tz", "UTC", "-")
	if len(o.Findings) != 1 || o.Findings[0]["class"] != "window" || o.Findings[0]["reset"] != "2026-11-29T17:47:00Z" {
		t.Errorf("%+v", o)
	}
}

func TestExplainText(t *testing.T) {
	s, err := explainRun(t, "ERROR: You’ve hit your usage limit. Try again at 5:47 PM.\n", "--agent", "codex", "--now", "2026-11-29T16:47:50Z", "--tz", "UTC", "-")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"window: ", "2026-11-29 17:47:00 UTC", "usage-limit (strong)", "| ERROR: You’ve hit"} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
}

// TestExplainUsage: a mistake is one clear line and exit code 2.
func TestExplainUsage(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.cast")
	if err := os.WriteFile(bad, []byte("no json\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{}, {"a", "b"}, {"--mode", "both", "-"}, {"--now", "noon", "-"}, {"--tz", "Mars/Base", "-"},
		{"--cols", "0", "-"}, {"--cols", "many", "-"}, {"--nonsense", "-"}, {"/nonexistent/file"}, {bad},
	} {
		s, err := explainRun(t, "", args...)
		if exitCode(err) != exitUsage {
			t.Errorf("%v: error %v, want exit code 2", args, err)
			continue
		}
		if s != "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: printed %q, %q", args, s, err)
		}
	}
}
