package detect

import (
	"hash/fnv"
	"io"
	"strings"
	"time"

	"qshim/detect/finding"
	"qshim/detect/screen"
)

// pending is an own row that waits to settle and for its second sign.
type pending struct {
	rule     *rule
	f        finding.Finding
	key      string
	text     string
	prev     string
	colour   colour
	first    time.Time // when the row was first seen: times are read against it
	still    time.Time // since when its text is unchanged
	turn     int
	kind     string   // of the block
	finished bool     // a line that ends any turn stands below
	seen     bool     // on the page at the last look
	weak     bool     // reported as weak already
	over     []string // keys of older rows that this one says again
	ticked   bool     // its figures changed in place: it is live
	whole    bool     // its agent has painted all of it: it need not settle
}

// due is when the row must be looked at again, zero if only news can decide.
func (p *pending) due(w *Watcher, now time.Time) time.Time {
	if d := p.still.Add(settle); d.After(now) && !p.whole {
		return d
	}
	if p.weak || w.sig.activity == Busy && p.rule.needs != "" && p.rule.needs != "osc-error" {
		return time.Time{}
	}
	d := p.first.Add(signTime)
	if t := w.sig.idleAt.Add(signTime); t.After(d) {
		d = t
	}
	if d.After(now) {
		return d
	}
	return time.Time{}
}

// scan looks at the screen if something changed. Rows without a word that any
// rule wants are looked at 25 times a second at most.
func (w *Watcher) scan(now time.Time, force bool) {
	if w.o.Mode == Headless || w.p == nil {
		return // nothing has been painted yet
	}
	if since := now.Sub(w.looked); !force && since >= 0 && since < breath {
		w.dirty = now
		return
	}
	changed, hot := w.refresh()
	if changed && w.dirty.IsZero() {
		w.dirty = now
	}
	if !force && !changed && len(w.screenDesk.wait) == 0 {
		return
	}
	if w.partial(now) {
		return
	}
	if !force && !hot && len(w.screenDesk.wait) == 0 && now.Sub(w.looked) < lull {
		return
	}
	w.dirty, w.looked = time.Time{}, now
	w.look(now)
}

// partial reports whether the page shows a part of a frame that is not whole
// yet: half a row of a retry can look like the beginning of an answer. One that
// is never finished is read all the same.
func (w *Watcher) partial(now time.Time) bool {
	return w.s.Synchronised() && !w.dirty.IsZero() && now.Sub(w.dirty) < settleMost && !w.exited
}

// refresh brings the cached rows up to date.
func (w *Watcher) refresh() (changed, hot bool) {
	_, rows := w.s.Size()
	if len(w.cache) != rows {
		w.cache = make([]cached, rows)
	}
	for y := range w.cache {
		c := &w.cache[y]
		v := w.s.RowVersion(y)
		if c.ok && c.version == v {
			continue
		}
		c.version, c.ok = v, true
		text := w.s.Row(y)
		if c.l.text == text && (text != "" || c.l.blank) {
			continue
		}
		was := c.l
		c.l = w.p.classify(text, w.screenMode(), false)
		if c.l.hot {
			c.l.colour = colourOf(w.s.Line(y))
			hot = true
		}
		changed = changed || w.matters(&was, &c.l)
	}
	if rs := w.rescroll(); rs {
		changed, hot = true, true
	}
	return changed, hot
}

// matters reports whether another text in a row can change what is read off the
// page. A spinner that turns or a second counter does not: the row is of the
// same kinds, none whose words are read, and no rule wants it.
func (w *Watcher) matters(was, is *line) bool {
	return is.hot || was.hot || was.blank != is.blank ||
		was.start != is.start || was.more != is.more || was.stop != is.stop ||
		(is.start|is.more)&w.p.read != 0 ||
		w.said != 0 && !w.answer || w.asked.open // the next words are an answer, or a prompt
}

// rescroll takes the rows that left the top since the last look.
func (w *Watcher) rescroll() bool {
	total := w.s.ScrolledTotal()
	if total == w.total {
		return false
	}
	rows, total := w.s.Scrolled()
	fresh := min(uint64(len(rows)), total-min(total, w.total))
	if total < w.total {
		fresh, w.scrolls = uint64(len(rows)), w.scrolls[:0]
	}
	w.total = total
	hot := false
	for _, r := range rows[len(rows)-int(fresh):] {
		l := w.p.classify(r.String(), w.screenMode(), false)
		if l.hot {
			l.colour = colourOf(r)
			hot = true
		}
		w.scrolls = append(w.scrolls, l)
	}
	if n := len(w.scrolls); n > maxScrolled {
		w.scrolls = append(w.scrolls[:0], w.scrolls[n-maxScrolled:]...)
	}
	return hot
}

// colourOf says whether a row's words are in the default colour although its
// glyph is coloured.
func colourOf(l screen.Line) colour {
	n := l.Len()
	glyph, body, letters := false, false, 0
	for x := 0; x < n && letters < 12; x++ {
		c := l.Cell(x)
		if c.Width == 0 || c.Blank() || c.Rune == '\u00a0' {
			continue
		}
		on := !c.Style.Fg.Default()
		if letters == 0 && c.Rune > 0x2000 {
			glyph = glyph || on
			continue
		}
		letters++
		body = body || on
	}
	switch {
	case body:
		return coloured
	case glyph:
		return uncoloured
	}
	return colourUnknown
}

// page is the scrolled rows followed by the screen.
func (w *Watcher) page() []line {
	w.lines = append(w.lines[:0], w.scrolls...)
	if w.s.Alt() {
		w.lines = w.lines[:0]
	}
	for i := range w.cache {
		w.lines = append(w.lines, w.cache[i].l)
	}
	return w.lines
}

// look reads the page: who speaks, what the rules take, what is new.
func (w *Watcher) look(now time.Time) {
	page := w.page()
	w.blocks = w.p.blocks(page, w.blocks)
	w.surroundings(now, page)
	w.promptPainted(now)
	w.quietly(now)
	lenient := w.o.Lenient && !w.sig.titlesOrOSC()
	cs := w.p.candidates(w.blocks, page, w.screenMode(), lenient, now, w.o.Zone)
	w.retryGone(cs)
	if w.asked.swift.Equal(now) {
		w.screenDesk.forgetPast(cs)
	}
	w.weigh(now, &w.screenDesk, cs)
}

// surroundings reads composer, dialog, hint and footer off the blocks.
func (w *Watcher) surroundings(now time.Time, page []line) {
	s := &w.sig
	hinted := s.hint
	s.composer, s.composerEmpty, s.dialog, s.hint, s.footer, s.continues = false, false, false, false, false, false
	answer := false
	for i := range w.blocks {
		b := &w.blocks[i]
		if b.def == nil {
			continue
		}
		switch b.def.name {
		case "composer":
			b.fill(page)
			text := strings.TrimSpace(b.text)
			s.composer = true
			s.hint = w.p.act.hint != nil && w.p.act.hint.MatchString(text)
			s.composerEmpty = text == "" || s.hint || placeholder(text)
		case "dialog":
			s.dialog = true
		case "limit-dialog":
			s.dialog, s.footer = true, true
		case "limit-footer":
			s.footer = true
			if w.p.act.continues != nil {
				b.fill(page)
				s.continues = s.continues || w.p.act.continues.MatchString(b.text)
			}
		case promptRow:
			answer = false
		case busyRow:
			if !s.titlesOrOSC() && s.activity != Busy {
				w.setActivity(now, Busy)
			}
		}
		if b.def.who == byModel {
			answer = true
		}
	}
	if s.hint && !hinted && w.turn > 0 {
		w.failedTurn(now, signHint)
	}
	if answer && s.activity == Busy && !w.answer && (w.said == 0 || w.speech() != w.said) {
		w.answers()
	}
}

// speech sums up what the model and its tools have said since the last prompt
// on the page. 0: nothing.
func (w *Watcher) speech() uint64 {
	h, any := fnv.New64a(), false
	for i := range w.blocks {
		b := &w.blocks[i]
		if b.def == nil || b.to > len(w.lines) {
			continue
		}
		switch {
		case b.def.name == promptRow:
			h.Reset()
			any = false
		case b.def.who == byModel || b.def.who == byTool:
			writeWords(h, w.lines[b.from:b.to])
			any = true
		}
	}
	if !any {
		return 0
	}
	return h.Sum64() | 1
}

// writeWords writes rows without their spaces: a wrap changes nothing.
func writeWords(h io.Writer, rows []line) {
	for _, l := range rows {
		for _, word := range strings.Fields(l.text) {
			_, _ = io.WriteString(h, word) // a hash takes everything
		}
	}
}

// placeholder reports whether a composer's text is the agent's own grey hint.
func placeholder(text string) bool {
	for _, p := range []string{"Ask Codex to do anything", "Type your message", "Try \""} {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

// desk holds what one source (the screen, a pipe, the log) has on the table.
type desk struct {
	wait  []*pending
	fresh map[string]bool // own rows standing at the last look, already dealt with
	own   bool            // only the agent writes here, whole records: no second sign, no settling
}

// forgetPast forgets the rows that a new prompt has made old: the same words
// below it are news.
func (d *desk) forgetPast(cs []candidate) {
	for i := range cs {
		if cs[i].past {
			delete(d.fresh, cs[i].key)
		}
	}
}

// dealtWith notes that a row, and the older ones that say the same, are no news.
func (d *desk) dealtWith(p *pending) {
	d.fresh[p.key] = true
	for _, key := range p.over {
		d.fresh[key] = true
	}
}

// weigh decides which candidates are new and agreed upon.
func (w *Watcher) weigh(now time.Time, d *desk, cs []candidate) {
	for _, p := range d.wait {
		p.seen = false
	}
	standing := make(map[string]bool, len(cs))
	older := map[*rule][]string{}
	limit := false
	for i := range cs {
		limit = limit || !cs[i].past && cs[i].f.Class.IsLimit()
	}
	for i := range cs {
		c := &cs[i]
		switch {
		case c.past, c.f.Class == finding.Warning && limit:
		case w.history() && !d.own:
			standing[c.key] = true // painted before anything was asked
		case d.fresh[c.key]:
			standing[c.key] = true
			if !c.try && w.improves(c.f) { // a row beside it has brought the reset
				c.f.Confidence = finding.Weak
				w.report(c.f, "", false)
			}
		case superseded(cs[i:], d.fresh):
			older[c.rule] = append(older[c.rule], c.key) // dealt with when the last of them is
		default:
			w.pend(now, d, c, lone(cs, c.rule))
		}
	}
	d.fresh = standing
	for _, p := range d.wait {
		p.over = older[p.rule]
	}
	w.settleAll(now, d)
}

// superseded reports whether a new row below the first one says it again: a
// client that prints three errors for one failure has one, the last. Pending in
// turn they would never settle.
func superseded(cs []candidate, fresh map[string]bool) bool {
	for i := range cs[1:] {
		c := &cs[i+1]
		if c.rule == cs[0].rule && c.key != cs[0].key && !c.try && !cs[0].try && !c.past && !fresh[c.key] {
			return true
		}
	}
	return false
}

// history reports whether what is on the screen was there before this session
// asked anything: a resumed session paints its old banners. Where no turn's
// beginning is shown nobody can tell, and a row alone is weak there anyway.
func (w *Watcher) history() bool {
	if w.turn > 0 || !w.p.tells() {
		return false
	}
	return !w.o.Lenient || w.sig.keys || w.sig.titlesOrOSC()
}

// counts reports whether the row is p's a moment later: the same try, closer.
func counts(p *pending, c *candidate) bool {
	return withoutFigures(p.text) == withoutFigures(c.text) && c.f.Attempt == p.f.Attempt &&
		c.f.RetryAfter > 0 && c.f.RetryAfter < p.f.RetryAfter
}

// lone reports whether one row only fits the rule.
func lone(cs []candidate, r *rule) bool {
	n := 0
	for i := range cs {
		if cs[i].rule == r {
			n++
		}
	}
	return n == 1
}

// pend notes a candidate, or its new text. lone: no other row fits its rule.
func (w *Watcher) pend(now time.Time, d *desk, c *candidate, lone bool) {
	for _, p := range d.wait {
		if p.rule != c.rule || p.turn != w.turn || c.try && p.key != c.key {
			continue
		}
		p.seen = true
		if p.text == c.text && c.f.ResetSource.Rank() > p.f.ResetSource.Rank() {
			p.f.Reset, p.f.ResetSource, p.f.Precision = c.f.Reset, c.f.ResetSource, c.f.Precision
		}
		if p.text != c.text {
			p.ticked = p.ticked || lone && counts(p, c)
			at := p.f.At
			p.key, p.text, p.still, p.f = c.key, c.text, now, c.f
			p.whole = w.whole(d, c.block)
			if c.f.Class != finding.Retrying {
				p.f.At = at
			}
		}
		p.prev, p.colour, p.kind, p.finished = c.block.prev, c.block.colour, c.block.kind(), c.finished
		return
	}
	d.wait = append(d.wait, &pending{
		rule: c.rule, f: c.f, key: c.key, text: c.text, prev: c.block.prev, colour: c.block.colour, kind: c.block.kind(), finished: c.finished,
		first: now, still: now, turn: w.turn, seen: true, whole: w.whole(d, c.block),
	})
}

// whole reports whether a block of the page came in synchronised updates, as
// Codex and OpenCode paint always and Claude where the terminal can. Then it is no
// part of a frame, and to wait for the rest would only let siblings go on sending.
func (w *Watcher) whole(d *desk, b *block) bool {
	if d != &w.screenDesk {
		return false
	}
	scrolled := len(w.lines) - len(w.cache)
	for i := b.from; i < b.to; i++ {
		if !w.s.Framed(i - scrolled) { // which a row that has scrolled out is not
			return false
		}
	}
	return true
}

// settleAll reports what has settled and is agreed upon and forgets what went.
func (w *Watcher) settleAll(now time.Time, d *desk) {
	keep := d.wait[:0]
	for _, p := range d.wait {
		if p.seen && !w.resolve(now, d, p) {
			keep = append(keep, p)
		}
	}
	d.wait = keep
}

// resolve reports one pending row if it can; true when it is dealt with.
func (w *Watcher) resolve(now time.Time, d *desk, p *pending) bool {
	if !d.own && !p.whole && now.Sub(p.still) < settle && now.Sub(p.first) < settleMost && !w.exited {
		return false
	}
	says := agrees
	if !d.own {
		says = w.judge(p, now)
	}
	switch says {
	case agrees:
		p.f.Confidence = w.confidence(d, p)
		w.report(p.f, p.warnKey(), p.rule.each)
		d.dealtWith(p)
		return true
	case disagrees:
		d.dealtWith(p)
		return true
	}
	if w.stuck(p, now) && !p.weak {
		p.weak = true
		f := p.f
		f.Confidence = finding.Weak
		w.report(f, p.warnKey(), false)
	}
	return false
}

// stuck reports whether a row's second sign is overdue: then it is said weakly.
func (w *Watcher) stuck(p *pending, now time.Time) bool {
	return p.due(w, now).IsZero() && w.sig.activity != Busy && p.rule.needs != "exit"
}

// warnKey is the rule and its words without figures.
func (p *pending) warnKey() string { return withoutFigures(p.key) }

func withoutFigures(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// confidence of an agreed row: OSC 7501 is structured, everything else on a
// screen is at most strong, and nothing is where bytes were lost.
func (w *Watcher) confidence(d *desk, p *pending) finding.Confidence {
	switch {
	case d.own:
		return finding.Strong
	case !w.s.Trusted():
		return finding.Weak
	case p.rule.needs == "osc-error" && !w.sig.errorAt.IsZero():
		return finding.Certain
	case p.rule.needs == "exit" && !w.o.Lenient && !w.failed:
		return finding.Weak
	}
	return finding.Strong
}

// retryGone notes that the retry line has left the page.
func (w *Watcher) retryGone(cs []candidate) {
	if !w.retrying || w.sig.activity == Busy && !w.answer {
		return
	}
	for i := range cs {
		if !cs[i].past && cs[i].f.Class == finding.Retrying {
			return
		}
	}
	w.endRetry()
}

// screenMode is which rules the screen is read with.
func (w *Watcher) screenMode() Mode {
	if w.o.Mode == Both {
		return Both
	}
	return TUI
}
