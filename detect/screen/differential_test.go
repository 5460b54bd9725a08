package screen

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// genOps makes random but structured output. It steers around what tmux is
// known to do differently (the list in tmux_test.go), which needs the state of
// the terminal: it asks the model as it goes.
type gen struct {
	r    *rand.Rand
	s    *Screen
	wide bool // wide and combining characters; then fewer ways to cut them in half
	ops  []string
}

func (g *gen) emit(op string) {
	_, _ = g.s.Write([]byte(op))
	g.ops = append(g.ops, op)
}

func (g *gen) emitf(format string, args ...any) { g.emit(fmt.Sprintf(format, args...)) }

func (g *gen) n(n int) int { return g.r.IntN(n) }

// count is small most of the time and sometimes absurd.
func (g *gen) count() int {
	if g.n(12) == 0 {
		return []int{0, 77, 500, 65535, 2000000000}[g.n(5)]
	}
	return 1 + g.n(4)
}

// settle ends a pending wrap, which tmux keeps over some movements.
func (g *gen) settle() {
	if g.s.PendingWrap() {
		g.emit("\r")
	}
}

var (
	narrowWords = []string{"a", "limit", "resets 5pm", "0123456789", "~", " ", "  x"}
	wideWords   = []string{"世界", "a語b", "e\u0301", "x\u0323\u0301", "👨\u200d👩", "✳ ", "한", "é", "界"}
)

func (g *gen) text() {
	var b strings.Builder
	for range 1 + g.n(4) {
		if g.wide && g.n(2) == 0 {
			b.WriteString(wideWords[g.n(len(wideWords))])
		} else {
			b.WriteString(narrowWords[g.n(len(narrowWords))])
		}
	}
	text := b.String()
	if g.s.st.insert {
		text = text[:min(len(text), g.s.cols-g.s.x)]
	}
	if g.s.x+len(text) > g.s.cols { // a wrap at the bottom shows the background
		g.emit("\x1b[49m")
	}
	g.emit(text)
}

func (g *gen) move() {
	cols, rows := g.s.Size()
	x, y := 1+g.n(cols), 1+g.n(rows)
	if g.wide {
		x = 1
	}
	switch g.n(10) {
	case 0, 1, 2:
		g.emitf("\x1b[%d;%dH", y, x)
	case 3:
		g.settle()
		g.emitf("\x1b[%dd", y)
		if g.wide {
			g.emit("\r")
		}
	case 4:
		g.emitf("\x1b[%dG", x)
	case 5:
		g.emitf("\x1b[%d%c", g.count(), "EF"[g.n(2)])
	case 6, 7:
		g.settle()
		g.emitf("\x1b[%d%c", g.count(), "ABCD"[g.n(4)])
		if g.wide {
			g.emit("\r")
		}
	case 8:
		if x, _ := g.s.Cursor(); x > 0 && !g.wide {
			g.emit("\b")
		}
	case 9:
		g.emit("\r")
	}
}

func (g *gen) feed() {
	g.settle()
	if g.wide {
		g.emit("\r")
	}
	g.emit([]string{"\n", "\r\n", "\v", "\x1bD", "\x1bE", "\x1bM", "\r\n\n"}[g.n(7)])
}

func (g *gen) erase() {
	if g.wide {
		g.emit("\r")
	}
	switch g.n(4) {
	case 0:
		what := []int{0, 0, 1, 2}[g.n(4)]
		if g.wide && what == 1 {
			what = 0
		}
		g.emitf("\x1b[%dJ", what)
	case 1, 2:
		g.emitf("\x1b[%dK", g.n(3))
		if g.wide {
			g.emit("\x1b[2K")
		}
	case 3:
		if !g.wide {
			g.emitf("\x1b[%dX", g.count())
		}
	}
}

func (g *gen) shift() {
	g.settle()
	switch g.n(4) {
	case 0:
		switch x, _ := g.s.Cursor(); {
		case g.wide:
		case g.n(2) == 0:
			g.emitf("\x1b[%dP", g.count())
		default:
			g.emitf("\x1b[%d@", min(g.count(), max(1, (g.s.cols-x)/2)))
		}
	case 1, 2:
		if g.s.y >= g.s.top && g.s.y <= g.s.bot {
			g.emitf("\x1b[%d%c", g.count(), "LM"[g.n(2)])
		}
	case 3:
		g.emitf("\x1b[%d%c", g.count(), "ST"[g.n(2)])
	}
}

var sgrs = []string{
	"0", "1", "2", "3", "4", "7", "8", "9", "22", "23", "24", "27", "28", "29", "31", "42", "39", "49",
	"93", "104", "38;5;208", "48;5;17", "38;2;1;2;3", "48;2;250;128;7", "38:2::9:8:7", "38:5:99", "48:2:1:1:1",
	"1;4;35", "4:3", "58;5;3", "58:2::1:2:3", "59", "21", "", "0;7;36", "53", "55",
}

func (g *gen) style() {
	sgr := sgrs[g.n(len(sgrs))]
	if strings.HasPrefix(sgr, "58") && !g.s.st.wrap {
		return
	}
	g.emitf("\x1b[%sm", sgr)
}

func (g *gen) mode() {
	_, rows := g.s.Size()
	switch g.n(12) {
	case 0, 1:
		top := 1 + g.n(rows)
		g.emit("\x1b[?6l")
		g.emitf("\x1b[%d;%dr", top, top+g.n(rows))
	case 2:
		g.emit("\x1b[?6l\x1b[r")
	case 3:
		g.emitf("\x1b[?6%c", "hl"[g.n(2)])
	case 4:
		g.settle()
		if !g.wide {
			g.emitf("\x1b[59m\x1b[?7%c", "hl"[g.n(2)])
		}
	case 5:
		if !g.wide {
			g.emitf("\x1b[4%c", "hl"[g.n(2)])
		}
	case 6:
		g.settle()
		g.emit("\x1b7")
	case 7:
		if !g.wide {
			g.emit("\x1b8")
		}
	case 8:
		g.settle()
		g.emit("\x1b[?1049h")
	case 9:
		if g.s.Alt() && !g.wide {
			g.emit("\x1b[?1049l\x0f\x1b(B\x1b)B")
		}
	case 10:
		g.emit([]string{"\x1b[?25l", "\x1b[?2026h", "\x1b]0;✳ t\a", "\x1b[?2004h", "\x1b_x\x1b\\", "\x1bPq\x1b\\"}[g.n(6)])
	case 11:
		if !g.wide {
			g.emit([]string{"\x1b(0", "\x1b(B", "\x1b)0", "\x0e", "\x0f"}[g.n(5)])
		}
	}
}

func (g *gen) tabs() {
	if g.wide {
		return
	}
	g.settle()
	switch g.n(6) {
	case 0, 1, 2:
		g.emit("\t")
	case 3:
		g.emit("\x1bH")
	case 4:
		g.emitf("\x1b[%dZ", g.count())
	case 5:
		g.emitf("\x1b[%dg", []int{0, 3}[g.n(2)])
	}
}

func (g *gen) step() {
	switch g.n(20) {
	case 0, 1, 2, 3, 4:
		g.text()
	case 5, 6, 7, 8:
		g.move()
	case 9, 10:
		g.feed()
	case 11, 12:
		g.erase()
	case 13, 14:
		g.shift()
	case 15, 16:
		g.style()
	case 17, 18:
		g.mode()
	case 19:
		g.tabs()
		if g.n(3) == 0 && !g.wide {
			g.emitf("x\x1b[%db", g.count())
		}
	}
}

func randomOps(seed uint64, cols, rows int, wide bool) []string {
	g := &gen{r: rand.New(rand.NewPCG(seed, 0)), s: New(cols, rows), wide: wide}
	for range 40 {
		g.step()
	}
	if wide {
		g.emit("\x1b[m")
	}
	return g.ops
}

// TestRandomAgainstTmux compares whole screens after random output: rows,
// cursor, and the style of every cell up to a row's last glyph.
func TestRandomAgainstTmux(t *testing.T) {
	tm := startTmux(t, 80, 24)
	seeds := uint64(300)
	if n, err := strconv.ParseUint(os.Getenv("QSHIM_SCREEN_SEEDS"), 10, 64); err == nil {
		seeds = n // a longer search by hand
	}
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		cols, rows := 10+int(seed%4)*7, 3+int(seed%5)
		ops := randomOps(seed, cols, rows, seed%3 == 2)
		if d := tm.compare(ops, cols, rows); d != "" {
			ops = tm.firstDifference(ops, cols, rows)
			t.Fatalf("seed %d, %dx%d, model then tmux:\n%s\nafter %q", seed, cols, rows, tm.compare(ops, cols, rows), ops)
		}
	}
}

func (tm *tmux) compare(ops []string, cols, rows int) string {
	s := New(cols, rows)
	in := strings.Join(ops, "")
	_, _ = s.Write([]byte(in))
	tm.reset(cols, rows)
	tm.write([]byte(in))
	return shootScreen(s).diff(tm.shoot(cols, rows))
}

// firstDifference is the shortest beginning of ops after which the screens
// differ. Taking operations out of the middle would take the steering out too.
func (tm *tmux) firstDifference(ops []string, cols, rows int) []string {
	for n := 1; n < len(ops); n++ {
		if tm.compare(ops[:n], cols, rows) != "" {
			return ops[:n]
		}
	}
	return ops
}
