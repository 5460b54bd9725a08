package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"qshim/policies"
)

var durationType = reflect.TypeFor[time.Duration]()

// longest bounds every duration, so that sums never overflow.
const longest = 366 * 24 * time.Hour

// set puts a TOML value into a field.
func set(f reflect.Value, value any) error {
	switch v := value.(type) {
	case string:
		return setString(f, v)
	case bool:
		if f.Kind() == reflect.Bool {
			f.SetBool(v)
			return nil
		}
	case int64:
		return setInt(f, v)
	case float64:
		if f.Kind() == reflect.Float64 && !math.IsNaN(v) && !math.IsInf(v, 0) {
			f.SetFloat(v)
			return nil
		}
	case []any:
		return setList(f, v)
	}
	return fmt.Errorf("wrong kind of value")
}

func setString(f reflect.Value, v string) error {
	switch {
	case f.Type() == durationType:
		d, err := Duration(v)
		if err != nil {
			return err
		}
		f.SetInt(int64(d))
	case f.Kind() == reflect.String:
		f.SetString(v)
	default:
		return fmt.Errorf("wrong kind of value")
	}
	return nil
}

func setInt(f reflect.Value, v int64) error {
	switch {
	case f.Type() == durationType:
		return fmt.Errorf("a time needs a unit")
	case f.Kind() == reflect.Int && v >= 0 && v <= 1_000_000:
		f.SetInt(v)
	case f.Kind() == reflect.Float64:
		f.SetFloat(float64(v))
	default:
		return fmt.Errorf("wrong kind of value, or out of range")
	}
	return nil
}

func setList(f reflect.Value, v []any) error {
	if f.Kind() != reflect.Slice {
		return fmt.Errorf("wrong kind of value")
	}
	list := make([]string, 0, len(v))
	for _, x := range v {
		s, ok := x.(string)
		if !ok {
			return fmt.Errorf("wrong kind of value in the list")
		}
		list = append(list, s)
	}
	f.Set(reflect.ValueOf(list))
	return nil
}

// fromText reads an environment variable or a flag as the field's kind.
func fromText(f reflect.Value, text string) (any, error) {
	switch f.Kind() {
	case reflect.Bool:
		switch strings.ToLower(text) {
		case "1", "true", "yes", "on":
			return true, nil
		case "0", "false", "no", "off":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", text)
	case reflect.Slice:
		list := []any{}
		for _, w := range strings.Fields(text) {
			list = append(list, w)
		}
		return list, nil
	}
	scratch := reflect.New(f.Type()).Elem()
	return text, setString(scratch, text)
}

// Duration reads "250ms", "1h30m", "8d" or "1d12h".
func Duration(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a time", text)
	rest, days := text, 0.0
	if d, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseFloat(d, 64)
		if err != nil || math.IsNaN(n) || n < 0 || n > 366 {
			return 0, bad
		}
		days, rest = n, after
	}
	var d time.Duration
	if rest != "" {
		var err error
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, bad
		}
	} else if text == "" {
		return 0, bad
	}
	if d < 0 || d > longest {
		return 0, fmt.Errorf("%q is out of range: a time lies between 0 and 366d", text)
	}
	if d += time.Duration(days * 24 * float64(time.Hour)); d > longest {
		return 0, fmt.Errorf("%q is out of range: a time lies between 0 and 366d", text)
	}
	return d, nil
}

// wants says what a field takes: in a file, or elsewhere, where a text needs no
// quotes.
func wants(key string, f reflect.Value, file bool) string {
	quote := func(text string) string {
		if file {
			return text
		}
		return strings.ReplaceAll(text, `"`, "")
	}
	switch {
	case key == "mode":
		return quote(`write "govern" or "observe"`)
	case key == "priority":
		return quote(`write "interactive" or "background"`)
	case isResume(key):
		return quote(`write "once", "notify" or "never"`)
	case f.Type() == durationType && file:
		return `write a time with its unit in quotes, like "30s", "15m", "6h" or "8d"`
	case f.Type() == durationType:
		return "write a time with its unit, like 30s, 15m, 6h or 8d"
	}
	switch f.Kind() {
	case reflect.Bool:
		return "write true or false"
	case reflect.Int:
		return "write a whole number"
	case reflect.Float64:
		return "write a number, like 0.25"
	case reflect.Slice:
		return `write a list of strings, like ["notify-send", "qshim"]`
	}
	return "write a text in quotes"
}

// format writes a field as it would stand in the file.
func format(f reflect.Value) string {
	switch {
	case f.Type() == durationType:
		return strconv.Quote(short(time.Duration(f.Int())))
	case f.Kind() == reflect.String:
		return strconv.Quote(f.String())
	case f.Kind() == reflect.Float64:
		return strconv.FormatFloat(f.Float(), 'g', -1, 64)
	case f.Kind() == reflect.Slice:
		parts := make([]string, f.Len())
		for i := range parts {
			parts[i] = strconv.Quote(f.Index(i).String())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(f.Interface())
}

// short writes a duration without its zero parts: "6h", not "6h0m0s".
func short(d time.Duration) string {
	if d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// validate checks what no single value shows.
func (b *builder) validate(s *scope) {
	bad := func(key, format string, args ...any) {
		o := s.from(key)
		if !o.outside() {
			format = key + ": " + format
		}
		b.errorf(o, format, args...)
	}
	for _, key := range slices.Sorted(maps.Keys(s.origin)) { // the defaults are checked by a test
		f, _ := s.field(key)
		if err := check(key, f, !s.origin[key].outside()); err != nil {
			bad(key, "%s", err)
		}
	}
	for _, name := range []string{"overload", "rate"} {
		t := map[string]policies.Transient{"rate": s.con.Rate, "overload": s.con.Overload}[name]
		if t.Base > t.Cap {
			bad(name+".base", "the first wait is longer than the longest one (%s.cap = %q); lower it, or raise the cap", name, short(t.Cap))
		}
	}
	for _, name := range []string{"daily", "window"} {
		l := map[string]policies.Long{"window": s.con.Window, "daily": s.con.Daily.Long}[name]
		if l.CheckMin > l.CheckMax {
			bad(name+".check_min", "is above %s.check_max; lower it", name)
		}
	}
	if o, ok := s.origin["daily.zone"]; !ok || o.Layer == Default {
		return // a test loads it; each start would read it from the disk
	}
	if _, err := time.LoadLocation(s.con.Daily.Zone); err != nil {
		bad("daily.zone", "%q is no known time zone; write one like \"UTC\" or \"America/Los_Angeles\"", s.con.Daily.Zone)
	}
}

// mayBeZero are the times and numbers that may be switched off.
var mayBeZero = []string{
	"margin.", "release.gap", "release.calm", "launch.gap", "launch.nested", "probe.step", "probe.old_news",
	"probe.settle", "slack", "suspend.quiet", "max_wait", "retrying.first_delay", "retrying.default_delay",
	"interactive_most", "gap", "gap_after_hit", "gap_after_hits", "wake_every", "wake_settle", "continue_within", "cold_after",
	"concurrency.cut_window", "concurrency.typed", "concurrency.age", "concurrency.cap", "concurrency.start_cap", "spacing.most",
}

// isResume: the settings of what is done about a failed task.
func isResume(key string) bool {
	return key == "resume" || key == "resume_headless" || key == "resume_tui"
}

func check(key string, f reflect.Value, file bool) error {
	switch {
	case key == "mode" && f.String() != "govern" && f.String() != "observe",
		key == "priority" && !slices.Contains([]string{"", "interactive", "background"}, f.String()),
		isResume(key) && !slices.Contains([]string{"once", "notify", "never"}, f.String()) && (key != "resume" || f.String() != ""):
		return fmt.Errorf("%q is not one of its values; %s", f.String(), wants(key, f, file))
	case f.Type() == durationType:
		if f.Int() > 0 || slices.ContainsFunc(mayBeZero, func(z string) bool { return strings.HasPrefix(key, z) || strings.HasSuffix(key, "."+z) || key == z }) {
			return nil
		}
		return errors.New("this time cannot be zero")
	case strings.HasSuffix(key, ".wake_projected"): // more than one window: the tasks end before
		if f.Float() < 0 || f.Float() > 10 {
			return errors.New("this share lies between 0 and 10")
		}
	case f.Kind() == reflect.Float64 && (f.Float() < 0 || f.Float() > 1):
		return errors.New("a share lies between 0 and 1")
	case f.Kind() == reflect.Int && f.Int() < 1 && !slices.Contains(mayBeZero, key):
		return errors.New("this number is at least 1")
	}
	return nil
}
