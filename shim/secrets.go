package shim

import (
	"strings"

	"qshim/detect"
)

// leastSecret is how long a value of the environment is at least to be a secret,
// bytes: shorter ones stand in ordinary words.
const leastSecret = 8

// secretsIn are the values of an environment that its names call secret. What
// detect cannot tell by its form is known here word for word.
func secretsIn(env []string) (values []string) {
	for _, kv := range env {
		name, v, _ := strings.Cut(kv, "=")
		name = strings.ToUpper(name)
		for _, part := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"} {
			if strings.Contains(name, part) && len(v) >= leastSecret && !strings.HasPrefix(v, "/") { // a file's name is none
				values = append(values, v)
				break
			}
		}
	}
	return values
}

// withoutSecrets takes them out of a report's evidence, before it is kept
// anywhere.
func withoutSecrets(r detect.Report, env []string) {
	if len(r.Findings) == 0 && len(r.Unrecognised) == 0 {
		return
	}
	values := secretsIn(env)
	for _, f := range r.Findings {
		maskValues(f.Rows, values)
	}
	for _, u := range r.Unrecognised {
		maskValues(u.Rows, values)
	}
}

// maskValues masks values in rows, also one that the end of a row has cut in two.
func maskValues(rows []string, values []string) {
	for i := range rows {
		for _, v := range values {
			rows[i] = strings.ReplaceAll(rows[i], v, "…")
			if i > 0 {
				rows[i-1], rows[i] = maskCut(rows[i-1], rows[i], v)
			}
			rows[i] = maskEnd(rows[i], v)
		}
	}
}

// maskCut masks a value whose first part ends one row and whose rest begins the
// next, with what stands around them.
func maskCut(above, below, v string) (string, string) {
	const least = 4
	for n := len(v) - 1; n >= least; n-- {
		i := strings.LastIndex(above, v[:n])
		if i < 0 || len(above)-i-n > least { // a box's edge may stand behind it
			continue
		}
		if j := strings.Index(below, v[n:]); j >= 0 && j <= 2*least {
			return above[:i] + "…" + above[i+n:], below[:j] + "…" + below[j+len(v)-n:]
		}
	}
	return above, below
}

// maskEnd masks the beginning of a value where the row ends in it: the edge of
// the screen, or of what is kept, has taken the rest.
func maskEnd(row, v string) string {
	const least = 6
	for n := len(v) - 1; n >= least; n-- {
		if kept, is := strings.CutSuffix(strings.TrimSuffix(row, "…"), v[:n]); is {
			return kept + "…"
		}
	}
	return row
}
