package detect

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"qshim/detect/finding"
	"qshim/detect/when"
)

// candidate is a block that a rule took, before second signs and freshness.
type candidate struct {
	rule     *rule
	block    *block
	f        finding.Finding
	past     bool   // something by another speaker stands below: it is over
	finished bool   // the line that ends any turn stands below
	text     string // without blanks: the same however it is wrapped
	key      string // rule and text, or which try it is
	try      bool   // the key says which try it is
}

// candidates applies the rules to the agent's own blocks. lenient lets a box
// that is cut off pass, as excerpts are.
func (p *book) candidates(bs []block, page []line, m Mode, lenient bool, now time.Time, zone *time.Location) []candidate {
	var out []candidate
	over, finished, retried := false, false, false
	var last lastWord
	for i := len(bs) - 1; i >= 0; i-- {
		b := &bs[i]
		if b.mayBeOwn() && p.wanted[b.kind()] && p.isHot(b, page) {
			b.fill(page)
			c, own := p.take(b, m, lenient, now, zone)
			stale := m == Headless && own && !last.take(&c, b.kind())
			if c.rule != nil {
				// What the client tries again for is not what its turn ends with.
				c.past, c.finished = over || stale || retried && c.f.Class.IsLimit(), finished
				retried = retried || m != Headless && !c.past && c.f.Class == finding.Retrying
				out = append(out, c)
			}
		}
		if b.def != nil && b.def.cancels {
			over = true
		}
		finished = finished || b.kind() == "finished"
	}
	slices.Reverse(out)
	return withCompanions(out)
}

// lastWord is what a headless call ended with: its last error is why it failed.
// One of another class above it was healed, or a tool printed it.
type lastWord struct {
	class finding.Class // none: an error that is no limit
	kind  string
}

// take reads errors from the last one up; false: a later one ended the call.
func (l *lastWord) take(c *candidate, kind string) bool {
	class := classNone
	if c.rule != nil {
		if class = c.f.Class; class == finding.Retrying || class == finding.Warning || c.rule.needs == "" {
			return true
		}
	}
	if l.class == "" {
		l.class, l.kind = class, kind
	}
	return l.class == class || l.class == classNone && l.kind != kind
}

// mayBeOwn reports whether the block can be the client's own words.
func (b *block) mayBeOwn() bool {
	return b.def == nil || b.def.who == byAgent || b.def.who == byFrame
}

// withCompanions drops rows that only say again what another row says, after
// taking their reset for a limit that states none.
func withCompanions(cs []candidate) []candidate {
	main := -1
	for i := range cs {
		if !cs[i].past && !cs[i].rule.companion && cs[i].f.Class.IsLimit() {
			main = i
		}
	}
	if main < 0 {
		return cs
	}
	f := &cs[main].f
	return slices.DeleteFunc(cs, func(c candidate) bool {
		if c.past || !c.rule.companion {
			return false
		}
		if f.Reset.IsZero() && !c.f.Reset.IsZero() && cs[main].rule.reset == "" {
			f.Reset, f.ResetSource, f.Precision = c.f.Reset, c.f.ResetSource, c.f.Precision
		}
		return true
	})
}

// take finds the first rule that fits a block and reads it. own: a rule fits;
// without a rule in c the block is about something else.
func (p *book) take(b *block, m Mode, lenient bool, now time.Time, zone *time.Location) (c candidate, own bool) {
	kind := b.kind()
	for _, r := range p.rules {
		if !r.rows[kind] || m != logText && !r.mode.fits(m) {
			continue
		}
		text, ok := r.fits(b, lenient)
		if !ok {
			continue
		}
		f, ok := r.read(b, text, now, zone)
		if !ok {
			return candidate{}, true
		}
		f.Rows = escapeRows(b.rows)
		if m == logText {
			f.Rows = escapeRows(said(b.text))
		}
		text = squeeze(b.text)
		return candidate{rule: r, block: b, f: f, text: text, key: r.name + "|" + text}, true
	}
	return candidate{}, false
}

// isHot reports whether any row of the block holds a word that a rule wants, or
// its rows together do: a narrow terminal breaks inside words.
func (p *book) isHot(b *block, page []line) bool {
	for i := b.from; i < b.to; i++ {
		if page[i].hot {
			return true
		}
	}
	if b.def == nil || b.def.who != byAgent || b.to-b.from < 2 {
		return false
	}
	b.fill(page)
	return isHot(b.tight, p.hot)
}

// fits returns the text in which the rule matched: the rows joined by spaces,
// or without them where a terminal wrapped inside a word.
func (r *rule) fits(b *block, lenient bool) (string, bool) {
	if b.cut && !lenient {
		return "", false
	}
	for _, text := range []string{b.text, b.mended, b.tight} {
		if !r.match.MatchString(text) || matchAny(r.unless, text) {
			continue
		}
		if !(b.cut && lenient) && !matchAll(r.also, text) {
			continue
		}
		return text, true
	}
	return "", false
}

func matchAny(list []*pattern, s string) bool {
	for _, r := range list {
		if r.MatchString(s) {
			return true
		}
	}
	return false
}

func matchAll(list []*pattern, s string) bool {
	for _, r := range list {
		if !r.MatchString(s) {
			return false
		}
	}
	return true
}

// read makes the finding of a matched block. Named groups of the match say
// where delay, attempt, max and cause of a retry stand.
func (r *rule) read(b *block, text string, now time.Time, zone *time.Location) (finding.Finding, bool) {
	rd := reading{
		text: text, mended: b.mended, rows: b.wrapped(), class: r.class, otherwise: r.otherwise,
		measure: r.measure, scope: r.scope, within: r.within, noReset: r.reset == "no", now: now, zone: zone,
	}
	group := groups(r.match, text)
	rd.cause = group("cause")
	if d, ok := when.Duration(strings.TrimSpace(group("delay"))); ok {
		rd.delay = d
	}
	f, ok := rd.finding()
	if !ok {
		return f, false
	}
	if f.Class == finding.Retrying {
		f.Attempt, _ = strconv.Atoi(group("attempt")) // absent: 0, not shown
		f.MaxAttempts, _ = strconv.Atoi(group("max"))
	}
	if s := group("model"); s != "" {
		f.Model, f.Scope = strings.ToLower(strings.TrimRight(s, ".")), finding.Model
	}
	f.Rule = r.name
	return f, true
}

// wrapped is the block's text with its row breaks, for times cut by one.
func (b *block) wrapped() string {
	rows := b.rows
	if b.def != nil && b.def.box {
		return strings.Join(unbox(rows), "\n")
	}
	out := make([]string, len(rows))
	copy(out, rows)
	if b.def != nil && len(out) > 0 {
		out[0] = takeGlyph(b.def, out[0])
	}
	return strings.Join(out, "\n")
}

// squeeze drops all blanks and digits that count down, so that a redraw at
// another width is the same text.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\u00a0' || r == '\n' {
			return -1
		}
		return r
	}, s)
}

// escapeRows makes evidence safe to print and to keep: control bytes become \x1b
// and so on, keys go.
func escapeRows(rows []string) []string {
	const most, width = 12, 400
	out := make([]string, 0, min(len(rows), most))
	for _, r := range rows {
		if len(out) == most {
			break
		}
		out = append(out, strings.TrimRight(strings.ReplaceAll(r, "\u00a0", " "), " "))
	}
	maskKeys(out)
	for i, r := range out {
		if strings.IndexFunc(r, func(c rune) bool { return c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 }) >= 0 {
			q := strconv.QuoteToGraphic(r)
			r = q[1 : len(q)-1]
		}
		if len(r) > width {
			r = strings.ToValidUTF8(r[:width], "") + "…"
		}
		out[i] = r
	}
	return out
}

// groups returns a getter of the named groups of a match; a group that is not
// there, or did not take part, is empty.
func groups(p *pattern, text string) func(string) string {
	var m []string
	if p != nil {
		m = p.regexp().FindStringSubmatch(text)
	}
	return func(name string) string {
		if m == nil {
			return ""
		}
		if i := p.regexp().SubexpIndex(name); i > 0 {
			return m[i]
		}
		return ""
	}
}
