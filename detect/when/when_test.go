package when

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"qshim/detect/finding"
)

// record is one line of testdata/*.jsonl. want absent: nothing may be read.
// retry: only a client's own next try is stated, after seconds from now.
type record struct {
	ID, Text string
	Now      time.Time
	TZ       string
	Within   string // empty: Window(text), as a caller would
	Want     *time.Time
	Alt      []time.Time
	After    *float64
	Retry    bool
	Source   finding.ResetSource
}

func records(t testing.TB) []record {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	var all []record
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r record
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Fatalf("%s: %v in %s", name, err, lines.Text())
			}
			all = append(all, r)
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func (r record) parse(t testing.TB, text string) (Time, bool) {
	t.Helper()
	return parseWithin(t, r, text, Window(text))
}

func parseWithin(t testing.TB, r record, text string, within time.Duration) (Time, bool) {
	t.Helper()
	loc, err := time.LoadLocation(r.TZ)
	if err != nil {
		t.Fatalf("%s: %v", r.ID, err)
	}
	if r.Within != "" {
		if within, err = time.ParseDuration(r.Within); err != nil {
			t.Fatalf("%s: %v", r.ID, err)
		}
	}
	return Parse(text, r.Now, loc, within)
}

// judge says what is wrong with an answer, "" if nothing is.
func (r record) judge(got Time, ok bool) string {
	switch {
	case r.Want == nil && !r.Retry:
		if ok {
			return "read " + got.At.Format(time.RFC3339) + " where nothing is stated"
		}
		return ""
	case !ok:
		return "read nothing"
	case got.Retry != r.Retry:
		return "own retry and reset confused"
	case r.Source != "" && got.Source != r.Source:
		return "source " + string(got.Source) + ", want " + string(r.Source)
	case r.After != nil && !got.HasAfter:
		return "no delay read"
	case r.After != nil && (got.After-time.Duration(*r.After*1e9)).Abs() > time.Millisecond:
		return "delay " + got.After.String()
	case got.Elapsed != !got.At.After(r.Now):
		return "Elapsed disagrees with At"
	case r.Retry:
		return ""
	}
	for _, want := range append([]time.Time{*r.Want}, r.Alt...) {
		if got.At.Sub(want).Abs() <= time.Second {
			return ""
		}
	}
	return "read " + got.At.Format(time.RFC3339Nano) + ", want " + r.Want.Format(time.RFC3339)
}

func TestRecords(t *testing.T) {
	all := records(t)
	right := 0
	for _, r := range all {
		got, ok := r.parse(t, r.Text)
		if wrong := r.judge(got, ok); wrong != "" {
			t.Errorf("%s: %s\nnow %s %s\n%s", r.ID, wrong, r.Now.Format(time.RFC3339), r.TZ, r.Text)
			continue
		}
		right++
	}
	t.Logf("%d of %d records right", right, len(all))
}
