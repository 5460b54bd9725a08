package detect

import (
	"fmt"
	"time"
)

// Example is a rule's example or counter-example that does not hold.
type Example struct {
	Rule      string // the rule's name
	Text      string // the example, "" where there is none
	Why       string // what is wrong with it
	File      string // where it stands
	Line, Col int    // from 1
}

// Error is the example's place and what is wrong, on one line.
func (e Example) Error() string {
	return fmt.Sprintf("%s:%d:%d: rule %q: %s", e.File, e.Line, e.Col, e.Rule, e.Why)
}

// exampleNow is when examples are read: fixed, so that they mean the same on
// every machine and day.
var exampleNow = time.Date(2026, 11, 29, 16, 45, 0, 0, time.UTC)

// CheckExamples runs every rule's examples and counter-examples and returns
// those that do not hold: an example that its rule does not take, a
// counter-example that it takes, a rule without any example. Whoever changes a
// profile sees here what the change broke.
func (p *Profile) CheckExamples() (bad []Example) { return p.rules().checkExamples() }

func (p *book) checkExamples() (bad []Example) {
	for _, r := range p.rules {
		if r.shared {
			continue
		}
		bad = append(bad, p.checkRule(r)...)
	}
	for _, r := range p.jsons {
		if r.shared || r.class == "" && r.otherwise == "" && r.effect != "" {
			continue
		}
		bad = append(bad, p.checkRecord(r)...)
	}
	return bad
}

func (p *book) checkRule(r *rule) (bad []Example) {
	list := examples{rule: r.name, table: "detect.rule", from: r.from}
	if r.class == classNone {
		// Its examples are rows that make no finding at all.
		list.check("examples", r.examples, func(x string) string {
			if got := p.exampleRule(x); got != "" {
				return fmt.Sprintf("taken by %q, but it is no limit", got)
			}
			return ""
		})
		list.check("not", r.not, func(x string) string {
			if p.exampleRule(x) == "" {
				return "makes no finding, but it must"
			}
			return ""
		})
		return list.bad
	}
	if len(r.examples) == 0 {
		list.add("name", 0, "", "no example: add one row as the agent shows it")
	}
	taker := p.exampleRule
	if r.mode == logText {
		taker = p.logRule
	}
	list.checkBoth(r.examples, r.not, taker)
	return list.bad
}

// examples collects what does not hold of one rule.
type examples struct {
	rule, table string
	from        origin
	bad         []Example
}

func (l *examples) add(key string, n int, text, why string) {
	e := Example{Rule: l.rule, Text: text, Why: why, File: l.from.file}
	e.Line, e.Col = l.from.lineCol(l.table, key, n)
	l.bad = append(l.bad, e)
}

// check asks about each text of a list; an empty answer means that it holds.
func (l *examples) check(key string, texts []string, wrong func(string) string) {
	for n, x := range texts {
		if why := wrong(x); why != "" {
			l.add(key, n, x, why)
		}
	}
}

// checkBoth asks which rule takes the examples and the counter-examples.
func (l *examples) checkBoth(yes, no []string, taker func(string) string) {
	l.check("examples", yes, func(x string) string {
		switch got := taker(x); got {
		case l.rule:
			return ""
		case "":
			return "no rule takes this example"
		default:
			return fmt.Sprintf("this example is taken by %q", got)
		}
	})
	l.check("not", no, func(x string) string {
		if taker(x) == l.rule {
			return "taken, but it is a counter-example"
		}
		return ""
	})
}

// exampleRule is the name of the rule that decides a text, "" for none.
func (p *book) exampleRule(text string) string {
	for _, e := range p.explainRows(splitLines(text), ExplainOptions{Mode: Both, Now: exampleNow, Zone: time.UTC}) {
		return e.Rule
	}
	return ""
}

// logRule is the same for rows of the agent's own log; what is taken on a
// screen is that, for nothing of a log stands there.
func (p *book) logRule(text string) string {
	if name := p.exampleRule(text); name != "" {
		return name
	}
	o := ExplainOptions{Now: exampleNow, Zone: time.UTC}
	w, c := o.watch(p, Both), newCollector(exampleNow)
	for _, row := range splitLines(text) {
		c.add(w.Log(exampleNow, []byte(row)))
	}
	c.settle(w, exampleNow)
	for _, e := range c.list() {
		return e.Rule
	}
	return ""
}

func splitLines(s string) (out []string) {
	for len(s) > 0 {
		i := 0
		for i < len(s) && s[i] != '\n' {
			i++
		}
		out = append(out, s[:i])
		s = s[min(i+1, len(s)):]
	}
	return out
}

// checkRecord asks the record's own rule, and that no earlier one takes it.
func (p *book) checkRecord(r *jsonRule) []Example {
	list := examples{rule: r.name, table: "detect.json", from: r.from}
	list.checkBoth(r.examples, r.not, func(x string) string { return p.recordRule(x, r) })
	return list.bad
}

func (p *book) recordRule(text string, of *jsonRule) string {
	d, ok := decode([]byte(text))
	if !ok {
		return ""
	}
	from := ""
	for k := range of.in {
		from = k
	}
	for _, r := range p.jsons {
		if !r.fits(d, from) || r.effect != "" && r.class == "" && r.otherwise == "" {
			continue
		}
		if _, ok := r.read(d, exampleNow, time.UTC); ok {
			return r.name
		}
		return ""
	}
	return ""
}
