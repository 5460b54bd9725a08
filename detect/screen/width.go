package screen

import (
	"sync/atomic"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// widthPages holds the widths of 256 characters each, filled at first use:
// asking displaywidth costs 20 ns each time, a table at start 4 ms.
var widthPages [(utf8.MaxRune + 1) / 256]atomic.Pointer[[256]uint8]

// runeWidth is how many columns r takes: 0 joins the one before, 1 or 2.
func runeWidth(r rune) int {
	if r < 0x300 {
		if r >= 0x80 && r < 0xa0 {
			return 0
		}
		return 1
	}
	page := widthPages[r>>8].Load()
	if page == nil {
		page = new([256]uint8)
		for i := range page {
			page[i] = uint8(computeWidth(r&^0xff | rune(i)))
		}
		widthPages[r>>8].Store(page)
	}
	return int(page[r&0xff])
}

// computeWidth is displaywidth's, except where a terminal that reads character
// by character cannot follow it: there it is tmux 3.3a's (glibc's wcwidth).
func computeWidth(r rune) int {
	switch {
	case r >= 0x1f1e6 && r <= 0x1f1ff: // regional indicators, half a flag each
		return 1
	case r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7fb: // conjoining jamo
		return 0
	}
	return displaywidth.Rune(r)
}
