package detect_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

func BenchmarkParseProfile(b *testing.B) {
	data, err := os.ReadFile("../policies/agents/claude.toml")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := detect.ParseProfile("claude.toml", data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is what a launch pays before its agent has said anything.
func BenchmarkStart(b *testing.B) {
	data, err := os.ReadFile("../policies/agents/claude.toml")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p := detect.LazyProfile("claude", func() []byte { return data })
		if !p.HasStreams() {
			b.Fatal("no streams")
		}
		p.Watch(detect.Options{Cols: 120, Rows: 40}).Exit(start, 0)
	}
}

// BenchmarkSpinner is one frame of a busy agent: a glyph and a second counter
// change, nothing else.
func BenchmarkSpinner(b *testing.B) {
	w := profile(b, "claude").Watch(detect.Options{Cols: 120, Rows: 40})
	now := start
	w.Key(now, true)
	var page strings.Builder
	page.WriteString("\x1b]0;◐ Claude Code\a\x1b[2J\x1b[H")
	for i := range 30 {
		fmt.Fprintf(&page, "  line %d of an answer about rate limits and 429 errors\r\n", i)
	}
	page.WriteString("\r\n✻ Brewing… (3s · ↓ 18 tokens)\r\n" + rule80 + "\r\n❯ \r\n" + rule80)
	w.Output(now, []byte(page.String()))
	frames := [][]byte{[]byte("\x1b[32;1H✶\x1b[32;13H4"), []byte("\x1b[32;1H✻\x1b[32;13H5")}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		now = now.Add(80 * time.Millisecond)
		w.Output(now, frames[i&1])
		i++
	}
}

// BenchmarkFlood is bulk output of a tool, in reads of 32 KB.
func BenchmarkFlood(b *testing.B) {
	for _, agent := range []string{"claude", "codex", "generic"} {
		b.Run(agent, func(b *testing.B) {
			w := profile(b, agent).Watch(detect.Options{Cols: 120, Rows: 40})
			now := start
			w.Key(now, true)
			var s strings.Builder
			for i := 0; s.Len() < 32<<10; i++ {
				fmt.Fprintf(&s, "2026-11-29T16:45:00Z INFO request %d served in %d ms, retry after error 429\r\n", i, i%97)
			}
			chunk := []byte(s.String())
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(300 * time.Microsecond)
				w.Output(now, chunk)
			}
		})
	}
}

// busyPage is a watcher on a page about rate limits whose agent works.
func busyPage(tb testing.TB) (w *detect.Watcher, page string, now time.Time) {
	w = profile(tb, "claude").Watch(detect.Options{Cols: 120, Rows: 40})
	now = start
	w.Key(now, true)
	var b strings.Builder
	b.WriteString("\x1b]0;◐ Claude Code\a\x1b[2J\x1b[H")
	for i := range 30 {
		fmt.Fprintf(&b, "  line %d of an answer about rate limits and 429 errors\r\n", i)
	}
	b.WriteString("\r\n✻ Brewing… (3s · ↓ 18 tokens)\r\n" + rule80 + "\r\n❯ \r\n" + rule80)
	w.Output(now, []byte(b.String()))
	return w, b.String(), now.Add(time.Second)
}

// TestUnchangedFrame: a frame that changes nothing costs no allocation, and
// neither does the same page painted again.
func TestUnchangedFrame(t *testing.T) {
	w, page, now := busyPage(t)
	w.Tick(now)
	for name, frame := range map[string][]byte{
		"an empty one":         []byte("\x1b[?2026h\x1b[39m\x1b[49m\x1b[0m\x1b[37;3H\x1b[?25h\x1b[?2026l"),
		"the cursor only":      []byte("\x1b[5;5H\x1b[?25l\x1b[10;3H\x1b[?25h"),
		"the same cells again": []byte(strings.TrimPrefix(strings.ReplaceAll(page, "\x1b[2J", ""), "\x1b]0;◐ Claude Code\a")),
	} {
		n := testing.AllocsPerRun(200, func() {
			now = now.Add(80 * time.Millisecond)
			w.Output(now, frame)
		})
		if n > 0 {
			t.Errorf("%s: %.0f allocations", name, n)
		}
	}
}
