package door

import "syscall"

func init() {
	role, ok := syscall.Getenv(Role)
	if !ok {
		return
	}
	if path, ok := syscall.Getenv(Exec); ok && role == Agent {
		runAgent(path)
	}
	// Set by somebody else: it means nothing, and it must not travel on.
	_ = syscall.Unsetenv(Role)
}

// runAgent brings H and Z to life in this session and then becomes the agent.
func runAgent(path string) {
	syscall.CloseOnExec(FDControl)
	syscall.CloseOnExec(FDStatus)
	argv, errno := commandLine()
	if errno == 0 {
		startHelper()
		restoreKept()
		env := agentEnv()
		errno = exec(path, argv, env)
		if errno == syscall.ENOEXEC { // a script without #!: every shell hands it to sh
			errno = exec("/bin/sh", append([]string{"/bin/sh", path}, argv[1:]...), env)
		}
	}
	say(StatusFailed, int(errno))
	exit(127)
}

func exec(path string, argv, env []string) syscall.Errno {
	if errno, ok := syscall.Exec(path, argv, env).(syscall.Errno); ok {
		return errno
	}
	return syscall.EINVAL
}

// startHelper starts H as a child of qshim, not of the agent: an agent that
// waits for any child must not meet one that it never made. It returns when Z is
// in its place: an agent that stops itself at once, or one in the background
// that reads at once, is stopped as under a shell. Without H there is no job
// control, and nothing else is lost.
func startHelper() {
	var ready [2]int
	if syscall.Pipe2(ready[:], syscall.O_CLOEXEC) != nil {
		return
	}
	h := helper{group: uintptr(syscall.Getpid()), ready: uintptr(ready[1])}
	h.args, h.argsEnd = argumentMemory()
	pid := h.fork()
	_ = syscall.Close(ready[1])
	if pid > 0 {
		say(StatusHelper, pid)
		var b [1]byte
		readFull(ready[0], b[:]) // if H has died: its end of the pipe is closed
		if back, _ := syscall.Getenv(Back); back == "1" {
			setForeground(0, uintptr(pid))
		}
	}
	_ = syscall.Close(ready[0])
}

// argumentMemory is where the kernel reads this process' command line, as
// /proc/self/stat has it (fields 48 and 49); 0, 0 if it does not say.
func argumentMemory() (from, to uintptr) {
	fd, err := syscall.Open("/proc/self/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0
	}
	defer syscall.Close(fd)
	var buf [1024]byte
	n, _ := syscall.Read(fd, buf[:])
	if n <= 0 {
		return 0, 0
	}
	b, field := buf[:n], 2
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] == ')' { // ends the second field, which may hold anything
			b = b[i+1:]
			break
		}
	}
	for _, c := range b {
		switch {
		case c == ' ':
			field++
		case field == 48 && c >= '0' && c <= '9':
			from = from*10 + uintptr(c-'0')
		case field == 49 && c >= '0' && c <= '9':
			to = to*10 + uintptr(c-'0')
		}
	}
	if from == 0 || to < from || to-from > 1<<21 {
		return 0, 0
	}
	return from, to
}

// commandLine reads the argument vector, which only package os could give,
// from the kernel. It is exact: arguments hold no NUL.
func commandLine() ([]string, syscall.Errno) {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, syscall.ENOSYS
	}
	defer syscall.Close(fd)
	var all []byte
	buf := make([]byte, 4096)
	for {
		n, err := syscall.Read(fd, buf)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		all = append(all, buf[:n]...)
	}
	var argv []string
	for from, i := 0, 0; i < len(all); i++ {
		if all[i] == 0 {
			argv = append(argv, string(all[from:i]))
			from = i + 1
		}
	}
	if len(argv) == 0 {
		return nil, syscall.EINVAL
	}
	return argv, 0
}

// restoreKept gives the agent what its user has opened as FDControl and FDStatus
// (3<file): the helper has its own copies of ours by now.
func restoreKept() {
	kept, _ := syscall.Getenv(Kept)
	if kept == "" {
		return
	}
	fd, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, FDStatus, syscall.F_DUPFD_CLOEXEC, FDStatus+1)
	if errno != 0 {
		return // the agent starts without them
	}
	statusFD = int(fd)
	to, from := FDControl, 0
	for i := 0; i <= len(kept); i++ {
		if i < len(kept) && kept[i] != ',' {
			from = from*10 + int(kept[i]-'0')
			continue
		}
		if from > 0 {
			_ = syscall.Dup3(from, to, 0) // it is open, or the agent goes without
			_ = syscall.Close(from)
		}
		to, from = to+1, 0
	}
}

func agentEnv() []string {
	for _, k := range []string{Role, Exec, Back, Kept} {
		_ = syscall.Unsetenv(k)
	}
	return syscall.Environ()
}

// statusFD is where say writes: FDStatus, until that is the agent's.
var statusFD = FDStatus

func say(what byte, v int) {
	b := [StatusLen]byte{what}
	PutInt(b[1:], v)
	_, _ = syscall.Write(statusFD, b[:])
}

func readFull(fd int, b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Read(fd, b)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

func exit(code int) {
	syscall.Exit(code)
}
