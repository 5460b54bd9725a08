package shim

import (
	"time"

	"qshim/detect/screen"
)

// fewRows is what an agent that only waits paints within quiet: its spinner
// row and a clock. A streamed answer changes more, since the screen scrolls.
const fewRows = 2

// calm tells an agent that paints from one that only shows that it waits.
type calm struct {
	since time.Time
	rows  []uint64 // versions at since
}

// broken reports whether more than a few rows have changed within quiet.
func (c *calm) broken(s *screen.Screen, now time.Time) bool {
	_, n := s.Size()
	if len(c.rows) != n || now.Sub(c.since) > quiet {
		c.mark(s, n, now)
		return false
	}
	changed := 0
	for y := range c.rows {
		if s.RowVersion(y) != c.rows[y] {
			changed++
		}
	}
	if changed <= fewRows {
		return false
	}
	c.mark(s, n, now)
	return true
}

func (c *calm) mark(s *screen.Screen, n int, now time.Time) {
	c.since, c.rows = now, c.rows[:0]
	for y := range n {
		c.rows = append(c.rows, s.RowVersion(y))
	}
}
