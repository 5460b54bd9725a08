// Shoot draws a terminal screen as SVG: the pictures in the README.
//
//	tmux capture-pane -e -p -t PANE | go run ./cmd/internal/shoot -cols 100 -rows 30 > picture.svg
//
// It reads rows with their colours as tmux captures them.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"strings"

	"qshim/detect/screen"
)

func main() {
	cols := flag.Int("cols", 100, "columns")
	rows := flag.Int("rows", 30, "rows")
	title := flag.String("title", "", "title over the picture")
	flag.Parse()
	if err := shoot(os.Stdin, os.Stdout, *cols, *rows, *title); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "shoot:", err)
		os.Exit(1)
	}
}

// Sizes of one cell and the frame, in SVG units.
const (
	cellW, cellH = 8.4, 18.0
	edge, bar    = 12.0, 30.0
	ink, paper   = "#d4d7dd", "#15171c"
)

func shoot(r io.Reader, w io.Writer, cols, rows int, title string) error {
	in, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s := screen.New(cols, rows)
	in = bytes.TrimSuffix(in, []byte("\n"))
	_, _ = s.Write(bytes.ReplaceAll(in, []byte("\n"), []byte("\r\n"))) // a screen takes anything
	out := bufio.NewWriter(w)
	width, height := float64(cols)*cellW+2*edge, float64(rows)*cellH+2*edge+bar
	_, _ = fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">`+"\n", width, height)
	_, _ = fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	for i, c := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		_, _ = fmt.Fprintf(out, `<circle cx="%d" cy="16" r="5" fill="%s"/>`, 18+16*i, c)
	}
	_, _ = fmt.Fprintf(out, `<text x="50%%" y="20" fill="#8b909a" text-anchor="middle">%s</text>`+"\n", html.EscapeString(title))
	for y := range rows {
		drawRow(out, s, y, cols)
	}
	_, _ = fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

// drawRow draws runs of equal style; each run is pinned to its column so that
// a viewer's font cannot shift what follows.
func drawRow(w io.Writer, s *screen.Screen, y, cols int) {
	top := edge + bar + float64(y)*cellH
	for x := 0; x < cols; {
		from, st := x, s.Cell(x, y).Style
		var text strings.Builder
		for x < cols && s.Cell(x, y).Style == st {
			text.WriteString(s.Cell(x, y).Text)
			x++
		}
		fg, bg := colours(st)
		left, width := edge+float64(from)*cellW, float64(x-from)*cellW
		if bg != paper {
			_, _ = fmt.Fprintf(w, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, left, top, width, cellH, bg)
		}
		words := strings.TrimRight(text.String(), " ")
		if words == "" {
			continue
		}
		_, _ = fmt.Fprintf(w, `<text x="%.1f" y="%.1f" fill="%s" xml:space="preserve"%s textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n",
			left, top+13.5, fg, weight(st), cellW*float64(columns(s, from, y, words)), html.EscapeString(words))
	}
}

// columns counts how many cells the words take from column x on.
func columns(s *screen.Screen, x, y int, words string) int {
	n, left := 0, len(words)
	for left > 0 {
		c := s.Cell(x+n, y)
		left -= len(c.Text)
		n++
	}
	for s.Cell(x+n, y).Width == 0 && s.Cell(x+n, y).Text == "" && n > 0 && s.Cell(x+n-1, y).Width == 2 {
		n++
	}
	return n
}

func weight(st screen.Style) string {
	a := ""
	if st.Attr&screen.Bold != 0 {
		a += ` font-weight="bold"`
	}
	if st.Attr&screen.Dim != 0 {
		a += ` opacity="0.6"`
	}
	if st.Attr&screen.Italic != 0 {
		a += ` font-style="italic"`
	}
	return a
}

func colours(st screen.Style) (fg, bg string) {
	fg, bg = colour(st.Fg, ink), colour(st.Bg, paper)
	if st.Attr&screen.Reverse != 0 {
		fg, bg = bg, fg
	}
	return fg, bg
}

var palette16 = []string{"#2e3138", "#e5636c", "#8cc27a", "#e0b35c", "#6fa4e8", "#c58ad9", "#5fb8c2", "#c8ccd4",
	"#6b717d", "#ff7a84", "#a5db92", "#f3c96f", "#8bb9f5", "#d9a3ea", "#7fd0d9", "#ffffff"}

func colour(c screen.Color, other string) string {
	if r, g, b, ok := c.RGB(); ok {
		return fmt.Sprintf("#%02x%02x%02x", r, g, b)
	}
	i, ok := c.Index()
	switch {
	case !ok:
		return other
	case i < 16:
		return palette16[i]
	case i >= 232:
		v := 8 + 10*int(i-232)
		return fmt.Sprintf("#%02x%02x%02x", v, v, v)
	}
	level := func(n int) int {
		if n == 0 {
			return 0
		}
		return 55 + 40*n
	}
	n := int(i) - 16
	return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
}
