package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// labelledIn names a directory of labelled messages and recordings besides
// those of testdata: all of it is read then, else every 20th of testdata.
const labelledIn = "QSHIM_LABELLED"

// labelled is one line of messages.jsonl or of a recordings' index.jsonl.
type labelled struct {
	ID, Agent, Mode, Class, Now, TZ string
	Lines                           []string
	ClassAlt                        any `json:"class_alt"` // a word, a list or null
	Reset                           *string
	ResetAlt                        any      `json:"reset_alt"`
	RetryAfter                      *float64 `json:"retry_after_s"`

	File   string
	Expect json.RawMessage // classes in order of time, "silent", or null: not labelled
}

func alternatives(v any) (out []string) {
	switch x := v.(type) {
	case string:
		out = append(out, x)
	case []any:
		for _, s := range x {
			out = append(out, fmt.Sprint(s))
		}
	}
	return out
}

// score counts one row of the table.
type score struct{ right, all, alarms int }

// TestExplainLabelled runs the command over labelled messages and recordings
// and prints, with -v, how many it reads as they are labelled and which it does
// not. Those that are accounted for stand in detect/testdata/known-misses.txt.
func TestExplainLabelled(t *testing.T) {
	messages, casts, step := "../../testdata/messages.jsonl", "../../testdata/casts", 20
	if dir := os.Getenv(labelledIn); dir != "" {
		messages, casts, step = filepath.Join(dir, "corpus", "messages.jsonl"), filepath.Join(dir, "recordings"), 1
	}
	table := map[string]*score{}
	count := func(what, agent, id, bad string) {
		s := table[what+" "+agent]
		if s == nil {
			s = &score{}
			table[what+" "+agent] = s
		}
		s.all++
		switch why := knownMiss(t, id); {
		case bad == "":
			s.right++
			return
		case why != "":
			t.Logf("not as labelled: %s: %s\n    known: %s", id, bad, why)
		default:
			t.Errorf("%s: %s", id, bad)
		}
		if strings.HasPrefix(bad, "false alarm") && knownMiss(t, id) == "" {
			s.alarms++
		}
	}
	for _, m := range labelledLines(t, messages, step) {
		found := explainOutput(t, strings.Join(m.Lines, "\n"), "--agent", m.Agent, "--mode", m.Mode, "--now", m.Now, "--tz", m.TZ, "-").Findings
		count("message", m.Agent, m.ID, m.judge(found))
	}
	for _, r := range labelledLines(t, filepath.Join(casts, "index.jsonl"), step) {
		if want, ok := r.wants(); ok {
			found := explainOutput(t, "", "--agent", r.Agent, filepath.Join(casts, r.File)).Findings
			count("recording", r.Agent, r.File, judgeRecording(want, found))
		}
	}
	var names []string
	for n := range table {
		names = append(names, n)
	}
	slices.Sort(names)
	var sum score
	for _, n := range names {
		s := table[n]
		t.Logf("%-24s %3d of %3d right, %d false alarms", n, s.right, s.all, s.alarms)
		sum.right, sum.all, sum.alarms = sum.right+s.right, sum.all+s.all, sum.alarms+s.alarms
	}
	t.Logf("%-24s %3d of %3d right, %d false alarms", "all", sum.right, sum.all, sum.alarms)
}

func labelledLines(t *testing.T, file string, step int) (out []labelled) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for n := 0; sc.Scan(); n++ {
		if n%step != 0 {
			continue
		}
		var l labelled
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, l)
	}
	return out
}

var knownMisses map[string]string

// knownMiss is why an input is not read as it is labelled, "" where it must be.
func knownMiss(t *testing.T, id string) string {
	if knownMisses == nil {
		data, err := os.ReadFile("../../detect/testdata/known-misses.txt")
		if err != nil {
			t.Fatal(err)
		}
		knownMisses = map[string]string{}
		for _, l := range strings.Split(string(data), "\n") {
			if id, why, ok := strings.Cut(l, " "); ok && id != "#" {
				knownMisses[id] = why
			}
		}
	}
	return knownMisses[id]
}

// judge says what is wrong with the finding of a message, "" nothing.
func (m labelled) judge(found []map[string]any) string {
	classes := append([]string{m.Class}, alternatives(m.ClassAlt)...)
	switch {
	case len(found) == 0 && slices.Contains(classes, "none"):
		return ""
	case len(found) == 0:
		return "missed " + m.Class
	case m.Class == "none":
		return fmt.Sprint("false alarm ", found[0]["class"], " by ", found[0]["rule"])
	case len(found) > 1:
		return fmt.Sprint(len(found), " findings of one instant")
	}
	f := found[0]
	if !slices.Contains(classes, fmt.Sprint(f["class"])) {
		return fmt.Sprint("class ", f["class"], " by ", f["rule"], ", want ", classes)
	}
	resets := alternatives(m.ResetAlt)
	if m.Reset != nil {
		resets = append(resets, *m.Reset)
	}
	if !sameReset(f["reset"], resets) {
		return fmt.Sprint("reset ", f["reset"], " by ", f["rule"], ", want ", resets)
	}
	if m.RetryAfter != nil {
		if got, _ := f["retry_after_s"].(float64); got-*m.RetryAfter > 1 || got-*m.RetryAfter < -1 {
			return fmt.Sprint("retry after ", f["retry_after_s"], " by ", f["rule"], ", want ", *m.RetryAfter)
		}
	}
	return ""
}

// sameReset allows the minute to which clock times are cut.
func sameReset(got any, want []string) bool {
	s, stated := got.(string)
	if !stated || len(want) == 0 {
		return !stated && len(want) == 0
	}
	at, err := time.Parse(time.RFC3339, s)
	return err == nil && slices.ContainsFunc(want, func(w string) bool {
		t, err := time.Parse(time.RFC3339, w)
		return err == nil && at.Sub(t).Abs() <= time.Minute
	})
}

func (m labelled) wants() (classes []string, ok bool) {
	if string(m.Expect) == "null" {
		return nil, false
	}
	if json.Unmarshal(m.Expect, &classes) != nil {
		classes = nil // "silent"
	}
	return classes, true
}

// judgeRecording compares classes in order; a warning beside a limit is optional.
func judgeRecording(want []string, found []map[string]any) string {
	var got []string
	for _, f := range found {
		if c := fmt.Sprint(f["class"]); c != "warning" || len(want) == 0 || slices.Contains(want, c) {
			got = append(got, c)
		}
	}
	if slices.Equal(got, want) {
		return ""
	}
	if len(want) == 0 {
		return fmt.Sprint("false alarm ", got)
	}
	return fmt.Sprint("got ", got, ", want ", want)
}
