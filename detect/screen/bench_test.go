package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// castBytes is all that the recordings of one agent wrote.
func castBytes(t testing.TB, agent string) []byte {
	var b []byte
	for _, c := range casts(t) {
		if !strings.HasPrefix(c.name, agent) {
			continue
		}
		for _, ev := range c.events {
			if ev.kind == 'o' {
				b = append(b, ev.data...)
			}
		}
	}
	return b
}

// workloads are named streams that end in ground state.
func workloads(t testing.TB) map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	var lines, sgr, wide, colours, clusters strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&lines, "%6d the quick brown fox jumps over the lazy dog, again and again%s\r\n", i, strings.Repeat(".", r.IntN(60)))
		fmt.Fprintf(&sgr, "\x1b[1;%dm%c\x1b[0;38;5;%dm%c\x1b[m", 31+r.IntN(7), 'a'+r.IntN(26), r.IntN(256), 'a'+r.IntN(26))
		fmt.Fprintf(&colours, "\x1b[38;2;%d;%d;%dm\x1b[48;2;%d;%d;%dm▀", r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256))
		wide.WriteString("世界語✳한")
		clusters.WriteString("e\u0301x\u0323👨\u200d👩")
	}
	return map[string][]byte{
		"lines": []byte(lines.String()), "sgr": []byte(sgr.String()), "wide": []byte(wide.String()),
		"truecolour": []byte(colours.String()), "clusters": []byte(clusters.String()),
		"claude": castBytes(t, "claude"), "codex": castBytes(t, "codex"), "gemini": castBytes(t, "gemini"),
	}
}

func BenchmarkWrite(b *testing.B) {
	for name, data := range workloads(b) {
		b.Run(name, func(b *testing.B) {
			s := New(120, 40)
			_, _ = s.Write(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = s.Write(data)
				s.TakeEvents()
			}
		})
	}
}

// BenchmarkWriteChunks writes as a pump reads: 4 KB at a time, with a look at
// the changed rows after each.
func BenchmarkWriteChunks(b *testing.B) {
	data := castBytes(b, "codex")
	s := New(120, 40)
	versions := make([]uint64, 40)
	var text []byte
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		for at := 0; at < len(data); at += 4096 {
			_, _ = s.Write(data[at:min(at+4096, len(data))])
			s.TakeEvents()
			for y := range versions {
				if v := s.RowVersion(y); v != versions[y] {
					versions[y] = v
					text = s.AppendRow(text[:0], y)
				}
			}
		}
	}
}

// TestNoAllocations holds Write to what the benchmarks show: after the first
// pass nothing is allocated.
func TestNoAllocations(t *testing.T) {
	for name, data := range workloads(t) {
		if name == "truecolour" {
			continue // every colour is new: the table is swept now and then
		}
		s := New(120, 40)
		_, _ = s.Write([]byte(strings.Repeat("\n", 300))) // the ring of scrolled rows is full
		for range 3 {
			_, _ = s.Write(data)
			s.TakeEvents()
		}
		if n := testing.AllocsPerRun(10, func() {
			_, _ = s.Write(data)
			s.TakeEvents()
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
