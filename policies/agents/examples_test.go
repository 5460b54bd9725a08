package agents_test

import (
	"testing"

	"qshim/detect"
	"qshim/policies/agents"
)

// TestExamples runs the examples and counter-examples that stand beside every
// rule of every built-in profile.
func TestExamples(t *testing.T) {
	for _, name := range agents.Names() {
		data, _ := agents.Builtin(name)
		p, err := detect.ParseProfile(name+".toml", data)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, bad := range p.CheckExamples() {
			t.Errorf("%v\n%s", bad, bad.Text)
		}
	}
}
