package detect

import (
	"encoding/json"
	"strings"
)

// said is what a log record says to a person: the message of the server's
// answer inside it, with its code, else the record's own text.
func said(text string) []string {
	if i := strings.IndexByte(text, '{'); i >= 0 {
		var d doc
		dec := json.NewDecoder(strings.NewReader(text[i:])) // what follows the answer is not read
		dec.UseNumber()
		if dec.Decode(&d) == nil {
			if rows := d.says([]string{"error.message", "message"}, "error.code"); rows != nil {
				return rows
			}
		}
	}
	return []string{text}
}

// code is a field that holds an error code: a scalar, or an object named after
// the error (Codex's codex_error_info, measured 0.171.0).
func (d doc) code(path string) string {
	v, ok := d.at(path)
	if !ok {
		return ""
	}
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			if len(x) == 1 {
				return k
			}
		}
		return ""
	case []any:
		return ""
	}
	return scalar(v)
}

// says is a record's message, of the first path that holds one, as rows, with
// its code; nil if it has none.
func (d doc) says(paths []string, code string) []string {
	for _, p := range paths {
		msg := strings.TrimSpace(clip(d.str(p)))
		if msg == "" {
			continue
		}
		if c := d.code(code); c != "" && !strings.Contains(msg, c) {
			msg += " (" + c + ")"
		}
		return strings.Split(msg, "\n")
	}
	return nil
}
