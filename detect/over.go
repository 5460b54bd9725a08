package detect

import (
	"strings"
	"unicode/utf8"
)

// Source is a TOML file with a [detect] table; Name is what errors call it.
type Source struct {
	Name string
	Data []byte
}

// ParseOver reads a built-in profile with a user's own [detect] table over it:
//
//   - a row, rule or record that names one of the built-in profile stands in
//     place of all that bear the name;
//   - any other goes first, in the order of the file, so that it is asked first;
//   - a key of [detect.activity] that is given replaces the built-in one;
//   - with `replace = true` in [detect] nothing of the built-in profile stays.
//
// base.Data may be empty: then the user's file is a profile of its own. An
// error names file, line and column and says what to do. A user's rule may do
// without source.
func ParseOver(base, user Source) (*Profile, error) {
	name, under, err := readDetect(base.Name, base.Data)
	if err != nil {
		return nil, err
	}
	said, over, err := readDetect(user.Name, user.Data)
	if err != nil {
		return nil, err
	}
	data := user.Data
	if !over.Replace {
		over.lieOn(under)
		data = append(append(append([]byte{}, base.Data...), '\n'), data...)
	}
	over.fillSources()
	b, err := compile(over)
	if err != nil {
		return nil, err
	}
	for _, n := range []string{said, name, strings.TrimSuffix(user.Name, ".toml")} {
		if n != "" {
			name = n
			break
		}
	}
	return &Profile{Name: name, book: func() (*book, error) { return b, nil }}, nil
}

// origin is where a table was read: the index-th of its kind in a file.
type origin struct {
	file  string
	data  []byte
	index int // -1: the only one
}

// comeFrom notes the origin of every table.
func (t *detectTable) comeFrom(file string, data []byte) {
	t.Activity.from = origin{file, data, -1}
	for i := range t.Row {
		t.Row[i].from = origin{file, data, i}
	}
	for i := range t.Rule {
		t.Rule[i].from = origin{file, data, i}
	}
	for i := range t.JSON {
		t.JSON[i].from = origin{file, data, i}
	}
	for i := range t.Usage {
		t.Usage[i].from = origin{file, data, i}
	}
}

// lieOn puts the user's tables over the built-in ones.
func (t *detectTable) lieOn(base *detectTable) {
	t.Activity.lieOn(&base.Activity)
	t.Row = over(base.Row, t.Row, func(r *rowTable) string { return r.Name })
	t.Rule = over(base.Rule, t.Rule, func(r *ruleTable) string { return r.Name })
	t.JSON = over(base.JSON, t.JSON, func(r *jsonTable) string { return r.Name })
	t.Usage = over(base.Usage, t.Usage, func(r *usageTable) string { return r.Name })
}

func (a *activityTable) lieOn(base *activityTable) {
	for _, f := range []struct{ mine, theirs *string }{
		{&a.TitleBusy, &base.TitleBusy}, {&a.TitleIdle, &base.TitleIdle}, {&a.TitleError, &base.TitleError}, {&a.Hint, &base.Hint}, {&a.Continues, &base.Continues},
		{&a.Scrollbar, &base.Scrollbar},
	} {
		if *f.mine == "" {
			*f.mine = *f.theirs
		}
	}
	if a.OSC7501 == nil {
		a.OSC7501 = base.OSC7501
	}
	if a.StartsBusy == nil {
		a.StartsBusy = base.StartsBusy
	}
}

// over merges two lists: mine that are new, then theirs, those of a name that
// is mine too replaced by all of mine at the place of the first.
func over[T any](theirs, mine []T, name func(*T) string) []T {
	known, done := map[string]bool{}, map[string]bool{}
	for i := range theirs {
		known[name(&theirs[i])] = true
	}
	same := map[string][]T{}
	var out []T
	for i := range mine {
		if n := name(&mine[i]); known[n] {
			same[n] = append(same[n], mine[i])
		} else {
			out = append(out, mine[i])
		}
	}
	for i := range theirs {
		n := name(&theirs[i])
		switch {
		case same[n] == nil:
			out = append(out, theirs[i])
		case !done[n]:
			out = append(out, same[n]...)
			done[n] = true
		}
	}
	return out
}

// fillSources: whoever writes a rule for himself need not say where he has it from.
func (t *detectTable) fillSources() {
	for i := range t.Rule {
		if t.Rule[i].Source == "" {
			t.Rule[i].Source = "user"
		}
	}
	for i := range t.JSON {
		if t.JSON[i].Source == "" {
			t.JSON[i].Source = "user"
		}
	}
	for i := range t.Usage {
		if t.Usage[i].Source == "" {
			t.Usage[i].Source = "user"
		}
	}
}

// lineCol is where, in characters from 1, the n-th string of a list stands in the file: of the key in
// this table, lists over several lines and all four kinds of string included.
// Where it cannot be found it is the key's own place.
func (o origin) lineCol(table, key string, n int) (line, col int) {
	line, col = locate(o.data, table, o.index, key)
	lines := strings.SplitAfterN(string(o.data), "\n", line+1)
	if len(lines) < line || col > len(lines[line-1]) {
		return line, col
	}
	start := 0
	for _, l := range lines[:line-1] {
		start += len(l)
	}
	text := string(o.data)
	at, ok := nthString(text, start+col-1, n)
	if !ok {
		return line, col
	}
	head := text[:at]
	return strings.Count(head, "\n") + 1, utf8.RuneCountInString(head[strings.LastIndexByte(head, '\n')+1:]) + 1
}

// nthString finds the n-th string in the list that begins behind offset at.
func nthString(text string, at, n int) (int, bool) {
	_, value, found := strings.Cut(text[at:], "=")
	if value = strings.TrimLeft(value, " \t"); !found || !strings.HasPrefix(value, "[") {
		return 0, false // no list
	}
	for i := len(text) - len(value) + 1; i < len(text); {
		switch c := text[i]; c {
		case ']':
			return 0, false
		case '#':
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return 0, false
			}
			i += end
		case '"', '\'':
			if n == 0 {
				return i, true
			}
			n--
			i = endOfString(text, i)
		default:
			i++
		}
	}
	return 0, false
}

// endOfString is the offset behind the TOML string that begins at i.
func endOfString(text string, i int) int {
	quote, raw := text[i:i+1], text[i] == '\''
	if strings.HasPrefix(text[i:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for i += len(quote); i < len(text); i++ {
		switch {
		case !raw && text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		}
	}
	return len(text)
}
