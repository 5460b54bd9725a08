package realagents

import (
	"strings"
	"sync"
	"testing"
)

// held is one provider with a hold: whom it concerns, and who must not wait for
// it.
type held struct {
	agent   Agent
	plan    bool
	control string
	model   []string // arguments of the model that meets the limit
	other   []string // of one that does not; nil: the limit is the account's
}

// A hold on one account or model of one provider delays its own sessions, and no
// others: three providers at once, each with a limit of hours; sessions on
// another account and on another model of each go on at once, all together, and
// those on the held ones wait.
func TestHoldsKeepApart(t *testing.T) {
	wholeOnly(t)
	if skip == "" && !shimmed() {
		t.Skip("without qshim nobody waits")
	}
	var wg sync.WaitGroup
	var benches []*bench
	all := []held{
		{Claude, true, `{"scenario":{"kind":"window","claim":"seven_day_opus","resets_in_s":7200,"match":"pane1"}}`, []string{"--model", "opus"}, []string{"--model", "sonnet"}},
		{Codex, false, `{"scenario":{"kind":"window","resets_in_s":7200,"match":"pane1"}}`, []string{"-m", Codex.Model()}, nil},
		{Gemini, false, `{"scenario":{"kind":"daily","match":"pane1"}}`, []string{"-m", Gemini.Model()}, []string{"-m", "gemini-2.5-flash"}},
	}
	for _, h := range all {
		b := newBench(t, h.agent, h.plan, 0)
		b.state = benchState(benches, b)
		b.control(h.control)
		benches = append(benches, b)
	}
	for i, h := range all { // each meets its limit
		wg.Go(func() { benches[i].calls("pane1 go on", h.model, false) })
	}
	wg.Wait()
	var holds []string
	for _, l := range benches[0].status().Limiters {
		if l.State != "open" {
			holds = append(holds, l.ID)
		}
	}
	if len(holds) != len(all) {
		t.Fatalf("held: %v, want one on each provider", holds)
	}
	for i, h := range all { // who is concerned waits till the end
		same := *benches[i]
		same.setup.Args = h.model
		same.launch(Launch{Args: headless(h.agent, "pane9 go on"), Env: []string{"QSHIM_MAX_WAIT=48h"}}) // Gemini states a reset in nine hours
	}
	waiting := func() (n int) {
		for _, e := range benches[0].events() {
			if e.Event == "launch_wait" && e.Reason != "launching" {
				n++
			}
		}
		return n
	}
	benches[0].eventually("three wait", patience, func() bool { return waiting() == len(all) })
	for i, h := range all {
		other := *benches[i]
		other.setup = other.account("two", h.plan)
		wg.Go(func() { other.calls("pane2 go on", h.model, true) })
		if h.other != nil {
			wg.Go(func() { benches[i].calls("pane3 go on", h.other, true) })
		}
	}
	wg.Wait()
	if n := waiting(); n != len(all) {
		t.Errorf("%d launches waited, want the three on what is held", n)
	}
	for i, b := range benches {
		var asked []string
		for _, r := range b.provider.Counts().Requests {
			if !r.Side && r.Kind == "" {
				name, _, _ := strings.Cut(r.Text, " ")
				asked = append(asked, name)
			}
		}
		t.Logf("%s answered %v", all[i].agent, asked)
		if strings.Contains(strings.Join(asked, " "), "pane9") {
			t.Errorf("%s: the session on what is held did not wait", all[i].agent)
		}
	}
	t.Log("held: ", holds)
}

// calls asks once without a terminal, with a model of its own; what fails by a
// limit stays so.
func (b *bench) calls(prompt string, model []string, answers bool) {
	c := *b
	c.setup.Args = model
	c.setup.Env = append(append([]string{}, b.setup.Env...), "QSHIM_RESUME=never")
	if out, err := c.headless(prompt, true); (err == nil) != answers {
		b.Errorf("%s %s: %v\n%.600s", b.agent, prompt, err, out)
	}
}
