package when

import (
	"strings"
)

// readings returns the readings of row breaks: as a space (wrapped between
// words) and as nothing (cut inside a word or a number by a full row).
func readings(text string) []string {
	if !strings.Contains(text, "\n") {
		return []string{text}
	}
	var b strings.Builder
	b.Grow(len(text))
	for i, row := range strings.Split(text, "\n") {
		row = strings.TrimLeft(row, " ")
		if i > 0 && headerRow().MatchString(row) {
			b.WriteByte('\n')
		}
		b.WriteString(row)
	}
	return []string{text, b.String()}
}

// headerRow is a row that begins with an HTTP header: what a server sent was
// broken there by itself, not by a full row.
var headerRow = lazily(`^[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+:`)

// statements reads a text in both ways. Where the two overlap, the one that
// explains more of the text is right: "4 d / ays 20 hours" is four days in the
// first and twenty hours more in the second.
func statements(text string, q question) []statement {
	ways := readings(text)
	found := find(ways[0], q)
	if len(ways) == 1 {
		return found
	}
	inkOffsets(ways[0], found)
	mended := find(ways[1], q)
	inkOffsets(ways[1], mended)
	for _, s := range mended {
		found = replaceShorter(found, s)
	}
	return found
}

// replaceShorter puts s in the place of the statements that overlap it, if all
// of them explain less than s does, or as much, if s
// stands behind a key: a break is nothing in JSON, but cuts its numbers.
func replaceShorter(found []statement, s statement) []statement {
	kept := make([]statement, 0, len(found)+1)
	for _, other := range found {
		apart := other.end <= s.pos || s.end <= other.pos
		longer := s.end - s.pos - (other.end - other.pos)
		if !apart && (longer < 0 || longer == 0 && !s.keyed) {
			return found
		}
		if apart {
			kept = append(kept, other)
		}
	}
	return append(kept, s)
}

// inkOffsets turns byte offsets into counts of visible bytes before them, which
// both readings share.
func inkOffsets(text string, found []statement) {
	ink := make([]int, len(text)+1)
	for i := range len(text) {
		ink[i+1] = ink[i]
		if text[i] != ' ' && text[i] != '\n' {
			ink[i+1]++
		}
	}
	for i := range found {
		found[i].pos, found[i].end = ink[found[i].pos], ink[found[i].end]
	}
}
