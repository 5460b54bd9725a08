package screen

import "testing"

func TestSmoke(t *testing.T) {
	s := New(20, 5)
	_, _ = s.Write([]byte("hello \x1b[1;31mred\x1b[m\r\n世界 e\u0301"))
	if got := s.Row(0); got != "hello red" {
		t.Errorf("row 0: %q", got)
	}
	if got := s.Row(1); got != "世界 e\u0301" {
		t.Errorf("row 1: %q", got)
	}
	if c := s.Cell(6, 0); c.Style.Attr != Bold || c.Style.Fg != Index(1) {
		t.Errorf("style: %+v", c)
	}
}
