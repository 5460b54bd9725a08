package screen

import "testing"

// TestFramed: what was painted in a synchronised update that has ended, row by
// row, by whatever stood there and came before.
func TestFramed(t *testing.T) {
	const on, off = "\x1b[?2026h", "\x1b[?2026l"
	for name, c := range map[string]struct {
		in   string
		want string // a letter a row: f framed
	}{
		"nothing":                {"", "..."},
		"loose":                  {"a\r\nb", "..."},
		"in an update":           {on + "a\r\nb" + off, "ff."},
		"not ended":              {on + "a", "..."},
		"ended by a reset":       {on + "a\x1b[!p\x1bc", "..."},
		"one of two is open":     {on + "a" + off + on + "\r\nb", "f.."},
		"two of them":            {on + "a" + off + on + "\r\nb" + off, "ff."},
		"loose before":           {"a" + on + "\r\nb" + off, ".f."},
		"loose behind":           {on + "a" + off + "\r\nb", "f.."},
		"loose over it":          {on + "a" + off + "b", "..."},
		"painted over":           {"a" + on + "\rb" + off, "f.."},
		"the same painted again": {"a" + on + "\ra" + off, "..."},
		"begun twice":            {on + "a" + on + "\r\nb" + off, "ff."},
		"ended twice":            {on + "a" + off + "\r\nb" + off, "f.."},
		"loose between":          {on + "a" + off + "\r\nb" + on + "\r\nc" + off, "..f"},
	} {
		for _, whole := range []bool{true, false} {
			s := New(10, 3)
			if whole {
				s.Write([]byte(c.in))
			}
			for i := range c.in {
				if !whole {
					s.Write([]byte(c.in[i : i+1]))
				}
			}
			got := ""
			for y := range 3 {
				got += map[bool]string{true: "f", false: "."}[s.Framed(y)]
			}
			if got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
	}
	if s := New(10, 3); s.Framed(-1) || s.Framed(3) {
		t.Error("rows that are not there")
	}
}
