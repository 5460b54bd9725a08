package fakeprovider

import (
	"cmp"
	"context"
	"slices"
	"time"

	"qshim/cmd/internal/fakeprovider/tier"
)

// Request is one request to a model, as counted.
type Request struct {
	ID         int       `json:"id"` // from 1, in order of arrival
	At         time.Time `json:"at"`
	Done       time.Time `json:"done,omitzero"` // when its answer ended; zero: it is being answered
	Provider   Provider  `json:"provider"`
	Account    string    `json:"account"`
	Model      string    `json:"model,omitempty"`
	Path       string    `json:"path"`
	Text       string    `json:"text,omitempty"` // start of the last user text, to tell sessions apart
	Side       bool      `json:"side,omitempty"` // the client's own extra call (title, router)
	Status     int       `json:"status"`         // 0: not yet known
	Kind       Kind      `json:"kind,omitempty"` // of the refusal
	RetryAfter float64   `json:"retry_after_s,omitempty"`
	Measure    string    `json:"measure,omitempty"`
	Cut        bool      `json:"cut,omitempty"` // the client hung up before the end
}

// AccountCount sums up one account of one provider. Limited are its 429s,
// Failed all other refusals.
type AccountCount struct {
	Provider  Provider `json:"provider"`
	Account   string   `json:"account"`
	Requests  int      `json:"requests"`
	OK        int      `json:"ok"`
	Limited   int      `json:"limited"`
	Failed    int      `json:"failed"`
	Side      int      `json:"side"`      // of Requests
	Answering int      `json:"answering"` // accepted and not yet ended
}

// Counts is a snapshot. The sums cover everything since Reset; the list holds
// the newest requests (see Options.Remember), oldest first.
type Counts struct {
	Now      time.Time      `json:"now"`
	Accounts []AccountCount `json:"accounts"`
	Requests []Request      `json:"requests"`
}

// Sum adds up the accounts that match; empty arguments match all.
func (c Counts) Sum(p Provider, account string) AccountCount {
	out := AccountCount{Provider: p, Account: account}
	for _, a := range c.Accounts {
		if (p != "" && a.Provider != p) || (account != "" && a.Account != account) {
			continue
		}
		out.Requests += a.Requests
		out.OK += a.OK
		out.Limited += a.Limited
		out.Failed += a.Failed
		out.Side += a.Side
		out.Answering += a.Answering
	}
	return out
}

// Counts returns what has happened so far.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Counts{Now: s.opt.Now(), Accounts: []AccountCount{}, Requests: slices.Clone(s.requests)}
	for _, a := range s.counts {
		c.Accounts = append(c.Accounts, *a)
	}
	slices.SortFunc(c.Accounts, func(a, b AccountCount) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Account, b.Account))
	})
	if c.Requests == nil {
		c.Requests = []Request{}
	}
	return c
}

// Wait returns as soon as the counts satisfy ok, or with the context's error.
func (s *Server) Wait(ctx context.Context, ok func(Counts) bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ok(s.Counts()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Reset forgets every setting and every count. Answers in progress go on and
// are no longer counted.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules, s.meters, s.counts = map[target]*rule{}, map[target]*tier.Meter{}, map[target]*AccountCount{}
	s.requests = nil
	s.wake()
}

// wake tells those who wait. The lock is held.
func (s *Server) wake() {
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = make(chan struct{})
}

// record counts a request when it is judged. The lock is held.
func (s *Server) record(a ask, v *verdict) {
	s.seq++
	c := s.countOf(a.provider, a.account)
	v.id, v.count = s.seq, c
	c.Requests++
	if a.side {
		c.Side++
	}
	r := Request{
		ID: s.seq, At: v.now, Provider: a.provider, Account: a.account,
		Model: cut(a.model, 80), Path: cut(a.path, 120), Text: cut(a.text, 120), Side: a.side,
	}
	if v.refused {
		r.Kind, r.Measure = v.scenario.Kind, v.measure
		r.RetryAfter = max(v.retryAfter.Seconds(), 0)
	} else {
		c.Answering++
		v.meter.Answering++
	}
	s.requests = append(s.requests, r)
	if over := len(s.requests) - s.opt.Remember; over > 0 {
		s.requests = slices.Delete(s.requests, 0, over)
	}
	s.wake()
}

func (s *Server) countOf(p Provider, account string) *AccountCount {
	t := target{p, account}
	if s.counts[t] == nil {
		s.counts[t] = &AccountCount{Provider: p, Account: account}
	}
	return s.counts[t]
}

// status notes what was answered.
func (s *Server) status(v verdict, code int) {
	s.update(v, func(r *Request, c *AccountCount) {
		r.Status = code
		switch {
		case code < 400:
			c.OK++
		case code == 429:
			c.Limited++
		default:
			c.Failed++
		}
	})
}

// done notes the end of an answer; hungUp: the client was gone first.
func (s *Server) done(v verdict, hungUp bool) {
	s.update(v, func(r *Request, c *AccountCount) {
		r.Done, r.Cut = s.opt.Now(), hungUp
		if !v.refused {
			c.Answering--
			v.meter.Answering--
		}
	})
}

// update changes the sum of a request's account, and the request itself where
// the list still holds it.
func (s *Server) update(v verdict, change func(*Request, *AccountCount)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := slices.BinarySearchFunc(s.requests, v.id, func(r Request, id int) int { return cmp.Compare(r.ID, id) })
	r := &Request{}
	if ok {
		r = &s.requests[i]
	}
	change(r, v.count)
	s.wake()
}

func cut(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n])
}
