package when

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestRowBreaks puts a row break at every place of every one-row record, between
// words and inside them. Nothing may be read wrong; reading nothing is allowed
// rarely (an HTTP header's name cut in two).
func TestRowBreaks(t *testing.T) {
	cut, silent := 0, 0
	for _, r := range records(t) {
		if strings.Contains(r.Text, "\n") || r.Want == nil && !r.Retry {
			continue
		}
		within := Window(r.Text)
		for i := range r.Text {
			if i == 0 {
				continue
			}
			indent := strings.Repeat(" ", i%2*5) // agents continue at column 0, 2 or 5
			text := r.Text[:i] + "\n" + indent + r.Text[i:]
			cut++
			got, ok := parseWithin(t, r, text, within)
			if !ok {
				silent++
				continue
			}
			if wrong := r.judge(got, ok); wrong != "" {
				t.Errorf("%s: %s at %q", r.ID, wrong, around(text, i))
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
