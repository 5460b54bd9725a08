package detect_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"qshim/detect"
	"qshim/policies/agents"
)

// message is one labelled excerpt of testdata/messages.jsonl.
type message struct {
	ID         string   `json:"id"`
	Agent      string   `json:"agent"`
	Mode       string   `json:"mode"`
	Lines      []string `json:"lines"`
	Class      string   `json:"class"`
	ClassAlt   words    `json:"class_alt"`
	Measure    *string  `json:"measure"`
	Scope      *string  `json:"scope"`
	Now        string   `json:"now"`
	TZ         string   `json:"tz"`
	Reset      *string  `json:"reset"`
	ResetAlt   words    `json:"reset_alt"`
	RetryAfter *float64 `json:"retry_after_s"`
	Kind       string   `json:"kind"`
}

// words is a list that may be written as one string.
type words []string

// UnmarshalJSON takes "a", ["a","b"] or null.
func (w *words) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*w = nil
		if one != "" {
			*w = words{one}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(w))
}

// parsed are the profiles by name: a profile does not change, and to read one
// costs more than to read a message with it.
var parsed sync.Map

func profile(tb testing.TB, agent string) *detect.Profile {
	tb.Helper()
	if p, ok := parsed.Load(agent); ok {
		return p.(*detect.Profile)
	}
	name := agent + ".toml"
	data, ok := agents.Builtin(agent)
	if !ok {
		if agent == "generic" {
			tb.Fatal("no generic profile")
		}
		return profile(tb, "generic")
	}
	p, err := detect.ParseProfile(name, data)
	if err != nil {
		tb.Fatal(err)
	}
	parsed.Store(agent, p)
	return p
}

func messages(tb testing.TB) (out []message) {
	tb.Helper()
	f, err := os.Open("../testdata/messages.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var m message
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
			tb.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// read explains a message as the command does.
func read(tb testing.TB, p *detect.Profile, m message, mode detect.Mode) []detect.Explained {
	tb.Helper()
	now, err := time.Parse(time.RFC3339, m.Now)
	if err != nil {
		tb.Fatal(m.ID, err)
	}
	zone, err := time.LoadLocation(m.TZ)
	if err != nil {
		tb.Fatal(m.ID, err)
	}
	return p.ExplainRows(m.Lines, detect.ExplainOptions{Mode: mode, Now: now, Zone: zone})
}

// wrong says what is wrong with a reading, "" nothing.
func wrong(m message, got []detect.Explained) string {
	if m.Class == "none" {
		if len(got) > 0 {
			return fmt.Sprintf("FALSE ALARM %s by %s", got[0].Class, got[0].Rule)
		}
		return ""
	}
	alt := anyString(m.ClassAlt, "none")
	if len(got) == 0 {
		if alt {
			return ""
		}
		return "missed " + m.Class
	}
	g := got[0]
	if string(g.Class) != m.Class && !anyString(m.ClassAlt, string(g.Class)) {
		return fmt.Sprintf("class %s (%s), want %s %v", g.Class, g.Rule, m.Class, m.ClassAlt)
	}
	if bad := wrongReset(m, g); bad != "" {
		return bad
	}
	if m.RetryAfter != nil {
		if d := g.RetryAfter.Seconds() - *m.RetryAfter; d > 1 || d < -1 {
			return fmt.Sprintf("retry_after %v (%s), want %v", g.RetryAfter, g.Rule, *m.RetryAfter)
		}
	}
	return ""
}

func wrongReset(m message, g detect.Explained) string {
	want := m.ResetAlt
	if m.Reset != nil {
		want = append([]string{*m.Reset}, want...)
	}
	if len(want) == 0 {
		if !g.Reset.IsZero() {
			return fmt.Sprintf("reset %v (%s), want none", g.Reset.UTC(), g.Rule)
		}
		return ""
	}
	for _, s := range want {
		if t, err := time.Parse(time.RFC3339, s); err == nil && g.Reset.Sub(t).Abs() <= time.Minute && !g.Reset.IsZero() {
			return ""
		}
	}
	return fmt.Sprintf("reset %v (%s), want %v", g.Reset.UTC(), g.Rule, want)
}

func anyString(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// known are the misses that are accounted for: id -> reason.
func known(tb testing.TB, file string) map[string]string {
	tb.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]string{}
	for _, l := range strings.Split(string(data), "\n") {
		if id, why, ok := strings.Cut(l, " "); ok && !strings.HasPrefix(l, "#") {
			out[id] = strings.TrimSpace(why)
		}
	}
	return out
}

// TestMessages reads every labelled excerpt, with its mode and without one.
func TestMessages(t *testing.T) {
	misses := known(t, "testdata/known-misses.txt")
	profiles := map[string]*detect.Profile{}
	right, all := map[string]int{}, map[string]int{}
	seen := map[string]bool{}
	for _, m := range messages(t) {
		p := profiles[m.Agent]
		if p == nil {
			p = profile(t, m.Agent)
			profiles[m.Agent] = p
		}
		mode := detect.TUI
		if m.Mode == "headless" {
			mode = detect.Headless
		}
		bad := wrong(m, read(t, p, m, mode))
		all[m.Class]++
		if bad == "" {
			right[m.Class]++
		}
		switch why, ok := misses[m.ID]; {
		case bad != "" && !ok:
			t.Errorf("%s %s %s: %s\n  %s", m.ID, m.Agent, m.Kind, bad, strings.Join(m.Lines, "\n  "))
		case bad == "" && ok:
			t.Errorf("%s is right now: take it off known-misses.txt (%s)", m.ID, why)
		}
		seen[m.ID] = true
		if bad2 := wrong(m, read(t, p, m, detect.Both)); bad == "" && bad2 != "" {
			t.Errorf("%s without a mode: %s", m.ID, bad2)
		}
	}
	for id := range misses {
		if strings.Contains(id, "-") && !strings.HasSuffix(id, ".cast") && !seen[id] {
			t.Errorf("known-misses.txt names %s, which is not in the corpus", id)
		}
	}
	var names []string
	sum, total := 0, 0
	for c := range all {
		names = append(names, c)
	}
	sort.Strings(names)
	for _, c := range names {
		t.Logf("%-9s %3d of %3d", c, right[c], all[c])
		sum, total = sum+right[c], total+all[c]
	}
	t.Logf("%-9s %3d of %3d", "all", sum, total)
}
