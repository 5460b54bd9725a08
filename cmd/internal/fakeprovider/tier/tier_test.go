package tier

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What a bucket promises it keeps: after the stated wait the same request passes,
// and in any stretch of time it gives at most a full bucket plus the refill.
func TestBucketKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		rate := rapid.IntRange(1, 100000).Draw(t, "perMinute")
		burst := rapid.Float64Range(0.01, 2).Draw(t, "burst")
		b := NewBucket(rate, burst, now)
		begin, taken := now, 0.0
		for range rapid.IntRange(1, 50).Draw(t, "requests") {
			n := rapid.Float64Range(1, b.Full).Draw(t, "n")
			if w := b.Wait(now, n); w > 0 {
				now = now.Add(w)
				if again := b.Wait(now, n); again > 0 {
					t.Fatal(fmt.Sprintf("waited %v for %v, told to wait %v more", w, n, again))
				}
			}
			b.Take(now, n)
			taken += n
			now = now.Add(time.Duration(rapid.IntRange(0, 10000).Draw(t, "pause")) * time.Millisecond)
		}
		if most := b.Full + now.Sub(begin).Minutes()*float64(rate); taken > most+1e-3 {
			t.Fatalf("gave %v of at most %v", taken, most)
		}
	})
}
