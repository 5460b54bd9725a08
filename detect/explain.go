package detect

import (
	"bytes"
	"slices"
	"sort"
	"strings"
	"time"

	"qshim/detect/finding"
)

// Explained is one finding of an input that is not live.
type Explained struct {
	finding.Finding
	Offset time.Duration // since the start of a recording, else 0
}

// ExplainOptions are what explain knows about its input.
type ExplainOptions struct {
	Mode       Mode
	Now        time.Time // when the rows are read
	Zone       *time.Location
	Cols, Rows int
}

func (o ExplainOptions) watch(p *book, m Mode) *Watcher {
	return p.watch(Options{Mode: m, Cols: o.Cols, Rows: o.Rows, Zone: o.Zone, Lenient: true})
}

// ExplainRows reads plain rows as a user sees them: one instant, so at most one
// finding, the one that decides. Style, composer and log, which plain rows
// cannot hold, count as agreeing.
func (p *Profile) ExplainRows(rows []string, o ExplainOptions) []Explained {
	return p.rules().explainRows(rows, o)
}

func (p *book) explainRows(rows []string, o ExplainOptions) []Explained {
	if f, ok := p.structured(rows, o); ok {
		return []Explained{{Finding: f}}
	}
	var best *candidate
	others := p.othersRows(rows, o)
	for _, m := range []Mode{TUI, Headless} {
		if !m.fits(o.Mode) {
			continue
		}
		cs := p.rowCandidates(rows, m, o)
		if m == Headless && others != nil {
			cs = slices.DeleteFunc(cs, func(c candidate) bool { return others[c.block.from] })
		}
		if c := p.decide(cs); c != nil && (best == nil || weight(c.f.Class) > weight(best.f.Class)) {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	best.f.Confidence = finding.Strong
	return []Explained{{Finding: best.f}}
}

// othersRows are the rows that on a screen are a model's or a tool's, nil unless
// both modes are asked for: what they print is not a call's own last word.
func (p *book) othersRows(rows []string, o ExplainOptions) map[int]bool {
	if !TUI.fits(o.Mode) || !Headless.fits(o.Mode) {
		return nil
	}
	out := map[int]bool{}
	for _, b := range p.blocks(p.excerpt(rows, TUI), nil) {
		for y := b.from; b.def != nil && (b.def.who == byModel || b.def.who == byTool) && y < b.to; y++ {
			out[y] = true
		}
	}
	return out
}

// structured asks the rules for records; the last record that means something
// decides.
func (p *book) structured(rows []string, o ExplainOptions) (f finding.Finding, ok bool) {
	if !Headless.fits(o.Mode) {
		return f, false
	}
	w := o.watch(p, Headless)
	r := w.Stream(o.Now, Stdout, []byte(strings.Join(rows, "\n")+"\n"))
	for _, x := range r.Findings {
		if x.Confidence == finding.Certain {
			f, ok = x, true
		}
	}
	return f, ok
}

// excerpt is a page of plain rows.
func (p *book) excerpt(rows []string, m Mode) []line {
	page := make([]line, 0, len(rows))
	for _, r := range rows {
		r = strings.TrimRight(r, " \r")
		if len(r) > 1 && r[0] == '{' {
			if _, ok := decode([]byte(r)); ok {
				r = "" // a record: its fields were asked, its text is nobody's speech
			}
		}
		page = append(page, p.classify(r, m, true))
	}
	return page
}

func (p *book) rowCandidates(rows []string, m Mode, o ExplainOptions) []candidate {
	page := p.excerpt(rows, m)
	zone := o.Zone
	if zone == nil {
		zone = time.UTC
	}
	return p.candidates(p.blocks(page, nil), page, m, true, o.Now, zone)
}

// decide picks the candidate that is the state of affairs: a limit or a retry
// before an error of authentication before a warning, and of equals the last.
func (p *book) decide(cs []candidate) *candidate {
	var best *candidate
	for i := range cs {
		c := &cs[i]
		if c.past {
			continue
		}
		if best == nil || weight(c.f.Class) >= weight(best.f.Class) {
			best = c
		}
	}
	return best
}

func weight(c finding.Class) int {
	switch {
	case c.IsLimit(), c == finding.Retrying:
		return 3
	case c == finding.Auth:
		return 2
	}
	return 1
}

// ExplainRaw reads raw terminal bytes (TUI) or raw output (headless).
func (p *Profile) ExplainRaw(b []byte, o ExplainOptions) []Explained {
	c := newCollector(o.Now)
	if o.Mode == Headless {
		w := o.watch(p.rules(), Headless)
		c.add(w.Stream(o.Now, Stdout, b))
		c.add(w.Exit(o.Now.Add(settle), 1))
		return c.list()
	}
	w := o.watch(p.rules(), o.Mode)
	now := o.Now
	frames := bytes.SplitAfter(b, []byte("\x1b[?2026l"))
	for _, f := range frames {
		c.add(w.Output(now, f))
		if len(frames) < 500 {
			now = now.Add(settle)
		}
	}
	c.settle(w, now)
	return c.list()
}

// ExplainCast replays a recording by its own clock and size.
func (p *Profile) ExplainCast(cast *Cast, o ExplainOptions) []Explained {
	m := o.Mode
	if m == Headless {
		m = Both
	}
	o.Cols, o.Rows, o.Zone = cast.Cols, cast.Rows, time.UTC
	start := cast.Start
	if start.IsZero() {
		start = o.Now
	}
	w := o.watch(p.rules(), m)
	w.sig.keys = cast.HasKeys()
	c := newCollector(start)
	now := start
	for _, e := range cast.Events {
		at := start.Add(e.At)
		c.ticks(w, at)
		now = at
		switch e.Kind {
		case 'o':
			c.add(w.Output(now, []byte(e.Data)))
		case 'i':
			if k, enter := keys(e.Data); k {
				w.Key(now, enter)
			}
		case 'r':
			if cols, rows, ok := castSize(e.Data); ok {
				c.add(w.Resize(now, cols, rows))
			}
		}
	}
	c.settle(w, now)
	return c.list()
}

// keys tells a person's keys from a terminal's answers to queries.
func keys(data string) (typed, enter bool) {
	if strings.HasPrefix(data, "\x1b[13u") || strings.HasPrefix(data, "\x1b[13;1u") {
		return true, true
	}
	if strings.HasPrefix(data, "\x1b[?") || strings.HasPrefix(data, "\x1bP") || strings.HasPrefix(data, "\x1b]") || strings.HasPrefix(data, "\x1b_") {
		return false, false
	}
	return data != "", strings.ContainsRune(data, '\r')
}

// collector gathers reports and keeps the best reading of each event.
type collector struct {
	start time.Time
	wake  time.Time
	ids   []uint64
	by    map[uint64]*Explained
}

func newCollector(start time.Time) *collector {
	return &collector{start: start, by: map[uint64]*Explained{}}
}

func (c *collector) add(r Report) {
	c.wake = r.Wake
	for i, f := range r.Findings {
		if f.Confidence == finding.Weak {
			continue // nobody is touched by it
		}
		id := r.Events[i]
		if e := c.by[id]; e != nil {
			at := e.Finding.At
			e.Finding = f
			e.Finding.At = at
			continue
		}
		c.by[id] = &Explained{Finding: f, Offset: f.At.Sub(c.start)}
		c.ids = append(c.ids, id)
	}
}

// ticks lets time pass up to an instant.
func (c *collector) ticks(w *Watcher, until time.Time) {
	for n := 0; n < 200 && !c.wake.IsZero() && c.wake.Before(until); n++ {
		c.add(w.Tick(c.wake))
	}
}

// settle lets enough time pass for every second sign to be overdue.
func (c *collector) settle(w *Watcher, now time.Time) {
	c.ticks(w, now.Add(5*time.Second))
}

func (c *collector) list() []Explained {
	out := make([]Explained, 0, len(c.ids))
	for _, id := range c.ids {
		out = append(out, *c.by[id])
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Offset < out[j].Offset })
	return out
}
