package lockfile

import (
	"maps"
	"time"

	"qshim/detect/finding"
)

// Ledger is a snapshot of the shared state: the limiters and the sessions.
// It is a value; whoever changes it changes a copy (see Clone) inside Update.
type Ledger struct {
	Limiters map[string]Limiter // by ID
	Sessions map[string]Session // by ID
}

// Limiter is one shared allowance. Its file is watched by every session that
// draws on it, so it stays small (about 512 bytes, DESIGN section 4.15).
type Limiter struct {
	Schema  int       `json:"schema"`
	ID      string    `json:"id"`                // provider/account[/project][#family], or provider@source
	Label   string    `json:"label,omitempty"`   // for people: "Claude Max, 3f9a…"
	Holds   []Hold    `json:"holds,omitempty"`   // at most one a class
	Probe   *Probe    `json:"probe,omitempty"`   // who goes first after a hold
	Release *Release  `json:"release,omitempty"` // pacing of the others, one by one
	Cap     *Cap      `json:"cap,omitempty"`     // learned: how many may be busy at once
	Spacing *Spacing  `json:"spacing,omitempty"` // learned: how far apart short runs begin
	LastHit time.Time `json:"last_hit,omitzero"` // last transient hit (rate, overload), for launch pacing
	Launch  *Pace     `json:"launch,omitempty"`  // recent launches, for launch pacing
	Seen    []Seen    `json:"seen,omitempty"`    // who lately reported what wants a second session (overload, unknown cause); at most 3
	Anyway  time.Time `json:"anyway,omitzero"`   // when a person last continued everything: who was stopped by then runs in spite of the holds that began before
	Used    time.Time `json:"used,omitzero"`     // first turn seen of the current 5-hour window: tells a reset that nobody states
	Share   *Share    `json:"share,omitempty"`   // how much of its window is used, as far as the agents tell
	First   []string  `json:"first,omitempty"`   // sessions that a person put first in the queue, the first of all first; at most 4
	Told    time.Time `json:"told,omitzero"`     // when siblings were last told by this file that who is busy has changed: sessions' files are not watched
	Updated time.Time `json:"updated"`           // when this file was last written
}

// Share is how much of a limiter's shortest window is used, and what qshim has
// learned of the window's size. It is written at steps worth a decision only.
type Share struct {
	Used   float64   `json:"used"`              // percent of the present window, as an agent told it last
	At     time.Time `json:"at,omitzero"`       // when that was; zero: nobody has told
	Ends   time.Time `json:"ends,omitzero"`     // of the present window; zero: not known
	Tokens int64     `json:"tokens,omitempty"`  // what the sessions told of their own consumption, since ever
	From   float64   `json:"from,omitempty"`    // the share …
	Base   int64     `json:"base,omitempty"`    // … and Tokens where learning the size began in this window
	Size   int64     `json:"size,omitempty"`    // learned: tokens of ours that fill a whole window; 0: not yet
	Learnt float64   `json:"learned,omitempty"` // points of share that Size rests on
}

// Hold closes a limiter for one class, until an instant or, blocked, until a
// person or a success opens it.
type Hold struct {
	Class       finding.Class       `json:"class"`
	Measure     finding.Measure     `json:"measure,omitempty"`
	Scope       finding.Scope       `json:"scope,omitempty"`
	Since       time.Time           `json:"since"`
	Until       time.Time           `json:"until,omitzero"` // with margin and jitter; zero: Blocked
	UntilSource finding.ResetSource `json:"until_source,omitempty"`
	Stated      time.Time           `json:"stated,omitzero"`    // the server's own instant, the floor of Until
	Blocked     bool                `json:"blocked,omitempty"`  // only a person or a success opens it
	Attempts    int                 `json:"attempts,omitempty"` // failed probes in a row
	First       time.Time           `json:"first,omitzero"`     // when this run of holds began (bounds the attempts in time)
	By          string              `json:"by,omitempty"`       // session that hit it
	Wide        bool                `json:"wide,omitempty"`     // two sessions reported it within a minute: busy siblings are suspended too
	Bounded     bool                `json:"bounded,omitempty"`  // Stated was absurd and Until was cut to the class's bound
	Check       time.Time           `json:"check,omitzero"`     // an earlier try is allowed from here on: quota that comes back early, credit that was bought
	WindowS     float64             `json:"window_s,omitempty"` // length of the named window in seconds, if named: chooses the ladder
	Why         string              `json:"why,omitempty"`      // one escaped evidence row, cut to 160 bytes
	Rule        string              `json:"rule,omitempty"`
}

// Probe is the claim of the one session let through first.
type Probe struct {
	Session string        `json:"session"`
	Since   time.Time     `json:"since"`
	Class   finding.Class `json:"class"`
	Began   time.Time     `json:"began,omitzero"`  // since when it is known to be sending; zero: not yet
	Answer  time.Time     `json:"answer,omitzero"` // when its answer began
}

// Seen is one session's report of something that moves siblings only when a
// second session reports it too.
type Seen struct {
	Session string        `json:"session"`
	At      time.Time     `json:"at"`
	Class   finding.Class `json:"class"`
}

// Release paces the sessions that follow a successful probe.
type Release struct {
	Since time.Time     `json:"since"`
	Class finding.Class `json:"class"`          // the hold that ended
	Next  time.Time     `json:"next"`           // nobody is released before
	Count int           `json:"count"`          // released so far
	Last  string        `json:"last,omitempty"` // session released last
	GapS  float64       `json:"gap_s"`          // seconds between two, before jitter
	Hits  int           `json:"hits,omitempty"` // transient hits since it began: the gap widens

	// Wake few, after a window or day that outlasted the caches.
	Awake int       `json:"awake,omitempty"` // so many may be busy at a time; 0: all
	Woken time.Time `json:"woken,omitzero"`  // the last one
	Low   float64   `json:"low,omitempty"`   // share used when what the last one cost had been paid
}

// Cap is what was learned of how many may be busy at once on a limiter.
type Cap struct {
	K      int       `json:"k"`
	Cut    time.Time `json:"cut,omitzero"`     // when a hit last lowered it …
	Was    int       `json:"was,omitempty"`    // … from this; 0: there was none
	Grown  time.Time `json:"grown,omitzero"`   // when a quiet while last raised it
	Hidden bool      `json:"hidden,omitempty"` // the client that was hit last hides its retries: news is old
}

// Spacing is what was learned of how far apart short runs may begin.
type Spacing struct {
	GapS    float64   `json:"gap_s,omitempty"`  // seconds between two starts; 0: not known
	Learned time.Time `json:"learned,omitzero"` // when GapS was measured; zero: it is a guess
	Since   time.Time `json:"since"`            // the allowance was just used up then …
	Runs    int       `json:"runs,omitempty"`   // … and so many short runs have got through since
	Last    time.Time `json:"last,omitzero"`    // when the last one began
}

// Pace counts launches for the launch burst of DESIGN section 5.
type Pace struct {
	Since time.Time `json:"since"`
	Count int       `json:"count"`
	Next  time.Time `json:"next"`
}

// State is what a session is doing.
type State string

// The states of a session.
const (
	Waiting   State = "waiting"   // its launch is delayed
	Running   State = "running"   // a turn is in progress
	Idle      State = "idle"      // composer or dialog, nothing in progress
	Suspended State = "suspended" // stopped by qshim
)

// Priority orders the queue and the probe.
type Priority string

// The priorities.
const (
	Interactive Priority = "interactive"
	Background  Priority = "background"
)

// Session is one shim with one agent process. Its file is written by its own
// shim; others change it only to record an orphan's recovery.
type Session struct {
	Schema      int                  `json:"schema"`
	ID          string               `json:"id"`
	PID         int                  `json:"pid"`                   // the shim
	ChildPID    int                  `json:"child_pid,omitempty"`   // the agent
	ChildStart  uint64               `json:"child_start,omitempty"` // its start time in kernel ticks: identity against pid reuse
	ChildLeads  bool                 `json:"child_leads,omitempty"` // it leads a process group of its own, which may be stopped before that is recorded
	Agent       string               `json:"agent"`                 // profile name
	Cwd         string               `json:"cwd,omitempty"`
	Limiters    []string             `json:"limiters"`
	Family      string               `json:"family,omitempty"` // model family; empty: unknown, so every family
	Parent      string               `json:"parent,omitempty"` // session that this one is nested in
	Priority    Priority             `json:"priority"`
	Headless    bool                 `json:"headless,omitempty"` // no terminal of its own, or a non-interactive call
	Prompt      bool                 `json:"prompt,omitempty"`   // the launch carries a prompt, so it will send at once
	Observe     bool                 `json:"observe,omitempty"`  // mode = observe: never touched
	State       State                `json:"state"`
	Since       time.Time            `json:"since"` // of State
	Born        time.Time            `json:"born"`  // when the session began: age in the queue
	TurnBegan   time.Time            `json:"turn_began,omitzero"`
	Released    time.Time            `json:"released,omitzero"`      // last SIGCONT or launch by us
	Retrying    bool                 `json:"retrying,omitempty"`     // its client is in its own retry: the natural probe
	Ahead       bool                 `json:"ahead,omitempty"`        // a person put it first; it keeps its slot to the end of the turn
	Broken      bool                 `json:"broken,omitempty"`       // its last turn failed by a limit
	UserStopped bool                 `json:"user_stopped,omitempty"` // Ctrl-Z by the user: siblings must not elect it
	RunAnyway   map[string]time.Time `json:"run_anyway,omitempty"`   // limiter -> when the user said so: covers the holds that began before, until they end
	Hits        map[string]time.Time `json:"hits,omitempty"`         // limiter -> when this session itself was last refused
	Typed       time.Time            `json:"typed,omitzero"`         // when its user last pressed a key, as far as it mattered; no finer than 30 s
	Answered    time.Time            `json:"answered,omitzero"`      // when an answer last began or a turn last ended well
	RetryAt     time.Time            `json:"retry_at,omitzero"`      // its client's own next try, with Retrying
	RetryShown  bool                 `json:"retry_shown,omitempty"`  // RetryAt was shown by the client, not assumed
	Named       time.Time            `json:"named,omitzero"`         // the time that the server named, with Retrying: tries before it are a storm
	Tries       int                  `json:"tries,omitempty"`        // own tries since TriesSince
	TriesSince  time.Time            `json:"tries_since,omitzero"`   // start of the counted span
	Early       int                  `json:"early,omitempty"`        // own tries before Named
	Storm       bool                 `json:"storm,omitempty"`        // retries faster than it was told: stopped like any busy session
	AuthTold    bool                 `json:"auth_told,omitempty"`    // its user was told of a bad key once
	Stopped     []Stopped            `json:"stopped,omitempty"`      // what we stopped, recorded before the stop or, with ChildLeads, a moment later
	Resume      Resume               `json:"resume,omitzero"`        // its failed task: to be done again, or how often it was
	Reason      string               `json:"reason,omitempty"`
	Until       time.Time            `json:"until,omitzero"`
	Context     int64                `json:"context,omitempty"`   // tokens of its conversation: what waking it cold costs
	Continues   bool                 `json:"continues,omitempty"` // its client continues by itself after a window's reset

	Alive bool `json:"-"` // its lease is held; computed when the snapshot is read
}

// Resume is what is known of a task that failed by a limit.
type Resume struct {
	Due   bool          `json:"due,omitempty"`   // the session waits for its turn to do it again; State is waiting
	First time.Time     `json:"first,omitzero"`  // when it first failed: bounds the tries in time
	At    time.Time     `json:"at,omitzero"`     // when it was last begun again, written before it was
	Runs  int           `json:"runs,omitempty"`  // how often it was, written before each
	Class finding.Class `json:"class,omitempty"` // of the limit that it failed by last
}

// Stopped identifies a process or group that qshim ordered to stop.
type Stopped struct {
	PID   int    `json:"pid"`             // process id; also the group when Group is set
	Start uint64 `json:"start"`           // start time in kernel ticks
	Group bool   `json:"group,omitempty"` // the whole process group
}

// Clone returns a deep copy, so that pure code can change it freely.
func (l Ledger) Clone() Ledger {
	c := Ledger{Limiters: make(map[string]Limiter, len(l.Limiters)), Sessions: make(map[string]Session, len(l.Sessions))}
	for k, v := range l.Limiters {
		c.Limiters[k] = v.Clone()
	}
	for k, v := range l.Sessions {
		c.Sessions[k] = v.Clone()
	}
	return c
}

// detach makes every value of l a deep copy of what it shared.
func (l Ledger) detach() {
	for k, v := range l.Limiters {
		l.Limiters[k] = v.Clone()
	}
	for k, v := range l.Sessions {
		l.Sessions[k] = v.Clone()
	}
}

// Clone returns a deep copy.
func (l Limiter) Clone() Limiter {
	l.Holds = append([]Hold(nil), l.Holds...)
	l.Seen = append([]Seen(nil), l.Seen...)
	l.First = append([]string(nil), l.First...)
	l.Probe, l.Release, l.Launch, l.Share, l.Cap, l.Spacing = copyOf(l.Probe), copyOf(l.Release), copyOf(l.Launch), copyOf(l.Share), copyOf(l.Cap), copyOf(l.Spacing)
	return l
}

// Clone returns a deep copy.
func (s Session) Clone() Session {
	s.Limiters = append([]string(nil), s.Limiters...)
	s.Stopped = append([]Stopped(nil), s.Stopped...)
	s.RunAnyway, s.Hits = maps.Clone(s.RunAnyway), maps.Clone(s.Hits)
	return s
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Event is one line of the event log, as `qshim log --json` prints it
// (DESIGN section 6). Times are RFC 3339 in UTC.
type Event struct {
	At         time.Time          `json:"at"`
	Event      string             `json:"event"` // finding, hold, suspend, continue, launch_wait, launch, probe, release, surface, resume, unrecognised, exit
	Session    string             `json:"session,omitempty"`
	Agent      string             `json:"agent,omitempty"`
	Limiter    string             `json:"limiter,omitempty"`
	Model      string             `json:"model,omitempty"`
	Project    string             `json:"project,omitempty"`
	Class      finding.Class      `json:"class,omitempty"`
	Cause      finding.Class      `json:"cause,omitempty"`
	Measure    finding.Measure    `json:"measure,omitempty"`
	Scope      finding.Scope      `json:"scope,omitempty"`
	ErrorCode  string             `json:"error_code,omitempty"`
	Until      time.Time          `json:"until,omitzero"`
	RetryAfter float64            `json:"retry_after_s,omitempty"` // seconds
	Confidence finding.Confidence `json:"confidence,omitempty"`
	Rule       string             `json:"rule,omitempty"`
	Rows       []string           `json:"rows,omitempty"`
	Reason     string             `json:"reason,omitempty"`
}
