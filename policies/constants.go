package policies

import (
	_ "embed" // the defaults
	"time"
)

// DefaultTOML is default.toml: every constant with its reason. Package
// policies/config reads it; the policy itself takes Constants.
//
//go:embed default.toml
var DefaultTOML []byte

// Constants are the policy's numbers. Their values and the reason for each are
// in default.toml; the tags are the keys there and in the user's config file.
type Constants struct {
	Rate        Transient   `toml:"rate"`
	Overload    Transient   `toml:"overload"`
	Retrying    Retry       `toml:"retrying"`
	Window      Long        `toml:"window"`
	Daily       Day         `toml:"daily"`
	Credit      Money       `toml:"credit"` // credit and spend
	Margin      Margin      `toml:"margin"`
	Probe       Probe       `toml:"probe"`
	Release     Pacing      `toml:"release"`
	Concurrency Concurrency `toml:"concurrency"`
	Spacing     Spacing     `toml:"spacing"`
	Launch      Launch      `toml:"launch"`
	Suspend     Stops       `toml:"suspend"`
	Resuming    Resuming    `toml:"resuming"`
}

// Transient rules a class that ends by itself within minutes.
type Transient struct {
	Base     time.Duration `toml:"base"`     // first wait where the server names none
	Cap      time.Duration `toml:"cap"`      // longest such wait
	Stretch  float64       `toml:"stretch"`  // a named wait is a floor: up to this share is added
	Longest  time.Duration `toml:"longest"`  // a named wait beyond is absurd and cut
	Probes   int           `toml:"probes"`   // failed probes in a row before a person is told
	GiveUp   time.Duration `toml:"give_up"`  // the same in time
	Trust    int           `toml:"trust"`    // failed probes for which the server's own times are believed to be enough
	Sessions int           `toml:"sessions"` // sessions that must report it within Within before busy siblings are suspended
	Within   time.Duration `toml:"within"`
}

// Retry rules clients that retry by themselves.
type Retry struct {
	Attempt      int           `toml:"attempt"`       // an unknown cause counts from this attempt on
	FirstDelay   time.Duration `toml:"first_delay"`   // or on attempt 1 with at least this delay
	Silence      time.Duration `toml:"silence"`       // a retrier without news for so long after its next try is no longer believed to be one
	StormTries   int           `toml:"storm_tries"`   // more tries than this …
	StormWithin  time.Duration `toml:"storm_within"`  // … within this are a storm
	EarlyTries   int           `toml:"early_tries"`   // so many tries before the time that the server named are one too
	Longest      time.Duration `toml:"longest"`       // longest hold for an unknown cause
	DefaultDelay time.Duration `toml:"default_delay"` // to the next try where the client shows none
}

// Long rules windows and daily quotas.
type Long struct {
	Longest         time.Duration `toml:"longest"`          // a named reset beyond is absurd and cut
	CheckShare      float64       `toml:"check_share"`      // early re-check after this share of what is left …
	CheckMin        time.Duration `toml:"check_min"`        // … but not before
	CheckMax        time.Duration `toml:"check_max"`        // … nor later than
	Ladder          time.Duration `toml:"ladder"`           // unknown reset, unknown window: try this often …
	LadderUntil     time.Duration `toml:"ladder_until"`     // … for so long, then every LadderSlow
	LadderKnown     time.Duration `toml:"ladder_known"`     // unknown reset, first use known: try this often before the computed end
	LadderSlow      time.Duration `toml:"ladder_slow"`      // unknown reset of a weekly window or a day
	Length          time.Duration `toml:"length"`           // of the short window
	Slack           time.Duration `toml:"slack"`            // added to a computed end
	InteractiveMost time.Duration `toml:"interactive_most"` // a busy interactive session is suspended only if the hold ends within
	Gap             time.Duration `toml:"gap"`              // between two released sessions
	GapAfterHit     time.Duration `toml:"gap_after_hit"`    // the same after one transient hit in the release
	GapAfterHits    time.Duration `toml:"gap_after_hits"`   // and after more
	ColdAfter       time.Duration `toml:"cold_after"`       // prompt caches are gone: wake few
	WakeBudget      float64       `toml:"wake_budget"`      // share of the window that those woken at first may cost together
	WakeEvery       time.Duration `toml:"wake_every"`       // then one more each …
	WakeSettle      time.Duration `toml:"wake_settle"`      // what one costs is paid by then, and no part of the rate
	WakeProjected   float64       `toml:"wake_projected"`   // … while the projected use at the window's end stays below this
	WakeMost        float64       `toml:"wake_most"`        // and used + wake below
	ContinueWithin  time.Duration `toml:"continue_within"`  // clients that continue by themselves do so within this after the reset
	GapStretch      float64       `toml:"gap_stretch"`      // up to this share is added to a gap
}

// Day rules daily quotas.
type Day struct {
	Long
	Zone string `toml:"zone"` // where the provider's day ends at midnight
}

// Money rules credit and spend.
type Money struct {
	Longest     time.Duration `toml:"longest"`      // a stated instant beyond is absurd and cut
	LaunchEvery time.Duration `toml:"launch_every"` // one launch each goes through as a probe
}

// Margin is what is added to a stated reset.
type Margin struct {
	Exact     time.Duration `toml:"exact"`     // to an epoch
	Minute    time.Duration `toml:"minute"`    // to a clock time of minute precision
	Spread    time.Duration `toml:"spread"`    // plus a uniform share of this
	Forgotten time.Duration `toml:"forgotten"` // a stated time that passed longer ago says nothing
}

// Probe rules the one session let through first.
type Probe struct {
	Answer  time.Duration `toml:"answer"`   // passed when an answer has begun and so much time is over
	Time    time.Duration `toml:"time"`     // passed after so much time without a hit
	Start   time.Duration `toml:"start"`    // a probe that has not begun to send by then is replaced
	Settle  time.Duration `toml:"settle"`   // a probe gone idle without success is replaced after
	Step    time.Duration `toml:"step"`     // the next in line may claim so much later
	OldNews time.Duration `toml:"old_news"` // a hit within this after a session's own continue or launch is old
}

// Pacing spaces the sessions released after a transient hold.
type Pacing struct {
	Gap       time.Duration `toml:"gap"`
	Jitter    float64       `toml:"jitter"` // each gap is × (1 ± jitter)
	Calm      time.Duration `toml:"calm"`   // the gap where there was no transient hit for CalmAfter
	CalmAfter time.Duration `toml:"calm_after"`
}

// Concurrency rules how many may be busy at once on a limiter.
type Concurrency struct {
	Cap        int           `toml:"cap"`         // fixed; 0: learned
	StartCap   int           `toml:"start_cap"`   // before the first hit; 0: none
	CutTo      float64       `toml:"cut_to"`      // a hit leaves this share of those that run
	CutWindow  time.Duration `toml:"cut_window"`  // at most one cut within
	Grow       time.Duration `toml:"grow"`        // one more after so long without a hit while all are in use
	GrowHidden time.Duration `toml:"grow_hidden"` // the same where the client hides its retries
	Forget     time.Duration `toml:"forget"`      // no cap after so long without a hit while fewer are in use
	Typed      time.Duration `toml:"typed"`       // a session whose user pressed a key within is never chosen
	Age        time.Duration `toml:"age"`         // a background session counts like an interactive one after
	Look       time.Duration `toml:"look"`        // who is busy under a cap decides again at least so often
	Tell       time.Duration `toml:"tell"`        // siblings are told at most so often that who is busy has changed
}

// Spacing rules how far apart short runs begin.
type Spacing struct {
	Short     time.Duration `toml:"short"`      // a run without a terminal that takes no longer is a short one
	Runs      int           `toml:"runs"`       // so many must have got through between two hits to measure by them
	Within    time.Duration `toml:"within"`     // two hits further apart tell nothing: the allowance was full in between
	Most      time.Duration `toml:"most"`       // between two starts
	Ease      float64       `toml:"ease"`       // each quiet Concurrency.Grow takes this share off
	EaseGuess float64       `toml:"ease_guess"` // the same of a gap that is a guess yet
}

// Launch spaces and bounds launches.
type Launch struct {
	Burst   int           `toml:"burst"`  // launches that may be without an answer at a time
	Gap     time.Duration `toml:"gap"`    // between launches beyond the burst
	Answer  time.Duration `toml:"answer"` // a launch counts as answered after
	Nested  time.Duration `toml:"nested"` // a nested agent waits at most
	MaxWait time.Duration `toml:"-"`      // a launch without a terminal gives up after; the setting max_wait
}

// Stops rules how sessions are stopped.
type Stops struct {
	Long    time.Duration `toml:"long"`    // a stop beyond loses a stream in flight
	Quiet   time.Duration `toml:"quiet"`   // a long stop waits so long for a quiet moment
	Recheck time.Duration `toml:"recheck"` // who is held decides again at least this often
}

// Resuming bounds how often and how long a failed task is done again.
type Resuming struct {
	Runs    int           `toml:"runs"`    // of a headless task after the first
	Typed   int           `toml:"typed"`   // times a turn on a screen is resumed between two prompts of the user's
	Longest time.Duration `toml:"longest"` // after the first failure nothing is begun again
	Verify  time.Duration `toml:"verify"`  // a turn must have begun so soon after its text was typed
}
