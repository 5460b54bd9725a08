package detect_test

import (
	"os"
	"strings"
	"testing"

	"qshim/detect"
)

// variants reads testdata/variants.txt: what its head says stands there.
func variants(tb testing.TB) (out []message) {
	tb.Helper()
	data, err := os.ReadFile("testdata/variants.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for _, part := range strings.Split(string(data), "\n@ ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		f := strings.Fields(head)
		if len(f) < 3 {
			tb.Fatalf("a head without a class: %q", head)
		}
		classes := strings.Split(f[2], "|")
		m := message{
			ID: head, Agent: f[0], Mode: f[1], Class: classes[0], ClassAlt: classes[1:],
			Lines: strings.Split(strings.TrimRight(body, "\n"), "\n"), Now: "2026-11-29T16:30:00Z", TZ: "UTC",
		}
		for _, set := range f[3:] {
			switch k, v, _ := strings.Cut(set, "="); k {
			case "now":
				m.Now = v
			case "tz":
				m.TZ = v
			case "reset":
				if v += ":00"; strings.Count(v, ":") > 2 {
					v = strings.TrimSuffix(v, ":00")
				}
				v += "Z"
				m.Reset = &v
			default:
				tb.Fatalf("%s: what is %s?", head, k)
			}
		}
		out = append(out, m)
	}
	return out
}

// TestVariants: no false alarm, every limit seen, and the reset where it is said.
func TestVariants(t *testing.T) {
	n := map[bool]int{}
	for _, m := range variants(t) {
		mode := detect.TUI
		if m.Mode == "headless" {
			mode = detect.Headless
		}
		got := read(t, profile(t, m.Agent), m, mode)
		bad := wrong(m, got)
		if m.Reset == nil && strings.HasPrefix(bad, "reset") {
			bad = ""
		}
		if bad != "" {
			t.Errorf("%s: %s\n\t%s", m.ID, bad, strings.Join(m.Lines, "\n\t"))
		}
		n[m.Class == "none"]++
	}
	t.Logf("%d limits and %d others", n[false], n[true])
}
