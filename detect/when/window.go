package when

import (
	"regexp"
	"strconv"
	"time"
)

// counted is a window named by its length: "5-hour limit", "5h limit", "limit
// reached for 5 hour", "7-day quota".
var counted = lazily(`\b(\d{1,3})[\s-]?(h|hrs?|hours?|d|days?)\b(?:\s+\S+)?\s+(?:limit|window|quota)|` +
	`limit\s+reached\s+for\s+(\d{1,3})[\s-]?(hours?|days?)`)

// named are windows by name. Claude calls its 5-hour window "session limit"
// (2.1.197).
var named = []struct {
	re  func() *regexp.Regexp
	len time.Duration
}{
	{lazily(`\bsession\s+limit\b`), 5 * time.Hour},
	{lazily(`\b(?:daily|per\s+day|perday|tpd|rpd)\b|-per-day\b`), 25 * time.Hour}, // a day of a DST change has 25
	{lazily(`\bweekly\b`), 7 * day},
	{lazily(`\b(?:monthly|per\s+month|billing\s+cycle)\b`), 31 * day},
}

// Window is the longest usage window that text names, 0 if it names none: what
// Parse takes as within.
func Window(text string) time.Duration {
	l := lower(clean(text))
	longest := time.Duration(0)
	for _, m := range counted().FindAllStringSubmatch(l, maxStatements) {
		n, unit := m[1]+m[3], m[2]+m[4]
		count, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		length := time.Duration(count) * time.Hour
		if unit[0] == 'd' {
			length = time.Duration(count) * day
		}
		longest = max(longest, min(length, maxWait))
	}
	for _, n := range named {
		if n.len > longest && n.re().MatchString(l) {
			longest = n.len
		}
	}
	return longest
}
