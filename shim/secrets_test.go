package shim

import (
	"slices"
	"strings"
	"testing"

	"qshim/detect"
	"qshim/detect/finding"
)

func TestWithoutSecrets(t *testing.T) {
	env := []string{"ANTHROPIC_AUTH_TOKEN=hunter2-EEEE", "MY_KEY=a b c d e", "SSH_KEY=/home/me/.ssh/id", "TOKEN=short", "HOME=/home/me/hunter2"}
	r := detect.Report{
		Findings:     []finding.Finding{{Rows: []string{"refused hunter2-EEEE twice hunter2-EEEE", "│ for hunt │", "│ er2-EEEE │", "in /home/me/.ssh/id, short", "and hunter2-E"}}},
		Unrecognised: []detect.Unrecognised{{Rows: []string{"a b c d e f"}}},
	}
	withoutSecrets(r, env)
	if want := []string{"refused … twice …", "│ for … │", "│ … │", "in /home/me/.ssh/id, short", "and …"}; !slices.Equal(r.Findings[0].Rows, want) {
		t.Errorf("%q", r.Findings[0].Rows)
	}
	if got := r.Unrecognised[0].Rows[0]; got != "… f" {
		t.Errorf("%q", got)
	}
}

// Cut anywhere, of no part of a value enough is left to be told.
func FuzzMaskValues(f *testing.F) {
	f.Add("before ", " behind", uint8(5))
	f.Add("", "", uint8(0))
	f.Fuzz(func(t *testing.T, before, after string, at uint8) {
		const v = "Tr0ub4dor&3=xyzw"
		n := int(at) % (len(v) + 1)
		rows := strings.Split(before+v[:n]+"\n"+v[n:]+after, "\n")
		maskValues(rows, []string{v})
		joined := strings.Join(rows, "\n")
		if strings.Contains(joined, v) || n >= 4 && n < len(v) && strings.Contains(joined, v[:n]+"\n"+v[n:]) {
			t.Errorf("%q", rows)
		}
	})
}
