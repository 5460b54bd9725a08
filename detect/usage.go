package detect

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"qshim/detect/finding"
)

// Usage is what an agent's records say of its consumption: what waking it cold
// would cost, and how much of its windows is used.
type Usage struct {
	Context int64   // tokens of the conversation as last sent; 0: not known
	Spent   int64   // tokens since the launch that were not read from a cache
	Shares  []Share // the windows as last told, at most maxShares
}

// Share is how much of one window of the account is used.
type Share struct {
	Used   float64       // percent
	Window time.Duration // its length
	Ends   time.Time     // zero: not said
}

const (
	// maxShares is how many windows are kept; accounts have two (5 hours, a week).
	maxShares = 4
	// maxTokens is the most that one request is believed to cost.
	maxTokens = 100_000_000
	// mostUsed bounds a share: overage is told beyond 100.
	mostUsed = 1000
)

// usageRule is one [[detect.usage]]: a structured record that tells consumption.
type usageRule struct {
	fits    *jsonRule // in, when and has only
	id      []string
	context []string
	cached  []string
	output  []string
	side    bool
	shares  []shareRule

	index int // of the rule, for the last request of each
}

type shareRule struct {
	used, minutes, ends string
	length              time.Duration
	scale               float64
}

// usageTable is [[detect.usage]]. Fields are paths as in [[detect.json]].
type usageTable struct {
	from origin

	Name    string         `toml:"name"`
	Source  string         `toml:"source"`
	In      []string       `toml:"in"`   // log, stdout; with a log that is followed, tokens count there only
	When    map[string]any `toml:"when"` // which record it is
	Has     []string       `toml:"has"`
	ID      []string       `toml:"id"`      // two records in a row with the same values tell of one request
	Context []string       `toml:"context"` // tokens sent: their sum is the conversation
	Cached  []string       `toml:"cached"`  // of these, read from the provider's cache
	Output  []string       `toml:"output"`  // tokens answered
	Side    bool           `toml:"side"`    // another conversation of the session (a subagent): paid, but not what waking it costs
	Share   []shareTable   `toml:"share"`
}

// shareTable is one entry of share.
type shareTable struct {
	Used    string  `toml:"used"`    // the share
	Full    float64 `toml:"full"`    // what the field is when all is used; 100 unless set
	Window  string  `toml:"window"`  // its length: "5h"
	Minutes string  `toml:"minutes"` // or the field that holds it, in minutes
	Ends    string  `toml:"ends"`    // field with the instant of its end
}

func (c *compiler) usage(t *usageTable) {
	switch {
	case t.Name == "":
		c.fail("name", "missing: give the record a name")
	case t.Source == "":
		c.fail("source", "missing: write \"measured VERSION\" or where it is documented")
	case len(t.When) == 0 && len(t.Has) == 0:
		c.fail("when", "missing: say which fields tell this record from others")
	case len(t.Context) == 0 && len(t.Share) == 0:
		c.fail("context", "missing: name the fields with the tokens sent, or a share")
	}
	r := &usageRule{
		fits: &jsonRule{in: set(t.In), when: wanted(t.When), has: t.Has},
		id:   t.ID, context: t.Context, cached: t.Cached, output: t.Output, side: t.Side, index: len(c.p.usages),
	}
	for _, s := range t.Share {
		r.shares = append(r.shares, c.share(s))
	}
	c.p.usages = append(c.p.usages, r)
}

func (c *compiler) share(s shareTable) shareRule {
	out := shareRule{used: s.Used, minutes: s.Minutes, ends: s.Ends, scale: 1}
	if s.Used == "" {
		c.fail("share", "used is missing: name the field with the share")
	}
	if s.Full > 0 {
		out.scale = 100 / s.Full
	}
	if s.Window == "" && s.Minutes == "" {
		c.fail("share", "window is missing: write its length, such as \"5h\", or name the field with it in minutes")
	}
	if s.Window != "" {
		d, err := time.ParseDuration(s.Window)
		if err != nil {
			c.fail("share", "window: %v: write a duration such as \"5h\"", err)
		}
		out.length = d
	}
	return out
}

// consumed asks the usage rules about one record.
func (w *Watcher) consumed(d doc, from string) {
	for _, r := range w.p.usages {
		if !r.fits.fits(d, from) {
			continue
		}
		if len(r.context) > 0 && (from == "log" || !w.o.HasLog) {
			w.tokens(r, d)
		}
		for _, s := range r.shares {
			if sh, ok := s.read(d); ok {
				w.share(sh)
			}
		}
	}
}

// request is the last one that a rule has counted.
type request struct {
	id    string
	spent int64
}

func (w *Watcher) tokens(r *usageRule, d doc) {
	context, ok := d.sum(r.context)
	if !ok {
		return
	}
	cached, _ := d.sum(r.cached)
	output, _ := d.sum(r.output)
	now := request{id: d.join(r.id), spent: max(0, context-cached) + output}
	if w.requests == nil {
		w.requests = map[int]request{}
	}
	if last, ok := w.requests[r.index]; ok && now.id != "" && last.id == now.id {
		w.usage.Spent -= last.spent // said again, perhaps more exactly
	}
	w.requests[r.index] = now
	w.usage.Spent += now.spent
	if !r.side && context > 0 {
		w.usage.Context = context
	}
	w.rep.UsageNew = true
}

func (s shareRule) read(d doc) (Share, bool) {
	used, ok := d.num(s.used)
	used *= s.scale
	if !ok || used < 0 || used > mostUsed {
		return Share{}, false
	}
	sh := Share{Used: used, Window: s.length, Ends: d.epoch(s.ends)}
	if m, ok := d.num(s.minutes); ok && m > 0 && m < 1e6 {
		sh.Window = time.Duration(m * float64(time.Minute))
	}
	return sh, sh.Window > 0
}

// share keeps the newest word on each window.
func (w *Watcher) share(sh Share) {
	w.rep.UsageNew = true
	kept := make([]Share, 0, maxShares)
	for _, old := range w.usage.Shares {
		if old.Window != sh.Window {
			kept = append(kept, old)
		}
	}
	kept = append(kept, sh)
	w.usage.Shares = kept[max(0, len(kept)-maxShares):]
}

var (
	usedText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\bused (\d{1,3})% of your `) })
	leftText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\b(\d{1,3})% of your .{0,40}\bleft\b`) })
)

// warned takes the share out of a warning: the only word on it that Claude Code
// (2.1.332) shows on a terminal. One that names a model tells of another limiter.
func (w *Watcher) warned(f finding.Finding) {
	if f.Class != finding.Warning || f.Model != "" {
		return
	}
	text := strings.Join(strings.Fields(strings.Join(f.Rows, " ")), " ")
	sh := Share{Window: windowOf(text), Ends: f.Reset}
	if sh.Window <= 0 {
		return
	}
	if m := usedText().FindStringSubmatch(text); m != nil {
		sh.Used, _ = strconv.ParseFloat(m[1], 64) // three digits
	} else if m := leftText().FindStringSubmatch(text); m != nil {
		left, _ := strconv.ParseFloat(m[1], 64)
		sh.Used = max(0, 100-left)
	} else {
		return
	}
	w.share(sh)
}

// sum adds up the fields that are there; ok is false when none is.
func (d doc) sum(paths []string) (n int64, ok bool) {
	for _, p := range paths {
		f, found := d.num(p)
		if !found || f < 0 {
			continue
		}
		ok = true
		n += int64(math.Min(f, maxTokens))
	}
	return n, ok
}

// join is the values of several fields as one.
func (d doc) join(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		if s := d.str(p); s != "" {
			b.WriteString(s)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
