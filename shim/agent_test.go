//go:build linux

package shim

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// agentMain is the agent under the wrapper; it ends by itself after two minutes
// whatever happens.
func agentMain(a []string) {
	time.AfterFunc(2*time.Minute, func() { os.Exit(98) })
	a = append(a, "", "", "")
	n, _ := strconv.Atoi(a[1])
	switch a[0] {
	case "exit":
		os.Exit(n)
	case "kill":
		_ = unix.Kill(os.Getpid(), syscall.Signal(n))
		select {}
	case "cat": // raw echo until q
		rawTerminal()
		fmt.Print("READY")
		echoUntilQ()
	case "signals":
		agentSignals()
	case "lines": // cooked: LINE<…> until quit
		fmt.Println("READY")
		for sc := bufio.NewScanner(os.Stdin); sc.Scan() && sc.Text() != "quit"; {
			fmt.Printf("LINE<%s>\n", sc.Text())
		}
		fmt.Println("END-OF-LINES")
	case "late": // reads nothing until SIGUSR1
		c := make(chan os.Signal, 1)
		signal.Notify(c, unix.SIGUSR1)
		fmt.Println("READY")
		<-c
		for sc := bufio.NewScanner(os.Stdin); sc.Scan() && sc.Text() != "quit"; {
			fmt.Printf("LINE<%s>\n", sc.Text())
		}
	case "sizes":
		agentSizes()
	case "eof":
		fmt.Print("READY")
		b, _ := io.ReadAll(os.Stdin)
		fmt.Printf("EOF<%s>", b)
	case "sum": // read n bytes raw, after b[2] bytes of output nobody asked for
		rawTerminal()
		fmt.Print("READY")
		m, _ := strconv.Atoi(a[2])
		_, _ = io.CopyN(os.Stdout, zeros('.'), int64(m))
		h := fnv.New64a()
		_, err := io.CopyN(h, os.Stdin, int64(n))
		fmt.Printf("SUM<%d:%x:%v>", n, h.Sum64(), err)
	case "flood":
		_, _ = io.CopyN(os.Stdout, zeros('x'), int64(n))
		fmt.Print("END-OF-FLOOD")
	case "bytes": // every byte value, raw, in writes of a[2]
		rawTerminal()
		agentBytes(n)
	case "selfstop": // as agents do on Ctrl-Z in raw mode
		agentSelfStop(syscall.Signal(n))
	case "ticks": // counts as fast as it is told to on stdin lines; never stops by itself
		rawTerminal()
		fmt.Print("READY")
		agentTicks()
	case "ttys":
		agentFacts()
	case "grandchild":
		agentGrandchild()
	case "hold":
		signal.Ignore(unix.SIGHUP)
		fmt.Print("HOLDING")
		_, _ = io.ReadAll(os.Stdin)
		select {}
	case "yes":
		for {
			if _, err := os.Stdout.WriteString("yes\n"); err != nil {
				fmt.Fprintln(os.Stderr, "write:", err)
				os.Exit(3)
			}
		}
	}
}

type zeros byte

func (z zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(z)
	}
	return len(b), nil
}

func rawTerminal() (restore func()) {
	old, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	raw := *old
	raw.Iflag &^= unix.ICRNL | unix.IXON | unix.ISTRIP
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
	_ = unix.IoctlSetTermios(0, unix.TCSETS, &raw)
	return func() { _ = unix.IoctlSetTermios(0, unix.TCSETS, old) }
}

func echoUntilQ() {
	b := make([]byte, 256)
	for {
		n, err := os.Stdin.Read(b)
		if n == 0 || err != nil {
			return
		}
		_, _ = fmt.Printf("KEY<%s>", b[:n])
		if strings.ContainsRune(string(b[:n]), 'q') {
			return
		}
	}
}

func agentSignals() {
	c := make(chan os.Signal, 8)
	signal.Notify(c, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGQUIT)
	fmt.Print("READY")
	for s := range c {
		fmt.Printf("GOT<%v>", s)
		if s != unix.SIGUSR1 {
			os.Exit(5)
		}
	}
}

func agentSizes() {
	rawTerminal()
	c := make(chan os.Signal, 8)
	signal.Notify(c, unix.SIGWINCH)
	say := func(w string) {
		z, _ := unix.IoctlGetWinsize(1, unix.TIOCGWINSZ)
		fmt.Printf("%s<%dx%d>", w, z.Col, z.Row)
	}
	say("SIZE")
	go func() {
		for range c {
			say("WINCH")
		}
	}()
	echoUntilQ()
}

func agentBytes(n int) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	fmt.Print("READY[")
	for range n {
		_, _ = os.Stdout.Write(all)
	}
	fmt.Print("]DONE")
}

func agentSelfStop(sig syscall.Signal) {
	restore := rawTerminal()
	c := make(chan os.Signal, 8)
	signal.Notify(c, unix.SIGCONT)
	fmt.Print("READY")
	b := make([]byte, 1)
	for {
		if n, err := os.Stdin.Read(b); n == 0 || err != nil {
			return
		}
		switch b[0] {
		case 0x1a:
			restore()
			_ = unix.Kill(0, sig)
			<-c
			restore = rawTerminal()
			fmt.Print("BACK")
		case 'q':
			restore()
			return
		default:
			fmt.Printf("KEY<%c>", b[0])
		}
	}
}

func agentTicks() {
	b := make([]byte, 1)
	go func() {
		for {
			if n, _ := os.Stdin.Read(b); n == 0 || b[0] == 'q' {
				os.Exit(0)
			}
			fmt.Printf("KEY<%c>", b[0])
		}
	}()
	for i := 0; ; i++ {
		fmt.Printf("T%d.", i)
		time.Sleep(5 * time.Millisecond) // the agent's own pace, nothing waits for it
	}
}

// agentFacts prints what a process can see of where it runs.
func agentFacts() {
	tty := func(fd int) bool { _, err := unix.IoctlGetTermios(fd, unix.TCGETS); return err == nil }
	sid, _ := unix.Getsid(0)
	fg := -1
	for fd := 0; fd < 3 && fg < 0; fd++ {
		if v, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil {
			fg = v
		}
	}
	var fds []string
	for fd := 3; fd < 64; fd++ {
		if fl, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && fl&unix.FD_CLOEXEC == 0 {
			fds = append(fds, strconv.Itoa(fd))
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	_, ign, _ := strings.Cut(string(status), "SigIgn:\t")
	_, blk, _ := strings.Cut(string(status), "SigBlk:\t")
	um := unix.Umask(0)
	cwd, _ := os.Getwd()
	var env []string
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "_QSHIM") || strings.HasPrefix(kv, "TERM=") || strings.HasPrefix(kv, "COLORTERM=") {
			env = append(env, kv)
		}
	}
	fmt.Printf("FACTS{tty=%v%v%v leads=%v front=%v fds=%v ign=%.16s blk=%.16s umask=%o cwd=%s env=%v args=%q}",
		tty(0), tty(1), tty(2), sid == os.Getpid() && unix.Getpgrp() == sid, fg == unix.Getpgrp(), fds, ign, blk, um, cwd, env, os.Args[3:])
	fmt.Fprint(os.Stderr, "TO-STDERR")
}

func agentGrandchild() {
	c := exec.Command("/proc/self/exe", agentArg, "hold")
	r, w, _ := os.Pipe()
	c.Stdin, c.Stdout, c.Stderr = r, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	_ = c.Start()
	fmt.Printf("PID<%d>", c.Process.Pid)
	_ = w
}
