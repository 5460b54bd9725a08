// Package config loads the defaults and the user's configuration, and keeps for
// every value where it comes from. Precedence: flag, environment, limiter,
// provider, config file, default. It reads no file and no environment itself:
// both are passed in.
package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"qshim/policies"
)

// Settings are what the shim, as opposed to the policy, goes by.
type Settings struct {
	Mode           string        `toml:"mode"`            // govern or observe
	Profile        string        `toml:"profile"`         // empty: by the name that is called
	Limiter        string        `toml:"limiter"`         // empty: as identified
	Priority       string        `toml:"priority"`        // interactive, background or empty
	MaxWait        time.Duration `toml:"max_wait"`        // a launch without a terminal gives up after
	Now            bool          `toml:"now"`             // do not wait
	NoAdjust       bool          `toml:"no_adjust"`       // leave the agent's arguments alone
	Resume         string        `toml:"resume"`          // once, notify or never, for both of the next; empty: as they say
	ResumeHeadless string        `toml:"resume_headless"` // the same without a screen
	ResumeTUI      string        `toml:"resume_tui"`      // and with one
	StateDir       string        `toml:"state_dir"`       // empty: the default directory
	NotifyCommand  []string      `toml:"notify_command"`  // argv; the message is appended
	Title          bool          `toml:"title"`           // say in the title that a session is paused
	OSC9           bool          `toml:"osc9"`            // terminal notifications
}

// Observe reports whether nothing may be touched.
func (s Settings) Observe() bool { return s.Mode == "observe" }

// Layer is one of the places that a value can come from.
type Layer string

// The layers, weakest first.
const (
	Default  Layer = "default"
	File     Layer = "config"
	Agent    Layer = "agent"
	Provider Layer = "provider"
	Limiter  Layer = "limiter"
	Env      Layer = "env"
	Flag     Layer = "flag"
)

// Origin is where a value comes from.
type Origin struct {
	Layer     Layer
	Name      string // file, environment variable or flag
	Line, Col int    // in a file, 1-based; 0 elsewhere
}

// outside a file: the variable or flag names the setting already.
func (o Origin) outside() bool { return o.Layer == Env || o.Layer == Flag }

// Value is one effective value, for `config show`.
type Value struct {
	Scope  string // "", a provider's name, a limiter's ID or "agents." and a profile's name
	Key    string // "rate.base"
	Text   string // as it would be written in the file
	Origin Origin
}

// Input is everything that a configuration is made of.
type Input struct {
	Name  string                           // name of the user's config file, for errors
	Data  []byte                           // its bytes; nil: there is none
	Env   func(name string) (string, bool) // os.LookupEnv; nil: no environment
	Flags map[string]string                // setting -> value, as given on the command line: "max_wait" -> "2h"
}

// Config is the effective configuration.
type Config struct {
	Settings
	Policy policies.Policy
	// Aliases join and split limiters, as package account takes them.
	Aliases map[string]string
	values  func() map[string]map[string]Value // scope -> key; made when somebody asks
	scopes  map[string]Settings
	agents  map[string]Settings // by profile name
}

// Load merges all layers. Its errors say which file, line and column, what is
// wrong and what to do; several are joined.
func Load(in Input) (*Config, error) {
	b := newBuilder()
	b.file(in.Name, in.Data)
	b.env(in.Env)
	b.flags(in.Flags)
	b.finish()
	if len(b.errs) > 0 {
		return nil, errors.Join(b.errs...)
	}
	return b.config(), nil
}

// Defaults is the configuration without a file, environment or flags.
func Defaults() *Config {
	c, err := Load(Input{})
	if err != nil {
		panic("policies/default.toml: " + err.Error()) // it is embedded, and a test loads it
	}
	return c
}

// For returns the settings for a session that draws on these limiters: the
// first of them that has its own settings decides.
func (c *Config) For(limiters []string) Settings {
	for _, id := range limiters {
		if s, ok := c.scopes[id]; ok {
			return s
		}
	}
	for _, id := range limiters {
		if s, ok := c.scopes[policies.Provider(id)]; ok {
			return s
		}
	}
	return c.Settings
}

// Resume says what is done about an agent's task that failed by a limit: once,
// notify or never. What is set for the agent beats what is set for all, what is
// set for the mode beats what is set for both, and a stronger layer beats both.
func (c *Config) Resume(agent string, headless bool) string {
	set, scope := c.Settings, ""
	if s, ok := c.agents[agent]; ok {
		set, scope = s, agentScope(agent)
	}
	key, mode := "resume_tui", set.ResumeTUI
	if headless {
		key, mode = "resume_headless", set.ResumeHeadless
	}
	if set.Resume == "" {
		return mode // as nearly always: where it comes from need not be made
	}
	both, _ := c.Origin(scope, "resume")
	one, _ := c.Origin(scope, key)
	if mode == "" || layers[both.Layer] > layers[one.Layer] {
		return set.Resume
	}
	return mode
}

// layers orders the layers, weakest first.
var layers = map[Layer]int{Default: 0, File: 1, Agent: 2, Provider: 3, Limiter: 4, Env: 5, Flag: 6}

// agentScope is the Scope of what is set for an agent.
func agentScope(name string) string { return "agents." + name }

// Values lists every effective value, the unscoped ones first, then those that
// a provider or a limiter sets otherwise.
func (c *Config) Values() []Value {
	var out []Value
	for _, scope := range slices.Sorted(maps.Keys(c.values())) {
		set := c.values()[scope]
		for _, key := range slices.Sorted(maps.Keys(set)) {
			out = append(out, set[key])
		}
	}
	return out
}

// Origin returns where a value comes from in a scope ("" for none).
func (c *Config) Origin(scope, key string) (Origin, bool) {
	if v, ok := c.values()[scope][key]; ok {
		return v.Origin, true
	}
	v, ok := c.values()[""][key]
	return v.Origin, ok
}

// EnvName is the environment variable of a setting.
func EnvName(key string) string { return "QSHIM_" + strings.ToUpper(key) }
