package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"qshim/policies/config"
)

// The README must stay true: what it shows of the config loads, its commands
// exist, and so do its pictures.
func TestReadme(t *testing.T) {
	root := filepath.Join("..", "..")
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	block := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(text)
	if block == nil {
		t.Fatal("no TOML example")
	}
	if _, err := config.Load(config.Input{Name: "README.md", Data: []byte(block[1])}); err != nil {
		t.Errorf("the config example: %v", err)
	}
	for _, m := range regexp.MustCompile(`\]\((testdata/[^)]+)\)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("picture: %v", err)
		}
	}
	names := map[string]bool{"ANYTHING": true, "claude": true, "codex": true, "gemini": true}
	for _, c := range newApp().root().Commands() {
		names[c.Name()] = true
	}
	for _, m := range regexp.MustCompile("`qshim ([a-z]+)").FindAllStringSubmatch(text, -1) {
		if !names[m[1]] {
			t.Errorf("the README names %q, which is no command", m[1])
		}
	}
	for _, cmd := range []string{"go run ./cmd/qshim demo", "go test ./..."} {
		if n := strings.Count(text, cmd); n != 1 {
			t.Errorf("%q stands %d times in the README, want once", cmd, n)
		}
	}
}
