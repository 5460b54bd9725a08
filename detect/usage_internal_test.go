package detect

import (
	"testing"
	"time"

	"qshim/detect/finding"
)

// The rows of Claude Code 2.1.332 and Codex 0.171.0, as their pages have them.
func TestWarningsTellTheShare(t *testing.T) {
	for row, want := range map[string]Share{
		"        You've used 93% of your 5-hour limit · resets 6:52pm (UTC) · /upgrade to keep using Claude Code": {Used: 93, Window: 5 * time.Hour},
		"You've used 75% of your weekly limit · resets Dec 2, 6:52pm (UTC)":                                       {Used: 75, Window: 7 * 24 * time.Hour},
		"⚠ Heads up, you have less than 10% of your 5h limit left. Run /status for a breakdown.":                  {Used: 90, Window: 5 * time.Hour},
		"You've used 93% of your patience": {},
		"Approaching 5-hour limit":         {},
	} {
		w := newWatcher(Options{})
		w.warned(finding.Finding{Class: finding.Warning, Rows: []string{row}})
		var got Share
		if len(w.usage.Shares) > 0 {
			got = w.usage.Shares[0]
		}
		if got != want {
			t.Errorf("%q: %+v, want %+v", row, got, want)
		}
	}
}
