package when

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"qshim/detect/finding"
)

// zones of every kind: whole, half and quarter hours, both hemispheres, half an
// hour of summer time (Lord Howe), none, and 13 hours east.
var zones = []string{
	"UTC", "America/New_York", "America/Los_Angeles", "America/Chicago", "America/Phoenix", "America/St_Johns",
	"America/Sao_Paulo", "America/Argentina/Buenos_Aires", "America/Santiago", "Europe/Dublin", "Europe/London",
	"Europe/Berlin", "Europe/Moscow", "Africa/Johannesburg", "Asia/Kolkata", "Asia/Calcutta", "Asia/Kathmandu",
	"Asia/Shanghai", "Asia/Tokyo", "Australia/Adelaide", "Australia/Sydney", "Australia/Lord_Howe",
	"Pacific/Auckland", "Pacific/Apia", "Pacific/Chatham", "Pacific/Honolulu",
}

// forms are how agents print an instant, as date(1) formats; ahead is how far
// ahead the form can tell.
var forms = []struct {
	format string
	ahead  time.Duration
	local  bool // the zone is not printed
}{
	{"You've hit your limit · resets %-I:%M%P (ZONE)", 23 * time.Hour, false},
	{"Your limit resets at %H:%M", 23 * time.Hour, true},
	{"resets %b %-d, %-I:%M%P (ZONE)", 180 * day, false},
	{"resets %a %-I:%M%P (ZONE)", 6 * day, false},
	{"Try again at %b %-dth, %Y %-I:%M %p.", 300 * day, true},
	{"You will regain access on %Y-%m-%d at %H:%M (ZONE)", 300 * day, false},
	{"reset on %B %-d, %Y at %-I:%M %p (ZONE)", 300 * day, false},
	{"resets at %Y-%m-%dT%H:%M:%S%:z", 300 * day, false},
	{"Retry-After: %a, %d %b %Y %H:%M:%S %z", 300 * day, false},
	{"resets %d %B %Y %H:%M %:z", 300 * day, false},
}

// TestAgainstDate has GNU date print random instants in many zones in the
// agents' forms and reads them back. Where the zone's clock shows that time
// twice, the later one is expected.
func TestAgainstDate(t *testing.T) {
	if out, err := exec.Command("date", "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU")) {
		t.Skip("no GNU date here")
	}
	if out := dateIn(t, "Asia/Kolkata", "%z", []time.Time{time.Unix(0, 0)}); out[0] != "+0530" {
		t.Skip("GNU date has no zoneinfo files here")
	}
	rnd := rand.New(rand.NewPCG(4, 11))
	checked, twice := 0, 0
	for _, zone := range zones {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range forms {
			want := make([]time.Time, 15)
			for i := range want {
				want[i] = time.Unix(1704067200+rnd.Int64N(6*365*86400), 0).UTC()
				if i%3 == 0 { // around a change of the clocks
					want[i] = nearChange(want[i], loc).Add(time.Duration(rnd.IntN(240)-120) * time.Minute)
				}
				want[i] = want[i].Truncate(time.Minute)
			}
			printed := dateIn(t, zone, strings.ReplaceAll(form.format, "ZONE", zone), want)
			for i, text := range printed {
				machine := loc
				if !form.local {
					machine = time.FixedZone("elsewhere", -7*3600)
				}
				now := want[i].Add(-time.Duration(rnd.Int64N(int64(form.ahead)))).Add(-time.Second)
				got, ok := Parse(text, now, machine, 0)
				expect := later(want[i], loc)
				if strings.Contains(form.format, "%:z") || strings.Contains(form.format, "%z") {
					expect = want[i] // the offset tells the two apart
				}
				if !expect.Equal(want[i]) {
					twice++
				}
				if !ok || !got.At.Equal(expect) {
					t.Errorf("%q at %s in %s: got %v %v, want %v", text, now, machine, got.At, ok, expect)
				}
				checked++
			}
		}
	}
	t.Logf("%d instants, %d of them at a time that happens twice", checked, twice)
}

// dateIn prints instants with GNU date, one process for all of them.
func dateIn(t *testing.T, zone, format string, at []time.Time) []string {
	t.Helper()
	var in strings.Builder
	for _, a := range at {
		fmt.Fprintf(&in, "@%d\n", a.Unix())
	}
	cmd := exec.Command("date", "-f", "-", "+"+format)
	cmd.Env = []string{"TZ=" + zone, "LC_ALL=C", "PATH=/usr/bin:/bin"}
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("date: %v", err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != len(at) {
		t.Fatalf("date printed %d lines for %d instants", len(lines), len(at))
	}
	return lines
}

// later is the last instant at which the zone shows what it shows at t.
func later(t time.Time, loc *time.Location) time.Time {
	const wall = "2006-01-02 15:04:05"
	shown := t.In(loc).Format(wall)
	for m := 120; m > 0; m-- {
		if c := t.Add(time.Duration(m) * time.Minute); c.In(loc).Format(wall) == shown {
			return c
		}
	}
	return t
}

// TestClockAgainstBruteForce checks clock times without a date against a walk
// over every minute: what the zone shows, not how dates are computed.
func TestClockAgainstBruteForce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 3))
	for range 800 {
		zone := zones[rnd.IntN(len(zones))]
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1704067200+rnd.Int64N(6*365*86400), 0).UTC()
		if rnd.IntN(3) == 0 { // close to a change of the clocks
			now = nearChange(now, loc).Add(time.Duration(rnd.IntN(30*60)-27*60) * time.Minute)
		}
		h, m := rnd.IntN(24), rnd.IntN(60)
		text := fmt.Sprintf("limit resets %d:%02d (%s)", h, m, zone)
		want, exists := walk(now, h, m, loc)
		got, ok := Parse(text, now, time.UTC, 0)
		if !exists {
			if !ok {
				t.Errorf("%q at %s in a gap: nothing read", text, now)
			}
			continue
		}
		if !ok || !got.At.Equal(want) || got.Source != finding.Zoned || got.Elapsed != !want.After(now) {
			t.Errorf("%q at %s: got %+v %v, want %v", text, now, got, ok, want.UTC())
		}
	}
}

// walk finds the instant meant by hh:mm at now: one up to ten minutes ago, else
// the next; of two within three hours the later, if that is still ahead.
func walk(now time.Time, h, m int, loc *time.Location) (time.Time, bool) {
	shows := func(at time.Time) bool {
		l := at.In(loc)
		return l.Hour() == h && l.Minute() == m
	}
	start := now.Truncate(time.Minute)
	for at := start.Add(-10 * time.Minute); at.Before(now.Add(27 * time.Hour)); at = at.Add(time.Minute) {
		if now.Sub(at) > 10*time.Minute || !shows(at) {
			continue
		}
		if skipsDay(now, at, h, m, loc) {
			return time.Time{}, false
		}
		return later(at, loc), true
	}
	return time.Time{}, false
}

// skipsDay reports whether the clock jumps over hh:mm between now and at: then
// an instant in the gap is meant, which no clock shows.
func skipsDay(now, at time.Time, h, m int, loc *time.Location) bool {
	for c := now.Add(-11 * time.Minute).Truncate(time.Minute); c.Before(at); c = c.Add(time.Minute) {
		_, before := c.In(loc).Zone()
		_, after := c.Add(time.Minute).In(loc).Zone()
		if after <= before {
			continue
		}
		l := c.In(loc)
		from := l.Hour()*60 + l.Minute() + 1
		gap := (after - before) / 60
		if d := (h*60 + m - from + 2880) % 1440; d < gap {
			return true
		}
	}
	return false
}

// nearChange is a change of the zone's clocks after t, or t if there is none.
func nearChange(t time.Time, loc *time.Location) time.Time {
	_, end := t.In(loc).ZoneBounds()
	if end.IsZero() {
		return t
	}
	return end.UTC()
}
