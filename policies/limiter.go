package policies

import (
	"slices"
	"strings"

	"qshim/detect/finding"
	"qshim/lockfile"
)

// sourceAccount is the account part of this machine's limiter at a provider.
const sourceAccount = "@source"

// split takes a limiter's ID apart: what it is a part of, and the model family.
func split(id string) (base, family string) {
	base, family, _ = strings.Cut(id, "#")
	return base, family
}

// Provider returns the provider part of a limiter's ID.
func Provider(id string) string {
	base, _ := split(id)
	provider, _, _ := strings.Cut(base, "/")
	return strings.TrimSuffix(provider, sourceAccount)
}

// at returns the constants that hold for a limiter.
func (p Policy) at(id string) Constants {
	if c, ok := p.Special[id]; ok {
		return c
	}
	if base, family := split(id); family != "" {
		if c, ok := p.Special[base]; ok {
			return c
		}
	}
	if c, ok := p.Special[Provider(id)]; ok {
		return c
	}
	return p.C
}

// DrawsOn reports whether a session draws on a limiter: it is one of its own,
// or one of a model family of its own that the session's model is in or may be
// in (DESIGN section 2).
func DrawsOn(s lockfile.Session, id string) bool {
	base, family := split(id)
	for _, x := range s.Limiters {
		if x == id || x == base && family != "" && (s.Family == family || s.Family == "") {
			return true
		}
	}
	return false
}

// speaksFor reports whether a success of the session says something about the
// limiter: a session of unknown model says nothing about one family.
func speaksFor(s lockfile.Session, id string) bool {
	_, family := split(id)
	return DrawsOn(s, id) && (family == "" || s.Family == family || slices.Contains(s.Limiters, id))
}

// limitersOf lists the limiters in the ledger that a session draws on, sorted.
func limitersOf(l lockfile.Ledger, s lockfile.Session) []string {
	var ids []string
	for id := range l.Limiters {
		if DrawsOn(s, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// target names the limiter that a finding closes. The scope decides: this
// machine for source scope and overload, the project where one is known, else
// the account; a named model narrows it to its family.
func target(s lockfile.Session, f finding.Finding, class finding.Class, family string) string {
	base := account(s)
	switch {
	case f.Scope == finding.Source || class == finding.Overload:
		base = source(s)
	case f.Scope == finding.Project:
		base = project(s)
	}
	named := f.Scope == finding.Model || f.Scope == "" || class == finding.Overload
	if f.Model == "" && f.Scope == finding.Model && class != finding.Overload && s.Family != "" && base != "" {
		return base + "#" + s.Family // "this model": the session's own
	}
	if f.Model == "" || !named || base == "" {
		return base
	}
	if family == "" {
		family = familyOf(s, f.Model)
	}
	if family == "" {
		return base
	}
	return base + "#" + family
}

// account is the session's limiter with the fewest parts that is not the machine's.
func account(s lockfile.Session) string {
	best := ""
	for _, id := range s.Limiters {
		if isSource(id) {
			continue
		}
		if best == "" || strings.Count(id, "/") < strings.Count(best, "/") {
			best = id
		}
	}
	if best == "" && len(s.Limiters) > 0 {
		return s.Limiters[0]
	}
	base, _ := split(best)
	return base
}

// project is the session's limiter with the most parts.
func project(s lockfile.Session) string {
	best := account(s)
	for _, id := range s.Limiters {
		if base, _ := split(id); !isSource(id) && strings.Count(base, "/") > strings.Count(best, "/") {
			best = base
		}
	}
	return best
}

// source is this machine's limiter at the session's provider.
func source(s lockfile.Session) string {
	for _, id := range s.Limiters {
		if isSource(id) {
			return id
		}
	}
	return account(s)
}

func isSource(id string) bool {
	base, _ := split(id)
	return strings.HasSuffix(base, sourceAccount)
}

// familyOf reads a model's name where the profile gave no family: the family of
// the session that was refused if the name has it, else the name itself in the
// letters of a limiter's ID.
func familyOf(s lockfile.Session, model string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, strings.TrimSpace(model))
	clean = strings.Trim(clean, "-")
	if s.Family != "" && slices.Contains(strings.FieldsFunc(clean, dash), s.Family) {
		return s.Family
	}
	return clean[:min(len(clean), 40)]
}

func dash(r rune) bool { return r == '-' }
