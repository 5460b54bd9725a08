//go:build linux

package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"qshim/lockfile"
)

// hostiles are outputs made to exhaust or to fool, as shell code. $n repeats.
var hostiles = []struct{ name, sh string }{
	{"endless OSC", `printf '\033]0;'; head -c 16000000 /dev/zero | tr '\0' 'x'`},
	{"endless DCS", `printf '\033P'; head -c 16000000 /dev/zero | tr '\0' 'q'`},
	{"10^9 parameters", `printf '\033['; head -c 16000000 /dev/zero | tr '\0' ';'; printf 'm'`},
	{"huge counts", `i=0; while [ $i -lt 2000 ]; do printf '\033[2000000000b\033[999999999L\033[999999999P\033[2147483648;99999999999999999999H\033[4294967295S'; i=$((i+1)); done`},
	{"one line of 16 MB", `head -c 16000000 /dev/zero | tr '\0' 'a'`},
	{"10^6 styles", `awk 'BEGIN{for(i=0;i<1000000;i++)printf "\033[38;2;%d;%d;%dmx",i%256,(i/256)%256,i/65536}'`},
	{"wide characters", `awk 'BEGIN{for(i=0;i<400000;i++)printf "宽👩‍💻é"}'`},
	{"invalid UTF-8", `head -c 8000000 /dev/urandom`},
	{"10^5 titles", `awk 'BEGIN{for(i=0;i<100000;i++)printf "\033]0;title %d\007\033]7501;state=working\007",i}'`},
	{"10^5 banners", `awk 'BEGIN{for(i=0;i<100000;i++)printf "\r\n● API Error: 429 rate limit %d · try again in 99999999999999 seconds",i}'`},
}

// TestExhausting measures what a shim takes for each.
func TestExhausting(t *testing.T) {
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) {
			f := newFleet(t, plainQshim, slowPolicy)
			write(t, filepath.Join(f.home, "bin", "claude"), "#!/bin/sh\necho $$ >\"$SOAK_PID\"\n"+h.sh+"\nprintf '\\033\\\\\\033[0mEND-OF''-IT\\n'\nexec 3<>\"$SOAK_CTL\"\nread k <&3\n", 0o755)
			began := time.Now()
			s := f.start(stationOpt{}).ready()
			eventually(t, "the end", func() bool { return strings.Contains(s.output(), "END-OF-IT") })
			took := time.Since(began)
			peak := peakOf(s.shim.pid)
			cpu := usageOf(s.shim.pid).cpu
			s.tell('q')
			if c := s.shim.code(); c != 0 {
				t.Errorf("code %d", c)
			}
			s.close()
			t.Logf("| %s | %v | %v CPU | %.1f MiB at most |", h.name, took.Round(10*time.Millisecond), cpu, float64(peak)/(1<<20))
			if peak > 64<<20 {
				t.Errorf("%d MiB", peak>>20)
			}
			if r := f.crashReports(); r != "" {
				t.Errorf("it crashed: %.400s", r)
			}
		})
	}
}

// peakOf is the most memory that a process has had resident, in bytes.
func peakOf(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, v, _ := strings.Cut(string(b), "VmHWM:")
	f := strings.Fields(v)
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(f[0], 10, 64)
	return n << 10
}

// TestFooling: rows made to hold for ever or to break out of where they are
// shown. The hold is bounded, and no control byte gets anywhere.
func TestFooling(t *testing.T) {
	for _, c := range []struct{ name, row string }{
		{"year 9999", "You've hit your session limit · resets Dec 31, 9999, 3pm (UTC)"},
		{"negative", "API Error: Request rejected (429) · rate limit · try again in -5 seconds"},
		{"huge", "API Error: Request rejected (429) · rate limit · try again in 99999999999999999999 seconds"},
		{"zone as path", "You've hit your session limit · resets 3pm (../../../../etc/passwd)"},
		{"shell and controls", "API Error: Request rejected (429) · rate limit. $(touch PWNED) `touch PWNED`; touch PWNED \x9b31m\u009d0;pwned\u0007"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plainQshim, slowPolicy)
			heard := filepath.Join(f.home, "heard")
			write(t, filepath.Join(f.home, "bin", "bell"), "#!/bin/sh\nprintf '%s\\n' \"$1\" >>"+heard+"\n", 0o755)
			write(t, filepath.Join(f.home, "config.toml"), strings.Replace(slowPolicy, "title = false\nosc9 = false", "title = true\nosc9 = true\nnotify_command = [\"bell\"]", 1), 0o600)
			script := strings.Replace(claudeScript(), "API Error: Request rejected (429) · This request would exceed your account'\\''s rate limit.", strings.ReplaceAll(c.row, "'", `'\''`), 1)
			write(t, filepath.Join(f.home, "bin", "claude"), script, 0o755)
			a, b := f.start(stationOpt{}).ready(), f.start(stationOpt{}).ready()
			f.open()
			for _, s := range []*station{a, b} {
				eventually(t, "at work", func() bool { return s.session(f.ledger()).State == lockfile.Running })
			}
			began := time.Now()
			a.tell('f')
			eventually(t, "the end of the turn", func() bool { return a.session(f.ledger()).State != lockfile.Running })
			pause(300 * time.Millisecond) // what follows from it
			longest := time.Duration(0)
			for _, m := range f.ledger().Limiters {
				for _, h := range m.Holds {
					longest = max(longest, h.Until.Sub(began))
				}
			}
			status, log := f.command("status"), f.command("log")
			t.Logf("| %s | held for %v | %s |", c.name, longest.Round(time.Second), short(strings.Split(strings.TrimSpace(status.out), "\n")))
			if longest > 9*24*time.Hour {
				t.Errorf("held for %v", longest)
			}
			bell, _ := os.ReadFile(heard)
			for what, text := range map[string]string{"status": status.out, "log": log.out, "notify_command": string(bell)} {
				if i := strings.IndexFunc(text, func(r rune) bool { return r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 }); i >= 0 {
					t.Errorf("%s has a control byte: %q", what, text[max(0, i-20):min(len(text), i+20)])
				}
			}
			if hits, _ := filepath.Glob(filepath.Join(f.home, "*", "PWNED")); len(hits) > 0 {
				t.Errorf("a shell has read it: %v", hits)
			}
			for _, s := range []*station{a, b} {
				s.shim.kill(unix.SIGTERM)
				<-s.shim.done
				s.close()
			}
		})
	}
}

// TestAgentsLogElsewhere: where an agent's own log should be there are links, a
// FIFO, a device and a JSON bomb. Nothing hangs and nothing grows.
func TestAgentsLogElsewhere(t *testing.T) {
	bomb := strings.Repeat(`{"a":[`, 200000)
	for _, c := range []struct {
		name  string
		plant func(t *testing.T, path string)
	}{
		{"FIFO", func(t *testing.T, p string) { must(t, unix.Mkfifo(p, 0o600)) }},
		{"device", func(t *testing.T, p string) { must(t, os.Symlink("/dev/zero", p)) }},
		{"link to a secret", func(t *testing.T, p string) { must(t, os.Symlink("/etc/shadow", p)) }},
		{"JSON bomb", func(t *testing.T, p string) { write(t, p, bomb+"\n"+bomb, 0o600) }},
		{"1 GB without a line", func(t *testing.T, p string) { write(t, p, "", 0o600); must(t, os.Truncate(p, 1<<30)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plainQshim, slowPolicy)
			sessions := filepath.Join(f.home, ".claude", "sessions")
			must(t, os.MkdirAll(sessions, 0o700))
			project := filepath.Join(f.home, ".claude", "projects", strings.ReplaceAll(filepath.Join(f.home, "station1"), "/", "-"))
			must(t, os.MkdirAll(project, 0o700))
			c.plant(t, filepath.Join(project, "11111111-2222-3333-4444-555555555555.jsonl"))
			s := f.start(stationOpt{}).ready()
			c.plant(t, filepath.Join(sessions, strconv.Itoa(s.pid())+".json"))
			f.open()
			eventually(t, "at work", func() bool { return s.session(f.ledger()).State == lockfile.Running })
			for i := range 4 {
				s.tell("db"[i%2])
				pause(100 * time.Millisecond)
			}
			u := usageOf(s.shim.pid)
			peak := peakOf(s.shim.pid)
			s.tell('q')
			if code := s.shim.code(); code != 0 {
				t.Errorf("code %d: %s", code, tail(s.output()))
			}
			s.close()
			t.Logf("| %s | %v CPU | %.1f MiB at most |", c.name, u.cpu, float64(peak)/(1<<20))
			if peak > 64<<20 || u.cpu > 5*time.Second {
				t.Errorf("%v CPU, %d MiB", u.cpu, peak>>20)
			}
		})
	}
}
