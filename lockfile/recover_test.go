package lockfile

import (
	"slices"
	"testing"
)

// TestMayBeStopped: a dead session's agent is continued whether its shim came to
// record the stop or not; one in our own group was not stopped without a record.
func TestMayBeStopped(t *testing.T) {
	own := Stopped{PID: 7, Start: 9, Group: true}
	for _, x := range []struct {
		name string
		s    Session
		want []Stopped
	}{
		{"recorded", Session{ChildPID: 7, ChildStart: 9, ChildLeads: true, Stopped: []Stopped{{PID: 8}}}, []Stopped{{PID: 8}}},
		{"not recorded yet", Session{ChildPID: 7, ChildStart: 9, ChildLeads: true}, []Stopped{own}},
		{"in our group", Session{ChildPID: 7, ChildStart: 9}, nil},
		{"not started yet", Session{ChildLeads: true}, nil},
	} {
		if got := x.s.mayBeStopped(); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v", x.name, got)
		}
		var done []Stopped
		if err := continueAll(x.s, func(p Stopped) error { done = append(done, p); return nil }); err != nil || !slices.Equal(done, x.want) {
			t.Errorf("%s: continued %v, %v", x.name, done, err)
		}
	}
}
