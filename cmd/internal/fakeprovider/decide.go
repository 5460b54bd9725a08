package fakeprovider

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"qshim/cmd/internal/fakeprovider/tier"
)

// ask is a request in the terms that all providers share.
type ask struct {
	provider Provider
	account  string
	path     string
	model    string
	text     string // last user text
	size     int    // bytes of the body
	side     bool   // the client's own extra call: a title, a router
	stream   bool
}

// verdict is what becomes of it.
type verdict struct {
	id         int // of the Request in the counts
	refused    bool
	scenario   Scenario      // the refusal, or the Warning
	retryAfter time.Duration // -1: none is stated
	resets     time.Time     // zero: none is stated
	measure    string        // what is short
	limit      int           // its size a minute, 0 unknown
	now        time.Time
	reply      Reply
	input      int // tokens
	meter      *tier.Meter
	count      *AccountCount
}

// decide judges a request and counts it. Every call must be followed by one of
// status and then done.
func (s *Server) decide(a ask) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	v := verdict{now: now, reply: promptReply(s.replyFor(a), a), retryAfter: -1}
	v.input = v.reply.Input
	if v.input == 0 {
		v.input = a.size/4 + 1
	}
	v.meter = s.meterFor(a, now)
	if r := s.ruleFor(a, func(r *rule) bool { return r.scenario != nil }); r != nil {
		s.applyScenario(r, a, &v)
	}
	if !v.refused {
		s.applyLimits(&v)
	}
	s.record(a, &v)
	return v
}

// ruleFor finds the most specific rule that sets something.
func (s *Server) ruleFor(a ask, sets func(*rule) bool) *rule {
	for _, t := range []target{{a.provider, a.account}, {"", a.account}, {a.provider, ""}, {"", ""}} {
		if r := s.rules[t]; r != nil && sets(r) {
			return r
		}
	}
	return nil
}

func (s *Server) replyFor(a ask) Reply {
	if r := s.ruleFor(a, func(r *rule) bool { return r.reply != nil }); r != nil {
		return *r.reply
	}
	return Reply{}
}

// meterFor returns the account's buckets, new and full when its limits changed.
func (s *Server) meterFor(a ask, now time.Time) *tier.Meter {
	var l tier.Limits
	if r := s.ruleFor(a, func(r *rule) bool { return r.limits != nil }); r != nil {
		l = *r.limits
	}
	t := target{a.provider, a.account}
	m := s.meters[t]
	switch {
	case m == nil:
		m = tier.NewMeter(l, now)
		s.meters[t] = m
	case m.Limits != l:
		answering := m.Answering
		*m = *tier.NewMeter(l, now)
		m.Answering = answering
	}
	return m
}

func (s *Server) applyScenario(r *rule, a ask, v *verdict) {
	sc := *r.scenario
	if !strings.Contains(a.text, sc.Match) || !strings.Contains(a.model, sc.Model) {
		return
	}
	if sc.Kind == Warning {
		v.scenario = sc
		v.resets = v.now.Add(sc.ResetsIn.Duration())
		return
	}
	if !sc.refuses() || !r.lasts(v.now) || (a.side && sc.Next > 0) {
		return
	}
	if sc.Share > 0 && s.opt.Rand() >= sc.Share {
		return
	}
	if r.hits == 0 {
		r.first = v.now
	}
	r.hits++
	v.refused, v.scenario, v.measure = true, sc, tier.Requests
	if sc.Tokens {
		v.measure = tier.InputTokens
	}
	v.retryAfter, v.resets = r.stated(v.now)
}

// lasts reports whether the scenario still refuses.
func (r *rule) lasts(now time.Time) bool {
	if r.hits == 0 {
		return true
	}
	if r.scenario.Next > 0 && r.hits >= r.scenario.Next {
		return false
	}
	return r.scenario.For == 0 || now.Before(r.first.Add(r.scenario.For.Duration()))
}

// stated is the time that a refusal tells: a delay (-1: none) and an instant.
func (r *rule) stated(now time.Time) (after time.Duration, resets time.Time) {
	sc, end := *r.scenario, time.Time{}
	if sc.For > 0 {
		end = r.first.Add(sc.For.Duration())
	}
	after = -1
	switch {
	case sc.RetryAfter > 0:
		after = sc.RetryAfter.Duration()
	case !end.IsZero():
		after = ceilSecond(end.Sub(now))
	}
	switch {
	case sc.ResetsIn > 0:
		resets = r.first.Add(sc.ResetsIn.Duration())
	case !end.IsZero():
		resets = end
	}
	return after, resets
}

func (s *Server) applyLimits(v *verdict) {
	l := v.meter.Limits
	short, wait := v.meter.Admit(v.now, v.input)
	if short == "" {
		return
	}
	v.refused, v.measure = true, short
	v.scenario = Scenario{Kind: Rate}
	switch short {
	case tier.Requests:
		v.limit = l.RPM
	case tier.InputTokens:
		v.limit = l.ITPM
	case tier.OutputTokens:
		v.limit = l.OTPM
	case tier.Concurrent:
		v.limit = l.Concurrent
	}
	switch {
	case l.RetryAfter > 0:
		v.retryAfter = Seconds(l.RetryAfter).Duration()
	case l.RetryAfter < 0:
		v.retryAfter = -1
	default:
		v.retryAfter = max(ceilSecond(wait), time.Second)
	}
}

func ceilSecond(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// retryHeader states the delay as HTTP does, in whole seconds.
func (v verdict) retryHeader(h http.Header) {
	if v.retryAfter >= 0 {
		h.Set("Retry-After", strconv.Itoa(int(ceilSecond(v.retryAfter)/time.Second)))
	}
}

// spent takes output tokens as they are written.
func (s *Server) spent(v verdict, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.meter.Output.Take(s.opt.Now(), float64(tokens))
}

// promptReply lets the last user text override the pace, so that sessions of
// one account can behave differently. Side requests are answered at once.
func promptReply(r Reply, a ask) Reply {
	if a.side {
		return Reply{Text: r.Text, Input: r.Input, Output: r.Output}
	}
	for _, word := range strings.Fields(a.text) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			continue
		}
		switch key {
		case "hold":
			r.Hold = durationWord(value, r.Hold)
		case "gap":
			r.Gap = durationWord(value, r.Gap)
		case "first":
			r.First = durationWord(value, r.First)
		case "chunks":
			r.Chunks = countWord(value, r.Chunks, 1000)
		case "in":
			r.Input = countWord(value, r.Input, 10_000_000)
		case "out":
			r.Output = countWord(value, r.Output, 10_000_000)
		}
	}
	return r
}

func durationWord(s string, otherwise Seconds) Seconds {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > 24*time.Hour {
		return otherwise
	}
	return Seconds(d.Seconds())
}

func countWord(s string, otherwise, limit int) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > limit {
		return otherwise
	}
	return n
}
