package detect

import "strings"

// keyHeads are how the keys and tokens of providers, and of what agents reach
// with them, begin: as their own pages and secret scanners' lists say.
var keyHeads = []string{
	"sk-", "sk_", "pk-", "rk_", "AIza", "ya29.", "AQ.", "xai-", "gsk_", "pplx-", "nvapi-", "hf_", "r8_", "tvly-", "ctx7sk-",
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "AKIA", "ASIA", "xoxb-", "xoxp-", "eyJ",
}

// keyWords stand before a value that is one, whatever it looks like.
var keyWords = []string{"bearer", "key", "apikey", "api_key", "api-key", "token", "secret", "password", "authorization", "credential"}

// leastKey is how long a key is at least, bytes. Shorter ones cannot be told
// from words.
const leastKey = 12

// maskKeys takes the keys and tokens out of evidence: an agent's error may quote
// the one that was refused, and evidence is written down. What is left is the
// key's known beginning. A key that is cut by the end of its row is taken out of
// the next one too.
func maskKeys(rows []string) {
	rest := false // the row before ends within a key
	for i, row := range rows {
		rows[i], rest = maskRow(row, rest)
	}
}

func isKeyByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("-_.+/=~", c) >= 0
}

// maskRow masks one row; goesOn: it begins within a key. It reports whether the
// row ends within one.
func maskRow(row string, goesOn bool) (masked string, open bool) {
	var b strings.Builder
	before := "" // the last word that was no key
	from := 0    // of what is not copied yet
	for i := 0; i < len(row); {
		if !isKeyByte(row[i]) {
			i++
			continue
		}
		end := i
		for end < len(row) && isKeyByte(row[end]) {
			end++
		}
		word := row[i:end]
		kept, is := keyIn(word, before)
		if goesOn {
			kept, is = 0, true
		}
		goesOn, open = false, false
		if is {
			b.WriteString(row[from:i+kept] + "…")
			from, open = end, end == len(row)
		}
		before, i = word, end
	}
	if from == 0 {
		return row, false
	}
	b.WriteString(row[from:])
	return b.String(), open
}

// keyIn reports whether a word is a key, or holds one behind a name ("key=…"),
// and how many bytes of it may stay.
func keyIn(word, before string) (kept int, is bool) {
	at := strings.LastIndexByte(strings.TrimRight(word, "="), '=') + 1
	value := word[at:]
	if at > 0 {
		before = word[:at-1]
	}
	if len(value) < leastKey {
		return 0, false
	}
	for _, head := range keyHeads {
		if strings.HasPrefix(value, head) && mixed(value[len(head):]) {
			return at + len(head), true
		}
	}
	before = strings.ToLower(strings.TrimRight(before, ".-_/"))
	for _, w := range keyWords {
		if (before == w || strings.HasSuffix(before, "_"+w) || strings.HasSuffix(before, "-"+w) || w != "key" && before == w+"s") && mixed(value) {
			return at, true
		}
	}
	return 0, false
}

// mixed: words of a language and numbers are no keys.
func mixed(s string) bool {
	letters, digits, upper := 0, 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'A' && c <= 'Z':
			upper++
			letters++
		case c >= 'a' && c <= 'z':
			letters++
		}
	}
	return letters >= 4 && (digits > 0 || upper > 0 && upper < letters)
}
