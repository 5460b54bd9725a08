package term

import (
	"reflect"
	"testing"
)

func TestDecode(t *testing.T) {
	plain := func(r rune) Key { return Key{Kind: Plain, Rune: r} }
	ctrl := func(r rune) Key { return Key{Kind: Ctrl, Rune: r} }
	other, report := Key{Kind: Other}, Key{Kind: Report}
	for in, want := range map[string][]Key{
		"r":                        {plain('r')},
		"\x03":                     {ctrl('c')},
		"\x1a":                     {ctrl('z')},
		"\r":                       {{Kind: Enter}},
		"é世":                       {plain('é'), plain('世')},
		"\x1b":                     {other},
		"\x1br":                    {other},
		"\x1b[A\x1bOP":             {other, other},
		"\x1b[114u":                {plain('r')},
		"\x1b[99;5u":               {ctrl('c')},
		"\x1b[99;69u":              {ctrl('c')}, // with Caps Lock
		"\x1b[99;5:3u":             {report},    // released
		"\x1b[13u":                 {{Kind: Enter}},
		"\x1b[27;5;99~":            {ctrl('c')},
		"\x1b[<35;10;20Mq":         {report, plain('q')},
		"\x1b[M !!q":               {report, plain('q')},
		"\x1b[I\x1b[Oq":            {report, report, plain('q')},
		"\x1b[12;40R":              {{Kind: Cursor, Row: 11, Col: 39}},
		"\x1b[200~rrr\r\x1b[201~q": {{Kind: Paste}, plain('q')},
		"\x1b]11;rgb:0/0/0\x1b\\q": {report, plain('q')},
		"\x1b[?62;4cq":             {report, plain('q')},
	} {
		var k Keys
		if got := k.Decode([]byte(in)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
}

// However the bytes are cut, the keys are the same, except that an ESC at the
// end of a piece is a key.
func TestDecodeInPieces(t *testing.T) {
	in := "a\x1b[<0;1;1Mr\x1b[99;5u世\x1b[200~x\ry\x1b[201~q\x1b[3;4R"
	var k Keys
	want := k.Decode([]byte(in))
	for cut := 1; cut < len(in); cut++ {
		if in[cut-1] == 0x1b {
			continue
		}
		var k Keys
		got := append(k.Decode([]byte(in[:cut])), k.Decode([]byte(in[cut:]))...)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("cut at %d: got %v, want %v", cut, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("a\x1b[<0;1;1Mr\x1b[99;5u"), 3)
	f.Add([]byte("\x1b[200~"), 1)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var k Keys
		cut = max(0, min(cut, len(b)))
		n := len(k.Decode(b[:cut])) + len(k.Decode(b[cut:]))
		if n > len(b) {
			t.Fatalf("%d keys from %d bytes", n, len(b))
		}
		if len(k.rest) > maxRest {
			t.Fatalf("%d bytes left over", len(k.rest))
		}
	})
}
