package account

import "bytes"

// Bounds of a TOML file that is decoded. The decoder takes time and memory by the
// square of a key's depth and more (measured, BurntSushi/toml 1.6: 20 s and 10 GB
// for one key of 32 KB), and a project's file is whoever's wrote the project.
const (
	maxTOML   = 1 << 20 // bytes; Codex's grows by some 60 with each project
	maxDots   = 32      // in one key
	maxTables = 16      // inline ones, in one another
)

// plainTOML reports whether a text is within the bounds, as far as one that is
// TOML goes.
func plainTOML(b []byte) bool {
	if len(b) > maxTOML {
		return false
	}
	dots, tables := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"', '\'':
			i = endOfTOMLString(b, i)
		case '#':
			if n := bytes.IndexByte(b[i:], '\n'); n >= 0 {
				i += n - 1
			} else {
				i = len(b)
			}
		case '.':
			dots++
		case '{':
			tables++
			dots = 0
		case '}':
			tables--
			dots = 0
		case '\n', '=', ',', '[', ']':
			dots = 0
		}
		if dots > maxDots || tables > maxTables {
			return false
		}
	}
	return true
}

// endOfTOMLString is the index of the last byte of the string that begins at i,
// of one line or of several; of the text where it does not end.
func endOfTOMLString(b []byte, i int) int {
	quote := b[i]
	three := bytes.Repeat(b[i:i+1], 3)
	line := !bytes.HasPrefix(b[i:], three)
	if !line {
		i += 2
	}
	for i++; i < len(b) && (!line || b[i] != '\n'); i++ {
		switch {
		case b[i] == '\\' && quote == '"':
			i++
		case line && b[i] == quote:
			return i
		case !line && bytes.HasPrefix(b[i:], three):
			return i + 2
		}
	}
	return i - 1 // a line's end ends it: that is no TOML
}
