package lockfile

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestReadSeesAChangeWhole: siblings are told of a change by its first rename,
// so they look while the others follow. A reader who has read a session before
// its file was replaced must not take the limiter's new file for news of the
// whole change: nothing would tell him to look again. (Found by the fleet of
// claude -p: launches waited half a minute for a slot that was free.)
func TestReadSeesAChangeWhole(t *testing.T) {
	place := filepath.Join(t.TempDir(), "state")
	halfway, goOn, cleared, finish := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	armed := false
	w := openWith(t, place, Options{step: func(step string) error {
		if armed && strings.HasPrefix(step, "place sessions/") {
			close(halfway)
			<-goOn
		}
		return nil
	}})
	lease, err := w.Lease(Session{ID: "s", State: Running})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	reader := open(t, place)
	if _, err := reader.Read(); err != nil {
		t.Fatal(err)
	}
	old, err := w.Read()
	if err != nil {
		t.Fatal(err)
	}
	next := old.Clone()
	s := next.Sessions["s"]
	s.State = Idle
	next.Sessions["s"] = s
	next.Limiters = map[string]Limiter{"a/b": {Label: "new"}}
	changes, err := w.diff(old, &next)
	if err != nil || len(changes) != 2 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	armed = true
	var writer sync.WaitGroup
	writer.Go(func() {
		err := w.locked(context.Background(), time.Minute, func(h *holder) error {
			err := w.commit(h, changes, nil)
			close(cleared)
			<-finish // the holder is not done with the lock yet
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-halfway
	looks := 0
	got, err := reader.read(true, func(r *rooms) (Ledger, error) {
		if err := reader.scanBoth(r); err != nil {
			return Ledger{}, err
		}
		l, err := reader.assemble(r, nil)
		if looks++; looks == 1 {
			close(goOn)
			<-cleared
		}
		return l, err
	})
	close(finish)
	writer.Wait()
	if err != nil || got.Limiters["a/b"].Label != "new" || got.Sessions["s"].State != Idle {
		t.Errorf("half of a change: %q, session %s, %v", got.Limiters["a/b"].Label, got.Sessions["s"].State, err)
	}
}
