package config

import (
	"slices"
	"strings"
)

// position is a line and a column, 1-based.
type position struct{ line, col int }

// positions finds where each key stands in TOML text that parses: the parser
// keeps no positions for keys that it read well. It knows table headers, dotted
// and quoted keys, and multi-line strings; what stands inside an inline table or
// an array is not listed.
func positions(data []byte) map[string]position {
	var table []string
	quote := "" // inside a multi-line string
	out := map[string]position{}
	note := func(path []string, line, col int) {
		for n := len(path); n > 0; n-- {
			if name := joined(path[:n]); out[name] == (position{}) {
				out[name] = position{line, col}
			}
		}
	}
	for n, text := range strings.Split(string(data), "\n") {
		if quote != "" {
			quote = multiline(text, quote)
			continue
		}
		trimmed := strings.TrimLeft(text, " \t")
		col := len(text) - len(trimmed) + 1
		switch {
		case strings.HasPrefix(trimmed, "["):
			table = keyOf(strings.TrimLeft(trimmed, "["))
			note(table, n+1, col)
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == '\r':
		default:
			note(append(slices.Clone(table), keyOf(trimmed)...), n+1, col)
			quote = multiline(text, "")
		}
	}
	return out
}

// joined makes one map key of a path; TOML keys cannot hold a NUL.
func joined(path []string) string { return strings.Join(path, "\x00") }

// locate is where a key, or the longest beginning of it that is listed, stands.
func locate(at map[string]position, path []string) (line, col int) {
	for n := len(path); n > 0; n-- {
		if p, ok := at[joined(path[:n])]; ok {
			return p.line, p.col
		}
	}
	return 1, 1
}

// keyOf reads a dotted key up to "=", "]" or the end.
func keyOf(text string) (key []string) {
	for {
		text = strings.TrimLeft(text, " \t")
		part, rest := keyPart(text)
		if part == nil {
			return key
		}
		key = append(key, *part)
		rest = strings.TrimLeft(rest, " \t")
		if !strings.HasPrefix(rest, ".") {
			return key
		}
		text = rest[1:]
	}
}

// keyPart reads one bare or quoted part. Escapes in a quoted one are not read:
// such a key is simply not found.
func keyPart(text string) (*string, string) {
	if text == "" {
		return nil, ""
	}
	if q := text[0]; q == '"' || q == '\'' {
		end := strings.IndexByte(text[1:], q)
		if end < 0 {
			return nil, ""
		}
		part := text[1 : 1+end]
		return &part, text[end+2:]
	}
	end := strings.IndexFunc(text, func(r rune) bool {
		return !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
	if end < 0 {
		end = len(text)
	}
	if end == 0 {
		return nil, ""
	}
	part := text[:end]
	return &part, text[end:]
}

// multiline returns the quote of a multi-line string that is open at the line's
// end, given the one open at its beginning.
func multiline(text, quote string) string {
	for text != "" {
		if quote != "" {
			i := strings.Index(text, quote)
			if i < 0 {
				return quote
			}
			text, quote = text[i+3:], ""
			continue
		}
		a, b := strings.Index(text, `"""`), strings.Index(text, `'''`)
		switch {
		case a < 0 && b < 0:
			return ""
		case b < 0 || a >= 0 && a < b:
			text, quote = text[a+3:], `"""`
		default:
			text, quote = text[b+3:], `'''`
		}
	}
	return quote
}
