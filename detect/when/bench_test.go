package when

import (
	"testing"
	"time"
)

func BenchmarkParse(b *testing.B) {
	now := time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)
	for _, c := range []struct{ name, text string }{
		{"banner", "  ⎿  You've hit your 5-hour limit · resets 6:45pm (America/New_York)"},
		{"wrapped", "■ You’ve hit your usage limit. Upgrade to Pro (https://\nchatgpt.com/explore/pro), visit https://chatgpt.com/\nsettings/usage to purchase more credits or try again at 5:45\nPM."},
		{"json", `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795978529,"rateLimitType":"five_hour","isUsingOverage":false}}`},
		{"nothing", "● API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment."},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Parse(c.text, now, time.UTC, 0)
			}
		})
	}
}
