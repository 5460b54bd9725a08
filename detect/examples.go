package detect

import (
	"fmt"
	"time"

	"qshim/detect/finding"
)

// Example is a rule's example or counter-example that does not hold.
type Example struct {
	Rule string
	Text string
	Why  string
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
		bad = append(bad, p.checkRule(r.name, r.class, r.examples, r.not)...)
	}
	for _, r := range p.jsons {
		if r.class == "" && r.otherwise == "" && r.effect != "" {
			continue
		}
		bad = append(bad, p.checkRecord(r)...)
	}
	return bad
}

func (p *book) checkRule(name string, class finding.Class, examples, not []string) (bad []Example) {
	if class == classNone {
		// Its examples are rows that make no finding at all.
		for _, x := range examples {
			if got := p.exampleRule(x); got != "" {
				bad = append(bad, Example{name, x, "taken by " + got + ", want nothing"})
			}
		}
		for _, x := range not {
			if p.exampleRule(x) == "" {
				bad = append(bad, Example{name, x, "makes no finding, want one"})
			}
		}
		return bad
	}
	if len(examples) == 0 {
		bad = append(bad, Example{name, "", "no example: add one row as the agent shows it"})
	}
	for _, x := range examples {
		if got := p.exampleRule(x); got != name {
			bad = append(bad, Example{name, x, fmt.Sprintf("taken by %q", got)})
		}
	}
	for _, x := range not {
		if got := p.exampleRule(x); got == name {
			bad = append(bad, Example{name, x, "taken, but it is a counter-example"})
		}
	}
	return bad
}

// exampleRule is the name of the rule that decides a text, "" for none.
func (p *book) exampleRule(text string) string {
	for _, e := range p.explainRows(splitLines(text), ExplainOptions{Mode: Both, Now: exampleNow, Zone: time.UTC}) {
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
func (p *book) checkRecord(r *jsonRule) (bad []Example) {
	for _, x := range r.examples {
		if got := p.recordRule(x, r); got != r.name {
			bad = append(bad, Example{r.name, x, fmt.Sprintf("taken by %q", got)})
		}
	}
	for _, x := range r.not {
		if got := p.recordRule(x, r); got == r.name {
			bad = append(bad, Example{r.name, x, "taken, but it is a counter-example"})
		}
	}
	return bad
}

func (p *book) recordRule(text string, of *jsonRule) string {
	d, ok := decode([]byte(text))
	if !ok {
		return "no JSON"
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
