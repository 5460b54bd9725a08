package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
	"qshim/policies/config"
	"qshim/shim"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)

func pauseOf(code policies.Code, class finding.Class) shim.Pause {
	return shim.Pause{Agent: "Claude Code", Label: "Claude Max, 3f9a…", Now: noon, Decision: policies.Decision{
		Limiter: "anthropic/3f9a00000000", Hold: lockfile.Hold{Class: class}, Reason: policies.Reason{Code: code, Class: class}, Until: noon.Add(245 * time.Second),
	}}
}

func TestPauseRowWords(t *testing.T) {
	for _, c := range []struct {
		code  policies.Code
		class finding.Class
		want  string
	}{
		{policies.Held, finding.Rate, "rate limit on Claude Max, 3f9a…"},
		{policies.Held, finding.Retrying, "another session is being refused and retries by itself on Claude Max, 3f9a…"},
		{policies.Storming, finding.Rate, "its client retries faster than the provider allows on Claude Max, 3f9a…"},
		{policies.Probing, finding.Rate, "another session goes first after a rate limit on Claude Max, 3f9a…"},
		{policies.Probing, finding.Retrying, "another session goes first after a refusal on Claude Max, 3f9a…"},
		{policies.Queued, finding.Window, "sessions go on one after another after a used-up window on Claude Max, 3f9a…"},
		{policies.Capped, finding.Rate, "as many run as the limit bears, older sessions finish first on Claude Max, 3f9a…"},
		{policies.Queued, "", "sessions go on one after another after a limit on Claude Max, 3f9a…"},
	} {
		p := pauseOf(c.code, c.class)
		if got := (voice{}).PauseRow(p, 200); got != " qshim: suspended · "+c.want+" · 4m 05s left · r run anyway · q quit " {
			t.Errorf("%s %s: %q", c.code, c.class, got)
		}
	}
	p := pauseOf(policies.Blocked, finding.Credit)
	p.Keys, p.Dropped = shim.HintKeys, 3
	if got := (voice{}).PauseRow(p, 200); !strings.Contains(got, "credits are gone") || !strings.Contains(got, "until you release it") || !strings.Contains(got, "3 keys not sent") {
		t.Error(got)
	}
	p.Keys = shim.HintQuit
	if got := (voice{}).PauseRow(p, 200); !strings.Contains(got, "quit? y yes · any other key no") {
		t.Error(got)
	}
}

// What helps stands in the row where there is room for it, and goes before the
// end and the keys do.
func TestAdvice(t *testing.T) {
	look := voice{look: "/usage"}
	for _, c := range []struct {
		class   finding.Class
		measure finding.Measure
		scope   finding.Scope
		row     string // in the pause row; "" nothing
		full    string // in status
	}{
		{finding.Rate, finding.InputTokens, "", "narrower files, /compact, /clear", "smaller contexts help: narrower files, /compact, /clear; see /usage or claude.ai/settings/usage; " + batchAdvice},
		{finding.Rate, finding.OutputTokens, "", "a lower output limit", ""},
		{finding.Rate, finding.Requests, finding.Account, "stagger", ""},
		{finding.Rate, finding.Requests, finding.Source, "from this machine", ""},
		{finding.Rate, finding.Ramp, "", "start slowly", ""},
		{finding.Rate, "", "", "", "see /usage or claude.ai/settings/usage; " + batchAdvice},
		{finding.Overload, "", "", "nothing of yours to reduce", "nothing of yours to reduce"},
		{finding.Window, finding.Usage, "", "see /usage", "other sessions and devices on the account use it too; see /usage or claude.ai/settings/usage"},
		{finding.Spend, "", "", "raise the cap", "raise the cap where it was set; see /usage or platform.claude.com/settings/billing"},
		{finding.Person, "", "", "", ""},
	} {
		p := pauseOf(policies.Held, c.class)
		p.Decision.Hold.Measure, p.Decision.Hold.Scope = c.measure, c.scope
		row := look.PauseRow(p, 200)
		if c.row == "" && strings.Count(row, "·") != 4 || !strings.Contains(row, c.row) {
			t.Errorf("%s %s: %q", c.class, c.measure, row)
		}
		if short := look.PauseRow(p, 80); !strings.Contains(short, "4m 05s left") || !strings.Contains(short, "r run anyway") {
			t.Errorf("%s %s in 80 columns: %q", c.class, c.measure, short)
		}
		full := fullAdvice(c.class, c.measure, c.scope, "anthropic/3f9a00000000", "/usage", true)
		if c.full != "" && full != c.full || c.full == "" && c.row == "" && full != "" {
			t.Errorf("%s %s in full: %q", c.class, c.measure, full)
		}
	}
	p := pauseOf(policies.Blocked, finding.Credit)
	if got := look.Notice(shim.Notice{Kind: shim.NeedsYou, Pause: p}); !strings.Contains(got, "(top up, or switch on automatic top-up: /usage or platform.claude.com/settings/billing)") {
		t.Error(got)
	}
	if p := pauseOf(policies.Queued, finding.Overload); strings.Contains(look.PauseRow(p, 200), "reduce") {
		t.Error("advice while others go first")
	}
}

// Every line fits the terminal, and nothing that a provider or a path says can
// move the cursor.
func TestRowsFitAndStayPut(t *testing.T) {
	codes := []policies.Code{policies.Held, policies.Probing, policies.Queued, policies.Capped, policies.Launching, policies.Blocked, policies.Storming}
	classes := []finding.Class{finding.Rate, finding.Overload, finding.Window, finding.Daily, finding.Credit, finding.Spend, finding.Retrying, ""}
	control := regexp.MustCompile(`[\x00-\x1f\x7f-\x9f]`)
	colour := regexp.MustCompile(`\x1b\[[0-9]*m`)
	for _, code := range codes {
		for _, class := range classes {
			for _, keys := range []shim.Hint{shim.HintKeys, shim.HintQuit, shim.HintNone} {
				p := pauseOf(code, class)
				p.Keys, p.Dropped, p.Agent, p.Label = keys, 12, "evil\x1b[2Jagent", "模型\x1b]0;x\a account"
				for cols := 1; cols <= 160; cols += 3 {
					row := (voice{p: true}).PauseRow(p, cols)
					line := colour.ReplaceAllString((voice{p: true}).Line(p, cols), "")
					if displaywidth.String(row) > cols || displaywidth.String(line) > cols {
						t.Fatalf("%d columns: %q %q", cols, row, line)
					}
					if control.MatchString(row) || control.MatchString(line) {
						t.Fatalf("control bytes: %q %q", row, line)
					}
				}
				for _, s := range []string{(voice{}).Title(p), (voice{}).Note(p), (voice{}).Ask(p), (voice{}).GiveUp(p),
					(voice{}).Notice(shim.Notice{Kind: shim.Suspended, Pause: p}), (voice{}).Notice(shim.Notice{Kind: shim.NeedsYou, Pause: p})} {
					if control.MatchString(s) {
						t.Fatalf("control bytes: %q", s)
					}
				}
			}
		}
	}
}

func TestSpanAndClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", time.Millisecond: "1s", 59 * time.Second: "59s", time.Minute: "1m 00s", 245 * time.Second: "4m 05s",
		time.Hour: "1h 00m", 25*time.Hour + 59*time.Minute: "1d 1h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for in, want := range map[time.Time]string{
		noon.Add(time.Hour): "13:00:00", noon.Add(26 * time.Hour): "Mon 14:00", noon.Add(30 * 24 * time.Hour): "29 Dec 2026 12:00", noon.Add(-30 * time.Hour): "28 Nov 2026 06:00",
	} {
		if got := clock(in, noon); got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
}

// The names of `log --json` are an interface.
func TestLogFields(t *testing.T) {
	var got []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[lockfile.Event]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		got = append(got, name)
	}
	want := strings.Fields("at event session agent limiter model project class cause measure scope error_code until retry_after_s confidence rule rows reason")
	if !slices.Equal(got, want) {
		t.Errorf("fields %q", got)
	}
}

// What agents told of their consumption is shown where it is known.
func TestStatusShowsWhatIsUsed(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	id := "anthropic/0123456789ab"
	l := lockfile.Ledger{
		Limiters: map[string]lockfile.Limiter{id: {
			ID: id, LastHit: now, Share: &lockfile.Share{Used: 41.6, At: now.Add(-time.Hour), Ends: now.Add(time.Hour)},
			Spacing: &lockfile.Spacing{GapS: 7.5, Learned: now},
		}},
		Sessions: map[string]lockfile.Session{
			"a": {ID: "a", Agent: "claude", Limiters: []string{id}, State: lockfile.Idle, Since: now, Context: 54321, Alive: true},
			"b": {ID: "b", Agent: "claude", Limiters: []string{id}, State: lockfile.Idle, Since: now, Alive: true},
		},
	}
	show := func() string {
		var out strings.Builder
		printStatus(&out, palette(false), statusOf(config.Defaults().Policy, l, now, func(string) string { return "" }), now)
		return out.String()
	}
	for _, want := range []string{"short runs 7.5s apart", "42% of its window used", "CONTEXT  DIRECTORY", "54k      -", "-        -"} {
		if got := show(); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	now = now.Add(2 * time.Hour) // that window is over
	l.Sessions["a"] = l.Sessions["b"]
	if got := show(); strings.Contains(got, "window") || strings.Contains(got, "CONTEXT") || strings.Contains(got, "apart") {
		t.Errorf("what is not known any more is shown:\n%s", got)
	}
}

// JSON that goes to a terminal moves it no more than words do, and reads the same.
func TestSafeJSON(t *testing.T) {
	was := "a\x1b]0;x\a\u009b31m\x7f\u202ertl\u2066\u2028 é宽\n"
	var b strings.Builder
	if err := writeJSON(&b, map[string]string{"cwd": was}); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && movesTerminal(r) }); i >= 0 {
		t.Errorf("%q", b.String())
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || got["cwd"] != was {
		t.Errorf("%q, %v", got, err)
	}
}
