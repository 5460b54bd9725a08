package detect_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// recording is one line of testdata/casts/index.jsonl.
type recording struct {
	File   string          `json:"file"`
	Agent  string          `json:"agent"`
	Expect json.RawMessage `json:"expect"`
}

// wants is the classes that must be reported; ok is false for a recording
// that is not labelled. "silent" is none.
func (r recording) wants() (classes []string, ok bool) {
	if string(r.Expect) == "null" {
		return nil, false
	}
	if json.Unmarshal(r.Expect, &classes) != nil {
		classes = nil // "silent"
	}
	return classes, true
}

func recordings(tb testing.TB) []recording { return recordingsIn(tb, "casts") }

func recordingsIn(tb testing.TB, dir string) (out []recording) {
	tb.Helper()
	f, err := os.Open(filepath.Join("../testdata", dir, "index.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r recording
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			tb.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func readCast(tb testing.TB, file string) *detect.Cast { return readCastIn(tb, "casts", file) }

func readCastIn(tb testing.TB, dir, file string) *detect.Cast {
	tb.Helper()
	f, err := os.Open(filepath.Join("../testdata", dir, file))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	c, err := detect.ReadCast(f)
	if err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
	return c
}

// judgeCast compares classes in order; a warning beside a limit is optional.
func judgeCast(want []string, got []detect.Explained) string {
	var have, all []string
	for _, g := range got {
		all = append(all, fmt.Sprintf("%s/%s@%.1f(%s)", g.Class, g.Cause, g.Offset.Seconds(), g.Rule))
		if g.Class == "warning" && !anyString(want, "warning") && len(want) > 0 {
			continue
		}
		have = append(have, string(g.Class))
	}
	if strings.Join(have, " ") == strings.Join(want, " ") {
		return ""
	}
	return fmt.Sprintf("got %v, want %v", all, want)
}

// TestRecordings replays every recording of a real agent.
func TestRecordings(t *testing.T) {
	detect.OneGoroutine(t)
	misses := known(t, "testdata/known-misses.txt")
	profiles := map[string]*detect.Profile{}
	right, labelled, alarms := map[string]int{}, map[string]int{}, 0
	for _, r := range recordings(t) {
		p := profiles[r.Agent]
		if p == nil {
			p = profile(t, r.Agent)
			profiles[r.Agent] = p
		}
		got := p.ExplainCast(readCast(t, r.File), detect.ExplainOptions{Mode: detect.Both})
		want, ok := r.wants()
		if !ok {
			if testing.Verbose() {
				t.Logf("unlabelled %s: %s", r.File, judgeCast([]string{"-"}, got))
			}
			continue
		}
		labelled[r.Agent]++
		bad := judgeCast(want, got)
		if bad == "" {
			right[r.Agent]++
		} else if len(want) == 0 {
			alarms++
		}
		switch why, known := misses[r.File]; {
		case bad != "" && !known:
			t.Errorf("%s: %s", r.File, bad)
		case bad == "" && known:
			t.Errorf("%s is right now: take it off known-misses.txt (%s)", r.File, why)
		}
	}
	var names []string
	for a := range labelled {
		names = append(names, a)
	}
	sort.Strings(names)
	for _, a := range names {
		t.Logf("%-9s %3d of %3d recordings", a, right[a], labelled[a])
	}
	t.Logf("false alarms: %d", alarms)
}

// TestPaintedSessions replays sessions that no real agent was recorded in,
// painted in its style: a limit below an old banner or below a tool's 429, of a
// subagent, in a narrow window, behind a dialog, after /login or a compaction;
// two limits in one session; prompts, answers, files and pagers that hold the
// agent's very rows.
func TestPaintedSessions(t *testing.T) {
	detect.OneGoroutine(t)
	all := recordingsIn(t, "painted")
	for _, r := range all {
		want, _ := r.wants()
		got := profile(t, r.Agent).ExplainCast(readCastIn(t, "painted", r.File), detect.ExplainOptions{Mode: detect.Both})
		if bad := judgeCast(want, got); bad != "" {
			t.Errorf("%s: %s", r.File, bad)
		}
	}
	if len(all) < 60 {
		t.Errorf("%d sessions only", len(all))
	}
}

// slowed is a recording whose writes arrive in pieces, step apart: a terminal
// at the end of a slow line.
func slowed(c *detect.Cast, step time.Duration, r *rand.Rand) *detect.Cast {
	out := *c
	out.Events = nil
	last := time.Duration(0)
	for _, e := range c.Events {
		e.At = max(e.At, last)
		for rest := e.Data; rest != ""; e.At += step {
			n := len(rest)
			if e.Kind == 'o' {
				n = min(n, []int{1, 3, 17, 60, 200, 1000}[r.IntN(6)])
			}
			e.Data, rest = rest[:n], rest[n:]
			out.Events, last = append(out.Events, e), e.At
		}
	}
	return &out
}

// TestSlowRecordings: half a frame or row is nobody's word. Codex' and every fifth
// of the other recordings, all
// with QSHIM_LONG=1.
func TestSlowRecordings(t *testing.T) {
	detect.OneGoroutine(t)
	misses := known(t, "testdata/known-misses.txt")
	for _, dir := range []string{"casts", "painted"} {
		for i, r := range recordingsIn(t, dir) {
			want, ok := r.wants()
			if !ok || misses[r.File] != "" || i%5 != 0 && !strings.Contains(r.File, "dashp") && r.Agent != "codex" && os.Getenv("QSHIM_LONG") == "" {
				continue
			}
			c := slowed(readCastIn(t, dir, r.File), 2*time.Millisecond, rand.New(rand.NewPCG(uint64(i), 8)))
			if bad := judgeCast(want, profile(t, r.Agent).ExplainCast(c, detect.ExplainOptions{Mode: detect.Both})); bad != "" {
				t.Errorf("%s: %s", r.File, bad)
			}
		}
	}
}
