package account

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// maxFile bounds what is parsed of one file, in bytes. Claude Code's
// .claude.json keeps a history of every project and reaches a few megabytes.
const maxFile = 16 << 20

type noFiles struct{}

func (noFiles) ReadFile(string) ([]byte, error) { return nil, errors.New("no files") }

// read returns a file's bytes, nil when it is not there or too large.
func (l *Launch) read(name string) []byte {
	b, err := l.FS.ReadFile(name)
	if err != nil || len(b) > maxFile {
		return nil
	}
	return b
}

// readJSON decodes a file into v. What is not there or broken leaves v as it
// is; a value of an unexpected type loses only itself.
func (l *Launch) readJSON(name string, v any) bool {
	return decodeJSON(l.read(name), v)
}

func decodeJSON(b []byte, v any) bool {
	if len(b) == 0 {
		return false
	}
	err := json.Unmarshal(b, v)
	var wrong *json.UnmarshalTypeError
	return err == nil || errors.As(err, &wrong)
}

// plainJSON takes // and /* */ comments and trailing commas out of JSON, as
// Gemini CLI does before it parses its settings (measured: strip-json-comments
// 0.61.0). Strings are left alone; bytes keep their places.
func plainJSON(b []byte) []byte {
	out := append([]byte(nil), b...)
	comma := -1
	for i := 0; i < len(out); {
		switch c := out[i]; {
		case c == '"':
			i, comma = endOfString(out, i), -1
			continue
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			i = blank(out, i)
			continue
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
		i++
	}
	return out
}

func endOfString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// blank overwrites the comment at i, line ends apart, and returns the index
// after it.
func blank(b []byte, i int) int {
	end, closing := len(b), "\n"
	if b[i+1] == '*' {
		closing = "*/"
	}
	if n := bytes.Index(b[i+2:], []byte(closing)); n >= 0 {
		end = i + 2 + n + len(closing)
	}
	for ; i < end; i++ {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
	return end
}

// claims decodes the middle part of a JWT without checking it: it is read for
// the account's name only.
func claims(token string, v any) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	return err == nil && decodeJSON(b, v)
}

// dotenv reads a .env file the way the dotenv package does: NAME=value lines,
// an optional export, quotes, and # comments. Later lines win.
func dotenv(b []byte) map[string]string {
	vars := map[string]string{}
	text := strings.ReplaceAll(string(b), "\r\n", "\n")
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimLeft(line, " \t"), "export "), "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.HasPrefix(name, "#") || strings.ContainsAny(name, " \t\"'") {
			text = rest
			continue
		}
		value = strings.TrimLeft(value, " \t")
		if v, after, quoted := quotedValue(value, rest); quoted {
			vars[name], text = v, after
			continue
		}
		if i := strings.IndexByte(value, '#'); i >= 0 {
			value = value[:i]
		}
		vars[name], text = strings.TrimSpace(value), rest
	}
	return vars
}

// quotedValue reads a value in quotes, which may go over several lines.
func quotedValue(value, rest string) (v, after string, ok bool) {
	if value == "" || !strings.ContainsRune("\"'`", rune(value[0])) {
		return "", "", false
	}
	body := value[1:] + "\n" + rest
	end := strings.IndexByte(body, value[0])
	for value[0] == '"' && end > 0 && body[end-1] == '\\' {
		next := strings.IndexByte(body[end+1:], '"')
		if next < 0 {
			end = -1
			break
		}
		end += 1 + next
	}
	if end < 0 {
		return "", "", false
	}
	v = body[:end]
	if value[0] == '"' {
		v = strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(v)
	}
	_, after, _ = strings.Cut(body[end+1:], "\n")
	return v, after, true
}
