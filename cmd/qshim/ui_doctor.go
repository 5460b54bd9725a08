package main

import (
	"fmt"
	"strings"

	"qshim/lockfile"
)

// The doctor's three voices: what is fine, what is worth knowing, what is wrong.

func (d *doctor) fine(format string, args ...any) { d.line(d.p.green("ok  "), format, args) }

func (d *doctor) note(format string, args ...any) { d.line(d.p.yellow("note"), format, args) }

func (d *doctor) wrong(format string, args ...any) {
	d.bad++
	d.line(d.p.red("bad "), format, args)
}

func (d *doctor) line(mark, format string, args []any) {
	_, _ = fmt.Fprintf(d.a.stdout, mark+"  "+format+"\n", args...)
}

func ledgerWords(l lockfile.Ledger) string {
	held := 0
	for _, lim := range l.Limiters {
		if len(lim.Holds) > 0 {
			held++
		}
	}
	return fmt.Sprintf("%s, %s, %d held", count(len(l.Sessions), "session"), count(len(l.Limiters), "limiter"), held)
}

// problemWords explains a problem; harmless ones need nothing done.
func problemWords(p lockfile.Problem) (words string, harmless bool) {
	detail := ""
	if p.Err != nil {
		detail = ": " + strings.TrimPrefix(printable(p.Err.Error()), "not readable: ")
	}
	path := printable(p.Path)
	switch p.Kind {
	case lockfile.UnsafeDir:
		return path + " could be changed by others, so it is not used" + detail, false
	case lockfile.ReadableDir:
		return "others may look into " + path, false
	case lockfile.UnsafeFile:
		return "others may read or write " + path + detail, false
	case lockfile.Unusable:
		return path + " cannot be used" + detail, false
	case lockfile.ReadOnly:
		return "nothing can be written to " + path + detail + ": agents run, but nobody waits for anybody", false
	case lockfile.NoFlock:
		return "file locks do not work in " + path + ": put the state on a local disk with --state-dir", false
	case lockfile.RemoteDisk:
		return path + " is on " + strings.TrimPrefix(detail, ": ") + ": locks between machines may not work", true
	case lockfile.Locked:
		return "somebody holds the lock of " + path + detail, false
	case lockfile.NewerSchema:
		return path + " was written by a newer qshim: this one runs agents without coordination", false
	case lockfile.BadFile:
		return path + " cannot be read" + detail, false
	case lockfile.AsideFile:
		return path + " was set aside as unreadable; look at it and remove it", true
	case lockfile.DeadSession:
		return path + " is of a session that was killed (the next launch, or qshim doctor --repair, cleans up)", true
	case lockfile.Leftover:
		return path + " was left by a killed writer", false
	case lockfile.CrashReport:
		return "qshim itself crashed: " + path + " says where; please report it", true
	case lockfile.NoWatch:
		return "no inotify instance is left for this user: news from other sessions comes up to a second late (fs.inotify.max_user_instances)", true
	}
	return string(p.Kind) + " " + path + detail, false
}

// sayNotice tells once what the store did about a file that it met.
func sayNotice(w interface{ Write([]byte) (int, error) }, n lockfile.Notice) {
	why := ""
	if n.Err != nil {
		why = " (" + strings.TrimPrefix(printable(n.Err.Error()), "not readable: ") + ")"
	}
	switch n.Kind {
	case lockfile.SetAside:
		say(w, "%s was not readable%s; it is kept as %s", printable(n.Path), why, printable(n.As))
	case lockfile.Mended:
		say(w, "%s was mended%s", printable(n.Path), why)
	default:
		say(w, "%s is ignored%s", printable(n.Path), why)
	}
}
