package when

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestRowBreaks puts a row break at every place of every one-row record, as a
// space (wrapped between words) and as nothing (cut by a full row). Nothing may
// be read wrong; reading nothing is allowed only where a word of the anchor or
// of a date is cut, and rarely.
func TestRowBreaks(t *testing.T) {
	cut, silent := 0, 0
	for _, r := range records(t) {
		if strings.Contains(r.Text, "\n") || r.Want == nil && !r.Retry {
			continue
		}
		within := Window(r.Text)
		for i := range r.Text {
			for _, text := range []string{r.Text[:i] + "\n" + r.Text[i:], r.Text[:i] + "\n     " + r.Text[i:]} {
				if i == 0 {
					continue
				}
				cut++
				got, ok := parseWithin(t, r, text, within)
				if !ok {
					silent++
					if testing.Verbose() {
						t.Logf("silent %s: %q", r.ID, around(text, i))
					}
					continue
				}
				if wrong := r.judge(got, ok); wrong != "" {
					t.Errorf("%s: %s at %q", r.ID, wrong, around(text, i))
				}
			}
		}
	}
	t.Logf("%d row breaks, %d read as nothing", cut, silent)
	if silent*200 > cut {
		t.Errorf("%d of %d row breaks hide the time: more than one in 200", silent, cut)
	}
}

func around(s string, i int) string {
	a, b := max(0, i-20), min(len(s), i+25)
	for !utf8.RuneStart(s[a]) {
		a++
	}
	return s[a:b]
}
