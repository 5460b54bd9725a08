package screen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// cast is an asciicast v2 recording of a real agent.
type cast struct {
	name       string
	cols, rows int
	events     []castEvent
}

type castEvent struct {
	kind byte // 'o' output, 'r' resize
	data string
}

func readCast(t testing.TB, path string) cast {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	c := cast{name: filepath.Base(path)}
	in.Scan()
	var head struct{ Width, Height int }
	if err := json.Unmarshal(in.Bytes(), &head); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	c.cols, c.rows = head.Width, head.Height
	for in.Scan() {
		var ev [3]any
		if err := json.Unmarshal(in.Bytes(), &ev); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if kind := ev[1].(string)[0]; kind == 'o' || kind == 'r' {
			c.events = append(c.events, castEvent{kind, ev[2].(string)})
		}
	}
	return c
}

// casts are the recordings in testdata and, when asked by hand, in another
// directory.
func casts(t testing.TB) []cast {
	t.Helper()
	dirs := []string{"testdata/casts"}
	if d := os.Getenv("QSHIM_SCREEN_CASTS"); d != "" {
		dirs = append(dirs, d)
	}
	var out []cast
	for _, d := range dirs {
		paths, err := filepath.Glob(filepath.Join(d, "*.cast"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			out = append(out, readCast(t, p))
		}
	}
	if len(out) == 0 {
		t.Fatal("no recordings")
	}
	return out
}

func (ev castEvent) size() (cols, rows int) {
	_, _ = fmt.Sscanf(ev.data, "%dx%d", &cols, &rows) // zero sizes fail the test that uses them
	return cols, rows
}

// play writes the recording, each output cut by the function.
func (c cast) play(cut func(string) []string) *Screen {
	s := New(c.cols, c.rows)
	for _, ev := range c.events {
		if ev.kind == 'r' {
			s.Resize(ev.size())
			continue
		}
		for _, part := range cut(ev.data) {
			_, _ = s.Write([]byte(part))
		}
	}
	return s
}

func whole(s string) []string { return []string{s} }

// TestSplits writes recordings cut at random bytes and byte by byte: the same
// screen must come out.
func TestSplits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range casts(t) {
		want := dump(c.play(whole))
		for range 5 {
			got := dump(c.play(func(s string) []string {
				var parts []string
				for len(s) > 0 {
					n := 1 + r.IntN(len(s))
					parts = append(parts, s[:n])
					s = s[n:]
				}
				return parts
			}))
			if got != want {
				t.Errorf("%s differs when cut", c.name)
			}
		}
		got := dump(c.play(func(s string) []string {
			var parts []string
			for i := range len(s) {
				parts = append(parts, s[i:i+1])
			}
			return parts
		}))
		if got != want {
			t.Errorf("%s differs byte by byte", c.name)
		}
	}
}

// TestCastsAgainstTmux replays recordings in tmux too and compares the screens
// several times on the way. After a size change on the main screen it ends:
// tmux reflows, the model does not.
func TestCastsAgainstTmux(t *testing.T) {
	tm := startTmux(t, 80, 24)
	parent := t
	for _, c := range casts(t) {
		t.Run(c.name, func(t *testing.T) {
			tm.t = t
			defer func() { tm.t = parent }()
			tm.playCast(t, c)
		})
	}
}

func (tm *tmux) playCast(t *testing.T, c cast) {
	tm.reset(c.cols, c.rows)
	s := New(c.cols, c.rows)
	every := max(1, len(c.events)/8)
	var held []byte
	for i, ev := range c.events {
		if ev.kind == 'r' {
			if !s.Alt() {
				return
			}
			cols, rows := ev.size()
			s.Resize(cols, rows)
			tm.run("resize-window", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows))
		} else {
			_, _ = s.Write([]byte(ev.data))
			held = append(held, ev.data...)
			if !s.Ground() {
				continue // the feeder's query would come in the middle of a sequence
			}
			tm.write(held)
			held = held[:0]
		}
		if i%every == 0 || i == len(c.events)-1 || ev.kind == 'r' {
			if d := shootScreen(s).diff(tm.shoot(s.Size())); d != "" {
				t.Fatalf("after event %d of %d, model then tmux:\n%s", i, len(c.events), d)
			}
		}
	}
}
