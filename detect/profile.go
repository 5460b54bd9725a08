package detect

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"

	"qshim/detect/finding"
)

// Profile is the [detect] table of one agent: how the agent draws its rows, and
// which of its own rows and records mean what. It is immutable and safe for use
// by several watchers.
type Profile struct {
	// Name is the agent's name as the file says it.
	Name string

	source func() []byte         // the file, of one that is not parsed yet
	book   func() (*book, error) // never nil
}

// rules is what the profile says; nothing where it is wrong.
func (p *Profile) rules() *book {
	b, _ := p.book() // Err says it
	return b
}

// Err is what is wrong with the profile, as ParseProfile says it.
func (p *Profile) Err() error {
	_, err := p.book()
	return err
}

// book is a profile, compiled.
type book struct {
	act    activity
	rows   []*rowDef
	rules  []*rule
	jsons  []*jsonRule
	usages []*usageRule
	wanted map[string]bool // kinds of row that any rule asks for
	hot    []string        // literals: a row without any of them can fit no rule
	always uint64          // kinds of row of which any can fit a rule
	read   uint64          // kinds of row whose words are read although no rule wants them
}

// Mode says which of a profile's rules apply.
type Mode int

// The modes. Both is for explain without --mode: the input may be either.
const (
	TUI Mode = iota
	Headless
	Both
	logText // text lines of the agent's own log
)

// fits reports whether something declared for mode m applies in mode n. What
// is declared for both is not meant for logs.
func (m Mode) fits(n Mode) bool {
	if m == logText || n == logText {
		return m == n
	}
	return m == Both || n == Both || m == n
}

// activity is how a profile shows that it works, waits or failed, apart from
// its rows.
type activity struct {
	titleBusy, titleIdle, titleError *pattern
	hint, continues                  *pattern
	scrollbar                        string
	osc                              bool
	startsBusy                       bool
}

// tells reports whether the agent shows the beginning of a turn.
func (p *book) tells() bool {
	for _, d := range p.rows {
		if d.name == busyRow {
			return true
		}
	}
	return p.act.osc || p.act.titleBusy != nil
}

// maxRows is how many kinds of row a profile can tell apart: one bit each.
const maxRows = 64

// promptRow is the kind of a row that the user has said.
const promptRow = "prompt"

// busyRow is the kind of a row that only stands while the agent works.
const busyRow = "busy"

// speaker is who draws a row.
type speaker int

const (
	byFrame speaker = iota // composer, rules, footers: says nothing by itself
	byAgent                // the client's own words: only these can make a finding
	byModel                // the model's speech
	byTool                 // what a tool printed, diffs, file contents
	byUser                 // the user's prompt
)

var speakers = sync.OnceValue(func() map[string]speaker {
	return map[string]speaker{
		"frame": byFrame, "agent": byAgent, "model": byModel, "tool": byTool, "user": byUser,
	}
})

// rowDef is one [[detect.row]]: how one kind of block looks.
type rowDef struct {
	name        string
	who         speaker
	mode        Mode
	start, more *pattern
	opens, goes opening  // what rows that start and more fit can begin with
	stop        *pattern // a row that ends the block and is not part of it
	gap         bool     // blank rows do not end it
	box         bool     // drawn inside │ │
	cancels     bool     // what stands above it is over
	after       map[string]bool
	notAfter    map[string]bool
	before      map[string]bool // what may stand below; otherwise a later definition is asked
	close       bool            // and with no blank row between
	holds       map[string]bool // kinds whose start does not break it
	excerpt     bool            // only in plain rows, which may begin anywhere
	bit         uint64
}

// rule is one [[detect.rule]]: an own row and what it means.
type rule struct {
	name      string
	class     finding.Class // empty: the providers' sentences decide
	otherwise finding.Class // class when no sentence is known
	rows      map[string]bool
	mode      Mode
	match     *pattern
	also      []*pattern
	unless    []*pattern
	needs     string
	reset     string // "", "no"
	within    time.Duration
	measure   finding.Measure
	scope     finding.Scope
	companion bool
	each      bool // every row is a new try, also when it reads the same
	examples  []string
	not       []string
	from      origin
	shared    bool // of another profile, whose test runs its examples
}

type detectTable struct {
	Replace  bool          `toml:"replace"` // a user's table: nothing of the built-in one stays
	Activity activityTable `toml:"activity"`
	Row      []rowTable    `toml:"row"`
	Rule     []ruleTable   `toml:"rule"`
	JSON     []jsonTable   `toml:"json"`
	Usage    []usageTable  `toml:"usage"`
}

// activityTable is [detect.activity]: signs of working, waiting and failing
// besides the rows. All are regular expressions but osc7501 and scrollbar.
type activityTable struct {
	from origin

	TitleBusy  string `toml:"title_busy"`  // window title while a turn is in progress
	TitleIdle  string `toml:"title_idle"`  // window title while the agent waits
	TitleError string `toml:"title_error"` // window title after a turn that failed
	Scrollbar  string `toml:"scrollbar"`   // what stands at the right edge of a row and belongs to no text, such as ┃
	Continues  string `toml:"continues"`   // in a row named limit-footer: the agent will continue by itself
	Hint       string `toml:"hint"`        // the composer's placeholder after a failed turn
	OSC7501    *bool  `toml:"osc7501"`     // the agent sends OSC 7501 states

	// StartsBusy: title and OSC 7501 say busy while the agent starts, although
	// nothing was asked. They count from the user's first Enter on, or at once
	// where the launch carries a prompt.
	StartsBusy *bool `toml:"starts_busy"`
}

// rowTable is one [[detect.row]]: how one kind of block is drawn. The first
// entry that fits a row names it; several may share a name.
type rowTable struct {
	from origin

	Name     string   `toml:"name"`      // what rules call it
	Speaker  string   `toml:"speaker"`   // agent, model, tool, user or frame
	Mode     string   `toml:"mode"`      // tui, headless, log; empty: the first two
	Start    string   `toml:"start"`     // pattern of the first row; group "text" is what rules see, else what follows the match
	More     string   `toml:"more"`      // pattern of the rows that carry it on
	Stop     string   `toml:"stop"`      // pattern of its last row, which is never the first: a fence opens and closes alike
	Gap      bool     `toml:"gap"`       // blank rows do not end it
	Box      bool     `toml:"box"`       // its text stands inside │ │
	Cancels  *bool    `toml:"cancels"`   // what stands above is over; default: for model, tool and user
	After    []string `toml:"after"`     // only below these kinds ("" is the top of the page)
	NotAfter []string `toml:"not_after"` // not below these kinds
	Before   []string `toml:"before"`    // only above these kinds; else a later entry is asked
	Close    bool     `toml:"close"`     // before: with no blank row between
	Holds    []string `toml:"holds"`     // kinds whose start does not break it
	Excerpt  bool     `toml:"excerpt"`   // only in plain rows given to explain
}

// ruleTable is one [[detect.rule]]: an own row and what it means. The first
// rule that fits a block decides. Groups of match that are used: cause, delay,
// attempt, max (of a retry), model.
type ruleTable struct {
	from origin

	Name      string   `toml:"name"`      // shown in findings
	Class     string   `toml:"class"`     // empty: the provider's sentence decides (providers.toml)
	Otherwise string   `toml:"otherwise"` // class when no such sentence is known
	Source    string   `toml:"source"`    // version and how it is known
	Rows      []string `toml:"rows"`      // kinds of row that can carry it
	Mode      string   `toml:"mode"`      // tui, headless or log; empty: the first two
	Match     string   `toml:"match"`     // pattern of the block's text, wraps undone
	Also      []string `toml:"also"`      // patterns that must fit too
	Unless    []string `toml:"unless"`    // patterns that must not fit
	Needs     string   `toml:"needs"`     // the second sign: banner, osc-error, idle, exit, second, live
	Reset     string   `toml:"reset"`     // "no": a time in the text is not the end of the block
	Within    string   `toml:"within"`    // longest believable wait
	Measure   string   `toml:"measure"`   // if the text does not say it
	Scope     string   `toml:"scope"`     // if the text does not say it
	Companion bool     `toml:"companion"` // says again what another row says
	Each      bool     `toml:"each"`      // every row is a new try
	Examples  []string `toml:"examples"`  // rows that it takes
	Not       []string `toml:"not"`       // rows that it must not take
	Shared    bool     `toml:"shared"`    // set where one profile's rules follow another's
}

// ParseProfile reads the [detect] table of an agent's TOML file; name is the
// file's name for errors. It is strict about that table and blind to the rest.
// An error names line and column and says what to do.
func ParseProfile(name string, data []byte) (*Profile, error) {
	said, b, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	if said == "" {
		said = strings.TrimSuffix(name, ".toml")
	}
	return &Profile{Name: said, book: func() (*book, error) { return b, nil }}, nil
}

// LazyProfile is ParseProfile put off until something has to be judged: half a
// start-up's time (5 ms), and an agent that says nothing never needs it. It is
// for files, which source returns, that are known to be right; with one that is not nothing is found,
// and Err says why.
func LazyProfile(name string, source func() []byte) *Profile {
	return &Profile{Name: strings.TrimSuffix(name, ".toml"), source: source, book: sync.OnceValues(func() (*book, error) {
		_, b, err := parse(name, source())
		if err != nil {
			return &book{}, err
		}
		return b, nil
	})}
}

// parse returns the name in the file beside what its [detect] table says.
func parse(name string, data []byte) (string, *book, error) {
	said, t, err := readDetect(name, data)
	if err != nil {
		return "", nil, err
	}
	b, err := compile(t)
	return said, b, err
}

// readDetect decodes the [detect] table; nothing of it has been checked yet.
func readDetect(name string, data []byte) (said string, t *detectTable, err error) {
	var file struct {
		Name   string      `toml:"name"`
		Detect detectTable `toml:"detect"`
	}
	md, err := toml.Decode(string(data), &file)
	if err != nil {
		return "", nil, tomlError(name, err)
	}
	for _, k := range md.Undecoded() {
		if len(k) > 1 && k[0] == "detect" {
			line, col := locate(data, k[:len(k)-1].String(), -1, k[len(k)-1])
			return "", nil, fmt.Errorf("%s:%d:%d: unknown key %q: remove it, or see detect/profile.go for the keys of [detect]", name, line, col, k[len(k)-1])
		}
	}
	file.Detect.comeFrom(name, data)
	return file.Name, &file.Detect, nil
}

// tomlError gives a syntax error the form file:line:col.
func tomlError(name string, err error) error {
	pe, ok := err.(toml.ParseError)
	if !ok {
		line := 1
		if _, rest, found := strings.Cut(err.Error(), "line "); found {
			_, _ = fmt.Sscanf(rest, "%d", &line) // stays 1: the file as a whole
		}
		return fmt.Errorf("%s:%d:1: %s: correct the value there", name, line, strings.TrimPrefix(err.Error(), "toml: "))
	}
	return fmt.Errorf("%s:%d:%d: %s: correct the TOML there", name, pe.Position.Line, max(1, pe.Position.Col), pe.Message)
}

// compiler turns the tables into a book and keeps the first error.
type compiler struct {
	p   *book
	err error

	at    origin // where we are, for errors
	table string
}

func (c *compiler) fail(key, format string, args ...any) {
	if c.err != nil {
		return
	}
	line, col := locate(c.at.data, c.table, c.at.index, key)
	c.err = fmt.Errorf("%s:%d:%d: %s: %s", c.at.file, line, col, key, fmt.Sprintf(format, args...))
}

// compile checks the tables and makes a book of them.
func compile(t *detectTable) (*book, error) {
	c := &compiler{p: &book{wanted: map[string]bool{}, hot: hotWords}}
	c.table, c.at = "detect.activity", t.Activity.from
	c.p.act = activity{
		titleBusy: c.re("title_busy", t.Activity.TitleBusy),
		titleIdle: c.re("title_idle", t.Activity.TitleIdle), titleError: c.re("title_error", t.Activity.TitleError),
		scrollbar: t.Activity.Scrollbar,
		hint:      c.re("hint", t.Activity.Hint), continues: c.re("continues", t.Activity.Continues),
		osc: isTrue(t.Activity.OSC7501), startsBusy: isTrue(t.Activity.StartsBusy),
	}
	for i := range t.Row {
		c.table, c.at = "detect.row", t.Row[i].from
		if i >= maxRows {
			c.fail("name", "more than %d [[detect.row]] tables: merge some", maxRows)
			break
		}
		c.row(&t.Row[i])
	}
	for i := range t.Rule {
		c.table, c.at = "detect.rule", t.Rule[i].from
		c.rule(&t.Rule[i])
	}
	for i := range t.JSON {
		c.table, c.at = "detect.json", t.JSON[i].from
		c.json(&t.JSON[i])
	}
	for i := range t.Usage {
		c.table, c.at = "detect.usage", t.Usage[i].from
		c.usage(&t.Usage[i])
	}
	return c.p, c.err
}

func isTrue(b *bool) bool { return b != nil && *b }

// re compiles one pattern; an empty one is nil.
func (c *compiler) re(key, pat string) *pattern {
	if pat == "" {
		return nil
	}
	r, err := newPattern(pat)
	if err != nil {
		c.fail(key, "%v: correct the regular expression (Go's RE2 syntax, in single quotes)", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return nil
	}
	return r
}

func (c *compiler) res(key string, pats []string) (out []*pattern) {
	for _, p := range pats {
		if r := c.re(key, p); r != nil {
			out = append(out, r)
		}
	}
	return out
}

func (c *compiler) mode(s string) Mode {
	switch s {
	case "":
		return Both
	case "tui":
		return TUI
	case "headless":
		return Headless
	case "log":
		return logText
	}
	c.fail("mode", "%q is no mode: write \"tui\", \"headless\", \"log\", or leave it out for the first two", s)
	return Both
}

func (c *compiler) row(t *rowTable) {
	who, ok := speakers()[t.Speaker]
	switch {
	case t.Name == "":
		c.fail("name", "missing: give the row a name that rules can use")
	case !ok:
		c.fail("speaker", "%q is no speaker: write agent, model, tool, user or frame", t.Speaker)
	case t.Start == "":
		c.fail("start", "missing: write the pattern of the block's first row")
	}
	d := &rowDef{
		name: t.Name, who: who, mode: c.mode(t.Mode), gap: t.Gap, box: t.Box,
		start: c.re("start", t.Start), more: c.re("more", t.More), stop: c.re("stop", t.Stop),
		after: set(t.After), notAfter: set(t.NotAfter), before: set(t.Before), close: t.Close, holds: set(t.Holds), excerpt: t.Excerpt,
		bit: 1 << uint(len(c.p.rows)),
	}
	d.opens, d.goes = openingOf(t.Start), openingOf(t.More)
	if d.name == "composer" {
		c.p.read |= d.bit
	}
	d.cancels = who == byModel || who == byTool || who == byUser
	if t.Cancels != nil {
		d.cancels = *t.Cancels
	}
	c.p.rows = append(c.p.rows, d)
}

var classes = sync.OnceValue(func() map[string]finding.Class {
	return map[string]finding.Class{
		"rate": finding.Rate, "overload": finding.Overload, "window": finding.Window, "daily": finding.Daily,
		"credit": finding.Credit, "spend": finding.Spend, "retrying": finding.Retrying, "warning": finding.Warning,
		"auth": finding.Auth, "none": classNone, "": "",
	}
})

// classNone marks an own row that is about something else: it makes no
// finding, and no later rule looks at the row.
const classNone finding.Class = "none"

func (c *compiler) class(key, s string) finding.Class {
	cl, ok := classes()[s]
	if !ok {
		c.fail(key, "%q is no class: write rate, overload, window, daily, credit, spend, retrying, warning, auth, none or leave it out to let the provider's sentence decide", s)
	}
	return cl
}

var needs = sync.OnceValue(func() map[string]bool {
	return map[string]bool{"": true, "banner": true, "osc-error": true, "idle": true, "exit": true, "live": true, "second": true}
})

func (c *compiler) rule(t *ruleTable) {
	switch {
	case t.Name == "":
		c.fail("name", "missing: give the rule a name")
	case t.Match == "":
		c.fail("match", "missing: write the pattern of the row's text")
	case t.Source == "":
		c.fail("source", "missing: write \"measured VERSION\", \"program text VERSION\", \"documented\" or the report it comes from")
	case len(t.Rows) == 0:
		c.fail("rows", "missing: name the kinds of row that can carry it")
	case !needs()[t.Needs]:
		c.fail("needs", "%q is no second sign: write banner, osc-error, idle, exit, second, live or leave it out", t.Needs)
	case t.Reset != "" && t.Reset != "no":
		c.fail("reset", "%q: write \"no\" where the stated time is no end of the block, or leave it out", t.Reset)
	}
	for _, n := range t.Rows {
		if !c.hasRow(n) {
			c.fail("rows", "%q is no [[detect.row]] of this file", n)
		}
	}
	r := &rule{
		name: t.Name, class: c.class("class", t.Class), otherwise: c.class("otherwise", t.Otherwise),
		rows: set(t.Rows), mode: c.mode(t.Mode),
		match: c.re("match", t.Match), also: c.res("also", t.Also), unless: c.res("unless", t.Unless),
		needs: t.Needs, reset: t.Reset,
		measure: finding.Measure(t.Measure), scope: finding.Scope(t.Scope),
		companion: t.Companion, each: t.Each, examples: t.Examples, not: t.Not, from: t.from, shared: t.Shared,
	}
	if t.Within != "" {
		d, err := time.ParseDuration(t.Within)
		if err != nil {
			c.fail("within", "%v: write a duration such as \"5h\"", err)
		}
		r.within = d
	}
	c.p.rules = append(c.p.rules, r)
	for n := range r.rows {
		c.p.wanted[n] = true
	}
	c.prefilter(r)
}

// prefilter sees to it that rows that fit the rule are looked at: by a word
// that they all hold, or by their kind. Where the provider's sentence decides,
// that is any row of a kind with a mark of its own, and its words are in
// hotWords for kinds that begin as any text does.
func (c *compiler) prefilter(r *rule) {
	if r.match == nil || r.class == classNone {
		return
	}
	sentence := r.class == "" && r.otherwise == ""
	if r.match.need != nil && !sentence {
		for _, w := range r.match.need {
			if !isHot(w, c.p.hot) {
				c.p.hot = append(slices.Clip(c.p.hot), w)
			}
		}
		return
	}
	for _, d := range c.p.rows {
		if r.rows[d.name] && d.who == byAgent && (!sentence || !d.opens.has('a')) {
			c.p.always |= d.bit
		}
	}
}

func (c *compiler) hasRow(name string) bool {
	for _, d := range c.p.rows {
		if d.name == name {
			return true
		}
	}
	return name == otherRow
}

func set(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// locate finds key in the index-th [[table]] (or the only [table], index -1)
// of TOML text, as line and column from 1. Without such a key it is the table's
// own line, without the table the first line: always a place to look at.
func locate(data []byte, table string, index int, key string) (line, col int) {
	line, col = 1, 1
	in, seen := false, -1
	for i, l := range strings.Split(string(data), "\n") {
		s := strings.TrimSpace(l)
		if strings.HasPrefix(s, "[") && !strings.Contains(s, "=") {
			name := strings.Trim(strings.SplitN(s, "#", 2)[0], "[] \t\r")
			in = false
			if name == table {
				seen++
				if in = index < 0 || seen == index; in && line == 1 {
					line = i + 1
				}
			}
			continue
		}
		if in && (s == key || strings.HasPrefix(s, key+" ") || strings.HasPrefix(s, key+"=")) {
			return i + 1, strings.Index(l, key) + 1
		}
	}
	return line, col
}
