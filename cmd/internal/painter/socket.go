package painter

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A painter and the demo's provider talk over a socket in the file system, a line
// of JSON a message:
//
//	painter:  {"prompt":"agent-1: step 2 of 4"}
//	provider: {"part":"OK: "} … {"end":true}   or   {"refusal":{"status":429,…}}
//
// One connection a question; who hangs up gives it up. Package net would do the
// same in three lines, but qshim stands before every start of an agent, and the
// initialisation of that package, of net/http and of libc, which it is linked
// with, would be a fifth of what each start costs.

// question is what a painter sends.
type question struct {
	Prompt string `json:"prompt"`
}

// answer is one message of the provider's.
type answer struct {
	Part    string   `json:"part,omitempty"`
	End     bool     `json:"end,omitempty"`
	Refusal *Refusal `json:"refusal,omitempty"`
}

// maxMessage bounds a line, in bytes.
const maxMessage = 1 << 20

// OverSocket asks the provider that serves on a socket.
func OverSocket(path string) Ask {
	return func(ctx context.Context, prompt string, part func(string)) error {
		conn, err := dial(path)
		if err != nil {
			return err
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // ends the read
		if err := json.NewEncoder(conn).Encode(question{prompt}); err != nil {
			return err
		}
		return listenTo(conn, part)
	}
}

// listenTo reads an answer to its end.
func listenTo(r io.Reader, part func(string)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return fmt.Errorf("the answer holds no JSON: %w", err)
		}
		switch {
		case a.Refusal != nil:
			return a.Refusal
		case a.End:
			return nil
		}
		part(a.Part)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// address of a socket; a path that is too long for one (107 bytes on Linux, 103
// on macOS) is an error of connect and bind.
func address(path string) unix.Sockaddr { return &unix.SockaddrUnix{Name: path} }

// newSocket is a stream socket that no child inherits.
func newSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	return fd, nil
}

// file makes a descriptor the runtime's to wait for.
func file(fd int, path string) *os.File {
	_ = unix.SetNonblock(fd, true) // a socket of ours: it cannot fail
	return os.NewFile(uintptr(fd), path)
}

func dial(path string) (*os.File, error) {
	fd, err := newSocket()
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, address(path)); err != nil {
		_ = unix.Close(fd) // nothing was sent
		return nil, &os.PathError{Op: "connect", Path: path, Err: err}
	}
	return file(fd, path), nil
}

func listenOn(path string) (*os.File, error) {
	fd, err := newSocket()
	if err != nil {
		return nil, err
	}
	if err = unix.Bind(fd, address(path)); err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		_ = unix.Close(fd) // nobody knows of it yet
		return nil, &os.PathError{Op: "listen", Path: path, Err: err}
	}
	return file(fd, path), nil
}
