package detect

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"qshim/detect/finding"
)

// jsonRule is one [[detect.json]]: a structured record and what it means. Only
// its own fields decide; text inside an assistant's or a tool's content is
// never looked at.
type jsonRule struct {
	name      string
	class     finding.Class
	otherwise finding.Class
	in        map[string]bool // stream, log
	when      map[string][]string
	has       []string
	text      []string
	match     *pattern
	unlessOf  *pattern
	code      string
	reset     string
	window    string
	delayMS   string
	delayS    string
	attempt   string
	max       string
	model     string
	measure   finding.Measure
	scope     finding.Scope
	effect    string
	examples  []string
	not       []string
	from      origin
	shared    bool
}

type jsonTable struct {
	from origin

	Name      string         `toml:"name"`
	Class     string         `toml:"class"`
	Otherwise string         `toml:"otherwise"`
	Source    string         `toml:"source"`
	In        []string       `toml:"in"`
	When      map[string]any `toml:"when"`
	Has       []string       `toml:"has"`
	Text      []string       `toml:"text"`
	Match     string         `toml:"match"`
	UnlessOf  string         `toml:"unless_type"` // pattern of the field "type": whose record it is not
	Code      string         `toml:"code"`
	Reset     string         `toml:"reset"`
	Window    string         `toml:"window"`
	DelayMS   string         `toml:"delay_ms"`
	DelayS    string         `toml:"delay_s"`
	Attempt   string         `toml:"attempt"`
	Max       string         `toml:"max"`
	Model     string         `toml:"model"`
	Measure   string         `toml:"measure"`
	Scope     string         `toml:"scope"`
	Effect    string         `toml:"effect"`
	Examples  []string       `toml:"examples"`
	Not       []string       `toml:"not"`
	Shared    bool           `toml:"shared"`
}

// effects are what a record can tell besides a finding.
var effects = sync.OnceValue(func() map[string]bool {
	return map[string]bool{
		"": true, "success": true, "answer": true, "turn-began": true, "turn-ended": true, "model": true, "windows": true,
	}
})

func (c *compiler) json(t *jsonTable) {
	switch {
	case t.Name == "":
		c.fail("name", "missing: give the record a name")
	case t.Source == "":
		c.fail("source", "missing: write \"measured VERSION\" or where it is documented")
	case len(t.When) == 0 && len(t.Has) == 0:
		c.fail("when", "missing: say which fields tell this record from others")
	case !effects()[t.Effect]:
		c.fail("effect", "%q is no effect: write success, answer, turn-began, turn-ended, model or windows", t.Effect)
	}
	r := &jsonRule{
		name: t.Name, class: c.class("class", t.Class), otherwise: c.class("otherwise", t.Otherwise),
		in: set(t.In), when: wanted(t.When), has: t.Has, text: t.Text, match: c.re("match", t.Match), unlessOf: c.re("unless_type", t.UnlessOf), code: t.Code,
		reset: t.Reset, window: t.Window, delayMS: t.DelayMS, delayS: t.DelayS, attempt: t.Attempt, max: t.Max, model: t.Model,
		measure: finding.Measure(t.Measure), scope: finding.Scope(t.Scope), effect: t.Effect,
		examples: t.Examples, not: t.Not, from: t.from, shared: t.Shared,
	}
	c.p.jsons = append(c.p.jsons, r)
}

// wanted reads a "when": each field with the values that fit.
func wanted(when map[string]any) map[string][]string {
	out := map[string][]string{}
	for k, v := range when {
		vals, ok := v.([]any)
		if !ok {
			vals = []any{v}
		}
		for _, x := range vals {
			out[k] = append(out[k], fmt.Sprint(x))
		}
	}
	return out
}

// doc is a decoded JSON object.
type doc map[string]any

// decode reads one JSON object; trailing text is not tolerated.
func decode(b []byte) (doc, bool) {
	var d doc
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.UseNumber()
	if err := dec.Decode(&d); err != nil || d == nil {
		return nil, false
	}
	if dec.More() {
		return nil, false
	}
	return d, true
}

// decodeAll reads one JSON object, or a list of them on one line as Qwen Code
// (-o json) and Claude Code (--output-format json --verbose) print their records.
func decodeAll(b []byte) ([]doc, bool) {
	if len(b) > 0 && b[0] == '{' {
		d, ok := decode(b)
		return []doc{d}, ok
	}
	var ds []doc
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.UseNumber()
	if err := dec.Decode(&ds); err != nil || dec.More() {
		return nil, false
	}
	return slices.DeleteFunc(ds, func(d doc) bool { return d == nil }), true
}

// at follows a dotted path; numbers index lists, "*" in a path is not known.
func (d doc) at(path string) (any, bool) {
	var v any = map[string]any(d)
	for _, k := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			n, ok := x[k]
			if !ok {
				return nil, false
			}
			v = n
		case []any:
			i, err := strconv.Atoi(k)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, v != nil
}

// str is a field as text; an object or list is its JSON.
func (d doc) str(path string) string {
	if path == "" {
		return ""
	}
	v, ok := d.at(path)
	if !ok {
		return ""
	}
	return scalar(v)
}

func scalar(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case json.Number:
		return x.String()
	case bool:
		return strconv.FormatBool(x)
	}
	b, _ := json.Marshal(v) // cannot fail: v came from JSON
	return string(b)
}

// num is a field as a number; ok is false for anything else and beyond 1e15.
func (d doc) num(path string) (float64, bool) {
	if path == "" {
		return 0, false
	}
	v, ok := d.at(path)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(scalar(v), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1e15 {
		return 0, false
	}
	return f, true
}

// epoch is a field that holds a Unix time in seconds or milliseconds, or an
// RFC 3339 time; zero if it holds none.
func (d doc) epoch(path string) time.Time {
	f, ok := d.num(path)
	if !ok {
		t, err := time.Parse(time.RFC3339, d.str(path))
		if err != nil {
			return time.Time{}
		}
		return t
	}
	if f > 1e12 {
		f /= 1000
	}
	if f < 1e9 || f > 1e11 {
		return time.Time{}
	}
	sec, frac := math.Modf(f)
	return time.Unix(int64(sec), int64(frac*1e9)).UTC()
}

// fits reports whether the record is the rule's.
func (r *jsonRule) fits(d doc, from string) bool {
	if r.in != nil && from != "" && !r.in[from] {
		return false
	}
	for k, want := range r.when {
		v, ok := d.at(k)
		if !ok || !anyOf(scalar(v), want) {
			return false
		}
	}
	for _, k := range r.has {
		if _, ok := d.at(k); !ok {
			return false
		}
	}
	if kind := d.str("type"); kind != "" && r.unlessOf != nil && r.unlessOf.MatchString(kind) {
		return false
	}
	return r.match == nil || r.match.MatchString(r.message(d))
}

func anyOf(s string, list []string) bool {
	for _, w := range list {
		if s == w {
			return true
		}
	}
	return false
}

// message is the record's own sentence.
func (r *jsonRule) message(d doc) string {
	var parts []string
	for _, p := range r.text {
		if s := d.str(p); s != "" {
			parts = append(parts, clip(s))
		}
	}
	return strings.Join(parts, " ")
}

// maxMessage bounds what is read of a record's sentence: real ones stay below
// 8 KB, bodies and links included.
const maxMessage = 16 << 10

// clip keeps the beginning and the end of a long text.
func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage*3/4], "") + " … " + strings.ToValidUTF8(s[len(s)-maxMessage/4:], "")
}

// read makes the finding of a fitting record; ok is false when the record is
// none of a limit's.
func (r *jsonRule) read(d doc, now time.Time, zone *time.Location) (finding.Finding, bool) {
	msg := r.message(d)
	code := d.code(r.code)
	if r.class == "" && r.otherwise == "" && msg == "" {
		return finding.Finding{}, false
	}
	whole := msg
	if _, err := strconv.Atoi(code); err == nil {
		whole = code + " " + msg
	}
	rd := reading{text: msg, head: whole, now: now, zone: zone, class: r.class, otherwise: r.otherwise, measure: r.measure, scope: r.scope}
	rd.delay = r.delay(d)
	g := groups(r.match, msg)
	rd.cause = g("cause")
	f, ok := rd.finding()
	if !ok {
		return f, false
	}
	f.Attempt, _ = strconv.Atoi(g("attempt")) // absent: 0, not shown
	f.MaxAttempts, _ = strconv.Atoi(g("max"))
	if n, ok := d.num(r.attempt); ok {
		f.Attempt = int(n)
	}
	if n, ok := d.num(r.max); ok {
		f.MaxAttempts = int(n)
	}
	if t := d.epoch(r.reset); !t.IsZero() && f.Class.IsLimit() && believable(t, now, windowOf(d.str(r.window)+" "+msg)) {
		f.Reset, f.ResetSource, f.Precision = t, finding.Epoch, 0
	}
	if w := windowOf(strings.ReplaceAll(d.str(r.window), "_", " ")); f.Class == finding.Window && w > 0 {
		f.Window = w
	}
	if f.Model == "" {
		f.Model = modelOfWindow(d.str(r.window))
		if f.Model != "" {
			f.Scope = finding.Model
		}
	}
	if code != "" {
		f.ErrorCode = code
	}
	f.Confidence, f.Rule = finding.Certain, r.name
	return f, true
}

// delay is the client's own next try as the record states it.
func (r *jsonRule) delay(d doc) time.Duration {
	if n, ok := d.num(r.delayMS); ok && n > 0 && n < 1e11 {
		return time.Duration(n * float64(time.Millisecond))
	}
	if n, ok := d.num(r.delayS); ok && n > 0 && n < 1e8 {
		return time.Duration(n * float64(time.Second))
	}
	return 0
}

// believable refuses an instant long past or beyond any limit's window.
func believable(t, now time.Time, within time.Duration) bool {
	if within <= 0 {
		within = 366 * 24 * time.Hour
	}
	return t.After(now.Add(-10*time.Minute)) && t.Before(now.Add(within+10*time.Minute))
}
