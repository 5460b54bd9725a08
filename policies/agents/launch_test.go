package agents

import (
	"strings"
	"testing"
)

// TestExamples runs every example that stands beside the rules in the TOML files.
func TestExamples(t *testing.T) {
	for _, name := range Names() {
		p, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Examples.NonSession) == 0 || len(p.Examples.Session) == 0 {
			t.Errorf("%s: a profile needs nonsession and session examples", name)
		}
		each := func(kind string, lines []string, ok func(Call, []string) bool) {
			for _, line := range lines {
				args := strings.Fields(line)
				if c := p.Classify(args); !ok(c, args) {
					t.Errorf("%s: %q is not %s: %+v", name, line, kind, c)
				}
			}
		}
		none := func(string) string { return "" }
		added := func(args []string) bool { return len(p.Adjustments(args, none, Known{}).Names) > 0 }
		each("a non-session", p.Examples.NonSession, func(c Call, _ []string) bool { return !c.Session })
		each("a session", p.Examples.Session, func(c Call, _ []string) bool { return c.Session })
		each("headless", p.Examples.Headless, func(c Call, _ []string) bool { return c.Headless && c.Prompt && c.Session })
		each("with a prompt", p.Examples.Prompt, func(c Call, _ []string) bool { return c.Prompt })
		each("without a prompt", p.Examples.NoPrompt, func(c Call, _ []string) bool { return !c.Prompt && !c.Headless })
		each("adjusted", p.Examples.Adjusted, func(_ Call, a []string) bool { return added(a) })
		each("unadjusted", p.Examples.Unadjusted, func(_ Call, a []string) bool { return !added(a) })
	}
}
