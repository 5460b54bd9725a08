package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inlineAgent draws below its prompt by relative moves alone, as the agents that
// stay on the main screen do, and goes on when a line is typed.
const inlineAgent = `printf '\033]0;◐ work\007'
printf '● working 宽 🙂 \033[31mred\033[0m\n  second row\n> \n'
stty -echo
read line
stty echo
printf '\033[2A\033[2K● worked 宽字 on <%s>\n\033[K\033[1m> \033[0m\n' "$line"
read line
`

// TestPauseAt: an agent that stays on the main screen begins wherever the shell
// stood, and with old text beneath it. A pause leaves all of that as it was.
func TestPauseAt(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	for _, row := range []int{1, 20, 40} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			p := newPair(t)
			put(t, filepath.Join(p.dir, "bin"), "claude", "#!/bin/sh\n"+inlineAgent, 0o755)
			p.equal(step{want: `(?m)^PROMPT#`})
			for name, prefix := range map[string]string{"direct": "", "qshim": "qshim "} {
				fill := fmt.Sprintf(`clear; for i in $(seq 39); do echo "old $i 宽 🙂 text"; done; printf '\033[%d;1H'`, row)
				p.must("send-keys", "-t", "x:"+name, "x() { "+fill+"; "+prefix+filepath.Join(p.dir, "bin", "claude")+" work; }; clear", "Enter")
			}
			p.equal(step{want: `^PROMPT#`})
			p.do(step{keys: []string{"x", "Enter"}})
			p.equal(step{want: `second row`})
			seedHold(t, filepath.Join(p.dir, ".local/state/qshim"), claudeAccount, lasting(minutes, 10*time.Minute))
			p.shows("qshim: suspended")
			settled := time.Now().Add(1100 * time.Millisecond) // then the keys act
			p.until("the keys to act", func(string) bool { return time.Now().After(settled) })
			p.must("send-keys", "-t", "x:qshim", "r")
			p.until("the row to go", func(screen string) bool { return !strings.Contains(screen, "suspended") })
			p.equal(step{want: `second row`})
			p.do(step{keys: []string{"hello", "Enter"}})
			p.equal(step{want: `worked 宽字 on <hello>`})
			p.do(step{keys: []string{"Enter"}})
			p.equal(step{want: `PROMPT#`})
		})
	}
}

func (p *pair) shows(text string) {
	p.t.Helper()
	p.until(text, func(screen string) bool { return strings.Contains(screen, text) })
}

// until waits for the screen under qshim.
func (p *pair) until(what string, ok func(screen string) bool) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok(p.must("capture-pane", "-p", "-t", "x:qshim")) {
		if time.Now().After(deadline) {
			p.t.Fatalf("no sign of %s:\n%s", what, p.must("capture-pane", "-p", "-t", "x:qshim"))
		}
		<-time.After(30 * time.Millisecond) // tmux has no event for "the screen has changed"
	}
}
