package when

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// gap stands for a blank row: what is on both sides is not one sentence.
const gap = '\x1e'

// clean makes the spellings of one character one: spaces of every width become
// a space (Intl puts U+202F before AM), box lines and spinner cells become
// spaces, digits and punctuation of other scripts become ASCII, escapes of JSON
// strings are undone one level, and the rest is left alone.
func clean(text string) string {
	if len(text) > maxText {
		text = text[len(text)-maxText:]
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		if r == '\\' && i < len(text) {
			i += unescape(&b, text[i])
			continue
		}
		if r = plain(r); r >= 0 {
			b.WriteRune(r)
		}
	}
	return blankRows(b.String())
}

// unescape writes what a JSON escape stands for and returns how many bytes of
// it were used. Unknown escapes lose only their backslash.
func unescape(b *strings.Builder, c byte) int {
	switch c {
	case 'n', 'r', 't':
		b.WriteByte('\n')
		return 1
	case '"', '\'', '/':
		b.WriteByte(c)
		return 1
	}
	b.WriteByte(' ')
	return 0
}

// plain maps one rune; -1 drops it.
func plain(r rune) rune {
	switch {
	case r == '\n' || r == '\r' || r == '\v' || r == '\f':
		return '\n'
	case r >= 0x2500 && r <= 0x257F, // box drawing
		r == '■', r == '⬝', // OpenCode's spinner stands inside its retry row
		r == utf8.RuneError, unicode.Is(unicode.Zs, r):
		return ' '
	case unicode.Is(unicode.Cf, r): // zero width and bidi marks
		return -1
	case unicode.IsControl(r):
		return ' '
	case r >= 0xFF01 && r <= 0xFF5E: // fullwidth forms
		return r - 0xFEE0
	case r == '。':
		return '.'
	case r == '、':
		return ','
	case r >= 0x660 && r <= 0x669: // Arabic-Indic
		return '0' + r - 0x660
	case r >= 0x6F0 && r <= 0x6F9: // extended Arabic-Indic
		return '0' + r - 0x6F0
	case r >= 0x966 && r <= 0x96F: // Devanagari
		return '0' + r - 0x966
	}
	return r
}

// blankRows turns rows without anything on them into one gap.
func blankRows(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	rows := strings.Split(text, "\n")
	var b strings.Builder
	b.Grow(len(text))
	blank, any := false, false
	for _, row := range rows {
		row = strings.TrimRight(row, " ")
		if row == "" {
			blank = true
			continue
		}
		switch {
		case any && blank:
			b.WriteRune(gap)
		case any:
			b.WriteByte('\n')
		}
		b.WriteString(row)
		blank, any = false, true
	}
	return b.String()
}
