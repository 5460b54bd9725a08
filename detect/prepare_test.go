package detect

import (
	"testing"
	"time"

	"qshim/detect/finding"
)

// TestPrepare: what is prepared is compiled, and finds the same.
func TestPrepare(t *testing.T) {
	data := []byte("name = \"x\"\n[detect]\n[[detect.row]]\nname = \"own\"\nspeaker = \"agent\"\nstart = '^! '\n[[detect.rule]]\nname = \"limit\"\nsource = \"made up\"\nrows = [\"own\"]\nmatch = 'limit'\nunless = ['no limit']\n")
	p := LazyProfile("x", func() []byte { return data })
	p.Prepare()
	for _, r := range p.rules().rules {
		for _, one := range append([]*pattern{r.match}, r.unless...) {
			if one.re == nil {
				t.Errorf("%s is not compiled", one.src)
			}
		}
	}
	now := time.Unix(1795970700, 0)
	for range 2 { // the second time by what is remembered
		w := p.Watch(Options{Mode: Headless})
		w.Stream(now, Stderr, []byte("! 429 rate limit exceeded, try again in 20s\n"))
		r := w.Exit(now.Add(time.Second), 1)
		if len(r.Findings) != 1 || r.Findings[0].Class != finding.Rate || r.Findings[0].RetryAfter != 20*time.Second {
			t.Errorf("%+v, %v", r.Findings, p.Err())
		}
	}
	LazyProfile("broken", func() []byte { return []byte("[detect]\nnonsense = 1\n") }).Prepare()
}

// TestMeantRemembers: more texts than are remembered, and a long one, are answered
// as at the first time.
func TestMeantRemembers(t *testing.T) {
	long := make([]byte, 2*longAnswer)
	for i := range long {
		long[i] = 'x'
	}
	texts := []string{"", "nothing", "usage limit reached", "overloaded_error", "429 too many requests", "credit balance is too low", string(long) + " overloaded_error"}
	for range 2 {
		for _, text := range texts {
			want, known := firstMeant(text)
			if got, ok := meant(text); ok != known || got.name != want.name {
				t.Errorf("%.30q: %s, want %s", text, got.name, want.name)
			}
		}
	}
}
