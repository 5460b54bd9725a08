package painter

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// Options are the task and how it is done.
type Options struct {
	Provider string        // socket of the provider; default DEMO_PROVIDER
	Name     string        // stands in the prompt, to tell painters apart
	Calls    int           // calls to the provider that make the task
	Input    int           // input tokens of a call; 0: as long as its body
	Output   int           // output tokens of a call
	Hold     time.Duration // how long the provider streams an answer
	Gap      time.Duration // between two parts of it
	Think    time.Duration // the agent's own work between two calls
	Attempts int           // retries after the first try of a call
	Linger   time.Duration // how long the last picture stays before a painter without Stay leaves
	Stay     bool          // stay at the input line after the task; Enter tries the rest again
	Headless bool          // -p
}

// parse reads the command line. Positional words are the task's text.
func parse(args []string, env func(string) string, errs io.Writer) (Options, error) {
	o := Options{}
	f := flag.NewFlagSet("painter", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.Provider, "provider", env("DEMO_PROVIDER"), "socket of the provider")
	f.StringVar(&o.Name, "name", "painter", "name in the prompt")
	f.IntVar(&o.Calls, "calls", 3, "calls that make the task")
	f.IntVar(&o.Input, "in", 0, "input tokens a call")
	f.IntVar(&o.Output, "out", 0, "output tokens a call")
	f.DurationVar(&o.Hold, "hold", 0, "how long an answer streams")
	f.DurationVar(&o.Gap, "gap", 0, "pause between two parts of an answer")
	f.DurationVar(&o.Think, "think", 0, "own work between two calls")
	f.IntVar(&o.Attempts, "attempts", 10, "retries of a call")
	f.DurationVar(&o.Linger, "linger", time.Second, "how long the last picture stays")
	f.BoolVar(&o.Stay, "stay", false, "stay at the input line after the task")
	f.BoolVar(&o.Headless, "p", false, "headless: print the answer and exit")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if words := strings.Join(f.Args(), " "); words != "" {
		o.Name = words
	}
	switch {
	case o.Provider == "":
		return o, fmt.Errorf("no provider: set DEMO_PROVIDER or -provider")
	case o.Calls < 1 || o.Calls > 10000:
		return o, fmt.Errorf("-calls must lie between 1 and 10000")
	case o.Attempts < 0 || o.Attempts > 100:
		return o, fmt.Errorf("-attempts must lie between 0 and 100")
	case o.Hold < 0 || o.Gap < 0 || o.Think < 0 || o.Linger < 0 || o.Input < 0 || o.Output < 0:
		return o, fmt.Errorf("durations and tokens must not be negative")
	}
	return o, nil
}

// prompt is the user text of call i (from 0); its words set the fake provider's
// pace and price.
func (o Options) prompt(i int) string {
	s := fmt.Sprintf("%s: step %d of %d", o.Name, i+1, o.Calls)
	if o.Hold > 0 {
		s += " hold=" + o.Hold.String()
	}
	if o.Gap > 0 {
		s += " gap=" + o.Gap.String()
	}
	if o.Input > 0 {
		s += fmt.Sprint(" in=", o.Input)
	}
	if o.Output > 0 {
		s += fmt.Sprint(" out=", o.Output)
	}
	return s
}
