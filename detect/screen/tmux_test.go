package screen

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"
)

// The real tmux is the independent judge of the model. Where the two differ on
// purpose:
//
//   - A wide character of which one half is erased or cut off: tmux keeps the
//     other half (capture-pane then shows a row that is one column short);
//     here, as in xterm and VTE, both halves become blank. The same when the
//     second half is overwritten.
//   - Invalid UTF-8: tmux 3.3a drops it, here it is U+FFFD as in xterm, VTE and
//     kitty.
//   - Any cursor movement ends a pending wrap here, as in xterm and VTE; in tmux
//     LF, RI and VPA keep it, and CUB from it stops in the last column.
//   - IL and DL outside the scroll region do nothing here, as in xterm, VTE and
//     xterm.js; tmux obeys them.
//   - BS at column 0 stays there; tmux goes back to a row that wrapped.
//   - RIS leaves the alternate screen here, as in xterm; tmux stays.
//   - CHT, HPR, VPR, ?1048, newline mode and DECSTR work here; tmux 3.3a does not
//     know them.
//   - DECCOLM (?3) does nothing here, as in xterm by default; tmux clears.
//   - An OSC abandoned by ESC and a byte that is no backslash has no effect here;
//     tmux obeys it.
//   - A wrap at the screen's bottom fills the new row with the pen's background
//     here, as in xterm; in tmux with the default.
//   - A sequence with more than 63 bytes of parameters is obeyed here as in
//     xterm; tmux drops it.
//   - ICH of more than half of what is left of the row: tmux 3.3a leaves some of
//     the old cells standing.
//   - DECSTBM in origin mode goes to the region's home here, as in xterm and VTE;
//     in tmux to the screen's.
//   - A character that wraps in insert mode is inserted here, as in xterm; in tmux
//     it overwrites.
//   - Without autowrap tmux does not write a cell anew of which only the underline
//     colour changes.
//   - ?1049l brings back the character sets too here, as in xterm and xterm.js; in
//     tmux only position and style.
//   - Hexagrams (U+2630, U+268A) and counting rods are wide since Unicode 16,
//     which glibc 2.36 does not know.

const feederSocket = "QSHIM_SCREEN_TEST_FEEDER"

func TestMain(m *testing.M) {
	if path := os.Getenv(feederSocket); path != "" {
		if err := feed(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// feed is this test binary in tmux's pane: it writes what comes from the socket
// to the terminal and answers when the terminal has read it, which it knows
// from the answer to a status query.
func feed(path string) error {
	if _, err := term.MakeRaw(0); err != nil {
		return err
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the process ends here
	in := bufio.NewReader(os.Stdin)
	for {
		var n uint32
		if err := binary.Read(conn, binary.BigEndian, &n); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(conn, b); err != nil {
			return err
		}
		if _, err := os.Stdout.Write(append(b, "\x1b[5n"...)); err != nil {
			return err
		}
		if err := waitFor(in, "\x1b[0n"); err != nil {
			return err
		}
		if _, err := conn.Write([]byte{1}); err != nil {
			return err
		}
	}
}

func waitFor(in *bufio.Reader, answer string) error {
	var got []byte
	for !bytes.HasSuffix(got, []byte(answer)) {
		c, err := in.ReadByte()
		if err != nil {
			return err
		}
		got = append(got, c)
	}
	return nil
}

// tmux is a private server with one pane in which feed runs.
type tmux struct {
	t    testing.TB
	sock string
	conn net.Conn
	keep *os.File // handed to the server, which closes it by exiting
}

// watchServer prepares a wait for the server's end: it is no child of ours, but
// holds the other end of a pipe.
func (tm *tmux) watchServer() (gone func()) {
	r, w, err := os.Pipe()
	if err != nil {
		tm.t.Fatal(err)
	}
	tm.keep = w
	return func() {
		_ = r.SetReadDeadline(time.Now().Add(20 * time.Second)) // a pipe has deadlines
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			tm.t.Errorf("tmux does not end: %v", err)
		}
		_ = r.Close()
	}
}

const tmuxConf = `
set -g status off
set -g allow-rename off
`

// startTmux skips the test where there is no tmux 3.3a, whose very behaviour is
// what the model is measured against.
func startTmux(t testing.TB, cols, rows int) *tmux {
	t.Helper()
	out, err := exec.Command("tmux", "-V").Output()
	if err != nil {
		t.Skip("no tmux here: apt-get install tmux")
	}
	if v := strings.TrimSpace(string(out)); v != "tmux 3.3a" {
		t.Skipf("the expectations are those of tmux 3.3a, this is %s", v)
	}
	dir, err := os.MkdirTemp("", "qshimscreen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "feed"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // only one connection was wanted
	tm := &tmux{t: t, sock: filepath.Join(dir, "tmux")}
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, []byte(tmuxConf), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := tm.watchServer()
	tm.run("-f", conf, "new-session", "-d", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows),
		"env "+feederSocket+"="+filepath.Join(dir, "feed")+" "+os.Args[0])
	_ = tm.keep.Close() // the server has its own copy
	tm.keep = nil
	t.Cleanup(gone)
	_ = l.(*net.UnixListener).SetDeadline(time.Now().Add(20 * time.Second)) // a unix listener has deadlines
	tm.conn, err = l.Accept()
	if err != nil {
		tm.run("kill-server")
		t.Fatalf("the feeder in the pane did not come: %v", err)
	}
	// Without the connection the feeder ends, and with its last pane the server,
	// also when this process is killed.
	t.Cleanup(func() { _ = tm.conn.Close() })
	return tm
}

func (tm *tmux) run(args ...string) string {
	tm.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", tm.sock}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=", "TERM=xterm-256color")
	if tm.keep != nil {
		cmd.ExtraFiles = []*os.File{tm.keep}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		tm.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// write returns when tmux has obeyed the bytes.
func (tm *tmux) write(b []byte) {
	tm.t.Helper()
	_ = tm.conn.SetDeadline(time.Now().Add(20 * time.Second)) // a unix connection has deadlines
	if err := binary.Write(tm.conn, binary.BigEndian, uint32(len(b))); err != nil {
		tm.t.Fatal(err)
	}
	if _, err := tm.conn.Write(b); err != nil {
		tm.t.Fatal(err)
	}
	var one [1]byte
	if _, err := io.ReadFull(tm.conn, one[:]); err != nil {
		tm.t.Fatalf("tmux did not answer after %q: %v", b, err)
	}
}

// reset makes the pane blank, as new as tmux can, in the wanted size.
func (tm *tmux) reset(cols, rows int) {
	tm.t.Helper()
	tm.write([]byte("\x18\x1b[?1049l\x1bc\x1b[m\x1b7\x1b[H"))
	tm.run("clear-history", ";", "resize-window", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows))
	tm.write([]byte("\x1bc"))
}

// shot is a screen as it can be compared.
type shot struct {
	rows []string
	x, y int
	alt  bool
	cell [][]Cell
}

const shotFormat = "@@#{cursor_x} #{cursor_y} #{alternate_on}"

// shoot takes tmux's screen. The styled rows are read by a Screen of our own,
// but from tmux's rendering, which knows no other sequences than SGR.
func (tm *tmux) shoot(cols, rows int) shot {
	tm.t.Helper()
	out := tm.run("capture-pane", "-p", "-e", "-N", ";", "display-message", "-p", shotFormat)
	at := strings.LastIndex(out, "@@")
	text, state := out[:at], out[at+2:]
	var sh shot
	var alt int
	if _, err := fmt.Sscan(state, &sh.x, &sh.y, &alt); err != nil {
		tm.t.Fatalf("%q: %v", state, err)
	}
	sh.alt = alt == 1
	sh.x = min(sh.x, cols-1)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	r := New(cols, rows)
	_, _ = r.Write([]byte("\x1b)0"))
	for y, line := range lines {
		_, _ = fmt.Fprintf(r, "\x1b[%dH%s", y+1, line)
	}
	own := shootScreen(r)
	sh.rows, sh.cell = own.rows, own.cell
	return sh
}

func shootScreen(s *Screen) shot {
	sh := shot{alt: s.Alt()}
	sh.x, sh.y = s.Cursor()
	for y := range s.rows {
		sh.rows = append(sh.rows, s.Row(y))
		var cells []Cell
		for x := range s.cols {
			cells = append(cells, s.Cell(x, y))
		}
		sh.cell = append(sh.cell, cells)
	}
	return sh
}

// diff says where two shots differ, "" if nowhere. Styles count up to the last
// glyph of a row: capture-pane does not show the background of erased cells
// behind it.
func (sh shot) diff(other shot) string {
	var b strings.Builder
	if sh.x != other.x || sh.y != other.y || sh.alt != other.alt {
		fmt.Fprintf(&b, "cursor %d,%d alt %v; other %d,%d alt %v\n", sh.x, sh.y, sh.alt, other.x, other.y, other.alt)
	}
	for y := range sh.rows {
		if y >= len(other.rows) || sh.rows[y] != other.rows[y] {
			fmt.Fprintf(&b, "row %d\n  %q\n  %q\n", y, sh.rows[y], other.rows[y])
			continue
		}
		for x := range lastGlyph(sh.cell[y]) + 1 {
			c, o := sh.cell[y][x], other.cell[y][x]
			o.Style.Link, c.Style.Link = false, false
			c.Style.Attr &^= Overline // capture-pane renders it as 5:3
			if c != o {
				fmt.Fprintf(&b, "cell %d,%d\n  %+v\n  %+v\n", x, y, c, o)
				break
			}
		}
	}
	return b.String()
}

func lastGlyph(cells []Cell) int {
	x := len(cells) - 1
	for x >= 0 && cells[x].Blank() {
		x--
	}
	return x
}
