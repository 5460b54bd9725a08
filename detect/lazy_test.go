package detect

import (
	"testing"
	"time"
)

// TestLazyProfile: an agent that says nothing costs no parsing.
func TestLazyProfile(t *testing.T) {
	p := LazyProfile("broken", func() []byte { return []byte("[detect]\nnonsense = 1\n\n[[detect.json]]\n") })
	if !p.HasStreams() {
		t.Error("streams are not seen without parsing")
	}
	now := time.Unix(1795970700, 0)
	w := p.Watch(Options{Mode: TUI})
	w.Key(now, true)
	w.Resize(now, 100, 30)
	w.Busy(now, true)
	w.Tick(now)
	w.Resync()
	if r := w.Exit(now, 1); r.Activity != Idle {
		t.Errorf("%+v", r)
	}
	if w.p != nil {
		t.Error("parsed for an agent that said nothing")
	}
	w = p.Watch(Options{Mode: Headless})
	w.Stream(now, Stderr, []byte("Error: 429 Too Many Requests"))
	if r := w.Exit(now, 1); w.p == nil || len(r.Findings) != 0 {
		t.Errorf("a broken profile: %+v", r)
	}
	if p.Err() == nil {
		t.Error("what is wrong with it is not said")
	}
}

// TestLazyIsTheSame: put off or not, the rules are the same.
func TestLazyIsTheSame(t *testing.T) {
	data := []byte("name = \"x\"\n[detect]\n[[detect.row]]\nname = \"own\"\nspeaker = \"agent\"\nstart = '^! '\n[[detect.rule]]\nname = \"limit\"\nclass = \"rate\"\nsource = \"made up\"\nrows = [\"own\"]\nmatch = 'limit'\n")
	p := LazyProfile("x", func() []byte { return data })
	w := p.Watch(Options{Mode: Headless})
	now := time.Unix(1795970700, 0)
	w.Stream(now, Stderr, []byte("! limit\n"))
	if r := w.Exit(now.Add(time.Second), 1); len(r.Findings) != 1 || p.Err() != nil || !p.HasStreams() {
		t.Errorf("%+v, %v", r, p.Err())
	}
}
