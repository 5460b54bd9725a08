package when

import (
	"strings"
	"testing"
	"time"

	"qshim/detect/finding"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"2h3m4s":                              2*time.Hour + 3*time.Minute + 4*time.Second,
		"34.074824224s":                       34074824224 * time.Nanosecond,
		"900ms":                               900 * time.Millisecond,
		"36658ms":                             36658 * time.Millisecond,
		"58 hours":                            58 * time.Hour,
		"3 days 6 hours 57 minutes":           78*time.Hour + 57*time.Minute,
		"2h 3m":                               2*time.Hour + 3*time.Minute,
		"143h32m18s":                          143*time.Hour + 32*time.Minute + 18*time.Second,
		"6m0s":                                6 * time.Minute,
		"1.5 hours":                           90 * time.Minute,
		"an hour":                             time.Hour,
		"~1 day":                              day,
		"less than a minute":                  time.Minute,
		"2 weeks":                             14 * day,
		"250µs":                               250 * time.Microsecond,
		"in 5 minutes.":                       5 * time.Minute,
		"1h 14m 17s":                          time.Hour + 14*time.Minute + 17*time.Second,
		"0s":                                  0,
		"5 minutes 3 hours":                   -1, // units must fall
		"5":                                   -1,
		"":                                    -1,
		"-5s":                                 -1,
		"5 months":                            -1,
		"401 days":                            -1,
		"99999999999999999999 h":              -1,
		"5 minutes ago":                       -1,
		"6pm":                                 -1,
		strings.Repeat("9", 200) + " seconds": -1,
	} {
		got, ok := Duration(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("Duration(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
}

func TestWindow(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"You've hit your 5-hour limit · resets 3pm":                       5 * time.Hour,
		"5h limit: only 4% left":                                          5 * time.Hour,
		"You've hit your session limit":                                   5 * time.Hour,
		"Usage limit reached for 5 hour.":                                 5 * time.Hour,
		"5 hour usage limit reached":                                      5 * time.Hour,
		"You've hit your weekly limit":                                    7 * day,
		"Your 7-day quota is used up":                                     7 * day,
		"You have exhausted your daily quota":                             25 * time.Hour,
		"Too many tokens per day":                                         25 * time.Hour,
		"You've hit your org's monthly spend limit · your weekly limit":   31 * day,
		"You've hit your limit · resets 3pm":                              0,
		"This request would exceed the rate limit of 50 requests per min": 0,
	} {
		if got := Window(text); got != want {
			t.Errorf("Window(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestProvenance checks which of several statements wins.
func TestProvenance(t *testing.T) {
	now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
	for _, c := range []struct {
		text   string
		source finding.ResetSource
	}{
		{`resets 6:45pm, resets 7:45pm (UTC), resets in 3h, "resetsAt":1795978800`, finding.Epoch},
		{`resets 6:45pm, resets 7:45pm (UTC), resets in 3h`, finding.Zoned},
		{`resets 6:45pm, resets in 3h`, finding.Local},
		{`resets in 3h`, finding.Relative},
	} {
		got, ok := Parse(c.text, now, time.UTC, 0)
		if !ok || got.Source != c.source {
			t.Errorf("%s: source %q %v, want %q", c.text, got.Source, ok, c.source)
		}
	}
}

// TestPrecision checks how coarse an answer says it is.
func TestPrecision(t *testing.T) {
	now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"resets 6pm":                       time.Minute,
		"resets on 2026-12-01":             day,
		"resets at 2026-12-01T00:00:00Z":   0,
		`"resetsAt":1795978800`:            0,
		"resets in 58 hours":               time.Hour,
		"resets in 2h 30m":                 time.Minute,
		"Please retry in 34.074824224s.":   time.Millisecond,
		"Try again in less than a minute.": time.Minute,
	} {
		if got, ok := Parse(text, now, time.UTC, 0); !ok || got.Precision != want {
			t.Errorf("%s: precision %v %v, want %v", text, got.Precision, ok, want)
		}
	}
}

// TestZoneNamesStayInTheDatabase checks that no text makes Parse open a file
// that is not a zone.
func TestZoneNamesStayInTheDatabase(t *testing.T) {
	for _, name := range []string{
		"../../etc/passwd", "/etc/passwd", "Local", "", "..", "America/../../../etc/passwd", "America//New_York",
		"a/b/c/d", strings.Repeat("A/", 40), "America/New_York\x00", "posix/../etc", `C:\Windows`,
	} {
		if _, ok := database(name); ok {
			t.Errorf("zone %q was loaded", name)
		}
	}
	for _, name := range []string{"America/New_York", "America/Argentina/Buenos_Aires", "Etc/GMT+3", "America/Port-au-Prince"} {
		if _, ok := database(name); !ok {
			t.Errorf("zone %q was not loaded", name)
		}
	}
}

// TestNeverSlides checks that the same text and time give the same answer, and
// that an answer does not depend on the zone of now.
func TestNeverSlides(t *testing.T) {
	for _, r := range records(t) {
		first, ok1 := r.parse(t, r.Text)
		r.Now = r.Now.In(time.FixedZone("", 9*3600))
		second, ok2 := r.parse(t, r.Text)
		if ok1 != ok2 || first != second {
			t.Errorf("%s: %+v, then %+v", r.ID, first, second)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range records(f) {
		f.Add(r.Text, r.Now.Unix(), r.TZ, int64(Window(r.Text)))
	}
	f.Add("resets 6:45pm (../../etc/passwd)", int64(1<<62), "UTC", int64(-1))
	f.Add("resets 0000-00-00T99:99:99+99:99", int64(-1<<62), "Asia/Tokyo", int64(1))
	f.Fuzz(func(t *testing.T, text string, unix int64, zone string, within int64) {
		loc, _ := database(zone) // nil means UTC
		now := time.Unix(unix, 0)
		got, ok := Parse(text, now, loc, time.Duration(within))
		if !ok {
			return
		}
		if d := got.At.Sub(now); unix > -1<<40 && unix < 1<<40 && d.Abs() > maxWait {
			t.Errorf("%q at %v: %v is %v away", text, now, got.At, d)
		}
		if got.HasAfter && (got.After < 0 || got.After > maxWait) {
			t.Errorf("%q: delay %v", text, got.After)
		}
		if got.Source.Rank() == 0 || got.Precision < 0 || got.Elapsed != !got.At.After(now) {
			t.Errorf("%q: %+v", text, got)
		}
		if again, _ := Parse(text, now, loc, time.Duration(within)); again != got {
			t.Errorf("%q: %+v, then %+v", text, got, again)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"2h3m4s", "34.074824224s", "1,013 seconds", "half an hour", "~1 day", "9223372036s", "1e9s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, ok := Duration(text); ok && (d < 0 || d > maxWait) {
			t.Errorf("%q: %v", text, d)
		}
		Window(text)
	})
}
