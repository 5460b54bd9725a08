package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"qshim/cmd/internal/cmdline"
	"qshim/detect"
)

// maxExplain bounds the input of explain; the longest recording we have is
// under 1 MB, a day of output is some 100 MB.
const maxExplain = 256 << 20

// explainArgs are the flags of explain as typed.
type explainArgs struct {
	agent, mode, now, tz string
	cols, rows           int
	raw, json            bool
}

// explainCmd reads rows, bytes or a recording and says what they mean.
func explainCmd(app *app) *cmdline.Command { return app.explainCommand(app.stdin, app.stdout) }

func (app *app) explainCommand(in io.Reader, out io.Writer) *cmdline.Command {
	a := explainArgs{cols: 80, rows: 24}
	return &cmdline.Command{
		Use:     "explain [flags] FILE|-",
		Short:   explainShort,
		Long:    explainLong,
		MaxArgs: cmdline.AnyArgs,
		Flags: []*cmdline.Flag{
			cmdline.String(&a.agent, "agent", explainFlagAgent),
			cmdline.String(&a.mode, "mode", explainFlagMode),
			cmdline.String(&a.now, "now", explainFlagNow),
			cmdline.String(&a.tz, "tz", explainFlagTZ),
			cmdline.Int(&a.cols, "cols", explainFlagCols),
			cmdline.Int(&a.rows, "rows", explainFlagRows),
			cmdline.Bool(&a.raw, "raw", explainFlagRaw),
			cmdline.Bool(&a.json, "json", explainFlagJSON),
		},
		Run: func(_ context.Context, args []string) error {
			if len(args) != 1 {
				return explainUsagef(explainWantsFile)
			}
			return app.runExplain(a, args[0], in, out)
		},
	}
}

// explainUsagef is a mistake of the caller's: exit 2.
func explainUsagef(format string, args ...any) error {
	return usagef("explain: "+format, args...)
}

func (app *app) runExplain(a explainArgs, file string, in io.Reader, out io.Writer) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	p, err := app.explainProfile(a.agent)
	if err != nil {
		return err
	}
	data, err := readExplain(file, in)
	if err != nil {
		return explainUsagef("%v", err)
	}
	found, err := a.explain(p, file, data, o)
	if err != nil {
		return err
	}
	if a.json {
		return writeExplainJSON(out, p.Name, found)
	}
	return writeExplainText(out, p.Name, found, o)
}

// options turns the flags into detect's options.
func (a explainArgs) options() (o detect.ExplainOptions, err error) {
	o = detect.ExplainOptions{Cols: a.cols, Rows: a.rows, Now: time.Now(), Zone: time.Local}
	switch a.mode {
	case "":
		o.Mode = detect.Both
	case "tui":
		o.Mode = detect.TUI
	case "headless":
		o.Mode = detect.Headless
	default:
		return o, explainUsagef(explainBadMode, a.mode)
	}
	if a.cols < 1 || a.cols > 1000 || a.rows < 1 || a.rows > 500 {
		return o, explainUsagef(explainBadSize, a.cols, a.rows)
	}
	if a.now != "" {
		if o.Now, err = time.Parse(time.RFC3339, a.now); err != nil {
			return o, explainUsagef(explainBadNow, a.now)
		}
	}
	if a.tz != "" {
		if o.Zone, err = time.LoadLocation(a.tz); err != nil {
			return o, explainUsagef(explainBadZone, a.tz)
		}
	}
	return o, nil
}

// explainProfile is the agent's profile, by its name or by a binary's, or generic
// for one that has none.
func (a *app) explainProfile(name string) (*detect.Profile, error) {
	if err := a.profileErrors(); err != nil {
		return nil, err
	}
	known := a.profiles()
	name = strings.ToLower(strings.TrimSuffix(filepath.Base(name), ".toml"))
	p, err := known.Load(name)
	if err != nil {
		p, err = known.Load(known.Index().Invocation([]string{name}).Profile)
	}
	if err != nil {
		return nil, err
	}
	rules, err := rulesOf(p)
	if err == nil {
		err = rules.Err()
	}
	if err != nil {
		return nil, explainUsagef("%v", err)
	}
	return rules, nil
}

func readExplain(file string, in io.Reader) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // read only
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxExplain+1))
	if err == nil && len(data) > maxExplain {
		err = fmt.Errorf("%s: larger than %d MiB", file, maxExplain>>20)
	}
	return data, err
}

// explain chooses the reader of the input's kind.
func (a explainArgs) explain(p *detect.Profile, file string, data []byte, o detect.ExplainOptions) ([]detect.Explained, error) {
	switch {
	case strings.HasSuffix(file, ".cast"), file == "-" && !a.raw && castHead(data):
		c, err := detect.ReadCast(bytes.NewReader(data))
		if err != nil {
			return nil, explainUsagef(explainBadCast, file, err)
		}
		return p.ExplainCast(c, o), nil
	case a.raw:
		return p.ExplainRaw(data, o), nil
	}
	text := strings.TrimSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	return p.ExplainRows(strings.Split(text, "\n"), o), nil
}

// castHead reports whether the first line is the header of a recording.
func castHead(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var h struct {
		Version int             `json:"version"`
		Width   int             `json:"width"`
		Term    json.RawMessage `json:"term"`
	}
	return json.Unmarshal(line, &h) == nil && h.Version >= 2 && (h.Width > 0 || h.Term != nil)
}

// explainedJSON is one finding as explain --json prints it. What is not said
// is null.
type explainedJSON struct {
	Class       string   `json:"class"`
	Cause       *string  `json:"cause"`
	Measure     *string  `json:"measure"`
	Scope       *string  `json:"scope"`
	Model       *string  `json:"model"`
	Reset       *string  `json:"reset"`
	ResetSource *string  `json:"reset_source"`
	RetryAfter  *float64 `json:"retry_after_s"`
	Confidence  string   `json:"confidence"`
	Rule        string   `json:"rule"`
	Rows        []string `json:"rows"`
	At          float64  `json:"at_s"`
}

func writeExplainJSON(out io.Writer, agent string, found []detect.Explained) error {
	doc := struct {
		Agent    string          `json:"agent"`
		Findings []explainedJSON `json:"findings"`
	}{agent, make([]explainedJSON, 0, len(found))}
	for _, f := range found {
		j := explainedJSON{
			Class: string(f.Class), Cause: explainSaid(string(f.Cause)), Measure: explainSaid(string(f.Measure)), Scope: explainSaid(string(f.Scope)),
			Model: explainSaid(f.Model), ResetSource: explainSaid(string(f.ResetSource)), Confidence: string(f.Confidence),
			Rule: f.Rule, Rows: f.Rows, At: f.Offset.Round(time.Millisecond).Seconds(),
		}
		if !f.Reset.IsZero() {
			j.Reset = explainSaid(f.Reset.UTC().Format(time.RFC3339Nano))
		}
		if f.RetryAfter > 0 {
			s := f.RetryAfter.Seconds()
			j.RetryAfter = &s
		}
		doc.Findings = append(doc.Findings, j)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(out, safeJSON(b.String()))
	return err
}

// explainSaid is nil for what the text does not say.
func explainSaid(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
