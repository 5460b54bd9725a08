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

	"qshim/detect/finding"
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
	t.Parallel()
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plainQshim, slowPolicy)
			write(t, filepath.Join(f.home, "bin", "claude"), "#!/bin/sh\necho $$ >\"$SOAK_PID\"\n"+h.sh+"\nprintf '\\033\\\\\\033[0mEND-OF''-IT\\n'\nexec 3<>\"$SOAK_CTL\"\nread k <&3\n", 0o755)
			began := time.Now()
			s := f.start(stationOpt{}).ready()
			eventually(t, "the end", func() bool { return s.shows("END-OF-IT") })
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

// apiError and planLimit are two rows of Claude Code's own with a text in it.
func apiError(text string) string {
	return "\x1b[38;2;255;193;7m●\x1b[0m API Error: Request rejected (429) · " + text
}

func planLimit(text string) string {
	return "\x1b[3;1H\x1b[2K\x1b[2;1H  ⎿  You've hit your session limit · resets " + text
}

// foolings are rows made to hold for ever or to break out of where they are
// shown: how long such a class may hold, and what status says of its end.
var foolings = []struct {
	name, row string
	most      time.Duration
	shown     string
}{
	{"year 9999", planLimit("Dec 31, 9999, 3pm (UTC)"), 8 * 24 * time.Hour, "until about"},
	{"in 300 days", planLimit(time.Now().Add(300*24*time.Hour).Format("Jan 2, 2006, ") + "3pm (UTC)"), 8 * 24 * time.Hour, "until about"},
	{"zone as path", planLimit("3pm (../../../../etc/passwd)"), 8 * 24 * time.Hour, "until"},
	{"zone through a path", planLimit("3pm (America/../../etc/passwd)"), 8 * 24 * time.Hour, "until"},
	{"zone of 300 bytes", planLimit("3pm (" + strings.Repeat("A", 60) + "/" + strings.Repeat("../", 80) + ")"), 8 * 24 * time.Hour, "until"},
	{"negative", apiError("rate limit · try again in -5 seconds"), time.Hour, "until about"},
	{"11 days", apiError("rate limit · try again in 999999 seconds"), time.Hour, "not believed"},
	{"10^20 seconds", apiError("rate limit · try again in 99999999999999999999 seconds"), time.Hour, "until about"},
	{"shell and controls", apiError("rate limit. $(touch PWNED) `touch PWNED`; touch PWNED \x9b31m\u009d0;pwned\u0007"), time.Hour, "until about"},
}

// TestFooling: the hold is bounded by its class and shown so, and no control
// byte gets into status, log, title, notice or another program's arguments.
func TestFooling(t *testing.T) {
	t.Parallel()
	for _, c := range foolings {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plainQshim, slowPolicy)
			heard := filepath.Join(f.home, "heard")
			write(t, filepath.Join(f.home, "bin", "bell"), "#!/bin/sh\nprintf '%s\\n' \"$1\" >>"+heard+"\n", 0o755)
			write(t, filepath.Join(f.home, "config.toml"), strings.Replace(slowPolicy, "title = false\nosc9 = false", "title = true\nosc9 = true\nnotify_command = [\"bell\"]", 1), 0o600)
			own := shellQuote(apiError("This request would exceed your account's rate limit."))
			script := claudeScript()
			if !strings.Contains(script, own[1:len(own)-1]) {
				t.Fatal("the script has another row")
			}
			fooled := shellQuote(c.row)
			script = strings.Replace(script, own[1:len(own)-1], fooled[1:len(fooled)-1], 1)
			write(t, filepath.Join(f.home, "bin", "claude"), script, 0o755)
			a, b := f.start(stationOpt{}).ready(), f.start(stationOpt{}).ready()
			headless := f.start(stationOpt{headless: true}).ready() // stopped for a window too
			f.open()
			for _, s := range []*station{a, b, headless} {
				eventually(t, "at work", func() bool { return s.session(f.ledger()).State == lockfile.Running })
			}
			began := time.Now()
			a.tell('f')
			eventually(t, "the hold", func() bool { return len(f.ledger().Limiters[soakLimiter].Holds) > 0 })
			h := f.ledger().Limiters[soakLimiter].Holds[0]
			longest := h.Until.Sub(began)
			eventually(t, "a sibling is stopped", func() bool { return stopped(headless.pid()) })
			eventually(t, "the program is told", func() bool { return read(heard) != "" || h.Class == finding.Window }) // one on a screen is left alone then
			if h.Class == finding.Rate {
				eventually(t, "a notice", func() bool { return strings.Contains(oscs(b.output()), "\n9;") })
			}
			status, log := f.command("status"), f.command("log")
			t.Logf("| %s | %s, held for %v | %s |", c.name, h.Class, longest.Round(time.Second), short(strings.Split(strings.TrimSpace(status.out), "\n")[1:]))
			if longest > c.most+c.most/3 || h.Until.IsZero() {
				t.Errorf("held for %v", longest)
			}
			if !strings.Contains(status.out, c.shown) {
				t.Errorf("status does not say %q: %s", c.shown, status.out)
			}
			for what, text := range map[string]string{"status": status.out, "log": log.out, "notify_command": read(heard), "titles and notices": oscs(b.output() + headless.output())} {
				if i := strings.IndexFunc(text, func(r rune) bool { return r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 }); i >= 0 {
					t.Errorf("%s has a control byte: %q", what, text[max(0, i-20):min(len(text), i+20)])
				}
				if strings.Contains(text, "pwned") && what == "titles and notices" {
					t.Errorf("%s: %q", what, text)
				}
			}
			if hits, _ := filepath.Glob(filepath.Join(f.home, "*", "PWNED")); len(hits) > 0 {
				t.Errorf("a shell has read it: %v", hits)
			}
			for _, s := range []*station{a, b, headless} {
				s.shim.kill(unix.SIGTERM)
				<-s.shim.done
				if tool := pidIn(s.pidFile() + ".tool"); tool > 0 {
					_ = unix.Kill(tool, unix.SIGKILL) // outlives its agent by itself
				}
				s.close()
			}
		})
	}
}

func read(file string) string {
	b, _ := os.ReadFile(file) // not there: nothing
	return string(b)
}

// oscs are what the operating system commands in a terminal's bytes say, a line
// each.
func oscs(out string) string {
	var b strings.Builder
	for _, s := range strings.Split(out, "\x1b]")[1:] {
		end := strings.IndexAny(s, "\a\x1b")
		if end < 0 {
			end = len(s)
		}
		b.WriteString(s[:end] + "\n")
	}
	return b.String()
}

// TestAgentsLogElsewhere: where an agent's own log should be there are links, a
// FIFO, a device and a JSON bomb. Nothing hangs and nothing grows.
func TestAgentsLogElsewhere(t *testing.T) {
	t.Parallel()
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

// pipeBombs are what an agent without a terminal writes to exhaust whoever reads
// it, as shell code.
var pipeBombs = []struct{ name, sh string }{
	{"one line of 30 MB", `head -c 30000000 /dev/zero | tr '\0' a`},
	{"JSON 3 million deep", `awk 'BEGIN{for(i=0;i<3000000;i++)printf "{\"a\":["}'`},
	{"a record of 10^6 keys", `awk 'BEGIN{printf "{\"type\":\"result\"";for(i=0;i<1000000;i++)printf ",\"k%d\":1",i;print "}"}'`},
	{"10^5 refused tries", `awk 'BEGIN{for(i=0;i<100000;i++)printf "{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":%d,\"error_status\":429,\"retry_delay_ms\":-5}\n",i}'`},
	{"30 MB of errors", `head -c 30000000 /dev/zero | tr '\0' a >&2`},
}

// TestExhaustingPipes measures what a shim takes for each, as a document and as a
// stream of records.
func TestExhaustingPipes(t *testing.T) {
	t.Parallel()
	for _, b := range pipeBombs {
		for _, format := range []string{"text", "json", "stream-json"} {
			t.Run(b.name+" as "+format, func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, plainQshim, slowPolicy)
				write(t, filepath.Join(f.home, "bin", "claude"), "#!/bin/sh\n"+scriptHead+b.sh+"\necho $$ >\"$SOAK_PID\"\nexec 3<>\"$SOAK_CTL\"\nread k <&3\n", 0o755)
				s := f.start(stationOpt{headless: true, pipe: true, words: []string{"claude", "-p", "hi", "--output-format", format}}).ready()
				peak, cpu := peakOf(s.shim.pid), usageOf(s.shim.pid).cpu
				s.tell('q')
				if c := s.over(); c != 0 {
					t.Errorf("code %d", c)
				}
				s.close()
				t.Logf("| %s as %s | %v CPU | %.1f MiB at most |", b.name, format, cpu, float64(peak)/(1<<20))
				if peak == 0 || peak > 64<<20 {
					t.Errorf("%d MiB", peak>>20)
				}
				if r := f.crashReports(); r != "" {
					t.Errorf("it crashed: %.400s", r)
				}
			})
		}
	}
}
