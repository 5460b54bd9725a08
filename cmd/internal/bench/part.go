package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// The words that make this program its own baseline and its own workloads.
const (
	bareWord   = "__bare"   // the least that a wrapper in Go can be
	echoWord   = "__echo"   // answers each key
	linesWord  = "__lines"  // N MiB of coloured lines
	framesWord = "__frames" // N MiB of repaints of a screen
	hogWord    = "__hog"    // idles, paints a spinner or floods, as its keys say
)

// What the workloads say; none of it occurs in their other output or in a
// terminal's usual sequences.
const (
	readyMark = '@'
	doneMark  = '{'
	echoMarks = "~|" // of the keys a and b
)

// spinnerPace is how often an agent at work paints: Claude Code 2.1 does so.
const spinnerPace = 80 * time.Millisecond

// part plays the part that a command line names; false: it names none.
func part(args []string) bool {
	switch args[0] {
	case bareWord:
		os.Exit(bare(args[1:]))
	case echoWord:
		echo()
	case linesWord, framesWord:
		flood(args)
	case hogWord:
		hog()
	default:
		return false
	}
	return true
}

// bare passes bytes and does nothing else.
func bare(words []string) int {
	if len(words) == 0 {
		return 2
	}
	c := exec.Command(words[0], words[1:]...)
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: rows, Cols: cols})
	if err != nil {
		return 127
	}
	if old, err := term.MakeRaw(0); err == nil {
		defer func() { _ = term.Restore(0, old) }()
	}
	go func() { _, _ = io.Copy(f, os.Stdin) }() // ends with the process
	_, _ = io.Copy(os.Stdout, f)                // EIO: the command has ended
	_ = c.Wait()                                // its code is asked for below
	return c.ProcessState.ExitCode()
}

// keysOf calls do with each key until q or the terminal's end.
func keysOf(do func(key byte)) {
	if _, err := term.MakeRaw(0); err != nil {
		return
	}
	_, _ = os.Stdout.Write([]byte{readyMark})
	b := make([]byte, 1)
	for {
		if n, err := os.Stdin.Read(b); n == 0 || err != nil || b[0] == 'q' {
			return
		}
		do(b[0])
	}
}

func echo() {
	keysOf(func(key byte) {
		if i := int(key - 'a'); i < len(echoMarks) {
			_, _ = os.Stdout.WriteString(echoMarks[i : i+1])
		}
	})
}

// hog: s and a digit paints a spinner for so many seconds, f and a digit floods
// with so many times 8 MiB; both say when they are done.
func hog() {
	kind := byte(0)
	keysOf(func(key byte) {
		n := int(key - '0')
		if n < 0 || n > 9 {
			kind = key
			return
		}
		switch kind {
		case 's':
			spin(time.Duration(n) * time.Second)
		case 'f':
			writeAll(frame(), n*8<<20)
		}
		_, _ = os.Stdout.WriteString("\x1b[H" + string(doneMark))
	})
}

func spin(d time.Duration) {
	tick := time.NewTicker(spinnerPace)
	defer tick.Stop()
	for i := range int(d / spinnerPace) {
		<-tick.C
		_, _ = fmt.Fprintf(os.Stdout, "\x1b[20;1H%s\x1b[20;12H%d", []string{"✶", "✻", "✽"}[i%3], i)
	}
}

func flood(args []string) {
	mib := 1
	if len(args) > 1 {
		mib, _ = strconv.Atoi(args[1]) // 0 floods nothing, which the count of bytes shows
	}
	if _, err := term.MakeRaw(1); err != nil {
		return
	}
	block := frame()
	if args[0] == linesWord {
		block = bytes.Repeat([]byte("\x1b[32mthe quick brown fox\x1b[0m jumps over the lazy dog 0123456789 and again\r\n"), 50)
	}
	writeAll(block, mib<<20)
}

func writeAll(block []byte, n int) {
	for ; n > 0; n -= len(block) {
		if _, err := os.Stdout.Write(block[:min(n, len(block))]); err != nil {
			return
		}
	}
}

// frame is a repaint of a screen, as a TUI does it.
func frame() []byte {
	var b bytes.Buffer
	b.WriteString("\x1b[?2026h\x1b[?25l\x1b[H")
	for y := range rows {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[38;5;%dm✻ row %2d\x1b[0m of a \x1b[1mpainted\x1b[22m screen with words of many colours, as agents draw them\x1b[K", y+1, 16+y, y)
	}
	b.WriteString("\x1b[?25h\x1b[?2026l")
	return b.Bytes()
}
