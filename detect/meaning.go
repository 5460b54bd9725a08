package detect

import (
	_ "embed" // providers.toml
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"

	"qshim/detect/finding"
	"qshim/detect/when"
)

// providersTOML is what the providers' own sentences mean, whichever agent
// shows them. A profile's rule decides that a row is the client's error; where
// it names no class, the first fitting sentence of this table does.
//
//go:embed providers.toml
var providersTOML []byte

// meaning is one [[meaning]]: a provider's sentence.
type meaning struct {
	name    string
	order   int
	class   finding.Class
	match   *pattern
	unless  *pattern
	lies    bool // a delay in the same text does not end the block
	measure finding.Measure
	scope   finding.Scope
}

type meaningTable struct {
	Name     string   `toml:"name"`
	Class    string   `toml:"class"`
	Source   string   `toml:"source"`
	Match    string   `toml:"match"`
	Unless   string   `toml:"unless"`
	Lies     bool     `toml:"lies"`
	Measure  string   `toml:"measure"`
	Scope    string   `toml:"scope"`
	Examples []string `toml:"examples"`
	Not      []string `toml:"not"`
}

var meanings = sync.OnceValue(func() []meaning {
	ms, err := parseMeanings(providersTOML)
	if err != nil {
		return nil // a test parses the file; with it broken only unknown remains
	}
	return ms
})

// parseMeanings reads providers.toml.
func parseMeanings(data []byte) ([]meaning, error) {
	var file struct {
		Meaning []meaningTable `toml:"meaning"`
	}
	md, err := toml.Decode(string(data), &file)
	if err != nil {
		return nil, tomlError("providers.toml", err)
	}
	if u := md.Undecoded(); len(u) > 0 {
		return nil, fmt.Errorf("providers.toml: unknown key %q", u[0].String())
	}
	out := make([]meaning, 0, len(file.Meaning))
	for i, t := range file.Meaning {
		c := &compiler{table: "meaning", at: origin{"providers.toml", data, i}}
		m := meaning{
			name: t.Name, order: i, class: c.class("class", t.Class), match: c.re("match", t.Match), unless: c.re("unless", t.Unless),
			lies: t.Lies, measure: finding.Measure(t.Measure), scope: finding.Scope(t.Scope),
		}
		if m.match == nil || t.Source == "" {
			c.fail("name", "a [[meaning]] wants name, class, source and match")
		}
		if c.err != nil {
			return nil, c.err
		}
		out = append(out, m)
	}
	return out, nil
}

// meant is the first sentence that a text contains. A row is read several times
// until it has settled, 0.5 ms each, so the last answers are kept.
func meant(text string) (meaning, bool) {
	if m, ok, known := answers.find(text); known {
		return m, ok
	}
	m, ok := firstMeant(text)
	answers.keep(answer{text: text, m: m, ok: ok})
	return m, ok
}

// answers are the last ones of meant.
var answers lately

type lately struct {
	sync.Mutex
	last [4]answer
	next int
}

type answer struct {
	text string // none: not an answer
	m    meaning
	ok   bool
}

// longAnswer is more than rows of a screen say; a longer text is a record, which is
// read once.
const longAnswer = 4096

func (l *lately) find(text string) (m meaning, ok, known bool) {
	l.Lock()
	defer l.Unlock()
	for _, a := range l.last {
		if text != "" && a.text == text {
			return a.m, a.ok, true
		}
	}
	return meaning{}, false, false
}

func (l *lately) keep(a answer) {
	if len(a.text) > longAnswer {
		return
	}
	l.Lock()
	defer l.Unlock()
	l.last[l.next] = a
	l.next = (l.next + 1) % len(l.last)
}

func firstMeant(text string) (meaning, bool) {
	for _, m := range meanings() {
		if m.match.MatchString(text) && (m.unless == nil || !m.unless.MatchString(text)) {
			return m, true
		}
	}
	return meaning{}, false
}

// reading is a row or record on its way to a finding.
type reading struct {
	text      string // what the client says, wraps undone
	head      string // text with the status code before it
	mended    string // text with words put together that a wrap broke
	rows      string // the same with its row breaks, for times cut by a wrap
	cause     string // for retrying: the part that tells why; empty: text
	class     finding.Class
	otherwise finding.Class
	measure   finding.Measure
	scope     finding.Scope
	within    time.Duration
	noReset   bool
	delay     time.Duration // the client's own next try, where the rule found it
	now       time.Time
	zone      *time.Location
}

// finding turns a reading into a finding without rule, rows and confidence; ok
// is false where the text is about something else.
func (r *reading) finding() (f finding.Finding, ok bool) {
	head := r.head
	if head == "" {
		head = r.text
	}
	f = finding.Finding{At: r.now, Class: r.class, Measure: r.measure, Scope: r.scope}
	about := head
	if r.class == finding.Retrying && r.cause != "" {
		about = r.cause
	}
	m, known := meant(about)
	if r.mended != "" && r.cause == "" && r.mended != about {
		// What stands earlier in the table is the longer-lived cause.
		if m2, ok := meant(r.mended); ok && (!known || m2.order < m.order) {
			m, known = m2, true
		}
	}
	switch {
	case r.class == finding.Retrying:
		f.Cause = finding.Unknown
		if known && m.class == finding.Auth {
			return f, false // a bad key is retried too, but is no limit
		}
		if known && m.class.IsLimit() {
			f.Cause = m.class
		}
		if m.class == finding.Credit || m.class == finding.Spend {
			f.Class, f.Cause = m.class, "" // no further try will heal it
		}
	case r.class == "":
		f.Class = r.otherwise
		if known {
			f.Class = m.class
		}
		if f.Class == "" || f.Class == classNone {
			return f, false
		}
	case r.class == classNone:
		return f, false
	}
	sure := known && (m.class == f.Class || m.class == f.Cause)
	fill(&f, about, m, sure)
	r.times(&f, sure && m.lies)
	return f, true
}

// fill adds what ran out, of whom and of which model.
func fill(f *finding.Finding, text string, m meaning, sure bool) {
	if f.Class == finding.Auth {
		f.ErrorCode = errorCode(text)
		return
	}
	// Nothing of this account's has run out where everybody is refused.
	overloaded := f.Class == finding.Overload || f.Cause == finding.Overload
	if f.Measure == "" && sure {
		f.Measure = m.measure
	}
	if f.Measure == "" || sure && m.measure == "" {
		if q := measureOf(text, f.Class); q != "" {
			f.Measure = q
		}
	}
	if overloaded {
		f.Measure = ""
	}
	if f.Scope == "" && sure {
		f.Scope = m.scope
	}
	if f.Model = modelOf(text); f.Scope == "" && modelLimit.MatchString(text) && !ofTheOrganization.MatchString(text) {
		f.Scope = finding.Model
	}
	if f.Scope == "" {
		f.Scope = finding.Account
		if overloaded {
			f.Scope = finding.Source
		}
	}
	f.Project = projectOf(text)
	f.ErrorCode = errorCode(text)
}

// times reads reset and delay. A retry's reset is only what the server said;
// its delay is the client's own.
func (r *reading) times(f *finding.Finding, lies bool) {
	if f.Class == finding.Warning || f.Class == finding.Auth {
		return
	}
	text := r.rows
	if text == "" {
		text = r.text
	}
	within := r.within
	if within == 0 {
		within = windowOf(r.text)
	}
	if f.Class == finding.Window || f.Class == finding.Daily || f.Cause == finding.Window || f.Cause == finding.Daily {
		f.Window = within
	}
	t, ok := when.Parse(text, r.now, r.zone, within)
	if ok && t.HasAfter && !(lies && r.class == finding.Retrying) {
		f.RetryAfter = t.After
	}
	if r.delay > 0 {
		f.RetryAfter = r.delay
	}
	if !ok || lies || r.noReset || t.Retry {
		return
	}
	if f.Class == finding.Retrying && r.cause != "" {
		// Only what the server said: not the client's own countdown.
		if t, ok = when.Parse(r.cause, r.now, r.zone, within); !ok || t.Retry {
			return
		}
	}
	f.Reset, f.ResetSource, f.Precision = t.At, t.Source, t.Precision
}

var (
	codePat    = ownPattern(`\b(?:error|status|code|rejected|failed|API Error)\W{0,12}(4\d\d|5\d\d)\b|^(?:\W|Error|ERROR)*(4\d\d|5\d\d)\b`)
	typePat    = ownPattern(`"(?:code|type|status|reason|error_code)": ?"([A-Za-z_]*(?:limit|quota|exhausted|EXHAUSTED|overload|balance|credit|capacity|CAPACITY|QUOTA|LIMIT)\w*)"`)
	projectPat = ownPattern("(?:in organization `?|for organization `?|org: |project_number:|projects/)(org-[\\w-]+|[\\w-]{6,})")
	modelPat   = ownPattern("(?:for |model:? ?|model: |reach |from |in )`?\"?((?:gpt|o\\d|gemini|claude|llama|qwen|kimi|glm|grok|deepseek|mistral|codex)[\\w./-]*\\d[\\w.-]*)")
	familyPat  = ownPattern(`\b(Opus|Sonnet|Fable|Haiku|Mythos)\b(?: \d+(?:\.\d+)?)?(?: weekly| usage)? (?:limit|requires|is experiencing)|reached for (all Pro models|[\w.-]*\d[\w.-]*)|demand for (all Pro models|[\w.-]*\d[\w.-]*)`)
	modelLimit = ownPattern(`(?i)PerModel|quota on this model|this model['’]s (?:rate |usage )?limit|(?:limit reached|demand|quota exceeded) for (?:all Pro models|model |gemini)|for this model|\bmodel: |(?:Opus|Sonnet|Fable|Haiku|Mythos)(?: \d+(?:\.\d+)?)?(?: weekly| usage)? (?:limit|requires|is experiencing)|Selected model|switch models`)
	// A sentence that names whose limit it is names the model only beside it.
	ofTheOrganization = ownPattern(`(?i)organization['’]s rate limit|\bin organization\b`)
)

func errorCode(text string) string {
	if m := typePat.regexp().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return first(codePat.regexp().FindStringSubmatch(text))
}

func projectOf(text string) string { return first(projectPat.regexp().FindStringSubmatch(text)) }

func modelOf(text string) string {
	if s := first(familyPat.regexp().FindStringSubmatch(text)); s != "" {
		return strings.ToLower(strings.TrimSuffix(s, "."))
	}
	return strings.TrimRight(first(modelPat.regexp().FindStringSubmatch(text)), ".,")
}

// first is the first group that took part in a match.
func first(m []string) string {
	for _, s := range m[min(1, len(m)):] {
		if s != "" {
			return s
		}
	}
	return ""
}

var (
	inTokens  = ownPattern(`(?i)input[ _]?token`)
	outTokens = ownPattern(`(?i)output[ _]?token`)
	tokens    = ownPattern(`(?i)\btokens\b|\bTP[MD]\b|\btoken (?:rate|quota|usage)`)
	ramp      = ownPattern(`(?i)acceleration limit|increased? too (?:quickly|fast)|sudden (?:increase|spike)|ramp(?:ing|ed)? up`)
	requests  = ownPattern(`(?i)\brequests?(?: per |[^.]{0,30}per min)|\bRP[MD]\b|[_-]requests\b|GenerateRequests|too many requests at|requests per|limit: \d+, model|Copilot model requests|call rate limit`)
	parallel  = ownPattern(`(?i)concurren|parallel request`)
	freeUsage = ownPattern(`(?i)free\W?usage`)
)

// measureOf is what ran out by the words of a text.
func measureOf(text string, c finding.Class) finding.Measure {
	switch c {
	case finding.Window:
		return finding.Usage
	case finding.Credit:
		return finding.Credits
	case finding.Spend:
		return finding.Spending
	case finding.Warning:
		return finding.Usage
	case finding.Overload:
		return ""
	}
	switch {
	case ramp.MatchString(text):
		return finding.Ramp
	case inTokens.MatchString(text):
		return finding.InputTokens
	case outTokens.MatchString(text):
		return finding.OutputTokens
	case parallel.MatchString(text):
		return finding.Concurrency
	case tokens.MatchString(text):
		return finding.Tokens
	case requests.MatchString(text):
		return finding.Requests
	case c == finding.Daily && freeUsage.MatchString(text):
		return finding.Usage
	}
	return ""
}

var windows = []struct {
	pat    *pattern
	within time.Duration
}{
	{ownPattern(`(?i)\b5[- ]?h(?:our)?s?\b|session limit|five[_ ]hour`), 5 * time.Hour},
	{ownPattern(`(?i)weekly|\bweek\b|seven[_ ]day|7[- ]day|(?:opus|sonnet|fable|haiku|mythos) limit`), 7 * 24 * time.Hour},
	{ownPattern(`(?i)per[- ]?day|daily|\bTPD\b|\bRPD\b`), 24 * time.Hour},
	{ownPattern(`(?i)monthly|billing cycle|\bmonth\b`), 32 * 24 * time.Hour},
}

// windowOf is the longest wait that the named window allows, 0 when none is
// named. Claude's model limits are weekly.
func windowOf(text string) time.Duration {
	if d := when.Window(text); d > 0 {
		return d
	}
	for _, w := range windows {
		if w.pat.MatchString(text) {
			return w.within
		}
	}
	return 0
}

// modelOfWindow is the family in a window's name ("seven_day_opus").
func modelOfWindow(window string) string {
	for _, f := range []string{"opus", "sonnet", "haiku", "fable", "mythos"} {
		if strings.Contains(window, f) {
			return f
		}
	}
	return ""
}
