package detect_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"qshim/detect"
)

// variant is one case of testdata/variants.txt.
type variant struct {
	message
	noReset bool // it names no reset
}

// variants reads testdata/variants.txt: what its head says stands there.
func variants(tb testing.TB) (out []variant) {
	tb.Helper()
	data, err := os.ReadFile("testdata/variants.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return variantsOf(tb, data)
}

// variantsOf reads cases in that form.
func variantsOf(tb testing.TB, data []byte) (out []variant) {
	tb.Helper()
	// The line break makes a head of the first line one like any other.
	for _, part := range strings.Split("\n"+string(data), "\n@ ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		f := strings.Fields(head)
		if len(f) < 3 {
			tb.Fatalf("a head without a class: %q", head)
		}
		classes := strings.Split(f[2], "|")
		m := variant{message: message{
			ID: head, Agent: f[0], Mode: f[1], Class: classes[0], ClassAlt: classes[1:],
			Lines: strings.Split(strings.TrimRight(body, "\n"), "\n"), Now: "2026-11-29T16:30:00Z", TZ: "UTC",
		}}
		for _, set := range f[3:] {
			if k, v, _ := strings.Cut(set, "="); !m.set(k, v) {
				tb.Fatalf("%s: what is %s?", head, k)
			}
		}
		out = append(out, m)
	}
	return out
}

// set takes one word of a head.
func (m *variant) set(k, v string) bool {
	switch k {
	case "now":
		m.Now = v
	case "tz":
		m.TZ = v
	case "measure":
		m.Measure = &v
	case "scope":
		m.Scope = &v
	case "from": // whose wording it is
	case "reset":
		if m.noReset = v == "none"; m.noReset {
			return true
		}
		if strings.Count(v, ":") < 2 {
			v += ":00"
		}
		v += "Z"
		m.Reset = &v
	default:
		return false
	}
	return true
}

// wrong is what is wrong with a reading of a variant, "" nothing: of reset,
// measure and scope only what its head says.
func (m variant) wrong(got []detect.Explained) string {
	bad := wrong(m.message, got)
	if m.Reset == nil && !m.noReset && strings.HasPrefix(bad, "reset") {
		bad = ""
	}
	if bad != "" || len(got) == 0 {
		return bad
	}
	if m.Measure != nil && string(got[0].Measure) != *m.Measure {
		return fmt.Sprintf("measure %q (%s), want %s", got[0].Measure, got[0].Rule, *m.Measure)
	}
	if m.Scope != nil && string(got[0].Scope) != *m.Scope {
		return fmt.Sprintf("scope %q (%s), want %s", got[0].Scope, got[0].Rule, *m.Scope)
	}
	return ""
}

// TestVariants: no false alarm, every limit seen, and the reset where it is said.
func TestVariants(t *testing.T) {
	n := map[bool]int{}
	for _, m := range variants(t) {
		mode := detect.TUI
		if m.Mode == "headless" {
			mode = detect.Headless
		}
		if bad := m.wrong(read(t, profile(t, m.Agent), m.message, mode)); bad != "" {
			t.Errorf("%s: %s\n\t%s", m.ID, bad, strings.Join(m.Lines, "\n\t"))
		}
		n[m.Class == "none"]++
	}
	t.Logf("%d limits and %d others", n[false], n[true])
}
