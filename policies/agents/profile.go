// Package agents knows the agent command lines: one TOML file an agent says how
// to recognise a launch of it, which of its calls never reach the model, what
// to adjust, where it keeps its log and how a person quits or resumes it. The
// part of each file from the line [detect] on belongs to package detect and is
// not read here.
//
// The package is pure: it reads no file, no environment and starts nothing.
package agents

// Profile is one agent's launch part, decoded from policies/agents/NAME.toml.
type Profile struct {
	Name     string   `toml:"name"`     // file name without .toml: "claude"
	Title    string   `toml:"title"`    // for people: "Claude Code"
	Provider string   `toml:"provider"` // first part of a limiter ID where nothing else says: "anthropic"
	Identity string   `toml:"identity"` // which rules of package account apply: claude, codex, gemini, keys, none
	Look     string   `toml:"look"`     // the agent's own command that shows what is used: "/usage"
	Binaries []string `toml:"binaries"` // base names that mean this agent
	Packages []string `toml:"packages"` // npm packages that mean this agent
	// JudgedBy names the profile whose rows, rules and records are asked after
	// this one's own: generic, for agents that draw little in a way of their own.
	JudgedBy string `toml:"judged_by"`

	// Replace: a user's file of a built-in name stands in place of the built-in
	// one, instead of over it.
	Replace bool `toml:"replace"`

	Options  Options      `toml:"options"`
	Calls    Calls        `toml:"calls"`
	Headless Headless     `toml:"headless"`
	Prompt   Prompt       `toml:"prompt"`
	Model    Model        `toml:"model"`
	Account  Account      `toml:"account"`
	Adjust   []Adjustment `toml:"adjust"`
	Log      LogSpec      `toml:"log"`
	Quit     Quit         `toml:"quit"`
	Resume   Resume       `toml:"resume"`
	Examples Examples     `toml:"examples"`

	// Raw returns the whole file, the [detect] part included, for package detect;
	// nil: there is none.
	Raw func() []byte `toml:"-"`
	// User is the user's own file over Raw, or alone where Raw is nil; nil: there
	// is none.
	User *File `toml:"-"`
}

// Options says how the agent's option parser splits its arguments, as far as it
// matters for finding the subcommand and the prompt behind them.
type Options struct {
	// Value options take the next argument whatever it looks like.
	Value []string `toml:"value"`
	// Optional options take the next argument unless it begins with "-".
	Optional []string `toml:"optional"`
	// Variadic options take every argument up to the next that begins with "-".
	Variadic []string `toml:"variadic"`
}

// Calls tells the calls that never reach the model from sessions (DESIGN 4.6).
type Calls struct {
	// Flags make any call a non-session, wherever they stand before "--".
	Flags []string `toml:"flags"`
	// Commands are first words of non-sessions, or several ("exec help"), flags
	// among them ("agents --json").
	Commands []string `toml:"commands"`
	// Sessions are longer forms of Commands that do reach the model.
	Sessions []string `toml:"sessions"`
	// Alone are flags that make a call a non-session when they are all of it.
	Alone []string `toml:"alone"`
	// NotWith are flags after which the first word is a prompt, not a command.
	NotWith []string `toml:"not_with"`
}

// Headless says when the agent runs without its screen.
type Headless struct {
	Flags    []string `toml:"flags"`    // flags that mean headless
	Never    []string `toml:"never"`    // flags that mean a screen whatever else says
	Commands []string `toml:"commands"` // first words that mean headless
	Env      []string `toml:"env"`      // NAME=value in the environment that means headless
	// Piped lists the streams ("stdin", "stdout") that make the agent headless
	// by not being a terminal.
	Piped []string `toml:"piped"`
	// Format is the option that selects the output format (text, json, stream-json).
	Format []string `toml:"format"`
	// Stream lists flags that select JSON lines by themselves (Codex's --json).
	Stream []string `toml:"stream"`
}

// Prompt says where a launch carries its first prompt.
type Prompt struct {
	Options []string `toml:"options"` // options whose value is a prompt
	// Skip gives, for a first word, how many positionals stand before the
	// prompt ("resume" = 1: the session id). Unlisted words carry none.
	Skip map[string]int `toml:"skip"`
	// NoWords: words before any command are no prompt (aider's are files).
	NoWords bool `toml:"no_words"`
	// SkipNone are flags that take the place of the skipped positional (--last).
	SkipNone []string `toml:"skip_none"`
	// Always are first words that start a turn without a prompt ("review").
	Always []string `toml:"always"`
}

// Model says how a launch names its model. What the files say is package
// account's business.
type Model struct {
	Options  []string `toml:"options"`  // options whose value is the model, the last one counts
	Env      []string `toml:"env"`      // environment variables, first one set counts
	Families []Family `toml:"families"` // tried in order
}

// Account says where an agent of identity "keys" finds whose allowance it spends.
type Account struct {
	// Keys are "VARIABLE=provider" in the order of the agent's own preference.
	Keys []string `toml:"keys"`
	// Bases are "VARIABLE=provider": the base URL that goes with a provider's key.
	Bases []string `toml:"bases"`
	// Files below the home directory hold a login; there is one a directory.
	Files []string `toml:"files"`
}

// Family maps model names to the family that the provider limits together.
type Family struct {
	// Match are patterns over the lower-cased name; * stands for any run.
	Match []string `toml:"match"`
	// Name is the family; empty where the name means several (auto, opusplan).
	Name string `toml:"name"`
}

// Adjustment is one visible change of a launch (DESIGN 4.5).
type Adjustment struct {
	Name string `toml:"name"` // one word for doctor
	Why  string `toml:"why"`  // one line for doctor
	// Formats are the output formats, of calls without a screen, that it is made
	// for. Empty: every session.
	Formats []string `toml:"formats"`
	// Args stand before the user's arguments; "{log}" as in Env, "{uuid}" is a
	// new one.
	Args []string `toml:"args"`
	// Needs is a word that the binary's --help must hold for Args to be known
	// to be accepted. Empty: accepted by every version.
	Needs string `toml:"needs"`
	// Fallback is used in place of Args when the binary is not known to accept
	// them. Empty: nothing is adjusted then.
	Fallback []string `toml:"fallback"`
	// Env are variables to set; "{log}" stands for a fresh log file's path.
	Env map[string]string `toml:"env"`
	// UnlessArgs drops the adjustment when the user gave one of these flags
	// (or key=value settings, matched by their beginning).
	UnlessArgs []string `toml:"unless_args"`
	// UnlessEnv drops the adjustment when one of these variables is set.
	UnlessEnv []string `toml:"unless_env"`
	// UnlessCommands drops the adjustment for these first words.
	UnlessCommands []string `toml:"unless_commands"`
}

// LogSpec says where the agent writes its own log and in which form; package
// shim/agentlog follows it.
type LogSpec struct {
	Kind string `toml:"kind"` // claude-transcript, codex-rollout, gemini, qwen, opencode; empty: none
	// Headless: only calls without a screen need it.
	Headless bool `toml:"headless"`
	// HomeEnv names the environment variables of the agent's directory, the
	// first that is set counts; "NAME/sub" is sub below its value.
	HomeEnv []string `toml:"home_env"`
	// Home is the directory below the user's home where none of them is set.
	Home string `toml:"home"`
	// Files are patterns below that directory, path.Match syntax.
	Files []string `toml:"files"`
	// Status is the per-process status file, "{pid}" for the agent's pid.
	Status string `toml:"status"`
	// DebugEnv names the variable that holds the debug log's path.
	DebugEnv string `toml:"debug_env"`
	// DebugArg is the option whose value is the debug log's path.
	DebugArg string `toml:"debug_arg"`
	// SessionArgs are the options whose value is the session's id.
	SessionArgs []string `toml:"session_args"`
}

// Quit says how the agent is asked to end.
type Quit struct {
	Signal string `toml:"signal"` // SIGTERM, SIGHUP, SIGINT
	// Restore: the agent leaves modes on when it dies by that signal.
	Restore bool `toml:"restore"`
}

// Resume is how a failed task is done again. Nothing here decides that it is.
type Resume struct {
	Text    string `toml:"text"`     // typed into the composer
	PauseMS int    `toml:"pause_ms"` // between text and Enter, milliseconds
	// Headless are the arguments of a run that continues session "{session}"
	// with the prompt "{text}". They stand behind what is kept of the failed
	// run's own.
	Headless []string `toml:"headless"`
	// Latest are those of the newest session: what a person is told where the
	// session's id is not known. Racy with siblings, so nothing does it by itself.
	Latest []string `toml:"latest"`
	// Commands are the first words that a run must have for that, and keeps;
	// empty: a run without one.
	Commands []string `toml:"commands"`
	// Drop are options of the failed run that the next does not get: its prompt,
	// and what chose its session. Empty: it is not known what to leave out, so a
	// headless run is not done again by itself.
	Drop []string `toml:"drop"`
	// Session are options whose value is the session that a run continues.
	Session []string `toml:"session"`
	// Unless are options, or options with a value ("--input-format=stream-json"),
	// whose runs leave no session that can be continued.
	Unless []string `toml:"unless"`
	// Stdin: a run that continues a session needs the piped input again. False
	// where the session holds it.
	Stdin bool `toml:"stdin"`
	// ID finds the session's id in what a run wrote: its first group.
	ID string `toml:"id"`
	// NeedsReply: only a session with a model reply can be resumed; else the
	// original command is run again.
	NeedsReply bool `toml:"needs_reply"`
	// SelfContinues: the agent continues by itself after a window limit.
	SelfContinues bool `toml:"self_continues"`
}

// Examples are argument lines, split at blanks, that a test runs.
type Examples struct {
	NonSession []string `toml:"nonsession"`
	Session    []string `toml:"session"`
	Headless   []string `toml:"headless"`
	Prompt     []string `toml:"prompt"`
	NoPrompt   []string `toml:"noprompt"`
	// Adjusted and Unadjusted are judged for the adjustments' arguments.
	Adjusted   []string `toml:"adjusted"`
	Unadjusted []string `toml:"unadjusted"`
}

// Call is what a command line asks of the agent.
type Call struct {
	Session      bool   // false: never reaches the model, exec it directly
	Command      string // first word when it is a known subcommand's place, else ""
	Headless     bool   // runs without its screen
	Prompt       bool   // starts a turn at once
	Model        string // from the arguments, "" when they name none
	StreamFormat string // text, json or stream-json for headless; "" otherwise
}

// Setting is where a call runs: which of its streams are terminals, and its
// environment.
type Setting struct {
	StdinTTY, StdoutTTY bool
	Env                 func(string) string // nil: empty
}
