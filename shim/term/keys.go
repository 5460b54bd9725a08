package term

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Key is what one key press, or one answer of the terminal, comes to.
type Key struct {
	Kind KeyKind
	Rune rune // Plain and Ctrl: the letter, lower case for Ctrl
	Row  int  // Cursor: from 0
	Col  int
}

// KeyKind tells keys from what else arrives on a keyboard's line.
type KeyKind int

// The kinds.
const (
	Plain  KeyKind = iota // a character
	Ctrl                  // with Control: Ctrl-C is 'c'
	Enter                 // Return or Enter
	Other                 // any other key: arrows, function keys, Alt
	Paste                 // a bracketed paste, whole
	Report                // mouse, focus, answers: nobody pressed a key
	Cursor                // the answer to CSI 6 n
)

// Keys takes the user's input apart, however it is cut into pieces. It reads
// plain bytes, CSI u (kitty keyboard) and modifyOtherKeys alike: a key that was
// pressed before the agent's modes were put off arrives in the agent's form.
// The zero value is ready.
type Keys struct {
	rest  []byte // an unfinished sequence
	paste bool
}

// maxRest bounds an unfinished sequence, bytes; longer ones are given up.
const maxRest = 64

var pasteEnd = []byte("\x1b[201~")

// Decode returns the keys in b and in what was left over before. A lone ESC at
// the end of a read is the Escape key: terminals send sequences in one piece.
func (k *Keys) Decode(b []byte) (keys []Key) {
	b = append(k.rest, b...)
	k.rest = nil
	for len(b) > 0 {
		if k.paste {
			i := bytes.Index(b, pasteEnd)
			if i < 0 {
				k.rest = append(k.rest, b[max(0, len(b)-len(pasteEnd)+1):]...)
				return keys
			}
			k.paste, b = false, b[i+len(pasteEnd):]
			continue
		}
		key, n := one(b)
		if n == 0 { // unfinished
			if len(b) < maxRest {
				k.rest = append(k.rest, b...)
				return keys
			}
			key, n = Key{Kind: Other}, len(b)
		}
		b = b[n:]
		k.paste = key.Kind == Paste
		keys = append(keys, key)
	}
	return keys
}

// one reads the first key of b; n is 0 where more bytes are needed.
func one(b []byte) (key Key, n int) {
	switch c := b[0]; {
	case c == '\r' || c == '\n':
		return Key{Kind: Enter}, 1
	case c == 0x1b:
		return escape(b)
	case c < 0x20:
		return Key{Kind: Ctrl, Rune: rune(c) + 0x60}, 1
	case c == 0x7f:
		return Key{Kind: Other}, 1
	}
	if !utf8.FullRune(b) && len(b) < utf8.UTFMax {
		return Key{}, 0
	}
	r, n := utf8.DecodeRune(b)
	return Key{Kind: Plain, Rune: r}, n
}

func escape(b []byte) (Key, int) {
	if len(b) == 1 {
		return Key{Kind: Other}, 1
	}
	switch b[1] {
	case '[':
		return csi(b)
	case 'O': // SS3 and one letter: keypad and function keys
		if len(b) < 3 {
			return Key{}, 0
		}
		if b[2] == 'M' {
			return Key{Kind: Enter}, 3
		}
		return Key{Kind: Other}, 3
	case ']', 'P', '_', '^': // an answer in a string
		return answer(b)
	}
	_, n := utf8.DecodeRune(b[1:]) // Alt and a key
	return Key{Kind: Other}, 1 + n
}

// answer swallows a string up to BEL or ST.
func answer(b []byte) (Key, int) {
	for i := 2; i < len(b); i++ {
		if b[i] == 0x07 {
			return Key{Kind: Report}, i + 1
		}
		if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
			return Key{Kind: Report}, i + 2
		}
	}
	return Key{}, 0
}

func csi(b []byte) (Key, int) {
	end := 2
	for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
		end++
	}
	if end == len(b) {
		return Key{}, 0
	}
	params, final := string(b[2:end]), b[end]
	switch n := end + 1; {
	case final == 'M' && params == "": // X10 mouse: three bytes follow
		if len(b) < n+3 {
			return Key{}, 0
		}
		return Key{Kind: Report}, n + 3
	case strings.HasPrefix(params, "<") || strings.HasPrefix(params, "?") || strings.HasPrefix(params, ">") || final == 'I' || final == 'O' && params == "" || final == 't' || final == 'n':
		return Key{Kind: Report}, n
	case final == 'R' && strings.Contains(params, ";"):
		row, col, _ := strings.Cut(params, ";")
		return Key{Kind: Cursor, Row: number(row) - 1, Col: number(col) - 1}, n
	case final == '~' && params == "200":
		return Key{Kind: Paste}, n
	case final == 'u':
		return encoded(params), n
	case final == '~' && strings.HasPrefix(params, "27;"): // modifyOtherKeys: 27;modifiers;code
		f := strings.Split(params, ";")
		if len(f) == 3 {
			return encoded(f[2] + ";" + f[1]), n
		}
	}
	return Key{Kind: Other}, end + 1
}

// encoded reads CODE[:…];MODIFIERS[:EVENT] of the kitty keyboard protocol. A
// release is no key press.
func encoded(params string) Key {
	f := strings.Split(params, ";")
	code, _, _ := strings.Cut(f[0], ":")
	mods, event := "1", ""
	if len(f) > 1 {
		mods, event, _ = strings.Cut(f[1], ":")
	}
	if event == "3" {
		return Key{Kind: Report}
	}
	held := (number(mods) - 1) &^ (64 | 128) // not Caps Lock and Num Lock
	switch c := number(code); {
	case c == '\r' && held == 0:
		return Key{Kind: Enter}
	case held == 4 && c >= 'a' && c <= 'z':
		return Key{Kind: Ctrl, Rune: rune(c)}
	case held <= 1 && c >= 0x20 && c < 0x7f:
		return Key{Kind: Plain, Rune: rune(c)}
	}
	return Key{Kind: Other}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
