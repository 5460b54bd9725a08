package fakeprovider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"qshim/cmd/internal/fakeprovider/tier"
)

// ParseControl reads one change as POST /_control takes it. Unknown members are
// errors: a misspelt one would silently test nothing.
func ParseControl(data []byte) (Control, error) {
	var c Control
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Control{}, fmt.Errorf("control: %w", err)
	}
	if d.More() {
		return Control{}, fmt.Errorf("control: more than one JSON value")
	}
	if err := c.validate(); err != nil {
		return Control{}, fmt.Errorf("control: %w", err)
	}
	return c, nil
}

// Apply makes one change, or returns why it is none. A scenario begins anew,
// buckets are full again; a zero value removes what was set for this target, so
// that a less specific setting shows again.
func (s *Server) Apply(c Control) error {
	if err := c.validate(); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	t := target{c.Provider, c.Account}
	if c.Key != "" {
		t.account = Account(c.Key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rules[t]
	if r == nil {
		r = &rule{}
		s.rules[t] = r
	}
	if c.Scenario != nil {
		r.scenario, r.hits = orNil(*c.Scenario), 0
	}
	if c.Reply != nil {
		r.reply = orNil(*c.Reply)
	}
	if c.Limits != nil {
		r.limits = orNil(*c.Limits)
		for mt, m := range s.meters {
			if (t.provider == "" || t.provider == mt.provider) && (t.account == "" || t.account == mt.account) {
				// Forces meterFor to fill the buckets anew even when the numbers are the same.
				m.Limits = tier.Limits{RPM: -1}
			}
		}
	}
	return nil
}

func orNil[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// control serves /_control, /_control/counts and /_control/reset.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /_control/counts":
		writeJSON(w, http.StatusOK, s.Counts())
	case "POST /_control/reset":
		s.Reset()
		writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
	case "POST /_control":
		var raw json.RawMessage
		if _, ok := readBody(w, r, &raw); !ok {
			return
		}
		c, err := ParseControl(raw)
		if err == nil {
			err = s.Apply(c)
		}
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
	default:
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "use POST /_control, GET /_control/counts or POST /_control/reset"})
	}
}
