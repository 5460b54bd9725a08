package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"qshim/cmd/internal/cmdline"
	"qshim/policies/agents"
	"qshim/policies/config"
)

func configCmd(a *app) *cmdline.Command {
	c := &cmdline.Command{
		Use:     "config show|check",
		Short:   "Show the effective configuration, or check it and your agent profiles",
		MaxArgs: cmdline.AnyArgs,
		Run: func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("config has no command %q: show or check", args[0])
			}
			return usagef("config show prints the effective values, config check looks for mistakes")
		},
	}
	return c.Add(configShowCmd(a), configCheckCmd(a))
}

// valueJSON is one value as `config show --json` prints it. Fields are only ever added.
type valueJSON struct {
	Scope string `json:"scope"` // "", a provider or a limiter
	Key   string `json:"key"`
	Value string `json:"value"` // as it would stand in the file
	From  string `json:"from"`  // default, config, provider, limiter, env, flag
	Name  string `json:"name"`  // file, variable or flag
	Line  int    `json:"line,omitempty"`
}

func configShowCmd(a *app) *cmdline.Command {
	var asJSON, changed bool
	return &cmdline.Command{
		Use:      "show [KEY]",
		Short:    "Print every effective value and where it comes from",
		Long:     configShowHelp,
		MaxArgs:  1,
		Complete: a.completeSettings,
		Flags: []*cmdline.Flag{
			cmdline.Bool(&asJSON, "json", jsonFlag),
			cmdline.Bool(&changed, "changed", "only what is not a default"),
		},
		Run: func(_ context.Context, args []string) error {
			if err := a.load(); err != nil {
				return err
			}
			want := ""
			if len(args) == 1 {
				want = args[0]
			}
			list := a.shownValues(want, changed)
			if len(list) == 0 && want != "" && !changed {
				return usagef("there is no setting %q (all of them: qshim config show)", want)
			}
			if asJSON {
				return writeJSON(a.stdout, list)
			}
			printValues(a.stdout, list)
			return nil
		},
	}
}

// completeSettings offers the keys of the configuration as it is.
func (a *app) completeSettings(args []string) cmdline.Offer {
	o := cmdline.Offer{Files: cmdline.NoFiles}
	if a.load() != nil || len(args) > 0 {
		return o
	}
	for _, v := range a.config.Values() {
		if v.Scope == "" {
			o.Words = append(o.Words, cmdline.Word{Text: v.Key, About: v.Text})
		}
	}
	return o
}

// shownValues are those of a key, or below it ("rate").
func (a *app) shownValues(want string, changed bool) []valueJSON {
	list := []valueJSON{}
	for _, v := range a.config.Values() {
		if want != "" && v.Key != want && !strings.HasPrefix(v.Key, want+".") && v.Scope != want {
			continue
		}
		if changed && v.Origin.Layer == config.Default {
			continue
		}
		name := v.Origin.Name
		if v.Origin.Layer == config.Default {
			name = "policies/default.toml"
		}
		list = append(list, valueJSON{v.Scope, v.Key, v.Text, string(v.Origin.Layer), name, v.Origin.Line})
	}
	return list
}

func configCheckCmd(a *app) *cmdline.Command {
	return &cmdline.Command{
		Use:     "check [PROFILE.toml...]",
		Short:   "Check the config file and your agent profiles, their examples too",
		Long:    configCheckHelp,
		MaxArgs: cmdline.AnyArgs,
		Complete: func([]string) cmdline.Offer {
			return cmdline.Offer{Words: []cmdline.Word{{Text: "toml"}}, Files: cmdline.OnlyFiles}
		},
		Run: func(_ context.Context, args []string) error {
			c := checker{a: a}
			if len(args) == 0 {
				c.config()
				files, errs := a.profileFiles()
				for _, err := range errs {
					c.wrong(err)
				}
				c.profiles(files)
			} else if err := c.named(args); err != nil {
				return err
			}
			if c.bad > 0 {
				return &exitError{code: exitUsage}
			}
			return nil
		},
	}
}

// checker looks for mistakes and says each with its place.
type checker struct {
	a   *app
	bad int
}

// config checks the user's config file with the environment and flags over it.
func (c *checker) config() {
	name, data, err := c.a.configFile()
	if err == nil {
		err = c.a.load()
	}
	switch {
	case err != nil:
		for line := range strings.Lines(err.Error()) {
			c.wrong(errors.New(strings.TrimSpace(line)))
		}
	case data == nil:
		c.fine(name, checkedNothing)
	default:
		c.fine(name, "")
	}
}

// named checks profile files wherever they lie, as if they were the user's.
func (c *checker) named(paths []string) error {
	var files []agents.File
	for _, path := range paths {
		name, ok := strings.CutSuffix(filepath.Base(path), ".toml")
		if !ok {
			return usagef("%s: a profile is a file NAME.toml", path)
		}
		data, err := readConfig(path, true)
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			return usagef("%s: %v", path, pe.Err)
		} else if err != nil {
			return err
		}
		files = append(files, agents.File{Name: name, Path: path, Data: data})
	}
	c.profiles(files)
	return nil
}

// profiles checks files one by one: their launch part, their rules, and the
// examples of both.
func (c *checker) profiles(files []agents.File) {
	for _, f := range files {
		set, errs := agents.NewSet([]agents.File{f})
		if len(errs) > 0 {
			c.wrong(errs[0])
			continue
		}
		p, err := set.Load(f.Name)
		if err != nil {
			c.wrong(err)
			continue
		}
		before := c.bad
		c.launchExamples(p)
		c.rules(p)
		if c.bad == before {
			c.fine(f.Path, profileKind(p))
		}
	}
}

func (c *checker) launchExamples(p *agents.Profile) {
	for _, x := range p.CheckExamples() {
		line, col := x.Place(p.User.Data)
		c.wrong(&agents.Error{File: p.User.Path, Line: line, Col: col, Msg: exampleWords(x)})
	}
}

func (c *checker) rules(p *agents.Profile) {
	rules, err := rulesOf(p)
	if err == nil {
		err = rules.Err()
	}
	if err != nil {
		c.wrong(err)
		return
	}
	for _, x := range rules.CheckExamples() {
		if p.Raw != nil || x.File == p.User.Path { // else of the generic rules below it
			c.wrong(x)
		}
	}
}
