package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The test binary plays the parts that the tool does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && part(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

func TestQuantile(t *testing.T) {
	v := []float64{9, 1, 3}
	for q, want := range map[float64]float64{0: 1, 0.25: 2, 0.5: 3, 0.75: 6, 1: 9} {
		if got := quantile(v, q); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if quantile([]float64{4}, 0.9) != 4 || v[0] != 9 {
		t.Error("one value is every quantile, and the values stay as they were")
	}
}

// A ratio is that of one round: a round that has only one of the two has none.
func TestRatiosAreOfOneRound(t *testing.T) {
	f := &figure{name: "x", most: 1.5, ofBare: true}
	tab := newTable([]wrapper{{name: bareName}, {name: "qshim"}})
	for _, round := range []struct{ bare, qshim float64 }{{1, 2}, {100, 150}, {0, 7}, {10, 10}} {
		tab.rounds++
		if round.bare > 0 {
			tab.add(bareName, sample{f: round.bare})
		}
		tab.add("qshim", sample{f: round.qshim})
	}
	r := tab.ratios("qshim", f)
	if len(r) != 3 || quantile(r, 0) != 1 || quantile(r, 0.5) != 1.5 || quantile(r, 1) != 2 {
		t.Errorf("ratios %v", r)
	}
	if got := f.verdict(tab.values("qshim", f), r); got != "  (at most x 1.5: met)" {
		t.Error(got)
	}
	if got := (&figure{most: 8}).verdict(tab.values("qshim", f), r); got != "  (at most 8: missed)" {
		t.Error(got)
	}
	if got := (&figure{}).verdict([]float64{1}, r) + (&figure{most: 1, ofBare: true}).verdict([]float64{1}, nil); got != "" {
		t.Errorf("a verdict without a target or a ratio: %q", got)
	}
}

func TestTableSaysWhatFailed(t *testing.T) {
	tab := newTable([]wrapper{{name: bareName}, {name: "tmux"}})
	tab.rounds = 1
	tab.add(bareName, sample{figStart: 2.5})
	tab.fail("tmux", errors.New("no terminal"))
	var out bytes.Buffer
	tab.print(&out)
	for _, want := range []string{"start and exit, ms", "2.50 [2.50-2.50]", "failed: round 1, tmux: no terminal"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "NaN") {
		t.Error(out.String())
	}
}

func TestParseStat(t *testing.T) {
	for in, want := range map[string][2]int{
		"7 (sh) S 3 7 7 34816":      {7, 3},
		"42 (a) R 9 (b) c) Z 1 2 3": {42, 1},
		"":                          {},
		"7 (sh":                     {},
		"7 (sh) S":                  {},
		"x (sh) S 3":                {},
	} {
		pid, parent, ok := parseStat([]byte(in))
		if ok != (want[0] > 0) || ok && (pid != want[0] || parent != want[1]) {
			t.Errorf("%q: %d %d %v", in, pid, parent, ok)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got := parseStatus([]byte("Name:\tVmRSS: 9 kB\nVmHWM:\t  999 kB\nVmRSS:\t    4321 kB\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"))
	if got != (usage{kib: 4321, switches: 15}) {
		t.Errorf("%+v", got)
	}
	if got := parseStatus([]byte("VmRSS: -4 kB\nVmRSS\n:")); got != (usage{}) {
		t.Errorf("nonsense: %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("42 (a) R 9 (b) c) Z 1 2 3"))
	f.Add([]byte("VmRSS:\t    4321 kB\nvoluntary_ctxt_switches:\t12\n"))
	f.Add([]byte("/x/bench\x00__hog\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if pid, parent, ok := parseStat(b); ok && (pid <= 0 || parent < 0) {
			t.Errorf("%d %d", pid, parent)
		}
		if u := parseStatus(b); u.kib < 0 {
			t.Errorf("%+v", u)
		}
		playsWorkload(b)
	})
}

func TestWhoIsTheWorkload(t *testing.T) {
	for line, want := range map[string]bool{
		"/x/bench\x00__hog\x00": true, "/x/bench\x00__echo\x00": true,
		"/x/bench\x00__bare\x00/x/bench\x00__hog\x00": false, "/x/bench\x00./qshim\x00": false, "/x/bench\x00": false, "": false,
	} {
		if got := playsWorkload([]byte(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestDescends(t *testing.T) {
	parents := map[int]int{2: 1, 3: 2, 4: 3, 8: 9, 9: 8}
	for pid, want := range map[int]bool{3: true, 4: true, 2: false, 8: false, 77: false} {
		if got := descends(parents, pid, 2); got != want {
			t.Errorf("%d: %v", pid, got)
		}
	}
}

func TestQuote(t *testing.T) {
	words := []string{"a b", "it's", `"$HOME"`, ""}
	out, err := exec.Command("sh", "-c", `printf '<%s>' `+quote(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`<a b><it's><"$HOME"><>`, string(out)); diff != "" {
		t.Error(diff)
	}
}

// TestFrameHasNoMark: the marks of the workloads end a measurement.
func TestFrameHasNoMark(t *testing.T) {
	if i := bytes.IndexAny(frame(), string(readyMark)+string(doneMark)+echoMarks); i >= 0 {
		t.Errorf("a mark at %d", i)
	}
}

// TestSmallTable measures for real, with the bare loop in qshim's place, and
// nothing is left.
func TestSmallTable(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	h, all := newTestHarness(t)
	tab := measure(h, all, options{rounds: 1, keys: 20, mib: 1, window: 100 * time.Millisecond})
	for _, line := range tab.failed {
		t.Error(line)
	}
	for _, f := range []*figure{figStart, figStartCPU, figEcho50, figEcho90, figLines, figFrames} {
		for _, w := range all {
			if v := tab.values(w.name, f); len(v) != 1 || v[0] <= 0 {
				t.Errorf("%s, %s: %v", f.name, w.name, v)
			}
		}
	}
	if runtime.GOOS == "linux" {
		if v := tab.values(bareName, figSpin); len(v) != 1 || v[0] < 12 {
			t.Errorf("a spinner's context switches of the bare loop: %v", v)
		}
		if v := tab.values(bareName, figFloodRSS); len(v) != 1 || v[0] < 0.5 {
			t.Errorf("its memory: %v", v)
		}
	}
}

// TestBounded: a bench that takes too long prints what it has, is no failure, and
// leaves nothing.
func TestBounded(t *testing.T) {
	leaves(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	env, err := exec.LookPath("env") // which runs a command, as qshim does
	if err != nil {
		t.Fatal(err)
	}
	if err := bench(t.Context(), env, options{rounds: 1 << 30, keys: 10, mib: 1, window: time.Hour, most: 300 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(tmp); len(left) > 0 || err != nil {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestInterrupted: what runs when the user has enough is ended at once, also a
// command that would run for ever, and no round begins.
func TestInterrupted(t *testing.T) {
	h, all := newTestHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.ctx = ctx
	r, err := h.start(all[1], h.self, hogWord)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.until(readyMark); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, _, err := r.toEnd(); !errors.Is(err, errCut) {
		t.Errorf("%v, want %v", err, errCut)
	}
	r.end()
	if tab := measure(h, all, options{rounds: 3}); tab.rounds != 0 {
		t.Errorf("%d rounds", tab.rounds)
	}
}

func TestNoBinary(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	if err := bench(t.Context(), filepath.Join(tmp, "nowhere"), options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if left, err := os.ReadDir(tmp); len(left) > 0 || err != nil {
		t.Errorf("left: %v %v", left, err)
	}
}

func newTestHarness(t *testing.T) (*harness, []wrapper) {
	t.Helper()
	leaves(t)
	dir := t.TempDir()
	h, err := newHarness(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := wrappers(h.self, "qshim", dir)
	if err != nil {
		t.Fatal(err)
	}
	return h, all[:2]
}
