package main

import (
	"maps"
	"slices"
	"strings"

	"qshim/lockfile"
	"qshim/policies/account"
)

// heldLimiters are those with a hold, by ID.
func heldLimiters(l lockfile.Ledger) (ids []string) {
	for id, lim := range l.Limiters {
		if len(lim.Holds) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func allLimiters(l lockfile.Ledger) []string { return slices.Sorted(maps.Keys(l.Limiters)) }

// matching returns those of ids that name means: the ID itself, else the label,
// else the beginning of either, else a part of either. Letters' case does not
// count in labels.
func matching(l lockfile.Ledger, ids []string, name string) []string {
	label := func(id string) string { return strings.ToLower(l.Limiters[id].Label) }
	low := strings.ToLower(name)
	for _, fits := range []func(id string) bool{
		func(id string) bool { return id == name },
		func(id string) bool { return label(id) == low },
		func(id string) bool { return strings.HasPrefix(id, name) || strings.HasPrefix(label(id), low) },
		func(id string) bool { return strings.Contains(id, name) || strings.Contains(label(id), low) },
	} {
		var fit []string
		for _, id := range ids {
			if fits(id) {
				fit = append(fit, id)
			}
		}
		if len(fit) > 0 {
			return fit
		}
	}
	return nil
}

// anyLimiter is the one limiter that a name means, known or not. This machine's
// at a provider is only meant where it is named.
func anyLimiter(l lockfile.Ledger, name string) (string, error) {
	if strings.TrimSpace(name) == "" {
		return "", usagef("the limiter's name is empty (see: qshim status)")
	}
	fit := matching(l, allLimiters(l), name)
	if len(fit) > 1 {
		if own := slices.DeleteFunc(slices.Clone(fit), func(id string) bool { return strings.Contains(id, "@source") }); len(own) > 0 {
			fit = own
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", usagef("%q fits several limiters: %s; give more of it", name, strings.Join(fit, ", "))
	}
	if id, _, _ := strings.Cut(name, "#"); account.CheckID(id) == nil {
		return name, nil
	}
	return "", usagef("no limiter fits %q%s; an ID of one that has no session yet is written whole, like openai/team-a", name, knownWords(allLimiters(l)))
}

// oneSession is the live session that a name means: its ID, or the beginning of it.
func oneSession(l lockfile.Ledger, name string) (string, error) {
	var fit []string
	for id, s := range l.Sessions {
		if s.Alive && id == name {
			return id, nil
		}
		if s.Alive && name != "" && strings.HasPrefix(id, name) {
			fit = append(fit, id)
		}
	}
	slices.Sort(fit)
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", usagef("%q fits several sessions: %s; give more of it", name, strings.Join(fit, ", "))
	}
	return "", usagef("no session is named %q (see: qshim status)", name)
}
