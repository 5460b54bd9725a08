package detect

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPrefilter: the words that a profile's rules add to those of the
// providers' sentences are few, so that ordinary rows stay cheap. That they
// suffice is what the rules' own examples show.
func TestPrefilter(t *testing.T) {
	files, err := filepath.Glob("../policies/agents/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal("no profiles", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, b, err := parse(filepath.Base(f), data)
		if err != nil {
			t.Fatal(err)
		}
		if more := b.hot[len(hotWords):]; len(more) > 15 {
			t.Errorf("%s adds %q: anchor its rules on a word of hotWords", filepath.Base(f), more)
		}
	}
}
