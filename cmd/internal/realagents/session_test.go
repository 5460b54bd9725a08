package realagents

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell is a setup whose agent is sh.
func shell(t *testing.T) Setup {
	t.Helper()
	return Setup{Agent: "sh", Project: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "PS1=", "TERM=xterm"}}
}

func startShell(t *testing.T, script string) *Session {
	t.Helper()
	s, err := Start(shell(t), Launch{Args: []string{"-c", script}, Cols: 60, Rows: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestSessionReadsTheScreenAndTypes(t *testing.T) {
	s := startShell(t, `stty -echo; printf '\033[5;3HHello\033[5;20Hthere'; read line; printf '\033[2J\033[Hgot %s\n' "$line"; exit 7`)
	row, err := s.Row(regexp.MustCompile(`^  Hello`), 10*time.Second)
	if err != nil || row != "  Hello            there" {
		t.Fatalf("%q %v", row, err)
	}
	if err := s.Keys("pane1\r"); err != nil {
		t.Fatal(err)
	}
	if err := s.Text(regexp.MustCompile(`^gotpane1$`), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if code, err := s.Exited(10 * time.Second); code != 7 || err != nil {
		t.Errorf("exit status %d, %v", code, err)
	}
	_, err = s.Row(regexp.MustCompile(`never`), 10*time.Second)
	if err == nil || !strings.Contains(err.Error(), "ended with 7") || !strings.Contains(err.Error(), "got pane1") {
		t.Errorf("a failure must say why and show the screen: %v", err)
	}
}

func TestSessionAnswersWhereTheCursorIs(t *testing.T) {
	s := startShell(t, `stty -echo -icanon min 6 time 20; printf '\033[4;9H\033[6n'; a=$(dd bs=1 count=6 2>/dev/null | od -An -c); printf '\n%s\n' "$a"`)
	if _, err := s.Row(regexp.MustCompile(`033\s+\[\s+4\s+;\s+9\s+R`), 10*time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestCloseEndsStoppedProcessesToo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	s := startShell(t, `trap '' HUP; sleep 1000 & echo started; wait`)
	if _, err := s.Row(regexp.MustCompile(`started`), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	all := s.Processes()
	if len(all) != 2 {
		t.Fatalf("processes %+v", all)
	}
	if err := syscall.Kill(-s.PID(), syscall.SIGSTOP); err != nil { // its own group: a session leader on its PTY
		t.Fatal(err)
	}
	s.Close()
	for _, p := range all {
		if now, ok := Stat(p.PID); ok && now.Start == p.Start && now.State != "Z" {
			t.Errorf("%+v is still there", now)
		}
	}
}

func TestStatReadsThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	p, ok := Stat(os.Getpid())
	if !ok || p.Parent != os.Getppid() || p.Start == 0 || p.State == "" || p.Name == "" {
		t.Errorf("%+v", p)
	}
	if _, ok := Stat(-1); ok {
		t.Error("a process that cannot be")
	}
}

func TestPrepareKeepsToItsDirectory(t *testing.T) {
	for _, a := range Agents() {
		dir := t.TempDir()
		key := DummyKey(a, "one")
		s, err := Prepare(a, dir, "/agents", "http://127.0.0.1:1", "UTC", Account{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		env := strings.Join(s.Env, "\n")
		for _, want := range []string{"HOME=" + filepath.Join(dir, "home"), "PATH=/agents/bin:", "TZ=UTC", key} {
			if !strings.Contains(env, want) {
				t.Errorf("%s: no %q in\n%s", a, want, env)
			}
		}
		for _, unwanted := range []string{"TMUX", "CI=", "NO_COLOR", "QSHIM"} {
			if strings.Contains(env, "\n"+unwanted) {
				t.Errorf("%s: %s came along", a, unwanted)
			}
		}
	}
	if _, err := Prepare("other", t.TempDir(), "", "", "", Account{}); err == nil {
		t.Error("an unknown agent was prepared")
	}
}

// The mark alone is not believed: an agent with a network would use it.
func TestIsolatedLooksAtTheInterfaces(t *testing.T) {
	if os.Getenv(isolatedMark) != "" {
		t.Skip("this process is isolated")
	}
	if Isolated() {
		t.Error("without the mark")
	}
	t.Setenv(isolatedMark, "1")
	all, err := net.Interfaces()
	if err != nil {
		t.Skip(err)
	}
	up := slices.ContainsFunc(all, func(i net.Interface) bool { return i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 })
	if Isolated() == up {
		t.Errorf("isolated %v with another interface up %v", !up, up)
	}
}
