package config

import (
	"bytes"
	"strconv"
	"strings"
)

// plain reads default.toml, which every start does, at a fraction of what a TOML
// decoder costs (20 µs against 3 ms): tables by their bare names, and keys with
// a string without escapes, a number, a boolean or an empty list on one line.
// Anything else is not plain, and the decoder reads the whole file; a test holds
// the two against each other.
func plain(data []byte, origin Origin) (leaves []leaf, ok bool) {
	scope, table, n := "", "", 0
	for line := range bytes.Lines(data) {
		n++
		text := strings.TrimRight(string(line), " \t\r\n")
		switch {
		case text == "" || text[0] == '#':
		case text[0] == '[':
			name, rest, closed := strings.Cut(text[1:], "]")
			if !closed || !behind(rest) || !bare(strings.ReplaceAll(name, ".", "")) {
				return nil, false
			}
			if scope, table = "", name+"."; strings.HasPrefix(name, "providers.") {
				parts := strings.SplitN(table, ".", 3)
				scope, table = providerPrefix+parts[1], parts[2]
			}
		default:
			key, rest, found := strings.Cut(text, " = ")
			value, known := plainValue(rest)
			if !found || !known || !bare(key) {
				return nil, false
			}
			o := origin
			o.Line, o.Col = n, 1
			leaves = append(leaves, leaf{scope: scope, key: table + key, value: value, origin: o})
		}
	}
	return leaves, true
}

// plainValue reads a value and sees that only a comment follows.
func plainValue(text string) (value any, ok bool) {
	if rest, isString := strings.CutPrefix(text, `"`); isString {
		s, rest, closed := strings.Cut(rest, `"`)
		return s, closed && !strings.Contains(s, `\`) && behind(rest)
	}
	word, rest, _ := strings.Cut(text, " ")
	if !behind(rest) {
		return nil, false
	}
	switch word {
	case "true", "false":
		return word == "true", true
	case "[]":
		return []any{}, true
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil && strings.Trim(word, "0123456789-") == "" {
		return n, leading(word)
	}
	f, err := strconv.ParseFloat(word, 64)
	return f, err == nil && strings.Trim(word, "0123456789.-") == "" && leading(word)
}

// leading reports that a number begins as TOML wants it: 0.5, not .5 or 00.5.
func leading(word string) bool {
	word = strings.TrimPrefix(word, "-")
	whole, part, dot := strings.Cut(word, ".")
	return whole != "" && (whole == "0" || whole[0] != '0') && (!dot || part != "")
}

// behind reports that a value or a table's head ends there.
func behind(rest string) bool {
	rest = strings.TrimLeft(rest, " \t")
	return rest == "" || rest[0] == '#'
}

// bare reports whether a key or a table's name needs no quotes.
func bare(key string) bool {
	return key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
