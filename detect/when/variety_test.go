package when

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// anchors are sentences that state when a limit ends; %s is the instant with
// its preposition.
var anchors = []string{
	"You've hit your limit · resets %s", "Try again %s.", "Please try again %s", "Rate limit exceeded. Retry %s",
	"Your quota will reset %s.", "Access will be restored %s", "available again %s", "You can send messages again %s",
	"Usage limit reached. It will be refreshed %s", "wait %s before trying again", "Next reset: %s", "limit lifts %s",
	"resets %s · /upgrade to Max", "Quota exceeded (resets %s)", "You are blocked until then: come back %s",
	"The limit resets\n     %s", "next request allowed %s",
}

// stated prints an instant as agents and providers do. ahead is how far ahead
// the form can tell, zoned that it says its zone.
var stated = []struct {
	name  string
	print func(t time.Time, zone string) string
	ahead time.Duration
	zoned bool
}{
	{"3pm (Zone)", func(t time.Time, z string) string { return "at " + t.Format("3:04pm") + " (" + z + ")" }, 23 * time.Hour, true},
	{"after 15:04", func(t time.Time, z string) string { return "after " + t.Format("15:04") }, 23 * time.Hour, false},
	{"at 15:04:05 Zone", func(t time.Time, z string) string { return "at " + t.Format("15:04:05") + " " + z }, 23 * time.Hour, true},
	{"by 3:04 p.m.", func(t time.Time, z string) string {
		return "by " + strings.NewReplacer("am", "a.m.", "pm", "p.m.").Replace(t.Format("3:04 pm"))
	}, 23 * time.Hour, false},
	{"offset", func(t time.Time, z string) string { return "at " + t.Format("15:04") + " UTC" + t.Format("-07:00") }, 23 * time.Hour, true},
	{"weekday", func(t time.Time, z string) string { return "on " + t.Format("Monday at 3:04 PM") + " (" + z + ")" }, 6 * day, true},
	{"short weekday", func(t time.Time, z string) string { return t.Format("Mon 15:04") }, 6 * day, false},
	{"weekday behind", func(t time.Time, z string) string { return "at " + t.Format("15:04 on Monday") }, 6 * day, false},
	{"Jan 2", func(t time.Time, z string) string { return t.Format("Jan 2, 3:04pm") + " (" + z + ")" }, 180 * day, true},
	{"Jan 2nd at", func(t time.Time, z string) string {
		return "on " + t.Format("January 2") + nth(t.Day()) + t.Format(" at 3:04 PM")
	}, 180 * day, false},
	{"2nd of January", func(t time.Time, z string) string {
		return "on the " + t.Format("2") + nth(t.Day()) + t.Format(" of January at 15:04")
	}, 180 * day, false},
	{"2 Jan 2006", func(t time.Time, z string) string { return "on " + t.Format("2 Jan 2006, 15:04") + " " + z }, 300 * day, true},
	{"Jan 2, 2006", func(t time.Time, z string) string {
		return "at " + t.Format("Jan 2, 2006, 3:04:05 PM") + " [" + z + "]"
	}, 300 * day, true},
	{"1/2/2006", func(t time.Time, z string) string { return "at " + t.Format("1/2/2006, 3:04:05 PM") }, 25 * day, false},
	{"iso", func(t time.Time, z string) string { return "at " + t.Format("2006-01-02 15:04") }, 300 * day, false},
	{"iso zone", func(t time.Time, z string) string { return "at " + t.Format("2006-01-02 15:04:05") + " (" + z + ")" }, 300 * day, true},
	{"RFC 3339", func(t time.Time, z string) string { return "at " + t.Format(time.RFC3339Nano) }, 300 * day, true},
	{"RFC 1123", func(t time.Time, z string) string { return "at " + t.Format(time.RFC1123Z) }, 300 * day, true},
	{"HTTP", func(t time.Time, z string) string { return "after " + t.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT") }, 300 * day, true},
	{"date(1)", func(t time.Time, z string) string { return "at " + t.UTC().Format("Mon Jan _2 15:04:05 UTC 2006") }, 300 * day, true},
	{"Go", func(t time.Time, z string) string { return "at " + t.UTC().Format("2006-01-02 15:04:05 +0000 UTC") }, 300 * day, true},
	{"epoch", func(t time.Time, z string) string { return fmt.Sprintf("at %d", t.Unix()) }, 300 * day, true},
	{"milliseconds", func(t time.Time, z string) string { return fmt.Sprintf("at %d", t.UnixMilli()) }, 300 * day, true},
}

func nth(d int) string {
	switch {
	case d%10 == 1 && d != 11:
		return "st"
	case d%10 == 2 && d != 12:
		return "nd"
	case d%10 == 3 && d != 13:
		return "rd"
	}
	return "th"
}

// TestStatedInstants prints random instants in random zones in every form
// behind every anchor and reads them back. What the zone shows twice may be
// either; the later is expected.
func TestStatedInstants(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 5))
	bad := 0
	for _, form := range stated {
		for _, anchor := range anchors {
			zone := zones[rnd.IntN(len(zones))]
			loc, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			want := time.Unix(1704067200+rnd.Int64N(6*365*86400), 0).Truncate(time.Minute).In(loc)
			now := want.Add(-time.Duration(rnd.Int64N(int64(form.ahead)))).Add(-time.Second)
			machine := loc
			if form.zoned {
				machine = time.FixedZone("elsewhere", -7*3600)
			}
			text := fmt.Sprintf(anchor, form.print(want, zone))
			got, ok := Parse(text, now, machine, 0)
			expect := want
			if !strings.ContainsAny(form.name, "RGHmed") || !got.At.Equal(want) {
				expect = later(want, loc)
			}
			if !ok || !got.At.Equal(expect) && !got.At.Equal(want) || got.Elapsed {
				if bad++; bad < 40 {
					t.Errorf("%s: %q at %s: got %v %v, want %v", form.name, text, now.UTC(), got.At, ok, expect.UTC())
				}
			}
		}
	}
	t.Logf("%d sentences", len(stated)*len(anchors))
}

// lengths prints a duration in every spelling that agents, providers and
// libraries use.
var lengths = []func(d time.Duration) string{
	func(d time.Duration) string { return d.String() },
	func(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) },
	func(d time.Duration) string { return fmt.Sprintf("%d seconds", int(d.Seconds())) },
	func(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) },
	func(d time.Duration) string { return fmt.Sprintf("%.1f seconds", d.Seconds()) },
	func(d time.Duration) string { return units3(d, " hours", " minutes", " seconds", ", ", " and ") },
	func(d time.Duration) string { return units3(d, "h", "m", "s", " ", " ") },
	func(d time.Duration) string { return units3(d, " hrs", " mins", " secs", " ", " ") },
	func(d time.Duration) string { return units3(d, "hr", "min", "sec", "", "") },
	func(d time.Duration) string { return units3(d, " Hours", " Minutes", " Seconds", ", ", ", and ") },
	func(d time.Duration) string {
		return fmt.Sprintf("PT%dH%dM%dS", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	},
	func(d time.Duration) string {
		return fmt.Sprintf("%dd %dh %dm %ds", int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60)
	},
	func(d time.Duration) string {
		return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	},
}

func units3(d time.Duration, h, m, s, comma, and string) string {
	return fmt.Sprintf("%d%s%s%d%s%s%d%s", int(d.Hours()), h, comma, int(d.Minutes())%60, m, and, int(d.Seconds())%60, s)
}

// TestStatedLengths reads random delays back in every spelling behind the
// words that announce one.
func TestStatedLengths(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 1))
	now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
	for i, length := range lengths {
		for _, ahead := range []string{"in %s", "in about %s", "in ~%s", "in approximately %s.", "(in %s)", "for another %s"} {
			for _, anchor := range []string{"Please try again %s", "Your limit will reset %s", "rate limited, wait %s", "resets %s · /usage", "You can continue %s", "blocked %s"} {
				if strings.HasPrefix(anchor, "blocked") && strings.HasPrefix(ahead, "(") {
					continue
				}
				d := time.Duration(1+rnd.IntN(36*3600)) * time.Second
				text := fmt.Sprintf(anchor, fmt.Sprintf(ahead, length(d)))
				got, ok := Parse(text, now, time.UTC, 0)
				if !ok || !got.HasAfter || got.After != d || !got.At.Equal(now.Add(d)) {
					t.Errorf("%d: %q: %v %v, want %v", i, text, got.After, ok, d)
				}
			}
		}
	}
}

// TestUnknownRatherThanGuessed: what could mean two things, or is another
// language's date, is no time.
func TestUnknownRatherThanGuessed(t *testing.T) {
	now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
	for _, text := range []string{
		"resets am 2. Dezember um 9 Uhr", "se restablece el 2 de diciembre a las 9:00", "Réinitialisation le 2 décembre à 9h00",
		"resets 02.12. 09:00", "resets 2.12.2026 09:00", "resets 12/02 at 9:00 AM", "try again in 12:30", "resets at 9h",
		"resets at 1845", "resets next week", "resets in a few minutes", "resets in 1 month", "resets every 5 hours",
		"Try again later today", "try again in the next hour", "resets at 25:00", "resets Feb 30", "resets on the 32nd",
		"resets at the end of the billing period", "again and again 5 times", "blocked 5 requests", "locked 3 files",
		"limited to 30 per minute", "throttled 12 of 40 calls", "resets on 2026-13-01", "resets at 10:61", "resets soon",
		"resets P5M", "wait PTM", "retry after P", "resets 18h75",
	} {
		if got, ok := Parse(text, now, time.UTC, 0); ok {
			t.Errorf("%q: %v (%s)", text, got.At, got.Source)
		}
	}
}

// TestDayEnds: periods that end at midnight of the zone that the text names.
func TestDayEnds(t *testing.T) {
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	for _, zone := range []struct {
		text string
		loc  *time.Location
	}{{"UTC", time.UTC}, {"Pacific", la}, {"Pacific Time", la}, {"PT", la}, {"(America/Los_Angeles)", la}} {
		for h := range 400 {
			now := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC).Add(time.Duration(h) * 7 * time.Hour)
			y, m, d := now.In(zone.loc).Date()
			for text, want := range map[string]time.Time{
				"quota resets at midnight " + zone.text:                            time.Date(y, m, d+1, 0, 0, 0, 0, zone.loc),
				"resets daily at midnight " + zone.text:                            time.Date(y, m, d+1, 0, 0, 0, 0, zone.loc),
				"resets every day at 00:00 " + zone.text:                           time.Date(y, m, d+1, 0, 0, 0, 0, zone.loc),
				"resets at the end of the day " + zone.text:                        time.Date(y, m, d+1, 0, 0, 0, 0, zone.loc),
				"resets on the first day of next month " + zone.text:               time.Date(y, m+1, 1, 0, 0, 0, 0, zone.loc),
				"resets at 00:00 " + zone.text + " on the first day of next month": time.Date(y, m+1, 1, 0, 0, 0, 0, zone.loc),
				"resets at the end of the month " + zone.text:                      time.Date(y, m+1, 1, 0, 0, 0, 0, zone.loc),
				"available tomorrow at 9am " + zone.text:                           time.Date(y, m, d+1, 9, 0, 0, 0, zone.loc),
			} {
				got, ok := Parse(text, now, time.FixedZone("elsewhere", 9*3600), 0)
				late := now.Sub(want.AddDate(0, 0, -1))
				if strings.Contains(text, "month") {
					late = grace + 1
				}
				if late <= grace && !strings.Contains(text, "tomorrow") {
					continue // it has just elapsed
				}
				if !ok || !got.At.Equal(want) {
					t.Fatalf("%q at %s: %v %v, want %v", text, now, got.At, ok, want.UTC())
				}
			}
		}
	}
}
