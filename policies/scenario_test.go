package policies_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"qshim/detect/finding"
	"qshim/lockfile"
	"qshim/policies"
)

// TestScenarios plays testdata/scenarios/*.txt. A line is one of
//
//	session NAME busy|idle|launch [background] [headless] [continues] [context=N] [prompt] [observe] [age=2m] [on=LIMITER,…] [family=F] [parent=NAME]
//	finding NAME CLASS [cause=C] [scope=S] [model=M] [after=30s] [in=2h] [source=epoch] [precision=1m] [attempt=N] [weak]
//	began|busy|answer|ended|success|retry-over|exit|die|ctrl-z|fg|anyway|drop NAME
//	usage NAME [context=N] [spent=N] [used=PERCENT] [ends=2h]
//	release LIMITER                   a person opens it
//	again NAME [ANSWER]               its run has failed and is to be done again; the answer, "due" unless said
//	hold LIMITER 2h                   a person closes it for so long
//	first NAME [not]                  a person puts it first; not: it does not wait
//	continue-all                      a person continues whoever is stopped
//	wait 30s                          time passes; who wants to wake wakes
//	clock -1h                         the wall clock is set
//	cap 3                             the fixed cap of the configuration
//	typed NAME                        its user presses a key
//	NAME is STATE [CODE] [note|ask|give-up] [place=N]
//	limiter ID is STATE [until=34s] [class=C] [attempts=N] [cap=N]
//	let NAME…                         who was launched or continued since the last such line, in order
//	told N                            how often a person was told since the last such line
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := script{world: newWorld(t), file: filepath.Base(file)}
			s.onEvent = func(e lockfile.Event) {
				if e.Event == "surface" {
					s.told++
				}
			}
			for n, line := range strings.Split(string(data), "\n") {
				line, _, _ = strings.Cut(" "+line, " #")
				if f := strings.Fields(line); len(f) > 0 {
					s.line = n + 1
					s.do(f)
				}
			}
		})
	}
}

type script struct {
	*world
	file string
	line int
	told int
}

func (s *script) bad(format string, args ...any) {
	s.t.Helper()
	s.fail(s.file+":"+strconv.Itoa(s.line)+": "+format, args...)
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.bad("%v", err)
	}
	return d
}

func options(words []string) (map[string]string, []string) {
	opt, rest := map[string]string{}, []string{}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			opt[k] = v
		} else {
			rest = append(rest, w)
		}
	}
	return opt, rest
}

func (s *script) do(f []string) {
	s.t.Helper()
	verbs := map[string]policies.Activity{
		"began": {Busy: true, TurnBegan: true}, "busy": {Busy: true}, "answer": {AnswerBegun: true},
		"ended": {TurnEnded: true, Idle: true}, "success": {Success: true, TurnEnded: true, Idle: true}, "served": {Success: true},
		"retry-over": {RetryEnded: true}, "exit": {Exit: true}, "typed": {Typed: s.now},
	}
	a, isActivity := verbs[f[0]]
	switch {
	case len(f) > 2 && f[1] == "is":
		s.expectSession(f[0], f[2:])
	case isActivity:
		s.act(f[1], a)
		if f[0] == "exit" {
			delete(s.l.Sessions, f[1])
		}
		s.settle()
	case f[0] == "session":
		s.session(f[1], f[2:])
		s.settle()
	case f[0] == "finding":
		s.finding(f[1], finding.Class(f[2]), f[3:])
		s.settle()
	case f[0] == "usage":
		s.usage(f[1], f[2:])
		s.settle()
	case f[0] == "wait":
		s.run(s.duration(f[1]))
	case f[0] == "clock":
		s.now = s.now.Add(s.duration(f[1]))
		s.settle()
	case f[0] == "cap":
		s.p.C.Concurrency.Cap, _ = strconv.Atoi(f[1])
	case f[0] == "limiter":
		s.expectLimiter(f[1], f[3:])
	case f[0] == "let":
		if !slices.Equal(s.let, f[1:]) {
			s.bad("let go: %v", s.let)
		}
		s.let = nil
	case f[0] == "told":
		if strconv.Itoa(s.told) != f[1] {
			s.bad("a person was told %d times", s.told)
		}
		s.told = 0
	case f[0] == "release":
		l, ev := s.p.Release(s.l, s.in(""), limiterID(f[1]))
		s.apply("", l, ev)
		s.settle()
	case f[0] == "again":
		l, got, ev := s.p.WantResume(s.l, s.in(f[1]))
		s.apply(f[1], l, ev)
		if want := append(f[2:], string(policies.WillResume))[0]; string(got) != want {
			s.bad("again: %s", got)
		}
		s.settle()
	case f[0] == "hold":
		l, ev := s.p.Hold(s.l, s.in(""), limiterID(f[1]), s.now.Add(s.duration(f[2])), finding.Local, "a meeting")
		s.apply("", l, ev)
		s.settle()
	case f[0] == "first":
		l, ev, on := s.p.First(s.l, s.in(""), f[1])
		s.apply("", l, ev)
		if want := len(f) == 2; (len(on) > 0) != want {
			s.bad("put first on %v", on)
		}
		s.settle()
	case f[0] == "continue-all":
		l, ev := s.p.ContinueAll(s.l, s.in(""))
		s.apply("", l, ev)
		s.settle()
	default:
		s.touch(f[0], f[1])
		s.settle()
	}
}

// touch does what happens to a session from outside.
func (s *script) touch(verb, name string) {
	x := s.l.Sessions[name]
	switch verb {
	case "die":
		x.Alive = false
	case "ctrl-z":
		x.UserStopped = true
	case "fg":
		x.UserStopped = false
	case "drop":
		delete(s.l.Sessions, name)
		return
	case "anyway":
		l, ev := s.p.RunAnyway(s.l, s.in(name))
		s.apply(name, l, ev)
		return
	default:
		s.bad("unknown line")
	}
	s.l.Sessions[name] = x
}

func (s *script) session(name string, words []string) {
	opt, flags := options(words)
	has := func(f string) bool { return slices.Contains(flags, f) }
	x := lockfile.Session{ID: name, Agent: "claude", Headless: has("headless"), Prompt: has("prompt"), Observe: has("observe"), Continues: has("continues"),
		Family: opt["family"], Parent: opt["parent"], Priority: lockfile.Interactive, State: lockfile.Idle}
	if has("background") {
		x.Priority = lockfile.Background
	}
	x.Context, _ = strconv.ParseInt(opt["context"], 10, 64)
	if opt["age"] != "" {
		x.Born = s.now.Add(-s.duration(opt["age"]))
	}
	if opt["on"] != "" {
		x.Limiters = strings.Split(opt["on"], ",")
	}
	if has("launch") {
		x.State = lockfile.Waiting
	}
	s.add(x)
	if has("busy") {
		s.act(name, policies.Activity{Busy: true, TurnBegan: true})
		if opt["age"] != "" {
			x = s.l.Sessions[name]
			x.TurnBegan = x.Born
			s.l.Sessions[name] = x
		}
	}
}

func (s *script) finding(name string, class finding.Class, words []string) {
	opt, flags := options(words)
	f := finding.Finding{Class: class, Cause: finding.Class(opt["cause"]), Scope: finding.Scope(opt["scope"]), Model: opt["model"],
		Rule: "test", Rows: []string{"row"}, ResetSource: finding.ResetSource(opt["source"])}
	if slices.Contains(flags, "weak") {
		f.Confidence = finding.Weak
	}
	for key, to := range map[string]*time.Duration{"after": &f.RetryAfter, "precision": &f.Precision, "window": &f.Window} {
		if opt[key] != "" {
			*to = s.duration(opt[key])
		}
	}
	if opt["in"] != "" {
		f.Reset = s.now.Add(s.duration(opt["in"]))
		if f.ResetSource == "" {
			f.ResetSource = finding.Epoch
		}
	}
	f.Attempt, _ = strconv.Atoi(opt["attempt"])
	s.find(name, f)
}

func (s *script) usage(name string, words []string) {
	opt, _ := options(words)
	u := policies.Usage{Window: 5 * time.Hour}
	u.Context, _ = strconv.ParseInt(opt["context"], 10, 64)
	u.Spent, _ = strconv.ParseInt(opt["spent"], 10, 64)
	if u.Told = opt["used"] != ""; u.Told {
		u.Used, _ = strconv.ParseFloat(opt["used"], 64)
	}
	if opt["ends"] != "" {
		u.Ends = s.now.Add(s.duration(opt["ends"]))
	}
	l, ev := s.p.Usage(s.l, s.in(name), u)
	s.apply(name, l, ev)
}

func (s *script) expectSession(name string, words []string) {
	s.t.Helper()
	opt, flags := options(words)
	x, d := s.l.Sessions[name], s.last[name]
	for _, w := range flags {
		ok := false
		switch w {
		case "waiting", "running", "idle", "suspended":
			ok = string(x.State) == w
		case "note":
			ok = d.OpenWithNote
		case "ask":
			ok = d.AskFirst && d.Action == policies.Surface
		case "give-up":
			ok = d.GiveUp
		default:
			ok = string(d.Reason.Code) == w
		}
		if !ok {
			s.bad("%s is not %s: state %s, decision %+v", name, w, x.State, d)
		}
	}
	if opt["place"] != "" && strconv.Itoa(d.Place) != opt["place"] {
		s.bad("%s stands at place %d", name, d.Place)
	}
}

// limiterID spells out the two limiters of the scenarios.
func limiterID(name string) string {
	return strings.NewReplacer("ACCT", acct, "MACH", mach).Replace(name)
}

func (s *script) expectLimiter(id string, words []string) {
	s.t.Helper()
	opt, flags := options(words)
	id = limiterID(id)
	if got := s.p.State(s.l, id, s.now); string(got) != flags[0] {
		s.bad("limiter %s is %s", id, got)
	}
	var h lockfile.Hold
	for _, x := range s.l.Limiters[id].Holds {
		if opt["class"] == "" || string(x.Class) == opt["class"] {
			h = x
		}
	}
	if opt["class"] != "" && string(h.Class) != opt["class"] {
		s.bad("no hold of class %s: %+v", opt["class"], s.l.Limiters[id].Holds)
	}
	if k, _ := s.p.Cap(s.l, id); opt["cap"] != "" && strconv.Itoa(k) != opt["cap"] {
		s.bad("cap %d", k)
	}
	if opt["until"] != "" {
		if got, want := h.Until.Sub(s.now), s.duration(opt["until"]); (got - want).Abs() > 50*time.Millisecond {
			s.bad("until %s", got)
		}
	}
	if opt["attempts"] != "" && strconv.Itoa(h.Attempts) != opt["attempts"] {
		s.bad("attempts %d", h.Attempts)
	}
	if opt["source"] != "" && string(h.UntilSource) != opt["source"] {
		s.bad("source %s", h.UntilSource)
	}
	if opt["bounded"] != "" && strconv.FormatBool(h.Bounded) != opt["bounded"] {
		s.bad("bounded %v", h.Bounded)
	}
}
