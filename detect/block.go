package detect

import (
	"strings"
	"unicode/utf8"
)

// otherRow is the kind of a row that no [[detect.row]] describes.
const otherRow = "other"

// line is one row of a page and which definitions it could start or carry on.
// It is cached: only a row whose text changed is looked at again.
type line struct {
	text   string
	blank  bool
	start  uint64 // definitions whose start fits
	more   uint64 // definitions whose more fits
	stop   uint64 // definitions whose stop fits
	hot    bool   // holds a word that a rule could want
	colour colour // how the text is coloured, where that is known
}

// colour is what the style of a row says about its speaker. Themes differ, so
// only "the text is in the default colour although its glyph is not" means
// anything: an agent's error row is never that.
type colour int

const (
	colourUnknown colour = iota // plain rows, or a page without colours
	coloured
	uncoloured
)

// block is a run of rows by one speaker.
type block struct {
	def    *rowDef // nil: otherRow
	from   int     // first row of the page
	to     int     // one past the last
	prev   string  // kind of the block above, "" at the top of the page
	gap    bool    // a blank row stands above
	cut    bool    // a box of which not all is on the page
	text   string  // rows joined by spaces, the glyph taken off
	mended string  // as text, but rows that are full are joined without a space: wrapped inside a word
	tight  string  // rows joined without spaces, for terminals that wrap inside a word
	rows   []string
	colour colour
}

func (b *block) kind() string {
	if b.def == nil {
		return otherRow
	}
	return b.def.name
}

// classify finds the definitions that fit a row.
func (p *book) classify(text string, m Mode, excerpt bool) line {
	text = p.act.withoutBar(text)
	l := line{text: text, blank: strings.TrimSpace(text) == ""}
	if l.blank {
		return l
	}
	r := firstRune(text)
	for _, d := range p.rows {
		if !d.mode.fits(m) || d.excerpt && !excerpt {
			continue
		}
		if d.opens.has(r) && d.start.MatchString(text) {
			l.start |= d.bit
		}
		if d.more != nil && d.goes.has(r) && d.more.MatchString(text) {
			l.more |= d.bit
		}
		if d.stop != nil && d.stop.MatchString(text) {
			l.stop |= d.bit
		}
	}
	l.hot = l.start&p.always != 0 || isHot(text, p.hot)
	return l
}

// withoutBar takes the agent's own scrollbar off the end of a row.
func (a *activity) withoutBar(row string) string {
	if a.scrollbar == "" {
		return row
	}
	text, found := strings.CutSuffix(row, a.scrollbar)
	if bare := strings.TrimRight(text, " "); found && len(bare) < len(text) {
		return bare
	}
	return row
}

// hotWords are the words without which no row of any rule can be. Each is cut
// so that upper and lower case fit and that a wrap seldom falls inside.
var hotWords = []string{
	"imit", "uota", "429", "rror", "redit", "etry", "sage", "verload", "capacity", "econnect",
	"demand", "llowance", "xhausted", "heads up", "Heads up", "API", "pend", "pgrade", "Insufficient",
	"ttempt", "switched", "Balance", "限", "重试", "إعادة", "Too ", "hrottl", "load", "uthenticat", "login", "plan", "queue", "perating", "equired", "free trial", "used up", "udget", "disabled", "status 4", "status 5", "retrying", "overloaded", "used over", "reached", "exceeded", "efused", "↻", "Repeated", "refreshed", "discontinued", "ongestion",
	"raffic", "any requests", "any_requests", "equests", "nable to process", "ailed with", "navailable", "NAVAILABLE", "ateway", "HTTP ", "eadline", "llocated", "good standing",
	"eclined", "eployments", "slow_down", "slow down", "low_down", "nauthorized", "orbidden", "api_key", "api key", "rear",
}

func isHot(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// blocks cuts a page into blocks. A start beats a continuation, the first
// definition in the file beats later ones.
func (p *book) blocks(page []line, out []block) []block {
	out = out[:0]
	open, gap := -1, false
	prev := ""
	for i := range page {
		l := &page[i]
		if l.blank {
			gap = true
			if open >= 0 && out[open].def != nil && out[open].def.gap {
				continue
			}
			if open >= 0 && out[open].def != nil && out[open].def.box {
				continue
			}
			open = -1
			continue
		}
		if open >= 0 && p.carries(&out[open], l, gap) {
			out[open].to = i + 1
			if stops := out[open].def != nil && l.stop&out[open].def.bit != 0; stops {
				open = -1
			}
			gap = false
			continue
		}
		if len(out) > 0 {
			prev = out[len(out)-1].kind()
		}
		d := p.starter(l, prev)
		if d == nil && open >= 0 && out[open].def == nil && !gap {
			out[open].to = i + 1
			continue
		}
		out = append(out, block{def: d, from: i, to: i + 1, prev: prev, gap: gap})
		open, gap = len(out)-1, false
	}
	return p.checkBefore(page, out)
}

// checkBefore looks for another kind for each block that may only stand above
// certain others and does not: the row above a composer's status line is the
// composer, the same row elsewhere is a prompt of the past.
func (p *book) checkBefore(page []line, bs []block) []block {
	for i := len(bs) - 1; i >= 0; i-- {
		b := &bs[i]
		next, apart := "", false
		if i+1 < len(bs) {
			next, apart = bs[i+1].kind(), bs[i+1].gap
		}
		for b.def != nil && b.def.before != nil && (!b.def.before[next] || b.def.close && apart) {
			b.def = p.starterAfter(&page[b.from], b.prev, b.def)
		}
		if i+1 < len(bs) {
			bs[i+1].prev = b.kind()
		}
	}
	return bs
}

// starterAfter is starter, but only definitions after d count.
func (p *book) starterAfter(l *line, prev string, d *rowDef) *rowDef {
	rest := *l
	rest.start &^= d.bit | (d.bit - 1)
	return p.starter(&rest, prev)
}

// carries reports whether row l goes on with the open block b.
func (p *book) carries(b *block, l *line, gap bool) bool {
	d := b.def
	if d == nil || l.more&d.bit == 0 || (gap && !d.gap && !d.box) {
		return false
	}
	if d.box {
		return true
	}
	s := p.starter(l, d.name)
	return s == nil || s == d || d.holds[s.name]
}

// starter is the first definition that row l can start, below a block of kind prev.
func (p *book) starter(l *line, prev string) *rowDef {
	if l.start == 0 {
		return nil
	}
	for _, d := range p.rows {
		if l.start&d.bit == 0 || d.after != nil && !d.after[prev] || d.notAfter[prev] {
			continue
		}
		return d
	}
	return nil
}

// fill joins the rows of a block into its text.
func (b *block) fill(page []line) {
	rows := make([]string, 0, b.to-b.from)
	for i := b.from; i < b.to; i++ {
		if page[i].blank {
			continue
		}
		rows = append(rows, page[i].text)
	}
	b.rows = rows
	b.colour = page[b.from].colour
	if b.def != nil && b.def.box {
		b.cut = !strings.ContainsAny(rows[0], "╭┌") || !strings.ContainsAny(rows[len(rows)-1], "╰└")
		b.text = joinRows(unbox(rows), " ")
		b.tight, b.mended = b.text, b.text
		return
	}
	head := rows[0]
	if b.def != nil {
		head = takeGlyph(b.def, head)
	}
	parts := append([]string{head}, rows[1:]...)
	b.text, b.tight = joinRows(parts, " "), joinRows(parts, "")
	b.mended = b.text
	if len(rows) > 1 {
		b.mended = mendRows(rows, parts)
	}
}

// takeGlyph removes what start matched, or keeps only its group "text".
func takeGlyph(d *rowDef, row string) string {
	re := d.start.regexp()
	loc := re.FindStringSubmatchIndex(row)
	if loc == nil {
		return row
	}
	if g := re.SubexpIndex("text"); g > 0 && loc[2*g] >= 0 {
		return row[loc[2*g]:loc[2*g+1]]
	}
	return row[loc[1]:]
}

// unbox takes the frame off the rows of a box and drops its empty rows.
func unbox(rows []string) (out []string) {
	for _, r := range rows {
		r = strings.Trim(r, " │╭╮╰╯─┌┐└┘├┤|\u00a0")
		if r != "" {
			out = append(out, r)
		}
	}
	return out
}

// joinRows undoes a wrap: rows joined by sep, except where the break is one
// that a terminal makes inside a word: after a slash, and before ":45pm".
func joinRows(rows []string, sep string) string {
	var b strings.Builder
	for i, r := range rows {
		r = strings.TrimSpace(strings.ReplaceAll(r, "\u00a0", " "))
		if i > 0 && r != "" && b.Len() > 0 {
			switch prev, _ := utf8.DecodeLastRuneInString(b.String()); {
			case prev == '/':
			case r[0] == ':' && len(r) > 1 && r[1] >= '0' && r[1] <= '9' && prev >= '0' && prev <= '9':
			default:
				b.WriteString(sep)
			}
		}
		b.WriteString(r)
	}
	return b.String()
}

// mendRows joins rows by spaces except behind the widest ones: where a word is
// longer than the row, an agent breaks it at the edge.
func mendRows(rows, parts []string) string {
	widest := 0
	for _, r := range rows {
		widest = max(widest, utf8.RuneCountInString(strings.TrimRight(r, " \u00a0")))
	}
	var out []string
	glue := false
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if glue {
			out[len(out)-1] += p
		} else {
			out = append(out, p)
		}
		glue = utf8.RuneCountInString(strings.TrimRight(rows[i], " \u00a0")) >= widest-1
	}
	return joinRows(out, " ")
}
