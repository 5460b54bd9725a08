//go:build linux

package shim

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// drawArg is an agent that draws pictures: __draw SCREEN COLS ROWS LOG. The same
// functions tell the test what must stand on the screen.
const drawArg = "__draw"

// modesOn is what a full-screen agent puts on: mouse, focus, bracketed paste,
// kitty keyboard, modifyOtherKeys, keypad, a title.
const modesOn = "\x1b[?1000h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[>1u\x1b[>5u\x1b[>4;2m\x1b=\x1b]0;agent's title\x07"

// picture is the n-th picture of a screen: on the alternate one every row is
// full of colours, wide characters and emoji, the last one included; on the
// main one lines are added below, as inline agents do.
func picture(screen string, n, cols, rows int) string {
	if screen == "claude" {
		return claude('b', rows)
	}
	var b strings.Builder
	if screen == "main" {
		if n == 1 {
			b.WriteString(modesOn)
		}
		for i := range 4 {
			fmt.Fprintf(&b, "\x1b[3%dmline %d of picture %d 宽字 👩‍💻\x1b[0m\r\n", 1+i, i, n)
		}
		fmt.Fprintf(&b, "\x1b[1;4m> prompt %d", n)
		return b.String()
	}
	if n == 1 {
		b.WriteString("\x1b[?1049h" + modesOn)
	}
	b.WriteString("\x1b[2J")
	for y := range rows {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[48;5;%dm", y+1, 17+(y*7+n)%200)
		for x := 0; x+2 <= cols; x += 2 {
			b.WriteString([]string{"宽", "👍", "ab", "é·"}[(x/2+y+n)%4])
		}
		b.WriteString("\x1b[0m")
	}
	fmt.Fprintf(&b, "\x1b[%d;%dH\x1b[38;2;1;2;%dm", 2+n%2, min(5, cols), n)
	return b.String()
}

// halves are pictures that a stop can cut in two.
var halves = map[byte][2]string{
	's': {"\x1b[?2026h\x1b[1;1HHALF", "\x1b[2;1HWHOLE\x1b[?2026l"},
	'e': {"\x1b[1;1HHALF\x1b[38;2;", "9;9;9mWHOLE"},
	'o': {"\x1b[1;1HHALF\x1b]0;half ", "title\x07WHOLE"},
	'u': {"\x1b[1;1HHALF\xe5\xae", "\xbdWHOLE"},
}

// claude is Claude Code 2.1.332's screen [claude 1, 4]: b a turn in progress, r
// its own retry, f the end of one that failed, d of one that went well.
func claude(key byte, rows int) string {
	state, title, input := map[byte]string{
		'b': "\x1b[38;2;215;119;87m✶ Working… (3s · ↓ 10 tokens)",
		'r': "\x1b[38;2;255;193;7m✻ 429 This request would exceed your account's… · retrying in 2s · attempt 3/10",
		'f': "\x1b[38;2;255;193;7m●\x1b[0m API Error: Request rejected (429) · This request would exceed your account's rate limit.",
		'd': "\x1b[38;2;153;153;153m✻ Worked for 3s · done 3:04 PM",
	}[key], "✳ Claude Code", "❯\u00a0"
	switch key {
	case 'b', 'r':
		title = "◐ Claude Code"
	case 'f':
		input += "\x1b[2mResend your message to try again\x1b[0m"
	}
	line := "\x1b[38;2;136;136;136m" + strings.Repeat("─", 90) + "\x1b[0m"
	var b strings.Builder
	b.WriteString("\x1b[?1049h\x1b]0;" + title + "\x07\x1b[2J")
	for y, row := range map[int]string{
		1: "❯ do the task", 3: "\x1b[38;2;255;255;255m●\x1b[0m I am on it.", 5: state + "\x1b[0m",
		rows - 3: line, rows - 2: input, rows - 1: line, rows: "  ⏵⏵ auto mode on",
	} {
		fmt.Fprintf(&b, "\x1b[%d;1H%s", y, row)
	}
	return b.String() + fmt.Sprintf("\x1b[%d;3H", rows-2)
}

// drawMain obeys its keys: n draws the next picture, a letter of halves draws
// half of one and the rest after a SIGCONT, q ends. It logs every byte it gets.
func drawMain(a []string) {
	time.AfterFunc(2*time.Minute, func() { os.Exit(98) })
	rawTerminal()
	cols, _ := strconv.Atoi(a[1])
	rows, _ := strconv.Atoi(a[2])
	log, err := os.OpenFile(a[3], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		os.Exit(97)
	}
	cont := make(chan os.Signal, 1)
	signal.Notify(cont, unix.SIGCONT)
	seen := make(chan os.Signal, 1)
	signal.Notify(seen, unix.SIGCONT)
	go func() {
		for range seen {
			_, _ = log.WriteString("CONT\n")
		}
	}()
	n := 1
	_, _ = os.Stdout.WriteString(picture(a[0], n, cols, rows))
	for in := bufio.NewReader(os.Stdin); ; {
		c, err := in.ReadByte()
		if err != nil || c == 'q' {
			return
		}
		_, _ = fmt.Fprintf(log, "%q\n", c)
		if a[0] == "claude" {
			_, _ = os.Stdout.WriteString(claude(c, rows))
			continue
		}
		if h, ok := halves[c]; ok {
			_, _ = os.Stdout.WriteString(h[0])
			<-cont
			_, _ = os.Stdout.WriteString(h[1])
			continue
		}
		if c == 'n' {
			n++
			_, _ = os.Stdout.WriteString(picture(a[0], n, cols, rows))
		}
	}
}
