package shim

import (
	"context"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"qshim/detect"
	"qshim/lockfile"
	"qshim/lockfile/fault"
	"qshim/policies"
	"qshim/shim/agentlog"
)

// A headless run that a limit broke is run again (cmd/qshim owns the loop):
//
//	Run: agent ends, not well -> the watcher's last look -> the ledger: a limit's doing?
//	    yes, resume = "once" -> session waits, due ---------\
//	LaunchWait <- the session's lease, the spool, the feed <-/
//	    its turn, on the record -> Run with the profile's resume arguments
//	    a signal, a person, too long -> what the spool holds, the exit code

// Attempt is a headless run that may be done again: what Run has to know of it,
// and what it tells of its end.
type Attempt struct {
	// Able reports whether the shim's side can do it again: it has a session to
	// continue or may run the command anew, and still has all input and output.
	// Asked at the end of a failed run; nil: it may not.
	Able func(*Attempt) bool
	// ID finds the session's id in what the run writes, by its first group; nil: it does not.
	ID *regexp.Regexp
	// Text: standard output is the model's prose, in which an id means nothing.
	Text bool

	Session string // the agent's id of its session, "" unknown
	Replied bool   // the model has answered something in this run

	Failed  bool           // it ended by itself, not well, and a limit broke it
	Again   policies.Again // with Failed: what the policy says
	Due     bool           // the session waits to be run again
	Hold    lockfile.Hold  // with Failed: of the limit, as far as it still holds
	Limiter string
}

// Restart forgets what another run told, but for its session.
func (a *Attempt) Restart() {
	a.Replied, a.Failed, a.Due, a.Again = false, false, false, ""
	a.Hold, a.Limiter = lockfile.Hold{}, ""
}

// hear looks for the session's id in output.
func (a *Attempt) hear(out detect.Stream, b []byte) {
	if a == nil || a.ID == nil || a.Session != "" || a.Text && out == detect.Stdout {
		return
	}
	a.find(b)
}

func (a *Attempt) find(b []byte) {
	if m := a.ID.FindSubmatch(b); m != nil {
		a.Session = string(m[1])
	}
}

// sessionFile is how agents name a session's own log: by its id.
var sessionFile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`) })

// logged looks for it in the agent's own log.
func (a *Attempt) logged(it agentlog.Item) {
	if a == nil || a.Session != "" || it.Source == agentlog.SourceDebug || it.Source == agentlog.SourceStatus {
		return
	}
	if id := sessionFile().FindString(filepath.Base(it.Path)); id != "" {
		a.Session = id
	} else if a.ID != nil {
		a.find(it.Line)
	}
}

// seen notes whether the model has answered.
func (a *Attempt) seen(r detect.Report) {
	if a != nil {
		a.Replied = a.Replied || r.AnswerBegun || r.Success
	}
}

// ended reads off the ledger what broke the run, and makes the session wait for
// the next one. A ledger that does not work means that there is none.
func (a *Attempt) ended(ctx context.Context, r *runner, code int) {
	if a == nil || !detect.Failed(code) {
		return
	}
	_, err := r.gov.write(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		in := r.gov.input()
		a.Again, a.Hold, a.Limiter = r.c.Policy.Broken(l, in.Self, in.Now)
		a.Failed = a.Again != policies.NoLimit
		if a.Again != policies.WillResume || a.Able == nil || !a.Able(a) {
			return l, nil
		}
		next, again, events := r.c.Policy.WantResume(l, in)
		a.Due = again == policies.WillResume
		return next, events
	})
	if err != nil {
		a.Due = false
		r.gov.warnOnce(err)
	}
	fault.At("resume wanted")
}

// GiveUpResume takes back that the session waits to be run again. The ledger may
// not work: then the session's own end says the same.
func GiveUpResume(store lockfile.Store, p policies.Policy, self string, now time.Time, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), lockfile.LockWait)
	defer cancel()
	_, _ = store.Update(ctx, func(l lockfile.Ledger) (lockfile.Ledger, []lockfile.Event) {
		in := policies.Input{Now: now, Self: self}
		l, events := p.DropResume(l, in, why)
		l, more := p.Activity(l, in, policies.Activity{Exit: true})
		return l, append(events, more...)
	})
}
