package detect

import (
	"time"

	"qshim/detect/finding"
)

// Prepare makes what the first finding would make on its way: patterns are
// compiled at their first use, which for a refusal is 10 ms in which siblings go on
// sending. It takes as long, some 0.7 MB that stay, and may run beside watchers. It
// does not have to be called.
func (p *Profile) Prepare() {
	for _, r := range p.rules().rules {
		for _, list := range [][]*pattern{{r.match}, r.also, r.unless} {
			for _, one := range list {
				_ = one.regexp()
			}
		}
	}
	for _, m := range meanings() {
		_ = m.match.regexp()
	}
	for _, one := range ownPatterns {
		_ = one.regexp()
	}
	for _, text := range likely {
		r := reading{text: text, otherwise: finding.Rate, now: time.Unix(0, 0), zone: time.UTC}
		_, _ = r.finding() // for what it makes
	}
}

// likely are the forms of time that refusals state most.
var likely = []string{
	"API Error: 429 rate limit exceeded, please try again in 20s",
	"You've hit your usage limit, resets 3:45pm (Europe/Berlin)",
	"usage limit reached, try again at Jan 2nd, 2026 3:04 PM",
}
